/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poller.c - reports edge-triggered events of sockets that are registered once, until they are closed
 *
 * The problem: with libevent's events each socket costs three system calls besides those that carry its bytes.
 * libevent removes a socket from its epoll instance before it is closed, though the kernel does that by itself. To
 * pass a socket to another owner, libevent has to remove and add it. And it reports EPOLLERR as input and output, so
 * that only a read that fails with EAGAIN shows that nothing has failed.
 *
 * So sockets of sessions have an epoll instance of their own, which libevent sees as one more socket. Timers and rare
 * events stay with libevent.
 *
 * An epoll instance goes on to report a socket of which a copy is open elsewhere, and a batch of events may concern
 * sockets that an earlier event of the batch has closed. So we don't give the kernel pointers, but the number of a
 * slot and the number of its earlier uses, and drop events for former uses.
 *
 * Limits: fs.epoll.max_user_watches. There are as many slots as there were sockets at once; they are freed with the
 * poller.
 */
#include "config.h"

#include "daemon/poller.h"

#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* The most events of one round of the loop, before other events have their turn. */
#define EVENTS_PER_ROUND 512

#define SLOTS_FIRST 64

struct slot {
	poller_callback *callback; /* NULL: the slot is free */
	void *arg;
	uint32_t use;              /* how often it was used before */
	int next_free;
};

struct poller {
	int fd; /* the epoll instance */
	struct event *ready;
	struct slot *slots;
	int count, first_free; /* POLLER_NONE: all slots are used */
	struct epoll_event events[EVENTS_PER_ROUND];
};

static uint64_t name_of(const struct poller *poller, int registration)
{
	return (uint64_t)poller->slots[registration].use << 32 | (uint32_t)registration;
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct poller *poller = arg;
	int count = epoll_wait(poller->fd, poller->events, EVENTS_PER_ROUND, 0);

	(void)fd;
	(void)what;
	for (int i = 0; i < count; i++) {
		uint64_t name = poller->events[i].data.u64;
		struct slot *slot = &poller->slots[(uint32_t)name];

		if (slot->callback && slot->use == name >> 32)
			slot->callback(slot->arg, poller->events[i].events);
	}
}

struct poller *poller_create(struct event_base *base)
{
	struct poller *poller = calloc(1, sizeof(*poller));
	int error;

	if (!poller)
		return NULL;
	poller->first_free = POLLER_NONE;
	poller->fd = epoll_create1(EPOLL_CLOEXEC);
	if (poller->fd >= 0)
		poller->ready = event_new(base, poller->fd, EV_READ | EV_PERSIST, on_ready, poller);
	if (poller->ready && event_add(poller->ready, NULL) == 0)
		return poller;
	error = poller->fd < 0 ? errno : ENOMEM;
	poller_destroy(poller);
	errno = error;
	return NULL;
}

void poller_destroy(struct poller *poller)
{
	if (!poller)
		return;
	if (poller->ready)
		event_free(poller->ready);
	if (poller->fd >= 0)
		close(poller->fd);
	free(poller->slots);
	free(poller);
}

/* Makes more slots. Returns false without memory. */
static bool grow(struct poller *poller)
{
	int count = poller->count ? poller->count * 2 : SLOTS_FIRST;
	struct slot *slots = realloc(poller->slots, (size_t)count * sizeof(*slots));

	if (!slots)
		return false;
	poller->slots = slots;
	/* The list of free slots begins with the lowest number. */
	for (int i = count - 1; i >= poller->count; i--) {
		slots[i] = (struct slot){ .next_free = poller->first_free };
		poller->first_free = i;
	}
	poller->count = count;
	return true;
}

int poller_add(struct poller *poller, int fd, poller_callback *callback, void *arg)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET };
	int registration;

	if (poller->first_free == POLLER_NONE && !grow(poller))
		return -ENOMEM;
	registration = poller->first_free;
	event.data.u64 = name_of(poller, registration);
	if (epoll_ctl(poller->fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	poller->first_free = poller->slots[registration].next_free;
	poller_hand_over(poller, registration, callback, arg);
	return registration;
}

void poller_hand_over(struct poller *poller, int registration, poller_callback *callback, void *arg)
{
	poller->slots[registration].callback = callback;
	poller->slots[registration].arg = arg;
}

void poller_forget(struct poller *poller, int registration)
{
	struct slot *slot;

	if (registration == POLLER_NONE)
		return;
	slot = &poller->slots[registration];
	slot->callback = NULL;
	slot->use++;
	slot->next_free = poller->first_free;
	poller->first_free = registration;
}

void poller_remove(struct poller *poller, int registration, int fd)
{
	if (registration == POLLER_NONE)
		return;
	epoll_ctl(poller->fd, EPOLL_CTL_DEL, fd, NULL);
	poller_forget(poller, registration);
}
