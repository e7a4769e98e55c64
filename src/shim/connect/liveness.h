/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liveness.h - is a converter that is silent behind its SYN+ACK still there?
 *
 * Behind the handshake nothing of ours is in flight, so that a converter which has no state of the connection any
 * more (its reset was lost), or packets that vanish on the way, would never be noticed. TCP's keepalive asks: our own
 * is in force while a connection is pending and its converter has been silent for a while. What the application has set
 * is kept meanwhile, told when it asks, and put back when the socket is let go.
 */
#ifndef SHIM_LIVENESS_H
#define SHIM_LIVENESS_H

#include "shim/socket/conn.h"

/* Sets the deadline of a converter that is being sent a request, and has @timeout_ms (CONVERT_TIMEOUT) to answer. */
void liveness_begin(struct conn *conn, unsigned int timeout_ms);

/*
 * liveness_go_on() - right after liveness_begin(), for a converter that is asked anew
 * Its time is over at @ends, as conn.attempt.ends was before, but it has half of CONVERT_TIMEOUT at least.
 */
void liveness_go_on(struct conn *conn, int64_t ends);

enum liveness {
	LIVENESS_EARLY, /* CONVERT_TIMEOUT is not over */
	LIVENESS_DEAD,  /* nothing comes at all: the converter's fault, or its path's */
	LIVENESS_GONE,  /* it has reset the connection, which the socket doesn't tell by itself */
	LIVENESS_ALIVE, /* CONVERT_TIMEOUT is over, and it isn't dead as far as is known: the silence may be the server's */
};

/*
 * liveness_look() - the deadline of @conn, pending and claimed, is over: what is known of its converter?
 * Unless it is dead, the deadline is set to when it has to be looked at again.
 */
enum liveness liveness_look(struct conn *conn, int fd, unsigned int timeout_ms);

/*
 * liveness_speaks() - a part of the response is there: has some of it come within CONVERT_TIMEOUT?
 * Then it isn't silent yet, and the deadline is when it will have been.
 */
bool liveness_speaks(struct conn *conn, int fd, unsigned int timeout_ms);

/* Puts the application's options in force again. @conn is claimed. */
void liveness_end(struct conn *conn, int fd);

/* The application has just set an option: if it is one of keepalive's it is kept, and ours is in force again. */
void liveness_note(struct conn *conn, int fd, int level, int name);

/* Tells what the application has set where our value is in force instead. Returns false if it isn't, or for another option. */
bool liveness_kept(const struct conn *conn, int level, int name, int *value);

#endif
