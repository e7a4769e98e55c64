/* SPDX-License-Identifier: BSD-3-Clause */
/* route.h - asking the kernel where an address leads */
#ifndef CONVERTD_ROUTE_H
#define CONVERTD_ROUTE_H

#include <netinet/in.h>
#include <stdbool.h>

enum route_kind {
	ROUTE_ELSEWHERE, /* to another host, or nowhere: connect() says the same */
	ROUTE_OWN,       /* to this host */
	ROUTE_BROADCAST, /* to all hosts of a network of ours, or to a group */
	ROUTE_UNKNOWN,   /* the kernel couldn't say */
};

struct route;

/* Returns NULL with errno set. */
struct route *route_create(void);

/* NULL is fine. */
void route_destroy(struct route *route);

/* @address: IPv4 as v4-mapped */
enum route_kind route_find(struct route *route, const struct in6_addr *address);

/*
 * route_gateway() - the router by which @address is reached, both with IPv4 as v4-mapped
 * Returns false where there is none: on a network of ours, or nowhere. A router of the other family
 * (RFC 8950) is none here.
 */
bool route_gateway(struct route *route, const struct in6_addr *address, struct in6_addr *gateway);

/*
 * route_has_source() - has this host an address to come from, for connections to @address?
 * False as well where there is no route.
 */
bool route_has_source(struct route *route, const struct in6_addr *address);

#endif
