/* SPDX-License-Identifier: BSD-3-Clause */
/* operations.h - the engine's operations on an application's socket (engine/dial.h), and the shim's own */
#ifndef SHIM_OPERATIONS_H
#define SHIM_OPERATIONS_H

#include "shim/socket/conn.h"

/* Call it before any connection. @settings: must stay */
void operations_init(const struct settings *settings);

/*
 * operations_begin() - begin to connect @conn to @server
 * @conn: claimed, after conn_begin(). Asks the kernel whether the application has chosen a network.
 */
void operations_begin(struct conn *conn, int fd, const union sockaddr_ip *server);

/* operations_dial() - return the dial of the claimed @conn, with all that the application has done; before each call of the engine */
struct dial *operations_dial(struct conn *conn, int fd);

/*
 * operations_resolve() - look for a converter, and resolve names if necessary
 * Only this function may block, so @conn must not be claimed. Returns whether there is a converter; if not, @end has the reason.
 */
bool operations_resolve(struct conn *conn, int fd, const union sockaddr_ip *server, struct dial_end *end);

/* Makes the socket fit for @to, and converts @to to the socket's form: ops->fit(). Returns 0 or -errno. */
int operations_fit(struct conn *conn, int fd, union sockaddr_ip *to, bool mptcp);

/*
 * operations_connect() - connect(2) that doesn't block, whatever the mode of the socket
 * connect(2) has no flag for that, unlike sendmsg(2), so we set O_NONBLOCK for a moment. operations_may_block() hides that from other
 * threads. The conn is claimed. Returns 0 or -errno.
 */
int operations_connect(struct conn *conn, int fd, const union sockaddr_ip *to);

/*
 * operations_may_block() - would a call with @flags (MSG_DONTWAIT) on the descriptor @fd of @conn block?
 * @conn: NULL if the socket has none. An O_NONBLOCK that operations_connect() has set for a moment doesn't count.
 */
bool operations_may_block(const struct conn *conn, int fd, int flags);

/* Switches the application's TCP_FASTOPEN_CONNECT off, so that it doesn't hold our SYN back. */
void operations_fastopen_off(struct conn *conn, int fd);

/* Ends the attempt: restores the socket's options, and stops watching the path. */
void operations_end(struct conn *conn, int fd);

/* Returns the error of the socket, a positive errno, once; @fallback if there is none. */
int operations_error(struct conn *conn, int fd, int fallback);

#endif
