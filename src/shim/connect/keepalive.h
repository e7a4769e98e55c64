/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keepalive.h - TCP's keepalive, by which a converter that is silent behind its SYN+ACK is asked whether it is still there
 *
 * Our own is in force while a connection is pending and its converter has been silent for a while. What the application has set is kept
 * meanwhile, told when it asks, and put back when the socket is let go.
 */
#ifndef SHIM_KEEPALIVE_H
#define SHIM_KEEPALIVE_H

#include "shim/socket/conn.h"

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

#endif
