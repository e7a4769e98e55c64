/* SPDX-License-Identifier: BSD-3-Clause */
/* borrowed_options.h - options of the application's socket that are ours while its connection is pending */
#ifndef SHIM_BORROWED_OPTIONS_H
#define SHIM_BORROWED_OPTIONS_H

#include "shim/socket/conn.h"

#include <stddef.h>
#include <sys/socket.h>

/* --- TCP's keepalive, by which a converter that is silent behind its SYN+ACK is asked whether it is still there --- */

/*
 * Our own is in force while a connection is pending and its converter has been silent for a while. What the application has set is kept
 * meanwhile, told when it asks, and put back when the socket is let go.
 */

/*
 * keepalive_start() - have the kernel ask each @seconds. @conn is claimed
 * Called again, it sends a probe that is due. Returns false if the socket has no keepalive: MPTCP's has one since Linux 6.10.
 */
bool keepalive_start(struct conn *conn, int fd, int seconds);

/* Puts the application's options in force again. @conn is claimed. */
void keepalive_end(struct conn *conn, int fd);

/* The application has just set an option: if it is one of keepalive's it is kept, and ours is in force again. */
void keepalive_note(struct conn *conn, int fd, int level, int name);

/* Tells what the application has set where our value is in force instead. Returns false if it isn't, or for another option. */
bool keepalive_kept(const struct conn *conn, int level, int name, int *value);

/* --- SO_RCVLOWAT, the application's and ours --- */

/*
 * It tells the kernel how much has to be there before a socket is readable. While a connection is pending
 * ours is in force, so that the response wakes us, and only when it is complete; the application's is
 * kept in conn.socket.rcvlowat and is put back when the socket is let go.
 */

/* Before a request is sent: makes the socket readable from the first byte of the response on. @conn is claimed, as below. */
void lowat_hold(struct conn *conn, int fd);

/* Makes the socket readable only when @bytes bytes have come: a response of that length. */
void lowat_raise(struct conn *conn, int fd, size_t bytes);

/* Puts the application's value back. */
void lowat_restore(struct conn *conn, int fd);

/*
 * lowat_keep() - the application sets SO_RCVLOWAT to @value of @len bytes, as for setsockopt(2)
 * While the connection is unfinished the value is kept for later. Returns whether it was; if not, the kernel is to be asked.
 */
bool lowat_keep(struct conn *conn, const void *value, socklen_t len);

/* The application's value in bytes if ours is in force in its place, else 0. */
int lowat_kept(const struct conn *conn);

#endif
