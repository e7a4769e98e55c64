/* SPDX-License-Identifier: BSD-3-Clause */
/* route.h - asks the kernel where an address leads; each thread has a struct route of its own */
#ifndef CONVERTD_ROUTE_H
#define CONVERTD_ROUTE_H

#include <netinet/in.h>
#include <stdbool.h>

/* Where an address leads, as seen from this host. */
enum route_kind {
	ROUTE_ELSEWHERE, /* to another host, or nowhere, as connect() will find out */
	ROUTE_OWN,       /* to this host */
	ROUTE_BROADCAST, /* to all hosts of a network of ours, or to a group */
	ROUTE_UNKNOWN,   /* the kernel couldn't say */
};

struct route;

/* Opens a netlink socket to ask with. Returns it, for route_destroy(), or NULL with errno set. */
struct route *route_create(void);

/* NULL is fine. */
void route_destroy(struct route *route);

/* Returns where packets to @address would go. @address: IPv6, or IPv4 as v4-mapped */
enum route_kind route_find(struct route *route, const struct in6_addr *address);

/*
 * route_gateway() - find the router by which @address is reached
 * @address, @gateway: IPv6, or IPv4 as v4-mapped
 * Returns false where there is none: @address is on a network of ours, or there is no route. A router of the
 * other family (RFC 8950) is not reported.
 */
bool route_gateway(struct route *route, const struct in6_addr *address, struct in6_addr *gateway);

/*
 * route_has_source() - tell whether this host has a source address for connections to @address
 * Returns false as well where there is no route.
 */
bool route_has_source(struct route *route, const struct in6_addr *address);

#endif
