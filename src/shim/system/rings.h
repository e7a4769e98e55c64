/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rings.h - does this process use io_uring?
 *
 * What a ring does with a socket goes past all hooks. So a program that has one may read a response before anybody has taken it off.
 */
#ifndef SHIM_RINGS_H
#define SHIM_RINGS_H

#include <stdbool.h>

/* Looks whether liburing is among the program's libraries. Once, after next_bind(). */
void rings_init(void);

/* rings_in_use() - has the process a ring, as far as can be seen? @fd: a socket that has just been made, or lately */
bool rings_in_use(int fd);

/*
 * rings_hold() - does a ring of this process hold the socket @fd itself, as a registered file?
 * Such a ring goes on with this socket whatever takes its place under the descriptor. Costs 10 us and more for each ring: to be asked only
 * where rings_in_use().
 */
bool rings_hold(int fd);

/*
 * rings_note_setup() - io_uring_setup(2) has returned @fd to the code at @caller
 * Returns whether the ring counts. libuv's doesn't: it registers descriptors by it and reads and writes files, but no sockets.
 */
bool rings_note_setup(int fd, const void *caller);

/* The number @fd is about to be closed, or to become another file's. */
void rings_forget(int fd);

#endif
