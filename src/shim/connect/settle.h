/* SPDX-License-Identifier: BSD-3-Clause */
/* settle.h - shows the end of a dial to the application, and connects to the server itself */
#ifndef SHIM_SETTLE_H
#define SHIM_SETTLE_H

#include "shim/socket/conn.h"

/* --- the end of a dial --- */

/*
 * All functions need a claimed conn and never block. They return the phase to release it in.
 */

/* settle() - act on the result of one of the engine's functions: @state and @end */
enum conn_phase settle(struct conn *conn, int fd, enum dial_state state, struct dial_end *end);

/*
 * settle_let_go() - leave the socket to the application
 * Restores its options and epoll registrations, and makes up for a shutdown() that it called before.
 */
void settle_let_go(struct conn *conn, int fd);

/* settle_unfinished() - connect directly, or fail, since no thread will continue the handshake */
enum conn_phase settle_unfinished(struct conn *conn, int fd);

/* Disconnects a socket whose server wasn't reached. @error: the errno for the application */
enum conn_phase settle_failed(struct conn *conn, int fd, int error, const char *reason);

/* Does the same with the kernel's error for the socket, or else with @error. */
enum conn_phase settle_broken(struct conn *conn, int fd, int error);

/*
 * settle_directly() - connect to the server over plain TCP
 * Returns EARLY_DIRECT if there is early data to send, or the application believes that it is connected; else DIRECT, which leaves the
 * socket to the kernel; FAILED if the kernel refuses.
 */
enum conn_phase settle_directly(struct conn *conn, int fd);

/* settle_early_data() - send early data to the server itself, and then leave the connection to the kernel */
enum conn_phase settle_early_data(struct conn *conn, int fd);

/*
 * settle_given_up_here() - give up, in this process, a handshake that belongs to another one
 * That process keeps its socket unchanged. Here an unconnected one replaces it, and reports ECONNREFUSED.
 */
enum conn_phase settle_given_up_here(struct conn *conn);

/* --- connections over Multipath TCP to a server that speaks it, without a converter --- */

/*
 * bypass_begin() - connect the claimed @conn to its server
 * Returns 0 if the caller must release @conn in CONN_BYPASS; 1, with nothing sent, if it is impossible; or -errno.
 */
int bypass_begin(struct conn *conn, int fd);

/*
 * bypass_step() - take a step of such a connection; its conn is claimed
 * The SYN+ACK shows whether the server speaks Multipath TCP; the server's first bytes show whether the path passes it behind the handshake.
 * Returns the phase to release the conn in.
 */
enum conn_phase bypass_step(struct conn *conn, int fd);

#endif
