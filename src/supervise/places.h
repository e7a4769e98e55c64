/* SPDX-License-Identifier: BSD-3-Clause */
/* places.h - where a program has a socket: its descriptors, and its registrations in epoll instances */
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
	int epolls[PLACES_WATCHES_MAX];                  /* the program's numbers */
	struct tracee_watch watches[PLACES_WATCHES_MAX]; /* one in each of them */
	int watch_count;
};

/* Looks for the socket that @fd, a duplicate, refers to among the descriptors of the thread @tid. Returns 0 or -errno. */
int places_find(struct places *places, pid_t tid, int fd);

/* Likewise for many at once, each of whose @socket is set, and looked for by one pass over the thread's descriptors. */
void places_find_all(struct places *all, int count, pid_t tid);

/* The inode of the socket @fd, or 0. */
uint64_t places_socket(int fd);

/*
 * An epoll instance knows a socket by its file and the descriptor's number. So these two are for a thread or process whose table of
 * descriptors is its own, and has nothing that counts below places_limit(). @sock is beyond that, too.
 */
void places_withdraw(const struct places *places, int sock);
void places_register(const struct places *places, int sock);
int places_limit(const struct places *places);

/* Makes the registrations, which have ended with their socket, for @made, which takes its place. */
void places_register_anew(const struct places *places, int made);

#endif
