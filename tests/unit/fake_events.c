/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_events.c - an event loop, a poller and a clock that the test moves, in place of libevent, poller.c and clock.c */
#include "config.h"

#include "fake_events.h"

#include "common/clock.h"
#include "daemon/poller.h"

#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdlib.h>

#define EVENTS_MAX 256
#define SOCKETS_MAX 64

struct event {
	event_callback_fn callback;
	void *arg;
	bool active;
	uint64_t due_us; /* 0: not pending */
};

static uint64_t now_us = UINT64_C(1000000000);
static struct event *events[EVENTS_MAX]; /* those that are added or active */
static struct registration {
	int fd; /* 0: free */
	poller_callback *callback;
	void *arg;
} registrations[SOCKETS_MAX];

/* ----- the clock ----- */

int64_t clock_read_ns(clockid_t clock)
{
	(void)clock;
	return (int64_t)now_us * 1000;
}

static struct event *first_due(uint64_t until_us)
{
	struct event *first = NULL;

	for (int i = 0; i < EVENTS_MAX; i++)
		if (events[i] && events[i]->due_us && events[i]->due_us <= until_us && (!first || events[i]->due_us < first->due_us))
			first = events[i];
	return first;
}

void fake_clock_stall(uint64_t ms)
{
	now_us += ms * 1000;
}

void fake_clock_advance(uint64_t ms)
{
	const uint64_t until_us = now_us + ms * 1000;
	struct event *event;

	while ((event = first_due(until_us))) {
		now_us = event->due_us;
		event->due_us = 0;
		event->callback(-1, EV_TIMEOUT, event->arg);
		fake_events_run();
	}
	now_us = until_us;
}

void fake_events_run(void)
{
	for (int i = 0; i < EVENTS_MAX; i++)
		if (events[i] && events[i]->active) {
			events[i]->active = false;
			events[i]->callback(-1, EV_TIMEOUT, events[i]->arg);
		}
}

/* ----- libevent ----- */

static void remember(struct event *event)
{
	int free_place = -1;

	for (int i = 0; i < EVENTS_MAX; i++) {
		if (events[i] == event)
			return;
		if (!events[i])
			free_place = i;
	}
	if (free_place < 0)
		abort();
	events[free_place] = event;
}

static void forget(const struct event *event)
{
	for (int i = 0; i < EVENTS_MAX; i++)
		if (events[i] == event)
			events[i] = NULL;
}

size_t event_get_struct_event_size(void)
{
	return sizeof(struct event);
}

int event_assign(struct event *event, struct event_base *base, evutil_socket_t fd, short what, event_callback_fn callback, void *arg)
{
	(void)base, (void)fd, (void)what;
	*event = (struct event){ .callback = callback, .arg = arg };
	return 0;
}

struct event *event_new(struct event_base *base, evutil_socket_t fd, short what, event_callback_fn callback, void *arg)
{
	struct event *event = malloc(sizeof(*event));

	if (event)
		event_assign(event, base, fd, what, callback, arg);
	return event;
}

void event_free(struct event *event)
{
	forget(event);
	free(event);
}

int event_add(struct event *event, const struct timeval *timeout)
{
	remember(event);
	event->due_us = timeout ? now_us + (uint64_t)timeout->tv_sec * 1000000 + (uint64_t)timeout->tv_usec : 0;
	return 0;
}

int event_del(struct event *event)
{
	forget(event);
	event->due_us = 0;
	event->active = false;
	return 0;
}

void event_active(struct event *event, int what, short calls)
{
	(void)what, (void)calls;
	remember(event);
	event->active = true;
}

int event_pending(const struct event *event, short what, struct timeval *until)
{
	(void)what, (void)until;
	return event->due_us != 0;
}

/* ----- the poller ----- */

static unsigned adds;

int poller_add(struct poller *poller, int fd, poller_callback *callback, void *arg)
{
	(void)poller;
	adds++;
	for (int i = 0; i < SOCKETS_MAX; i++)
		if (!registrations[i].fd) {
			registrations[i] = (struct registration){ fd, callback, arg };
			return i;
		}
	return -ENOMEM;
}

void poller_hand_over(struct poller *poller, int registration, poller_callback *callback, void *arg)
{
	(void)poller;
	registrations[registration].callback = callback;
	registrations[registration].arg = arg;
}

void poller_forget(struct poller *poller, int registration)
{
	(void)poller;
	if (registration != POLLER_NONE)
		registrations[registration] = (struct registration){ 0 };
}

void poller_remove(struct poller *poller, int registration, int fd)
{
	(void)fd;
	poller_forget(poller, registration);
}

void fake_poller_tell(int fd, uint32_t what)
{
	for (int i = 0; i < SOCKETS_MAX; i++)
		if (registrations[i].fd == fd) {
			registrations[i].callback(registrations[i].arg, what);
			return;
		}
	abort();
}

unsigned fake_poller_adds(void)
{
	return adds;
}

unsigned fake_poller_count(void)
{
	unsigned count = 0;

	for (int i = 0; i < SOCKETS_MAX; i++)
		count += registrations[i].fd != 0;
	return count;
}
