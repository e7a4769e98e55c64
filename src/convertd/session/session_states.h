/* SPDX-License-Identifier: BSD-3-Clause */
/* session_states.h - what a session does in each of its states */
#ifndef CONVERTD_SESSION_STATES_H
#define CONVERTD_SESSION_STATES_H

#include "convertd/session/session_private.h"

/* Closes the session; its sockets go when it is freed. */
void session_close(struct session *s, enum outcome outcome);

/* Closes the session without a word, for what exceeds a limit: by a reset, and without a line in the log for each. */
void session_drop(struct session *s, enum outcome outcome);

/* Ends a session that has to make room: its client is told, if it waits for an answer and is there. */
void session_make_room(struct session *s, enum outcome reason);

/* Looks whether the client has completed its handshake; sets confirmed and established. */
void session_look_upstream(struct session *s);

/* Does what the state allows, with the sockets as ready as they are. */
void session_handle(struct session *s);

/* Does what the state wants when the deadline is over. */
void session_handle_deadline(struct session *s);

/* Does what the state wants when the time is over in which the client had to complete its handshake. */
void session_handle_no_proof(struct session *s);

#endif
