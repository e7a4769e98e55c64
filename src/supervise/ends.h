/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.h - how the call of a connection is answered: success, an error, or a direct connection */
#ifndef SUPERVISE_ENDS_H
#define SUPERVISE_ENDS_H

#include "supervise/connection.h"

/* Writes what has become of a connection into the log. */
void ends_log(const struct connection *connection, const char *verdict, const char *detail);

/* Answers with @error, for the @reason that the log is told. */
void ends_fail(struct connection *connection, int error, const char *reason);

/* The program has shut the socket down while it was connecting, which ends the attempt: the call fails as a direct one does. */
void ends_shut(struct connection *connection);

/* Has the program's descriptors refer to the socket that was connected. Returns false after the call was answered. */
bool ends_hand_over(struct connection *connection);

/* The kernel itself was asked not to wait. Where the program does, the kernel is told that all is well: EISCONN comes next. */
void ends_settle(const struct connection *connection, const union sockaddr_ip *peer);

/* Begins a connection to the server itself. A call that doesn't wait is answered, by the kernel's own next events. */
void ends_go_directly(struct connection *connection);

/* That connection was made: answers the call. */
void ends_directly(struct connection *connection);

#endif
