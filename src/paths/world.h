/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.h - what the kernel has, as far as paths are concerned: links, addresses, routes, rules, endpoints
 *
 * It is filled by kernel_read.c, and by unit tests as they like. What is known of a route depends on what it is good for:
 * default routes, routes to networks on the link, and our own are here one by one; of the tables that have any other
 * route only the numbers, so that no table is taken for ours in which somebody has something.
 */
#ifndef PATHS_WORLD_H
#define PATHS_WORLD_H

#include "common/endpoints.h"
#include "common/sockaddr.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATHS_V4_BITS 96 /* of an IPv4 prefix's length in struct prefix */

/* By this number routes and rules of ours are known, "proto" of ip-route(8). None of /etc/iproute2/rt_protos has it. */
#define PATHS_PROTOCOL 88

#define PATHS_KIND_MAX 16

struct paths_link {
	unsigned int index;
	char name[IF_NAMESIZE];
	char kind[PATHS_KIND_MAX]; /* "veth", "wireguard" …, as "ip -details link" has it; empty: a device of its own driver */
	bool loopback;
	bool up;                   /* by the administrator */
	bool carrier;              /* and by the medium: RFC 2863's "up", not "dormant" */
	unsigned int master;       /* the bridge, bond or VRF that it is a part of; 0: none */
	uint64_t received, sent;   /* bytes since the device was made */
};

struct paths_address {
	unsigned int index;
	union sockaddr_ip address; /* port 0 */
	uint8_t scope;             /* RT_SCOPE_… */
	uint32_t flags;            /* IFA_F_… */
};

struct paths_route {
	int family;
	uint32_t table;
	uint8_t protocol;
	struct prefix to;
	unsigned int index;
	union sockaddr_ip gateway; /* AF_UNSPEC: none is needed */
	bool onlink;               /* the gateway is on the link, whatever the routes say */
	uint32_t metric;
};

/* "from ADDRESS lookup TABLE", for a whole address */
struct paths_rule {
	union sockaddr_ip from;
	uint32_t table;
	uint32_t priority;
	uint8_t protocol;
};

struct paths_world {
	struct paths_link *links;
	size_t link_count;
	struct paths_address *addresses;
	size_t address_count;
	struct paths_route *routes;
	size_t route_count;
	struct paths_rule *rules;
	size_t rule_count;
	uint32_t *tables; /* that have routes or rules which aren't ours; some may be there twice */
	size_t table_count;
	struct endpoints endpoints;
};

/* Returns the link with this index; NULL: there is none. */
const struct paths_link *paths_world_link(const struct paths_world *world, unsigned int index);

/* Does the route lead everywhere? */
bool paths_route_is_default(const struct paths_route *route);

/* Does it lead to half of everything at least? A VPN may have 0.0.0.0/1 and 128.0.0.0/1, so as to leave the default route alone. */
bool paths_route_is_wide(const struct paths_route *route);

/* The endpoint of an address, be it bound to whichever device; NULL: there is none. */
const struct mptcp_endpoint *paths_world_endpoint(const struct paths_world *world,
						  const union sockaddr_ip *address);

/* The address without a port. Returns @buf. */
const char *paths_format_address(const union sockaddr_ip *address, char buf[static PREFIX_STRLEN]);

/* Frees the lists of a world that paths_kernel_read() has filled. */
void paths_world_fini(struct paths_world *world);

#endif
