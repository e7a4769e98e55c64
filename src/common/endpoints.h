/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoints.h - the addresses that the kernel's MPTCP path manager uses, as ip-mptcp(8) shows them */
#ifndef COMMON_ENDPOINTS_H
#define COMMON_ENDPOINTS_H

#include "common/netlink.h"
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
};

struct endpoints {
	struct mptcp_endpoint endpoint[ENDPOINTS_MAX];
	size_t count;
	unsigned int subflow_limit; /* subflows of a connection besides its first */
};

/*
 * endpoints_read() - ask the kernel; no privilege is needed
 * @netlink: its socket is opened and closed here. Returns 0 or -errno.
 */
int endpoints_read(struct endpoints *endpoints, struct netlink *netlink);

#endif
