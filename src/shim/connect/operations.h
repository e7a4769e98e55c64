/* SPDX-License-Identifier: BSD-3-Clause */
/* operations.h - what the engine does to an application's socket (engine/dial.h), and what is done beside it */
#ifndef SHIM_OPERATIONS_H
#define SHIM_OPERATIONS_H

#include "shim/socket/conn.h"

/* @settings: kept, must stay. Before any connection. */
void operations_init(const struct settings *settings);

/*
 * operations_begin() - a call to connect @conn, which is claimed and was reset by conn_begin(), to @server begins
 * Asks the kernel whether the application has chosen a network.
 */
void operations_begin(struct conn *conn, int fd, const union sockaddr_ip *server);

/* operations_dial() - the dial of the claimed @conn, told of all that the application has done; before each call of the engine */
struct dial *operations_dial(struct conn *conn, int fd);

/*
 * operations_resolve() - look for a converter, resolving names where that is due
 * The only function here that may block, so that @conn must not be claimed. Returns whether there is a converter, or why not.
 */
bool operations_resolve(struct conn *conn, int fd, const union sockaddr_ip *server, struct dial_end *end);

/* Makes the socket fit for @to, which is put into its form: ops->fit(). Returns 0 or -errno. */
int operations_fit(struct conn *conn, int fd, union sockaddr_ip *to, bool mptcp);

/*
 * operations_connect() - connect(2) that doesn't block, whatever the mode of the socket: it has no flag for that, as sendmsg(2) has
 * The application's other threads see the mode by gate_may_block(), which takes the moment of another one for what it is. The conn is
 * claimed. Returns 0 or -errno.
 */
int operations_connect(struct conn *conn, int fd, const union sockaddr_ip *to);

/* An application's TCP_FASTOPEN_CONNECT must not hold back what is ours to send. */
void operations_fastopen_off(struct conn *conn, int fd);

/* The attempt is over: what was changed on the socket for it is put back, and nobody looks after its path any more. */
void operations_end(struct conn *conn, int fd);

/* Disconnects the socket, by a reset if it is connected, so that it can be connected again, with nothing left of the attempt's errors. */
void operations_disconnect(int fd);

/* Returns the error of the socket, a positive errno, which is told once; @fallback if there is none. */
int operations_error(struct conn *conn, int fd, int fallback);

#endif
