/* SPDX-License-Identifier: BSD-3-Clause */
/* path_direct.h - the network that a direct connection takes where the usual one is silent, or isn't to be used */
#ifndef NETWORKS_PATH_DIRECT_H
#define NETWORKS_PATH_DIRECT_H

#include "client/settings.h"
#include "networks/networks.h"

/* Which network a direct connection has taken in place of the usual one. */
struct path_direct {
	char name[IF_NAMESIZE];
	const char *why; /* what is wrong with the usual one: "is silent", for the log */
};

/*
 * path_direct_take() - have a direct connection to @server take a network that works, and none on which the user wants no connection (=never)
 * @fd: isn't connected; one that is bound to an address isn't taken away from a network with =never
 * @moved: the connection has been moved by us, to the network of the interface @device; 0: back to the usual one. A connection that hasn't
 * takes another network if all usual paths to converters are silent and a converter has answered on it.
 * Returns 1 with @taken set, 0 where it stays on the usual network, or -ENETUNREACH if the user's =never leaves none.
 */
int path_direct_take(int fd, const struct settings *settings, const union sockaddr_ip *server, bool moved, int device, struct path_direct *taken);

#endif
