/* SPDX-License-Identifier: BSD-3-Clause */
/* session_withheld.h - sessions whose SYN was withheld: the server's socket, or the error, is there already */
#ifndef CONVERTD_SESSION_WITHHELD_H
#define CONVERTD_SESSION_WITHHELD_H

#include "convertd/session/session_private.h"

/* The client has connected: takes what was done for its SYN out of the table, if there is something. */
void session_take_withheld(struct session *s);

/* Undoes what was done for the SYN and isn't needed: the connection to the server is reset. */
void session_drop_withheld(struct session *s);

/* Returns the server's socket, which may still be connecting and is the caller's, or -1 with @refusal set. */
int session_open_withheld(struct session *s, struct downstream_error *refusal);

#endif
