/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoints.h - the addresses that the kernel's MPTCP path manager uses, as ip-mptcp(8) shows them */
#ifndef HOST_ENDPOINTS_H
#define HOST_ENDPOINTS_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENDPOINTS_MAX 64

struct mptcp_endpoint {
	union sockaddr_ip address; /* its port is 0 unless it has one */
	uint8_t id;
	unsigned int bound; /* to the device with this index; 0: to none */
	uint32_t flags;     /* MPTCP_PM_ADDR_FLAG_… of linux/mptcp.h */
	bool foreign;       /* this host doesn't have the address; the kernel takes any */
	bool is_ours;       /* the path service has made it, as its memory says: paths_memory_mark() */
};

struct mptcp_limits {
	unsigned int subflows; /* of a connection besides its first */
	unsigned int accepted; /* addresses of the peer that subflows are opened to */
};

struct endpoints {
	struct mptcp_endpoint endpoint[ENDPOINTS_MAX];
	size_t count;
	unsigned int subflow_limit;
};

typedef void endpoint_visitor(void *arg, const struct mptcp_endpoint *endpoint);

/*
 * endpoints_visit() - call @visitor for each endpoint, and read the limits
 * @limits: NULL: they aren't asked for. Works in hooks, with signals blocked: it opens a descriptor for a moment. Needs no privilege.
 * Returns 0 or -errno: -ENOENT where the kernel has no Multipath TCP.
 */
int endpoints_visit(endpoint_visitor *visitor, void *arg, struct mptcp_limits *limits);

/* endpoints_read() - all of them, for programs that have the room; looks for foreign addresses as well. Returns 0 or -errno. */
int endpoints_read(struct endpoints *out);

#endif
