/* SPDX-License-Identifier: BSD-3-Clause */
/* routes.h - which way packets go from here, and what is missing for them to go another way */
#ifndef CONVERTIZE_ROUTES_H
#define CONVERTIZE_ROUTES_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROUTES_MAX 64

/* A route over a gateway, or a default route without one. */
struct routes_hop {
	unsigned int index; /* of the device */
	uint32_t table;
	uint32_t metric;
	bool is_default;
	int family;
	union sockaddr_ip gateway; /* AF_UNSPEC: none is needed */
};

/* "from ADDRESS/LENGTH lookup TABLE" */
struct routes_rule {
	union sockaddr_ip from;
	uint8_t length;
	uint32_t table;
};

struct routes {
	struct routes_hop hops[ROUTES_MAX];
	size_t hop_count;
	struct routes_rule rules[ROUTES_MAX];
	size_t rule_count;
	uint32_t tables[ROUTES_MAX * 2]; /* all tables that have a route, or that a rule names */
	size_t table_count;
};

/* The way that one packet would take. */
struct routes_way {
	int error;                 /* 0, or the positive errno that a connect() would have */
	unsigned int index;
	uint32_t table;
	union sockaddr_ip gateway; /* AF_UNSPEC: the destination is on the link itself */
	bool assumed; /* no route leads there: Linux assumes for a socket bound to a device that the destination is on the link */
};

/* routes_read() - ask the kernel for all routes and rules; a list stays empty where it refuses */
void routes_read(struct routes *out);

/*
 * routes_find() - ask the kernel which way a packet takes
 * @from: its source; AF_UNSPEC: the kernel chooses one
 * @index: the device that the socket is bound to; 0: none
 */
void routes_find(const union sockaddr_ip *to, const union sockaddr_ip *from, unsigned int index,
		 struct routes_way *out);

/* Has the kernel asked for this router on the link, by ARP or neighbour discovery, without an answer so far? */
bool routes_is_silent(const union sockaddr_ip *router, unsigned int index);

/* Finds another router than @router that some route over the device @index goes by; false if none is known. */
bool routes_other_router(const struct routes *routes, const union sockaddr_ip *router,
			 unsigned int index, union sockaddr_ip *out);

/* The route and the rule that are missing for packets from an address to leave by its own device. */
struct routes_plan {
	bool add_route, add_rule; /* the route first */
	bool has_gateway;         /* false with add_route: nobody here knows it, or none is needed */
	bool no_gateway;          /* a link between two points */
	union sockaddr_ip gateway;
	uint32_t table;
};

/* routes_plan() - find out what is missing for @from, the address of the device @index that is called @name */
void routes_plan(const struct routes *routes, const union sockaddr_ip *from, unsigned int index,
		 const char *name, struct routes_plan *out);

#endif
