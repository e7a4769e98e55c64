/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.h - accept clients on one address */
#ifndef CONVERTD_LISTENER_H
#define CONVERTD_LISTENER_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct listener;
struct session_pool;

/* Room for what listener_describe() prints. */
#define LISTENER_DESCRIPTION_MAX (SOCKADDR_STRLEN + 32)

/*
 * listener_create() - bind a socket, without accepting yet
 * @address: :: takes IPv4 as well
 * Says on the log what went wrong, and returns NULL then.
 */
struct listener *listener_create(const union sockaddr_ip *address);

/* Stops accepting and closes the socket; sessions go on. NULL is fine. */
void listener_destroy(struct listener *listener);

/*
 * listener_start() - accept clients from now on, into @pool
 * Returns false after saying on the log what went wrong.
 */
bool listener_start(struct listener *listener, struct event_base *base, struct session_pool *pool);

/* "[::]:1234 (MPTCP, Fast Open)"; returns @buf. */
const char *listener_describe(const struct listener *listener,
			      char buf[static LISTENER_DESCRIPTION_MAX]);

/* Warns about sysctls that take Fast Open or MPTCP away from every listener. */
void listener_check_sysctls(void);

#endif
