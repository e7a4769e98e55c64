/* SPDX-License-Identifier: BSD-3-Clause */
/* route.h - asking the kernel where an address leads */
#ifndef CONVERTD_ROUTE_H
#define CONVERTD_ROUTE_H

#include <netinet/in.h>

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

#endif
