/* SPDX-License-Identifier: BSD-3-Clause */
/* netlink.h - questions to the kernel by netlink, one at a time (libmnl) */
#ifndef COMMON_NETLINK_H
#define COMMON_NETLINK_H

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <stdint.h>

/* A netlink socket, and the buffer for one request and its answers. */
struct netlink {
	struct mnl_socket *socket;
	unsigned int port, sequence;
	_Alignas(struct nlmsghdr) char buf[32768]; /* the kernel's dumps need no more, netlink(7) */
};

/* netlink_open() - @bus: NETLINK_ROUTE, NETLINK_GENERIC … Returns 0 or -errno. */
int netlink_open(struct netlink *netlink, int bus);
void netlink_close(struct netlink *netlink);

/*
 * netlink_ask() - send the request in the buffer, and show @on_message every answer
 * The request has NLM_F_ACK or NLM_F_DUMP, so that its answers have an end. Returns 0, or -errno, which is the kernel's
 * where it refuses the request.
 */
int netlink_ask(struct netlink *netlink, mnl_cb_t on_message, void *arg);

/* Begins a request to a generic netlink family in the buffer. @flags: besides NLM_F_REQUEST. */
struct nlmsghdr *netlink_put_generic(struct netlink *netlink, uint16_t family, uint16_t flags,
				     uint8_t command);

/* The number of a generic netlink family, or -errno: -ENOENT where this kernel has none. */
int netlink_find_family(struct netlink *netlink, const char *name);

#endif
