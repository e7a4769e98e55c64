/* SPDX-License-Identifier: BSD-3-Clause */
/* ring_use.h - connections that a program may use past the hooks at once, by io_uring */
#ifndef SHIM_RING_USE_H
#define SHIM_RING_USE_H

#include "shim/socket/conn.h"

/*
 * ring_use_may_return() - may connect() return before @conn, which begins now, is connected?
 * It may if the program will probably call a hook before it uses the connection. Otherwise connect() waits, and then calls
 * ring_use_waited().
 */
bool ring_use_may_return(const struct conn *conn);
void ring_use_waited(const struct conn *conn);

/* Notes that the application asks for the error of the connected @conn: this shows whether it asks before it uses a connection. */
void ring_use_asked(const struct conn *conn, int fd);

/* Notes that the application closes the connected @conn without having asked for its error. */
void ring_use_left(const struct conn *conn, int fd);

/*
 * ring_use_take_back() - end the connection of a blind request, so that another one can begin, for which the application's calls wait
 * @conn is claimed. Returns false if none may begin: the application has sent something, or closes the socket, now or before.
 */
bool ring_use_take_back(struct conn *conn, int fd);

/*
 * ring_use_renew() - after that, replace the socket that a ring may wait for, in order to make a request with a response
 * The new socket is unconnected; the caller calls watch_resume(). Returns false, with nothing changed, if it is impossible.
 */
bool ring_use_renew(struct conn *conn, int fd);

#endif
