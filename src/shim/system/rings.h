/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rings.h - does this process use io_uring?
 *
 * A ring's operations on a socket bypass all hooks. So a program that has a ring may read a response before we have taken it off.
 */
#ifndef SHIM_RINGS_H
#define SHIM_RINGS_H

#include <stdbool.h>

/* Checks whether liburing is among the program's libraries. Call once, after next_bind(). */
void rings_init(void);

/* rings_in_use() - does the process have a ring, as far as we can see? @fd: a socket made now, or lately */
bool rings_in_use(int fd);

/*
 * rings_hold() - does a ring of this process hold the socket @fd itself, as a registered file?
 * Such a ring keeps using this socket after another one has taken its descriptor. Costs 10 us and more for each ring, so call it only if
 * rings_in_use().
 */
bool rings_hold(int fd);

/*
 * rings_note_setup() - note that io_uring_setup(2) has returned @fd to the code at @caller
 * Returns whether the ring counts. libuv's doesn't: it registers descriptors and reads and writes files, but no sockets.
 */
bool rings_note_setup(int fd, const void *caller);

/* Forgets the ring @fd, as this number is about to be closed, or to become another file's. */
void rings_forget(int fd);

#endif
