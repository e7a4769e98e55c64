/* SPDX-License-Identifier: BSD-3-Clause */
/* reached.h - the server was reached, or nothing more will be said of it: the call succeeds */
#ifndef SUPERVISE_REACHED_H
#define SUPERVISE_REACHED_H

#include "supervise/connection.h"

/*
 * The server was reached, as the response @told says, or the SYN+ACK to a silent request, to which there is none. Return false, with
 * nothing done, if Multipath TCP is lost behind the handshake, so that the connection has to begin anew; else it is answered and forgotten.
 */
bool reached_by_response(struct connection *connection, const struct handshake_step *told);
bool reached_silently(struct connection *connection);

/* A blind request is on its way: all that follows is the kernel's to say, and no byte will be Convert's. */
void reached_blindly(struct connection *connection);

#endif
