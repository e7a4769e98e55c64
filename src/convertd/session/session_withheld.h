/* SPDX-License-Identifier: BSD-3-Clause */
/* session_withheld.h - sessions whose SYN was withheld: the server's socket, or the error, is there already */
#ifndef CONVERTD_SESSION_WITHHELD_H
#define CONVERTD_SESSION_WITHHELD_H

#include "convertd/session/session_private.h"

/* The client has connected: takes what was done for its SYN out of the table, if there is something. */
void session_take_withheld(struct session *s);

/* Undoes what was done for the SYN and isn't needed: the connection to the server is reset. */
void session_drop_withheld(struct session *s);

/* What was done for a SYN. */
struct session_withheld {
	int fd;                          /* the server's socket, which may still be connecting and is the caller's; or -1 for this reason: */
	struct downstream_error refusal;
	bool answered;                   /* the server has answered */
	int registration;                /* of the socket with this worker's poller, or POLLER_NONE */
	uint32_t events;                 /* what the poller has told of it */
};

/* Takes what was done for the SYN of the session. */
struct session_withheld session_open_withheld(struct session *s);

#endif
