/* SPDX-License-Identifier: BSD-3-Clause */
/* stand_in.h - makes a socket like the program's, and puts it under the program's descriptors */
#ifndef SUPERVISE_STAND_IN_H
#define SUPERVISE_STAND_IN_H

#include "supervise/listener.h"

/* Returns whether the socket is bound to an address or a port. */
bool stand_in_is_bound(int fd);

/*
 * stand_in_make() - make a socket with the options that the program has set on @fd
 * @domain: AF_INET or AF_INET6; @mptcp: make an MPTCP socket; @bound: bind it to the address of @fd.
 * Returns a non-blocking descriptor, or -errno.
 */
int stand_in_make(int fd, int domain, bool mptcp, bool bound);

/*
 * stand_in_put() - replace the caller's socket by @made
 * Covers all of the process's descriptors for that socket, none if the program has closed them all. @made takes over the file status flags
 * and the registrations with epoll instances.
 * @fd: our duplicate of the program's socket. Returns 0 or -errno, with nothing changed.
 */
int stand_in_put(int listener, const struct call *call, int fd, int made);

#endif
