/* SPDX-License-Identifier: BSD-3-Clause */
/* way.h - asks the kernel for the route of a packet: its own lookup, with all rules and tables (RTM_GETROUTE) */
#ifndef HOST_WAY_H
#define HOST_WAY_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stdint.h>

/* The route of one packet. */
struct host_way {
	int error;                 /* 0, or the positive errno of a connect() */
	uint8_t type;              /* RTN_UNICAST, RTN_LOCAL … */
	unsigned int index;        /* of the device that the packet leaves by */
	uint32_t table;            /* that contains the route */
	union sockaddr_ip gateway; /* AF_UNSPEC: the destination is on the link, or the router has the other family (RFC 8950) */
	bool has_source;           /* this host has a source address for the destination */
	bool assumed; /* no route leads there: for a socket bound to a device Linux assumes that the destination is on the link */
};

/*
 * host_way_ask() - ask the kernel for the route to @to
 * @netlink: of nl_open(NETLINK_ROUTE); -1: open one for this question
 * @from: the source, IPv4 as v4-mapped; NULL or ::: the kernel chooses
 * @index: the device that the socket is bound to; 0: none
 * Works in hooks. Needs no privilege.
 */
void host_way_ask(int netlink, const union sockaddr_ip *to, const struct in6_addr *from, unsigned int index, struct host_way *out);

/* Does the route lead to another host over this device? */
bool host_way_leads(const struct host_way *way, unsigned int index);

/* Returns an address without a specific route: its route is the default one. We never send packets there. @family: AF_INET or AF_INET6 */
union sockaddr_ip host_way_anywhere(int family);

#endif
