/* SPDX-License-Identifier: BSD-3-Clause */
/* permission.h - whether the supervisor may act for a program, and sockets that belong to the program's user */
#ifndef SUPERVISE_PERMISSION_H
#define SUPERVISE_PERMISSION_H

#include "supervise/listener.h"

/* Notes the state of the program's first process @program, which has only the supervisor's filter so far. */
void permission_begin(pid_t program);

/* Notes that the call's process is about to restrict itself, or about to adopt others: seccomp(), prctl(), Landlock's calls. */
void permission_note(const struct call *call);

/*
 * permission_denial() - whether the supervisor may make sockets and connections for the thread @tid
 * @own_socket: the call is about a socket that the supervisor made. Returns NULL, or the reason why not.
 */
const char *permission_denial(pid_t tid, bool own_socket);

/*
 * Makes a socket for the thread @tid, as its file system user and groups: firewalls' owner rules look at these. Call
 * permission_denial(@tid, false) before. Returns a descriptor, or -errno.
 */
int permission_socket(pid_t tid, int domain, int type, int protocol);

/* Likewise, with the owner of @like, a socket. */
int permission_socket_like(pid_t tid, int like, int domain, int type, int protocol);

#endif
