/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.h - accept clients on one address */
#ifndef CONVERTD_LISTENER_H
#define CONVERTD_LISTENER_H

#include "convertd/settings.h"

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct listener;
struct session_pool;

/* Connections that wait for accept(), and those of them that have data in the SYN. */
#define LISTENER_BACKLOG 4096

/* The bit of net.ipv4.tcp_fastopen that lets servers use it (ip-sysctl.rst). */
#define LISTENER_SYSCTL_FASTOPEN 0x2

/* Room for what listener_describe() prints. */
#define LISTENER_DESCRIPTION_MAX (SOCKADDR_STRLEN + IFNAMSIZ + 40)

/*
 * listener_create() - bind a socket, or use the one that was inherited, without accepting yet
 * @where: :: takes IPv4 as well
 * Returns NULL after telling @problems what went wrong.
 */
struct listener *listener_create(const struct listen_address *where, struct problems *problems);

/* Stops accepting and closes the socket; sessions go on. NULL is fine. */
void listener_destroy(struct listener *listener);

/*
 * listener_start() - accept clients from now on, into @pool
 * Returns false after telling @problems what went wrong.
 */
bool listener_start(struct listener *listener, struct event_base *base, struct session_pool *pool,
		    struct problems *problems);

/*
 * listener_set_pending() - how many requests may be pending, 0 for no limit
 * Half as many may be there in SYNs whose handshake isn't complete: beyond it, the kernel leaves
 * SYNs' data out, so that forged ones don't take the place of all others.
 */
void listener_set_pending(struct listener *listener, unsigned pending);

/* Accepts the clients that have connected already: before it is destroyed while others go on. */
void listener_drain(struct listener *listener);

/* Is this what it listens on? Not once an interface has gone and come back as another. */
bool listener_is_at(const struct listener *listener, const struct listen_address *where);

/* "[::]%eth0:1234 (MPTCP, Fast Open)"; returns @buf. */
const char *listener_describe(const struct listener *listener,
			      char buf[static LISTENER_DESCRIPTION_MAX]);

#endif
