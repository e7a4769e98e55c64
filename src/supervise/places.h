/* SPDX-License-Identifier: BSD-3-Clause */
/* places.h - where a program has a socket: its descriptors, and its registrations in epoll instances */
#ifndef SUPERVISE_PLACES_H
#define SUPERVISE_PLACES_H

#include "supervise/tracee.h"

#define PLACES_MAX 16
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

/*
 * places_act() - withdraw the socket's registrations, call @act, and make them again, for @made
 * @old: refers to the socket whose registrations are withdrawn; -1: they have ended. @made: the socket that is registered then.
 * Where there are registrations, @act runs in a child process, and what it does to memory is lost. @act may be NULL. Returns
 * what it has returned, true without it; or false where no process can be made.
 */
bool places_act(const struct places *places, int old, int made, bool (*act)(void *context), void *context);

#endif
