/* SPDX-License-Identifier: BSD-3-Clause */
/* loop.c - an event loop as small as can be */
#include "loop.h"

#include <err.h>
#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MAX 256

static int epoll_fd = -1;
static struct loop_handle *queue_first, **queue_end = &queue_first;

void loop_init(void)
{
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		err(1, "epoll_create1");
}

void loop_add(struct loop_handle *handle)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				     .data.ptr = handle };

	handle->readable = handle->writable = handle->hung = handle->queued = false;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, handle->fd, &event) < 0)
		err(1, "epoll_ctl");
}

static void queue_remove(struct loop_handle *handle)
{
	struct loop_handle **at = &queue_first;

	while (*at != handle)
		at = &(*at)->next;
	*at = handle->next;
	if (!*at)
		queue_end = at;
	handle->queued = false;
}

void loop_close(struct loop_handle *handle)
{
	if (handle->queued)
		queue_remove(handle);
	close(handle->fd);
	handle->fd = -1;
}

void loop_again(struct loop_handle *handle)
{
	if (handle->queued)
		return;
	handle->queued = true;
	handle->next = NULL;
	*queue_end = handle;
	queue_end = &handle->next;
}

static void queue_run(void)
{
	struct loop_handle *last = NULL;

	/* as many as there are now: those that queue up meanwhile have their turn after the next
	 * wait */
	for (struct loop_handle *handle = queue_first; handle; handle = handle->next)
		last = handle;
	while (queue_first && last) {
		struct loop_handle *handle = queue_first;

		if (handle == last)
			last = NULL;
		queue_remove(handle);
		handle->run(handle);
	}
}

void loop_once(int timeout_ms)
{
	struct epoll_event events[EVENTS_MAX];
	int count = epoll_wait(epoll_fd, events, EVENTS_MAX, queue_first ? 0 : timeout_ms);

	if (count < 0 && errno != EINTR)
		err(1, "epoll_wait");
	for (int i = 0; i < count; i++) {
		struct loop_handle *handle = events[i].data.ptr;

		handle->hung |= (events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
		handle->readable |= handle->hung || (events[i].events & EPOLLIN);
		handle->writable |= (events[i].events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0;
		handle->run(handle);
	}
	queue_run();
}

int64_t loop_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}
