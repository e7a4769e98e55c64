/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unseen_watches.c - finds epoll registrations that were made past the hooks, from /proc
 *
 * libuv since version 1.50, and with it Node, registers sockets through an io_uring, and other programs make system calls of their own, so
 * that the hooks never see epoll_ctl(). So before the application waits in an epoll instance, we look in /proc for each pending socket
 * without a known registration. If it is there, we adopt its registration: from then on watch.c masks and restores it. The application may
 * modify it later, past the hooks as well; so before watch.c restores an adopted registration, it reads /proc again to check that its mask
 * is still there.
 *
 * An instance may be large, and a socket may be in none (its thread uses poll()), so we look for each socket LOOKS_MAX times at most. There
 * is nothing to clean up: an adopted registration belongs to the conn like all others.
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

/* Sets @arg, a bool, if we have looked for the socket fewer than LOOKS_MAX times, and counts this time. */
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
