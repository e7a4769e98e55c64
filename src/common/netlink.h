/* SPDX-License-Identifier: BSD-3-Clause */
/* netlink.h - questions to the kernel by netlink, one at a time (libmnl) */
#ifndef COMMON_NETLINK_H
#define COMMON_NETLINK_H

#include "common/sockaddr.h"

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <stdbool.h>
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
 * netlink_ask() - send the request in the buffer, and call @on_message for every answer
 * The request has NLM_F_ACK or NLM_F_DUMP, so that its answers have an end. Returns 0, or -errno, the kernel's if it refuses the request.
 * -EINTR: @on_message has had the whole list, but the list has changed since its beginning (NLM_F_DUMP_INTR).
 */
int netlink_ask(struct netlink *netlink, mnl_cb_t on_message, void *arg);

/* netlink_dump() - ask for the whole list of @type, such as RTM_GETROUTE, for a family; returns as netlink_ask() */
int netlink_dump(struct netlink *netlink, uint16_t type, int family, mnl_cb_t on_message, void *arg);

/*
 * netlink_dump_sockets() - list sockets of both families by sock_diag(7), with INET_DIAG_INFO; @netlink: of NETLINK_SOCK_DIAG
 * @protocol: IPPROTO_TCP or IPPROTO_MPTCP; @states: a bit for each TCP state. Returns as netlink_ask()
 */
int netlink_dump_sockets(struct netlink *netlink, uint32_t protocol, uint32_t states, mnl_cb_t on_message, void *arg);

struct inet_diag_msg;
struct tcp_info;

/*
 * Copies a listed socket's INET_DIAG_INFO: newer kernels append fields, and those that an older one doesn't know are 0. Returns false if it
 * has none.
 */
bool netlink_read_socket_info(const struct nlmsghdr *message, void *out, size_t size);

/*
 * netlink_find_socket() - ask for the TCP socket with these addresses
 * @device: finds a socket that is bound to the interface of this index, too; 0: only one that is bound to none. Returns as netlink_ask(),
 * -ENOENT: there is none
 */
int netlink_find_socket(struct netlink *netlink, const union sockaddr_ip *own, const union sockaddr_ip *peer, int device,
			struct tcp_info *out);

/* Returns a listed socket's own address, or its peer's, with the port. */
union sockaddr_ip netlink_socket_address(const struct inet_diag_msg *socket, bool peer);

/* Reads an attribute with an address of @family; sets port 0. Returns false if it has another length. */
bool netlink_read_address(union sockaddr_ip *out, const struct nlattr *attr, int family);

/* Adds an attribute with the address, of either family. */
void netlink_put_address(struct nlmsghdr *request, uint16_t type, const union sockaddr_ip *address);

/* Returns the number in an attribute of 32 bits; 0 for one of another length. */
uint32_t netlink_read_u32(const struct nlattr *attr);

/* Begins a request with NLM_F_ACK to a generic netlink family in the buffer. */
struct nlmsghdr *netlink_put_generic(struct netlink *netlink, uint16_t family, uint8_t command);

#endif
