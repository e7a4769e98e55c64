/* SPDX-License-Identifier: BSD-3-Clause */
/* wanted.h - which endpoints, rules and tables there should be, from what the kernel has and what was chosen (no I/O) */
#ifndef PATHS_WANTED_H
#define PATHS_WANTED_H

#include "paths/judge.h"
#include "paths/memory.h"

#define PATHS_NETWORKS_MAX 64
#define PATHS_ENDPOINTS_MAX 8 /* MPTCP_PM_ADDR_MAX, include/net/mptcp.h: as many as every kernel takes; and of subflows, MPTCP_SUBFLOWS_MAX */

/* Who keeps an endpoint, or would. */
enum paths_keeper { PATHS_KEEPER_OURS, PATHS_KEEPER_OTHER, PATHS_KEEPER_NM, PATHS_KEEPER_MPTCPD, PATHS_KEEPER_COUNT };

/* An address of a device, and what is to be done for it. */
struct paths_network {
	union sockaddr_ip address;
	struct paths_link link;
	enum paths_verdict verdict;
	bool has_route;            /* there is a default route over the device; what follows is of it */
	union sockaddr_ip gateway; /* AF_UNSPEC: none is needed */
	bool onlink;               /* the gateway is there though no route says so */
	uint32_t metric;           /* of the default route that the gateway is of */
	/* The rest means something if paths_network_is_routed(). */
	uint32_t table;            /* 0: none is free */
	bool table_is_ours;        /* otherwise somebody has a rule for the address */
	enum paths_keeper keeper;
	bool backup;
};

struct paths_wanted {
	struct paths_network networks[PATHS_NETWORKS_MAX];
	size_t count;
	const char *vpn;          /* the device that all traffic goes through; NULL: none. It is the world's */
	unsigned int limit;       /* of subflows, at least */
	bool keeps;               /* no network is left: endpoints whose networks have gone stay (paths_wanted_keeps()) */
	bool ends;                /* these are what is left for connections that are open: nothing is made, and the limit is given back */
};

/* Is there to be a rule for its address? It stays without a carrier: what is sent from there is none of another network's. */
bool paths_network_is_routed(const struct paths_network *network);

/*
 * Does an endpoint of ours stay though its network isn't used? Without any network nobody can be told that subflows end: peers would keep
 * theirs, and refuse new ones as too many. So it stays, unless somebody has chosen that it goes.
 */
bool paths_wanted_keeps(const struct paths_wanted *wanted, const union sockaddr_ip *address);

/* Is a route or a rule one that we have made? */
bool paths_wanted_is_own(uint8_t protocol, uint32_t table, const struct paths_choice *choice,
			 const struct paths_memory *memory);

/* paths_wanted_find() - what there should be; the same input has the same result */
void paths_wanted_find(struct paths_wanted *out, const struct paths_world *world, const struct paths_choice *choice,
		       const struct paths_others *others, const struct paths_memory *memory);

#endif
