/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * places.c - finds a socket in a program: its descriptors, and its registrations in epoll instances
 *
 * An epoll instance knows a socket by its file and its descriptor number. To change a registration, a process has to have the file under
 * the program's number. So a child or a thread of the supervisor, with a descriptor table of its own, puts the socket under the program's
 * number for a moment, and works on duplicates of the program's epoll instances. /proc lists the registrations.
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
	struct places *all;
	int count;
	int epoll; /* the instance that we look at */
};

static struct places *place_of(const struct search *search, uint64_t socket)
{
	for (int i = 0; i < search->count; i++)
		if (search->all[i].socket == socket)
			return &search->all[i];
	return NULL;
}

static bool note_watch(void *context, const struct tracee_watch *watch)
{
	const struct search *search = context;
	struct places *places = place_of(search, watch->inode);

	if (places && places->watch_count < PLACES_WATCHES_MAX) {
		places->epolls[places->watch_count] = search->epoll;
		places->watches[places->watch_count++] = *watch;
	}
	return true;
}

static bool note_fd(void *context, int fd, const char *target)
{
	struct search *search = context;
	struct places *places;
	unsigned long inode;

	if (sscanf(target, "socket:[%lu]", &inode) == 1) {
		places = place_of(search, inode);
		if (places && places->fd_count < PLACES_MAX)
			places->fds[places->fd_count++] = fd;
	} else if (strcmp(target, "anon_inode:[eventpoll]") == 0) {
		search->epoll = fd;
		tracee_each_watch(search->all->tid, fd, note_watch, search);
	}
	return true;
}

uint64_t places_socket(int fd)
{
	struct stat info;

	return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

void places_find_all(struct places *all, int count, pid_t tid)
{
	struct search search = { .all = all, .count = count };

	for (int i = 0; i < count; i++) {
		all[i].tid = tid;
		all[i].fd_count = all[i].watch_count = 0;
	}
	tracee_each_fd(tid, note_fd, &search);
}

int places_find(struct places *places, pid_t tid, int fd)
{
	places->socket = places_socket(fd);
	if (!places->socket)
		return -errno;
	places_find_all(places, 1, tid);
	return 0;
}

int places_limit(const struct places *places)
{
	int limit = 0;

	for (int i = 0; i < places->watch_count; i++)
		limit = places->watches[i].fd > limit ? places->watches[i].fd : limit;
	return limit;
}

static int beyond(int fd, int limit)
{
	int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, limit + 1);

	if (fd >= 0)
		close(fd);
	return moved;
}

/* Applies @operation of epoll_ctl() to all registrations of the socket. */
static void watches_change(const struct places *places, int sock, int operation)
{
	const int limit = places_limit(places);

	for (int i = 0; i < places->watch_count; i++) {
		const struct tracee_watch *watch = &places->watches[i];
		struct epoll_event event = { .events = watch->events, .data.u64 = watch->data };
		const int epoll = beyond(tracee_get_fd(places->tid, places->epolls[i]), limit);

		if (epoll >= 0 && dup2(sock, watch->fd) == watch->fd) {
			(void)epoll_ctl(epoll, operation, watch->fd, &event);
			close(watch->fd);
		}
		if (epoll >= 0)
			close(epoll);
	}
}

void places_withdraw(const struct places *places, int sock)
{
	watches_change(places, sock, EPOLL_CTL_DEL);
}

void places_register(const struct places *places, int sock)
{
	watches_change(places, sock, EPOLL_CTL_ADD);
}

void places_register_anew(const struct places *places, int made)
{
	pid_t child;
	int sock;

	if (!places->watch_count)
		return;
	child = fork();
	if (child == 0) {
		sock = beyond(made, places_limit(places));
		if (sock >= 0)
			places_register(places, sock);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}
