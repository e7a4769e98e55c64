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
	union sockaddr_ip address; /* port 0: any */
	uint8_t id;
	unsigned int bound; /* index of the device that it is bound to; 0: none */
	uint32_t flags;     /* MPTCP_PM_ADDR_FLAG_… of linux/mptcp.h */
	bool foreign;       /* this host doesn't have the address; the kernel doesn't check that */
	bool is_ours;       /* the path service made it, by its memory: paths_memory_mark() */
};

struct mptcp_limits {
	unsigned int subflows; /* of a connection, besides its first */
	unsigned int accepted; /* addresses that a peer announces and to which the kernel opens subflows */
};

struct endpoints {
	struct mptcp_endpoint endpoint[ENDPOINTS_MAX];
	size_t count;
	unsigned int subflow_limit;
};

typedef void endpoint_visitor(void *arg, const struct mptcp_endpoint *endpoint);

/*
 * endpoints_visit() - call @visitor for each endpoint, and read the limits
 * @limits: NULL: don't ask for them. Works in hooks, with signals blocked, since it opens a descriptor for a moment. Needs no
 * privilege. Returns 0 or -errno: -ENOENT if the kernel has no Multipath TCP.
 */
int endpoints_visit(endpoint_visitor *visitor, void *arg, struct mptcp_limits *limits);

/* endpoints_read() - read all endpoints, and mark foreign addresses; needs room that hooks don't have. Returns 0 or -errno. */
int endpoints_read(struct endpoints *out);

#endif
