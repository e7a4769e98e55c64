/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.h - answers the call of a connection: with success, an error, or a direct connection */
#ifndef SUPERVISE_ENDS_H
#define SUPERVISE_ENDS_H

#include "supervise/connection.h"

/* Answers with @error, and logs the @reason. */
void ends_fail(struct connection *connection, int error, const char *reason);

/* Ends the attempt after the program has shut the connecting socket down: the call fails as a direct one does. */
void ends_shut(struct connection *connection);

/* Puts the connected socket under the program's descriptors. On failure answers the call and returns false. */
bool ends_hand_over(struct connection *connection);

/* Begins a direct connection. A non-blocking call is answered at once, and the kernel reports the rest. */
void ends_go_directly(struct connection *connection);

/* Answers the call after the direct connection was made. */
void ends_directly(struct connection *connection);

/* Answers the call after the converter has reached the server. */
void ends_reached(struct connection *connection);

/* Answers the call after a blind request was sent. The kernel reports the rest, and the stream has no bytes of Convert. */
void ends_blindly(struct connection *connection);

#endif
