/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * places.c - where a program has a socket: its descriptors, and its registrations in epoll instances
 *
 * An epoll instance knows a socket by its file and the descriptor's number, so that only a process which has the file under the
 * program's number can change a registration. For a moment a child of the supervisor is that: with a table of descriptors of its
 * own, it puts the socket under the program's number, and works on duplicates of the program's instances. /proc says which
 * registrations there are.
 */
#include "config.h"

#include "supervise/places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct search {
	struct places *places;
	int epoll; /* the one that is looked at */
};

static bool note_watch(void *context, const struct tracee_watch *watch)
{
	const struct search *search = context;
	struct places *places = search->places;

	if (watch->inode != places->socket)
		return true;
	places->epolls[places->watch_count] = search->epoll;
	places->watches[places->watch_count++] = *watch;
	return places->watch_count < PLACES_WATCHES_MAX;
}

static bool note_fd(void *context, int fd, const char *target)
{
	struct search *search = context;
	struct places *places = search->places;
	unsigned long inode;

	if (sscanf(target, "socket:[%lu]", &inode) == 1 && inode == places->socket)
		places->fds[places->fd_count++] = fd;
	if (strcmp(target, "anon_inode:[eventpoll]") == 0 && places->watch_count < PLACES_WATCHES_MAX) {
		search->epoll = fd;
		tracee_each_watch(places->tid, fd, note_watch, search);
	}
	return places->fd_count < PLACES_MAX;
}

int places_find(struct places *places, pid_t tid, int fd)
{
	struct search search = { .places = places };
	struct stat info;

	if (fstat(fd, &info) != 0)
		return -errno;
	places->tid = tid;
	places->socket = info.st_ino;
	places->fd_count = places->watch_count = 0;
	tracee_each_fd(tid, note_fd, &search);
	return 0;
}

/* Makes a change to all registrations; @epolls are duplicates of the instances, none with a number that a registration has. */
static void watches_change(const struct places *places, const int *epolls, int sock, int operation)
{
	for (int i = 0; i < places->watch_count; i++) {
		const struct tracee_watch *watch = &places->watches[i];
		struct epoll_event event = { .events = watch->events, .data.u64 = watch->data };

		if (epolls[i] >= 0 && dup2(sock, watch->fd) == watch->fd)
			(void)epoll_ctl(epolls[i], operation, watch->fd, &event);
	}
}

static int beyond(int fd, int limit)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD, limit + 1);
}

/*
 * The child, whose descriptors are moved out of the way of the program's numbers first. What @act has to do with @old it can do by
 * that number still: if a registration has it, it refers to the same socket then.
 */
static _Noreturn void act_in_child(const struct places *places, int *epolls, int old, int made, bool (*act)(void *context),
				   void *context)
{
	int limit = made > old ? made : old;
	bool done;

	for (int i = 0; i < places->watch_count; i++) {
		limit = epolls[i] > limit ? epolls[i] : limit;
		limit = places->watches[i].fd > limit ? places->watches[i].fd : limit;
	}
	old = beyond(old, limit);
	made = beyond(made, limit);
	for (int i = 0; i < places->watch_count; i++)
		epolls[i] = beyond(epolls[i], limit);
	if (old >= 0)
		watches_change(places, epolls, old, EPOLL_CTL_DEL);
	done = !act || act(context);
	if (made >= 0)
		watches_change(places, epolls, made, EPOLL_CTL_ADD);
	_exit(done ? 0 : 1);
}

bool places_act(const struct places *places, int old, int made, bool (*act)(void *context), void *context)
{
	int epolls[PLACES_WATCHES_MAX], status = 1;
	pid_t child;

	if (!places->watch_count)
		return !act || act(context);
	for (int i = 0; i < places->watch_count; i++)
		epolls[i] = tracee_get_fd(places->tid, places->epolls[i]);
	child = fork();
	if (child == 0)
		act_in_child(places, epolls, old, made, act, context);
	if (child > 0)
		waitpid(child, &status, 0);
	for (int i = 0; i < places->watch_count; i++)
		if (epolls[i] >= 0)
			close(epolls[i]);
	return child > 0 && status == 0;
}
