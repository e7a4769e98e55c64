/* SPDX-License-Identifier: BSD-3-Clause */
/* path_direct.h - the network that a direct connection takes where the usual one is silent */
#ifndef NETWORKS_PATH_DIRECT_H
#define NETWORKS_PATH_DIRECT_H

#include "client/settings.h"
#include "networks/networks.h"

/* path_direct_is_bad() - is the usual path to one of the converters known to be silent? Without a system call. */
bool path_direct_is_bad(void);

/*
 * path_direct_bind() - have a direct connection to @server take a network that works
 * @fd: isn't connected
 * @device: the interface of the network that its connection has moved to; 0: another one is taken if all usual paths to converters are
 * silent and a converter has answered on it
 * Returns true with the interface's name in @name, or false where it stays on the usual network.
 */
bool path_direct_bind(int fd, const struct settings *settings, const union sockaddr_ip *server, int device, char name[IF_NAMESIZE]);

#endif
