/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.h - how the call of a connection is answered: success, an error, or a direct connection */
#ifndef SUPERVISE_ENDS_H
#define SUPERVISE_ENDS_H

#include "supervise/connection.h"

/* Answers with @error, for the @reason that the log is told. */
void ends_fail(struct connection *connection, int error, const char *reason);

/* The program has shut the socket down while it was connecting, which ends the attempt: the call fails as a direct one does. */
void ends_shut(struct connection *connection);

/* Has the program's descriptors refer to the socket that was connected. Returns false after the call was answered. */
bool ends_hand_over(struct connection *connection);

/* Begins a connection to the server itself. A call that doesn't wait is answered, by the kernel's own next events. */
void ends_go_directly(struct connection *connection);

/* That connection was made: answers the call. */
void ends_directly(struct connection *connection);

/* The server was reached by way of the converter: answers the call. */
void ends_reached(struct connection *connection);

/* A blind request is on its way: answers the call. All that follows is the kernel's to say, and no byte will be Convert's. */
void ends_blindly(struct connection *connection);

#endif
