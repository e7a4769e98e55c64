/* SPDX-License-Identifier: BSD-3-Clause */
/* stand_in.h - makes a socket like the program's, and puts it under the program's descriptors and into its epoll instances */
#ifndef SUPERVISE_STAND_IN_H
#define SUPERVISE_STAND_IN_H

#include "supervise/listener.h"
#include "supervise/tracee.h"

/*
 * stand_in_make() - make a socket with the owner of @fd and the options that the program has set on it
 * @domain: AF_INET or AF_INET6; @mptcp: make an MPTCP socket; @bound: bind it to the address of @fd; @placed: the device to which @fd is
 * bound isn't the program's choice.
 * Returns a non-blocking descriptor, or -errno.
 */
int stand_in_make(const struct call *call, int fd, int domain, bool mptcp, bool bound, bool placed);

/*
 * stand_in_put() - replace the caller's socket by @made
 * Covers all of the process's descriptors for that socket, none if the program has closed them all. @made takes over the file status flags
 * and the registrations with epoll instances.
 * @fd: our duplicate of the program's socket. Returns 0; or -errno, perhaps with some descriptors replaced.
 */
int stand_in_put(int listener, const struct call *call, int fd, int made);

/* --- where a program has a socket: its descriptors, and its registrations in epoll instances --- */

#define PLACES_MAX 128 /* descriptors for one socket */
#define PLACES_WATCHES_MAX 64

struct places {
	pid_t tid;
	uint64_t socket; /* its inode */
	int fds[PLACES_MAX];
	int fd_count;
	int epolls[PLACES_WATCHES_MAX];                  /* the program's descriptor numbers */
	struct tracee_watch watches[PLACES_WATCHES_MAX]; /* watches[i] is in epolls[i] */
	int watch_count;
};

/* Looks for sockets among the descriptors of the thread @tid, in one pass. The caller sets @socket of each. */
void places_find_all(struct places *all, int count, pid_t tid);

/* Returns the inode of the socket @fd, or 0. */
uint64_t places_socket(int fd);

/*
 * places_change() - apply @operation of epoll_ctl() to all registrations of the socket: EPOLL_CTL_DEL, and EPOLL_CTL_ADD to add them again
 * Overwrites descriptors up to places_limit() and closes them, so the caller needs a descriptor table of its own. @sock is beyond that.
 */
void places_change(const struct places *places, int sock, int operation);
int places_limit(const struct places *places);

/* Moves the descriptor to a number beyond @limit. Returns the new one, or -1. */
int places_move_beyond(int fd, int limit);

#endif
