/* SPDX-License-Identifier: BSD-3-Clause */
/* attempt.h - ask a converter, or the server itself: the socket that fits, the SYN, and what goes with it */
#ifndef SUPERVISE_ATTEMPT_H
#define SUPERVISE_ATTEMPT_H

#include "client/converters.h"
#include "supervise/connection.h"

/* Why no converter was asked. */
struct attempt_refusal {
	const char *reason;
	enum policy_verdict verdict; /* POLICY_CONVERT: it should have been */
	int error;                   /* for the program, if it doesn't go directly */
};

/*
 * attempt_next() - ask the next converter that wasn't tried
 * Returns true if one is asked now, or a name is being looked up for that. Otherwise @refusal says why not.
 */
bool attempt_next(struct connection *connection, struct attempt_refusal *refusal);

/* The converters that may be asked for the connection. */
struct converters_query attempt_query(const struct connection *connection);

/* Asks that converter, at that address. Returns 0 or -errno. */
int attempt_by(struct connection *connection, const union sockaddr_ip *addr, int converter);

/*
 * attempt_blindly() - ask the converter of the attempt before again, blindly; the socket isn't connected
 * Returns whether it was. If not, nothing is under way.
 */
bool attempt_blindly(struct connection *connection);

/* Has the connection be looked at at that time, or when its path is to be looked at, if that is earlier. */
void attempt_look_at(struct connection *connection, int64_t at);

/* The request as it was sent. */
struct handshake_ask attempt_ask_of(const struct connection *connection);

/* The request with the early data behind it, as it was or is to be sent. Returns its length, or -errno. */
ssize_t attempt_message(const struct connection *connection, uint8_t out[static CONNECTION_MESSAGE_MAX]);

/* Ends the attempt, by a reset if need be, so that the socket can be connected again. */
void attempt_disconnect(struct connection *connection);

/* Asks the same converter again, after attempt_disconnect(). Returns 0 or -errno. */
int attempt_again(struct connection *connection);

/* Likewise, by another ride. */
int attempt_anew(struct connection *connection, enum ride ride);

/*
 * Sends what is left of the request and the data behind it. Returns 0, -EAGAIN if not all of it could be sent, or another
 * -errno.
 */
int attempt_send_rest(struct connection *connection);

/*
 * attempt_directly() - begin a connection to the server itself
 * By plain TCP, unless the program itself has made an MPTCP socket. Returns 0 if it is under way, or -errno.
 */
int attempt_directly(struct connection *connection);

#endif
