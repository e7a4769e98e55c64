/* SPDX-License-Identifier: BSD-3-Clause */
/* plain.h - a plain TCP socket in the place of an MPTCP one */
#ifndef SHIM_PLAIN_H
#define SHIM_PLAIN_H

#include "shim/conn.h"

#include <sys/socket.h>

/* An option that the plain socket is wanted for. */
struct plain_demand {
	int level, name;
	const void *value;
	socklen_t len;
};

/*
 * plain_replace() - a plain TCP socket in the place of the IDLE socket of @conn
 * @fd: its only descriptor
 * @why: static, what the application does that MPTCP can't; for the log
 * @demand: set on the new socket; or NULL
 * Returns 0 if the socket is a plain one now: then watch_resume() is the caller's to do.
 * -errno if TCP refuses @demand too, PLAIN_NOT if the socket can't be replaced unnoticed; both with
 * nothing changed.
 */
#define PLAIN_NOT 1
int plain_replace(struct conn *conn, int fd, const char *why, const struct plain_demand *demand);

/* May plain_replace() succeed? Costs next to nothing. */
bool plain_is_possible(const struct conn *conn);

/*
 * plain_renew() - a new socket of the same protocol, of @domain, in the place of @conn's
 * For a connection that the old one can't make, between two attempts: not connected, and @conn is claimed.
 * Returns false, with nothing changed, if that could be noticed (it is shared, or bound to an
 * address of the other family). watch_resume() is the caller's to do, once the new one connects.
 */
bool plain_renew(struct conn *conn, int fd, int domain);

/* Has the application given the socket a local address? Before the first attempt to connect. */
bool plain_is_bound(int fd);

/* May plain_renew() succeed? */
bool plain_can_renew(const struct conn *conn);

/*
 * plain_stand_in() - a new TCP socket which has the advice that was set on @conn's
 * It answers what MPTCP doesn't know of itself. Returns a descriptor, to be closed, or -1.
 */
int plain_stand_in(const struct conn *conn, int fd);

#endif
