/* SPDX-License-Identifier: BSD-3-Clause */
/* borrowed_options.h - options of the application's socket that have our values while its connection is pending */
#ifndef SHIM_BORROWED_OPTIONS_H
#define SHIM_BORROWED_OPTIONS_H

#include "shim/socket/conn.h"

#include <stddef.h>
#include <sys/socket.h>

/* --- TCP's keepalive, which probes a converter that is silent after its SYN+ACK --- */

/*
 * Our values are in force while a connection is pending and its converter has been silent for a while. Meanwhile we keep the application's
 * values, report them when it asks, and restore them when the socket becomes the application's again.
 */

/*
 * keepalive_start() - let the kernel send a probe each @seconds. @conn is claimed
 * A further call sends a probe that is due. Returns false if the socket has no keepalive: MPTCP sockets have it since Linux 6.10.
 */
bool keepalive_start(struct conn *conn, int fd, int seconds);

/* Restores the application's options. @conn is claimed. */
void keepalive_end(struct conn *conn, int fd);

/* Call it after the application has set an option. If that is one of keepalive's, it keeps the value and sets ours again. */
void keepalive_note(struct conn *conn, int fd, int level, int name);

/* Gets the application's value if ours is in force instead. Returns false if it isn't, or for another option. */
bool keepalive_kept(const struct conn *conn, int level, int name, int *value);

/* --- SO_RCVLOWAT: the application's value and ours --- */

/*
 * It sets how many bytes make a socket readable. While a connection is pending our value is in force, so that the response wakes us, and
 * only when it is complete. We keep the application's value in conn.socket.rcvlowat, and restore it when the socket becomes the
 * application's again.
 */

/* Makes the socket readable from the first byte of the response on. Call it before a request is sent. @conn is claimed, as below. */
void lowat_hold(struct conn *conn, int fd);

/* Makes the socket readable only once @bytes bytes have come: the length of the response. */
void lowat_raise(struct conn *conn, int fd, size_t bytes);

/* Restores the application's value. */
void lowat_restore(struct conn *conn, int fd);

/*
 * lowat_keep() - keep the application's value of SO_RCVLOWAT for later while the connection is unfinished
 * @value, @len: as in setsockopt(2)
 * Returns whether it did; if not, the caller must call the kernel.
 */
bool lowat_keep(struct conn *conn, const void *value, socklen_t len);

/* Returns the application's value in bytes if ours is in force instead, else 0. */
int lowat_kept(const struct conn *conn);

#endif
