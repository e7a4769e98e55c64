/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unseen_watches.c - epoll registrations that were made past the hooks, as /proc tells of them
 *
 * libuv, since its version 1.50, and with it Node, registers sockets through an io_uring, and other programs make system
 * calls of their own, so that the hooks never see epoll_ctl(). Before the application waits in an epoll instance, a pending
 * socket of which no registration is known is therefore looked for in /proc. If it is there, its registration is adopted:
 * from then on watch.c masks and restores it. The application may modify it later, past the hooks as well; so
 * watch.c reads /proc again, before it restores an adopted registration, to see whether it is still as it was masked.
 *
 * An instance may be large, and a socket may be in none (its thread uses poll()), so that each socket is looked for
 * LOOKS_MAX times at most. Nothing has to be cleaned up: an adopted registration is one of the conn's like all others.
 */
#include "config.h"

#include "shim/wait/unseen_watches.h"

#include "shim/wait/registrations.h"
#include "shim/wait/watch.h"

#include <errno.h>

#define LOOKS_MAX 8

static bool adopt_visit(int epfd, const struct registration *found, void *arg)
{
	struct conn *conn = conn_maybe(found->fd) ? conn_of(found->fd) : NULL;
	struct epoll_event event = found->event;

	(void)arg;
	if (conn && conn->unseen && watch_adopt(conn, epfd, found->fd, &event))
		return atomic_load(&conn_unseen) > 0;
	return true;
}

/* Sets @arg, a bool, if the socket hasn't been looked for LOOKS_MAX times yet, and counts this time. */
static bool wanted_visit(struct conn *conn, void *arg)
{
	if (conn->unseen && conn->looks < LOOKS_MAX) {
		conn->looks++;
		*(bool *)arg = true;
	}
	return true;
}

void unseen_watches_adopt(int epfd)
{
	int saved_errno = errno;
	bool wanted = false;

	conn_each_pending(wanted_visit, &wanted);
	if (wanted)
		registrations_visit(epfd, adopt_visit, NULL);
	errno = saved_errno;
}
