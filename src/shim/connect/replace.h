/* SPDX-License-Identifier: BSD-3-Clause */
/* replace.h - another socket takes the place of one, underneath the same descriptors */
#ifndef SHIM_REPLACE_H
#define SHIM_REPLACE_H

#include "shim/socket/conn.h"

/*
 * replace_is_possible() - may the socket of @conn, before its first attempt to connect, become another one?
 * False if somebody could notice it: another process has the socket, or one of its options or epoll registrations
 * can't be set again on another one. Costs no system call but getpid(2).
 */
bool replace_is_possible(const struct conn *conn);

/* May the socket become a Multipath TCP one? False also where the application has set an option that Multipath TCP lacks. */
bool replace_may_be_mptcp(const struct conn *conn);

/*
 * replace_socket() - put a new socket of @domain and @protocol in the place of @conn's
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
 * replace_with_tcp() - put a TCP socket in the place of the Multipath TCP one that an earlier attempt has left in an IDLE @conn
 * Claims @conn; the caller calls watch_resume(). Nothing happens if the socket isn't one that replace_socket() has made.
 */
void replace_with_tcp(struct conn *conn, int fd);

/*
 * replace_sever() - put an unconnected TCP socket in the place of @conn's, which is another process's and stays as it is
 * The epoll registrations are left to that process. Where no socket can be made the descriptors are closed.
 */
void replace_sever(struct conn *conn);

/* replace_descriptor() - put an unconnected TCP socket under @fd alone, or close it: in a vfork() child, for the program that it starts */
void replace_descriptor(int fd);

/* Has the application given the socket a local address? Before the first attempt to connect. */
bool replace_is_bound(int fd);

/*
 * replace_stand_in() - make a TCP socket that has the options which were remembered as advice for @conn (options.h)
 * It can be asked for options that Multipath TCP doesn't know. Returns a descriptor, which the caller closes, or -1.
 */
int replace_stand_in(const struct conn *conn, int fd);

#endif
