/* SPDX-License-Identifier: BSD-3-Clause */
/* own_look.h - finds out whether the other end of a connection is on this very host */
#ifndef CONVERTD_OWN_LOOK_H
#define CONVERTD_OWN_LOOK_H

#include "common/sockaddr.h"
#include "convertd/base/listen_address.h"

#include <stdbool.h>
#include <stddef.h>

struct own_look;
struct route;
struct tcp_info;

/* Makes what one thread asks the kernel with. Returns it, for own_look_destroy(), or NULL with errno set. */
struct own_look *own_look_create(void);

/* NULL is fine. */
void own_look_destroy(struct own_look *look);

/*
 * own_look_meets() - tell whether the connection of @fd to @server ends on this host
 * @look: may be NULL: nothing is found then
 * @listen, @listen_count: where convertd itself listens
 * @route: is asked for the router on the way to the server; may be NULL
 * @info: of the connection, which is established
 * Returns false without a look for a server that was looked for in the last minute and wasn't on this host.
 */
bool own_look_meets(struct own_look *look, const struct listen_address *listen, size_t listen_count,
		    struct route *route, int fd, const union sockaddr_ip *server, const struct tcp_info *info);

#endif
