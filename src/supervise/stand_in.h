/* SPDX-License-Identifier: BSD-3-Clause */
/* stand_in.h - a socket like a program's, and how it gets under the program's descriptors */
#ifndef SUPERVISE_STAND_IN_H
#define SUPERVISE_STAND_IN_H

#include "supervise/listener.h"

/* Is the socket bound to an address or a port? */
bool stand_in_is_bound(int fd);

/*
 * stand_in_make() - a socket with the options that the program has set on @fd
 * @domain: AF_INET or AF_INET6; @mptcp: of Multipath TCP. @bound: it is bound to the address that @fd is bound to.
 * Returns a descriptor, whose mode is non-blocking, or -errno.
 */
int stand_in_make(int fd, int domain, bool mptcp, bool bound);

/*
 * stand_in_put() - @made takes the place of the socket of the caller of @call
 * Under all of the process's descriptors for that socket, with its file status flags and in its registrations with epoll
 * instances; under none, if the program has closed them all.
 * @fd: refers to the program's socket here. Returns 0 or -errno, with nothing changed.
 */
int stand_in_put(int listener, const struct call *call, int fd, int made);

#endif
