/* SPDX-License-Identifier: BSD-3-Clause */
/* ring_use.h - connections that their program may use past us before it has asked us anything */
#ifndef SHIM_RING_USE_H
#define SHIM_RING_USE_H

#include "shim/socket/conn.h"

/*
 * ring_use_may_return() - may connect() return before the connection of @conn, which is to be begun, is there?
 * So it is where the program will come to us before it uses the connection, as far as can be known. Otherwise connect() waits, and
 * ring_use_waited() is called behind that.
 */
bool ring_use_may_return(const struct conn *conn);
void ring_use_waited(const struct conn *conn);

/* The application asks for the error of @conn, whose connection is there: by now programs that ask before they use one are known. */
void ring_use_asked(const struct conn *conn, int fd);

/* The application closes @conn, which the kernel has connected, and hasn't asked us about it. */
void ring_use_left(const struct conn *conn, int fd);

/*
 * ring_use_take_back() - end the connection of a blind request, so that one can be begun which the application's calls wait for
 * @conn is claimed. Returns false if none may be begun: the application has sent something, or closes the socket, or it was so before.
 */
bool ring_use_take_back(struct conn *conn, int fd);

/*
 * ring_use_renew() - behind that, put another socket in the place of the one that a ring may wait for, to make a request with a response
 * It is unconnected; watch_resume() has to follow. Returns false, with nothing changed, if that can't be done.
 */
bool ring_use_renew(struct conn *conn, int fd);

#endif
