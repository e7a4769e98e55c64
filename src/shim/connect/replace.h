/* SPDX-License-Identifier: BSD-3-Clause */
/* replace.h - puts another socket under the descriptors of the application's */
#ifndef SHIM_REPLACE_H
#define SHIM_REPLACE_H

#include "shim/socket/conn.h"

/*
 * replace_is_possible() - can another socket replace that of @conn, before its first attempt to connect?
 * False if somebody could notice it: another process has the socket, or we can't repeat one of its options or epoll registrations on
 * another one. Its only system call is getpid(2).
 */
bool replace_is_possible(const struct conn *conn);

/* Can a Multipath TCP socket replace it? Also false if the application has set an option that Multipath TCP lacks. */
bool replace_may_be_mptcp(const struct conn *conn);

/*
 * replace_socket() - replace the socket of @conn by a new one of @domain and @protocol
 * @conn: claimed; its socket isn't connected
 * @fd: one of its descriptors; all known descriptors then refer to the new socket
 * @protocol: IPPROTO_TCP or IPPROTO_MPTCP
 *
 * Copies the options, the flags and the address that the application has bound the socket to. Removes the epoll registrations;
 * watch_resume() makes them again once the new socket connects, since an unconnected socket reports a hang-up. Returns false with nothing
 * changed if it is impossible.
 */
bool replace_socket(struct conn *conn, int fd, int domain, int protocol);

/*
 * replace_with_tcp() - replace the Multipath TCP socket that an earlier attempt has left in an IDLE @conn by a TCP one
 * Claims @conn; the caller calls watch_resume(). Does nothing if replace_socket() hasn't made the socket.
 */
void replace_with_tcp(struct conn *conn, int fd);

/*
 * replace_sever() - replace the socket of @conn in this process by an unconnected TCP one
 * The old socket stays as it is, with its epoll registrations, for the other process that has it. Closes the descriptors if there is no new
 * socket.
 */
void replace_sever(struct conn *conn);

/* replace_descriptor() - put an unconnected TCP socket under @fd alone, or close it: for the program that a vfork() child starts */
void replace_descriptor(int fd);

/*
 * replace_stand_in() - make a TCP socket with the options that we remember as advice for @conn (app_options.h)
 * The caller can ask it for options that Multipath TCP lacks. Returns a descriptor, which the caller closes, or -1.
 */
int replace_stand_in(const struct conn *conn, int fd);

#endif
