/* SPDX-License-Identifier: BSD-3-Clause */
/* way.h - which way the kernel sends a packet: its own lookup, with all rules and tables (RTM_GETROUTE) */
#ifndef HOST_WAY_H
#define HOST_WAY_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stdint.h>

/* The way that one packet would take. */
struct host_way {
	int error;                 /* 0, or the positive errno that a connect() would have */
	uint8_t type;              /* RTN_UNICAST, RTN_LOCAL … */
	unsigned int index;        /* of the device that it leaves by */
	uint32_t table;            /* that has the route */
	union sockaddr_ip gateway; /* AF_UNSPEC: the destination is on the link itself, or the router is of the other family (RFC 8950) */
	bool has_source;           /* this host has a source address for the destination */
	bool assumed; /* no route leads there: Linux assumes for a socket bound to a device that the destination is on the link */
};

/*
 * host_way_ask() - ask for the way to @to
 * @netlink: of nl_open(NETLINK_ROUTE); -1: one is opened for this question
 * @from: the source, IPv4 as v4-mapped; NULL or ::: the kernel chooses
 * @index: the device that the socket is bound to; 0: none
 * Works in hooks. Needs no privilege.
 */
void host_way_ask(int netlink, const union sockaddr_ip *to, const struct in6_addr *from, unsigned int index, struct host_way *out);

/* Does the way lead to another host over this device? */
bool host_way_leads(const struct host_way *way, unsigned int index);

/* An address that nobody makes a route for, so that the way there is that of everything else; nothing is sent there. @family: AF_INET or AF_INET6 */
union sockaddr_ip host_way_anywhere(int family);

#endif
