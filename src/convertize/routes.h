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
	uint32_t tables[ROUTES_MAX * 2]; /* that something is in, or points to */
	size_t table_count;
};

/* The way that one packet would take. */
struct routes_way {
	int error;                 /* 0, or the positive errno that a connect() would have */
	unsigned int index;
	uint32_t table;
	union sockaddr_ip gateway; /* AF_UNSPEC: the destination is on the link itself */
	bool assumed; /* no route says so: for a socket that is bound to a device Linux assumes it */
};

/* routes_read() - ask the kernel; what it doesn't say isn't there */
void routes_read(struct routes *out);

/* routes_find() - @from: AF_UNSPEC: any; @index: the device that the socket is bound to; 0: none */
void routes_find(const union sockaddr_ip *to, const union sockaddr_ip *from, unsigned int index,
		 struct routes_way *out);

/* Was this router asked for on the link, and has it not answered (yet)? */
bool routes_is_silent(const union sockaddr_ip *router, unsigned int index);

/* Another router than this one that some route over the device goes by; false: none is known. */
bool routes_other_router(const struct routes *routes, const union sockaddr_ip *router,
			 unsigned int index, union sockaddr_ip *out);

/* What makes packets from an address leave by its own device. */
struct routes_plan {
	bool add_route, add_rule; /* the route first */
	bool has_gateway;         /* false with add_route: nobody here knows it, or none is needed */
	bool no_gateway;          /* a link between two points */
	union sockaddr_ip gateway;
	uint32_t table;
};

/* routes_plan() - @index, @name: the device that has the address @from */
void routes_plan(const struct routes *routes, const union sockaddr_ip *from, unsigned int index,
		 const char *name, struct routes_plan *out);

#endif
