/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route_plan.h - finds the route and rule that are missing for packets from an address to leave by its own device
 *
 * A host with two providers has a rule for the address of each, "from ADDRESS lookup TABLE", and in that table a default route over its
 * network (ip-rule(8)).
 */
#ifndef HOST_ROUTE_PLAN_H
#define HOST_ROUTE_PLAN_H

#include "host/host.h"

/* The missing parts; the route comes first. */
struct host_route_plan {
	bool add_route, add_rule;
	bool has_gateway; /* false with add_route: the gateway is unknown, or the route needs none */
	union sockaddr_ip gateway;
	uint32_t table;
};

/* Finds the missing parts for packets from @from, an address of @link. */
void host_route_plan(const struct host *host, const union sockaddr_ip *from, const struct host_link *link, struct host_route_plan *out);

/* Has the kernel asked for this router on the link, by ARP or neighbour discovery, and got no answer so far? */
bool host_router_is_silent(const union sockaddr_ip *router, unsigned int index);

/* Finds a router other than @router in the routes over the device @index. Returns false if there is none. */
bool host_other_router(const struct host *host, const union sockaddr_ip *router, unsigned int index, union sockaddr_ip *out);

#endif
