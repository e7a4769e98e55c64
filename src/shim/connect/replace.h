/* SPDX-License-Identifier: BSD-3-Clause */
/* replace.h - another socket takes the place of one, underneath the same descriptors */
#ifndef SHIM_REPLACE_H
#define SHIM_REPLACE_H

#include "shim/socket/conn.h"

/*
 * replace_is_possible() - may the socket of @conn, before its first attempt to connect, become another one?
 * False if that could be noticed: another process has it, an option or an epoll registration of it can't
 * be made again. Costs no system call but getpid(2).
 */
bool replace_is_possible(const struct conn *conn);

/* May it become a Multipath TCP socket, too? False also where an option was set that Multipath TCP lacks. */
bool replace_may_be_mptcp(const struct conn *conn);

/*
 * replace_socket() - a new socket of @domain and @protocol takes the place of @conn's
 * @fd: one of its descriptors; all that are known come to refer to the new socket
 * @protocol: IPPROTO_TCP or IPPROTO_MPTCP
 *
 * The old socket isn't connected, and @conn is claimed. Its options, flags and the address that the
 * application has bound it to are set on the new one. The epoll registrations are taken out, and
 * watch_resume() makes them again once the new one connects: a socket that isn't connected reports
 * itself as hung up. Returns false with nothing changed if it can't be done.
 */
bool replace_socket(struct conn *conn, int fd, int domain, int protocol);

/*
 * replace_with_tcp() - the same for an IDLE @conn whose Multipath TCP socket, of a former attempt, isn't wanted any more
 * Claims @conn. watch_resume() is the caller's to do. Nothing happens where the socket is none of ours.
 */
void replace_with_tcp(struct conn *conn, int fd);

/* Has the application given the socket a local address? Before the first attempt to connect. */
bool replace_is_bound(int fd);

/*
 * replace_stand_in() - a new TCP socket which has the advice that was set on @conn's
 * It answers what Multipath TCP doesn't know of itself. Returns a descriptor, to be closed, or -1.
 */
int replace_stand_in(const struct conn *conn, int fd);

#endif
