/* SPDX-License-Identifier: BSD-3-Clause */
/* several.h - may an MPTCP connection get a second path? */
#ifndef NETWORKS_SEVERAL_H
#define NETWORKS_SEVERAL_H

#include "common/sockaddr.h"

#include <stdbool.h>

/*
 * paths_may_be_several() - may a connection of @fd to @to get a path besides the one that it begins on?
 * @fd: an MPTCP socket that isn't connected
 * Asks the kernel by netlink, some ten system calls, which need no privilege. True wherever that isn't
 * known: where netlink or /proc are forbidden, or a program manages the paths.
 * Signals should be blocked: it opens descriptors for a moment.
 */
bool paths_may_be_several(int fd, const union sockaddr_ip *to);

/* An endpoint of the kernel's path manager (ip-mptcp(8)). */
struct paths_endpoint {
	struct in6_addr address; /* IPv4 as v4-mapped */
	uint32_t flags;          /* MPTCP_PM_ADDR_FLAG_... of <linux/mptcp.h> */
};

typedef void paths_endpoint_visitor(void *arg, const struct paths_endpoint *endpoint);

/* paths_endpoints() - call @visitor for each endpoint, as far as the kernel tells; signals should be blocked here as well */
void paths_endpoints(paths_endpoint_visitor *visitor, void *arg);

#endif
