/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unseen.c - epoll registrations that were made past the hooks, as /proc tells of them
 *
 * libuv, since its version 1.50, and thereby Node, registers sockets through an io_uring; other programs make system
 * calls of their own. A pending socket that no registration is known of is therefore looked for in /proc, before the
 * application waits in an epoll instance, and its registration is taken over: from then on watch.c masks and restores it.
 * What the application does to it later goes past the hooks as well: so watch.c asks /proc again, before it restores such
 * a registration, whether it is still the one that it made.
 *
 * An instance may be large, and a socket may be in none (its thread uses poll()): each socket is looked for a few
 * times only.
 */
#include "config.h"

#include "shim/wait/unseen.h"

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

/* Tells @arg, a bool, of a socket that has not been looked for LOOKS_MAX times yet. */
static bool wanted_visit(struct conn *conn, void *arg)
{
	if (conn->unseen && conn->looks < LOOKS_MAX) {
		conn->looks++;
		*(bool *)arg = true;
	}
	return true;
}

void unseen_adopt(int epfd)
{
	int saved_errno = errno;
	bool wanted = false;

	conn_each_pending(wanted_visit, &wanted);
	if (wanted)
		registrations_visit(epfd, adopt_visit, NULL);
	errno = saved_errno;
}
