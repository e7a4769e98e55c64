/* SPDX-License-Identifier: BSD-3-Clause */
/* calls.h - handles each call that the filter has stopped */
#ifndef SUPERVISE_CALLS_H
#define SUPERVISE_CALLS_H

#include "supervise/listener.h"

/* Answers @call, lets the kernel run it, or begins a connection that answers it. */
void calls_handle(struct call *call);

/* --- shared with option_calls.c --- */

/*
 * Let the kernel run the call, or answer with @error, 0 for success. Both first close @fd, a duplicate or -1: the program may close its
 * descriptor next, and that has to close the socket and its registrations in epoll instances.
 */
void call_continue(const struct call *call, int fd);
void call_answer(const struct call *call, int fd, int error);

/* Returns whether @fd is a TCP or MPTCP socket, and its SO_DOMAIN and SO_PROTOCOL. */
bool socket_is_tcp(int fd, int *domain, int *protocol);

/* Returns whether @fd is an MPTCP socket that the supervisor made, or one that a program prepared the same way. */
bool socket_is_ours(int fd);

void call_setsockopt(const struct call *call);
void call_getsockopt(const struct call *call);
void call_listen(const struct call *call);
void call_getpeername(const struct call *call);

#endif
