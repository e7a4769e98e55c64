/* SPDX-License-Identifier: BSD-3-Clause */
/* own_look.h - is the other end of a connection on this very host? */
#ifndef CONVERTD_OWN_LOOK_H
#define CONVERTD_OWN_LOOK_H

#include "common/sockaddr.h"
#include "convertd/base/listen_address.h"

#include <stdbool.h>
#include <stddef.h>

struct own_look;
struct route;
struct tcp_info;

/* For one thread. Returns NULL with errno set: no descriptor, no memory. */
struct own_look *own_look_create(void);

/* NULL is fine. */
void own_look_destroy(struct own_look *look);

/*
 * own_look_meets() - does the connection of @fd to @server end on this host?
 * @look: NULL: nothing is found
 * @listen, @listen_count: where convertd itself listens
 * @route: asked for the router on the way to the server
 * @info: of the connection, which is established
 * Returns false for a server that was looked at in the last minute, and wasn't on this host.
 */
bool own_look_meets(struct own_look *look, const struct listen_address *listen, size_t listen_count,
		    struct route *route, int fd, const union sockaddr_ip *server, const struct tcp_info *info);

#endif
