/* SPDX-License-Identifier: BSD-3-Clause */
/* connection_operations.h - what the engine does to a supervised program's socket (engine/dial.h) */
#ifndef SUPERVISE_CONNECTION_OPERATIONS_H
#define SUPERVISE_CONNECTION_OPERATIONS_H

#include "supervise/connection.h"

/* Has the connection's dial use its socket. @peer: the server */
void connection_operations_begin(struct connection *connection, const union sockaddr_ip *peer);

/* Ends the attempt, by a reset if need be, so that the socket can be connected again, and gives the program its keepalive back. */
void connection_disconnect(struct connection *connection);

/* Gives the program its keepalive back, if ours is on. */
void connection_probes_end(struct connection *connection);

/*
 * connection_connect() - connect(2) that doesn't block, whatever the mode of the program's socket, which is shared with the program
 * Others of its threads see the mode change for a moment in which the socket isn't connected, so that their calls fail in any case.
 * Returns 0 if it is under way, or -errno.
 */
int connection_connect(int fd, const union sockaddr_ip *to);

/* The dials' connection. */
struct connection *connection_of_dial(const struct dial *dial);

#endif
