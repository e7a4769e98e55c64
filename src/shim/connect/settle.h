/* SPDX-License-Identifier: BSD-3-Clause */
/* settle.h - what the application sees of the end of a dial, and connections to the server itself */
#ifndef SHIM_SETTLE_H
#define SHIM_SETTLE_H

#include "shim/socket/conn.h"

/* --- what the application sees of the end of a dial --- */

/*
 * All of these are for a claimed conn, never block, and return the phase to release it in.
 */

/* settle() - goes on as the engine says: @state and @end, of one of its functions */
enum conn_phase settle(struct conn *conn, int fd, enum dial_state state, struct dial_end *end);

/*
 * settle_let_go() - the socket is the application's from now on
 * Its own options and epoll registrations are in force again; a shutdown() that it called before is made up for.
 */
void settle_let_go(struct conn *conn, int fd);

/* settle_unfinished() - the handshake isn't over, and no thread will be there to go on with it: connects directly, or fails */
enum conn_phase settle_unfinished(struct conn *conn, int fd);

/* Disconnects a socket whose server was not reached: @error is the errno for the application. */
enum conn_phase settle_failed(struct conn *conn, int fd, int error, const char *reason);

/* Likewise, for the error that the kernel has for the socket, or else @error. */
enum conn_phase settle_broken(struct conn *conn, int fd, int error);

/*
 * settle_directly() - connect to the server over plain TCP
 * Returns EARLY_DIRECT if early data is to be sent, or the application takes itself for connected; else DIRECT, and the socket is the
 * kernel's. FAILED where the kernel refuses.
 */
enum conn_phase settle_directly(struct conn *conn, int fd);

/* settle_early_data() - send early data to the server itself. Once all is sent the connection is the kernel's. */
enum conn_phase settle_early_data(struct conn *conn, int fd);

/* The server was reached, as the SYN+ACK has said, by the request of another process. */
enum conn_phase settle_followed(struct conn *conn, int fd);

/*
 * settle_given_up_here() - have nothing more to do with a handshake that is another process's
 * Its socket stays as it is. Here an unconnected one takes its place, which has ECONNREFUSED to tell.
 */
enum conn_phase settle_given_up_here(struct conn *conn);

/* --- connections over Multipath TCP to a server that speaks it, without a converter --- */

/*
 * bypass_begin() - connect the claimed @conn to its server
 * Returns 0 with @conn to be in CONN_BYPASS, 1 with nothing sent if that can't be, or -errno.
 */
int bypass_begin(struct conn *conn, int fd);

/*
 * bypass_step() - take a step of such a connection, which is claimed
 * The SYN+ACK says whether the server speaks Multipath TCP, and the server's first bytes show whether the path has kept it behind the
 * handshake. Returns the phase to release it in.
 */
enum conn_phase bypass_step(struct conn *conn, int fd);

#endif
