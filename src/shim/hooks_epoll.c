/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hooks_epoll.c - epoll with pending connections registered
 *
 * watch.c has put our own interest in the place of the application's, so an event of a
 * pending socket is news for us: the next step is taken. If that settles the
 * connection, the application's registration is restored and the kernel reports the
 * socket anew, as writable; the event itself is not passed on.
 */
#include "config.h"

#include "shim/conn.h"
#include "shim/conversion.h"
#include "shim/deadline.h"
#include "shim/hook.h"
#include "shim/next.h"
#include "shim/watch.h"

HOOK(int, epoll_ctl, (int epfd, int op, int fd, struct epoll_event *event))
{
	struct conn *conn = conn_unsettled(fd);

	return conn ? watch_control(conn, epfd, op, fd, event) :
		      next.epoll_ctl(epfd, op, fd, event);
}

/*
 * Is this event of a pending socket of ours, to be kept from the application? One whose
 * connection turns out to have failed is told as an error, since the kernel can't be made
 * to say EPOLLERR of a disconnected MPTCP socket. An event that came of nothing on our
 * socket is another's that was registered with the same data.
 */
static bool event_is_ours(int epfd, struct epoll_event *event)
{
	struct watch_found found = watch_find(epfd, event->data);

	if (found.owner == WATCH_NONE)
		return false;
	if (!conversion_is_ripe(found.conn, found.fd))
		return found.owner == WATCH_OURS && !conn_is_pending(found.conn);
	if (conversion_progress(found.conn, found.fd) != CONN_FAILED)
		return found.owner == WATCH_OURS;
	if (found.owner == WATCH_OURS)
		event->events = EPOLLERR | EPOLLHUP |
				(found.events & (EPOLLIN | EPOLLOUT | EPOLLRDHUP));
	return false;
}

static int events_sift(int epfd, struct epoll_event *events, int count)
{
	int left = 0;

	for (int i = 0; i < count; i++)
		if (!event_is_ours(epfd, &events[i]))
			events[left++] = events[i];
	return left;
}

/* A pending socket whose registration went past us (a raw system call): see to its response here. */
static bool sweep_visit(struct conn *conn, void *arg)
{
	(void)arg;
	if (conn->unseen && conn_of(conn->fd) == conn)
		conversion_progress(conn, conn->fd);
	return true;
}

/* The three system calls differ in the form of the time-out only. */
struct wait {
	int epfd, max;
	struct epoll_event *events;
	const sigset_t *mask;
	bool precise; /* epoll_pwait2() */
	struct deadline deadline;
};

static int wait_once(const struct wait *wait)
{
	struct timespec left;

	if (wait->precise)
		return next.epoll_pwait2(wait->epfd, wait->events, wait->max,
					 deadline_left(&wait->deadline, &left), wait->mask);
	return next.epoll_pwait(wait->epfd, wait->events, wait->max,
				deadline_left_ms(&wait->deadline), wait->mask);
}

/* @count events are there: those for the application, waiting on if there are none. */
static int wait_sift(const struct wait *wait, int count)
{
	for (;;) {
		int saved_errno = errno;
		int left = count > 0 ? events_sift(wait->epfd, wait->events, count) : count;

		if (atomic_load(&conn_unseen))
			conn_each_pending(sweep_visit, NULL);
		errno = saved_errno;
		if (left != 0 || count == 0)
			return left;
		count = wait_once(wait);
	}
}

/*
 * The common case costs a load and a jump around the next function. A connection that
 * another thread begins while we wait is seen afterwards; only then does the
 * time-out count from its end.
 */
#define SIFTED(next_call, epfd_, events_, max_, deadline_, mask_, precise_)                        \
	do {                                                                                       \
		struct wait wait = { .epfd = epfd_, .max = max_, .events = events_,                \
				     .mask = mask_, .precise = precise_ };                         \
		int count;                                                                         \
                                                                                                   \
		if (conn_none_attentive()) {                                                       \
			count = next_call;                                                         \
			if (count <= 0 || conn_none_attentive())                                   \
				return count;                                                      \
			wait.deadline = deadline_;                                                 \
		} else {                                                                           \
			wait.deadline = deadline_;                                                 \
			count = wait_once(&wait);                                                  \
		}                                                                                  \
		return wait_sift(&wait, count);                                                    \
	} while (0)

HOOK(int, epoll_wait, (int epfd, struct epoll_event *events, int max, int timeout_ms))
{
	SIFTED(next.epoll_wait(epfd, events, max, timeout_ms), epfd, events, max,
	       deadline_in_ms(timeout_ms), NULL, false);
}

HOOK(int, epoll_pwait, (int epfd, struct epoll_event *events, int max, int timeout_ms,
			const sigset_t *mask))
{
	SIFTED(next.epoll_pwait(epfd, events, max, timeout_ms, mask), epfd, events, max,
	       deadline_in_ms(timeout_ms), mask, false);
}

HOOK(int, epoll_pwait2, (int epfd, struct epoll_event *events, int max,
			 const struct timespec *timeout, const sigset_t *mask))
{
	SIFTED(next.epoll_pwait2(epfd, events, max, timeout, mask), epfd, events, max,
	       deadline_in(timeout), mask, true);
}
