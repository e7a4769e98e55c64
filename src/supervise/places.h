/* SPDX-License-Identifier: BSD-3-Clause */
/* places.h - finds a socket in a program: its descriptors, and its registrations in epoll instances */
#ifndef SUPERVISE_PLACES_H
#define SUPERVISE_PLACES_H

#include "supervise/tracee.h"

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

/* Looks for the socket of @fd, a duplicate, among the descriptors of the thread @tid. Returns 0 or -errno. */
int places_find(struct places *places, pid_t tid, int fd);

/* Likewise for many sockets in one pass over the thread's descriptors. The caller sets @socket of each. */
void places_find_all(struct places *all, int count, pid_t tid);

/* Returns the inode of the socket @fd, or 0. */
uint64_t places_socket(int fd);

/*
 * Remove, and add again, all registrations. An epoll instance knows a socket by its file and its descriptor number. So the calling thread
 * or process needs a descriptor table of its own without anything of value up to places_limit(); @sock is beyond that, too.
 */
void places_withdraw(const struct places *places, int sock);
void places_register(const struct places *places, int sock);
int places_limit(const struct places *places);

/* Registers @made, the socket's replacement, in place of the registrations that ended with the socket. */
void places_register_anew(const struct places *places, int made);

#endif
