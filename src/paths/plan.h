/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.h - the state of the kernel that the path service wants, and the operations that lead there (no I/O)
 *
 * Three steps: the choice (choice.c, from the options), the wanted state (wanted.c, from the host, the choice and the memory), and its
 * difference from the kernel's state (difference.c), a list of operations.
 */
#ifndef PATHS_PLAN_H
#define PATHS_PLAN_H

#include "host/host.h"
#include "paths/memory.h"

/* --- the choice --- */

#define PATHS_TABLE_FIRST 8803
#define PATHS_TABLE_LAST 8866

struct paths_choice {
	struct host_word word;
	uint32_t table_first, table_last;
};

#define PATHS_PROBLEM_MAX 256

/*
 * paths_choice_read() - read the settings
 * @tables: "FIRST-LAST"; NULL: PATHS_TABLE_FIRST and _LAST
 * @beside_vpn: "1", "0" or NULL
 * @out points into the texts, which the caller keeps. Returns false with the reason and the remedy in @problem, which begins with
 * the option's name.
 */
bool paths_choice_read(struct paths_choice *out, const char *device, const char *never, const char *backup,
		       const char *tables, const char *beside_vpn, char problem[static PATHS_PROBLEM_MAX]);

/* --- the wanted state --- */

struct paths_wanted {
	struct host_network *networks; /* allocated */
	size_t count;
	unsigned int limit;       /* of subflows, at least */
	bool may_keep;            /* endpoints of networks that are gone may stay: nobody else keeps them, and there is no VPN */
	bool keeps;               /* no network is left: all endpoints stay (paths_wanted_keeps()) */
	union sockaddr_ip needed[HOST_ENDPOINTS_USED_MAX]; /* endpoints that stay while a connection has no other subflow */
	size_t needed_count;
	bool ends;                /* the manager ends: keep these for open connections, make nothing, and restore the limit */
};

/*
 * paths_wanted_find() - compute the wanted state; the same input gives the same result
 * Returns 0 or -ENOMEM. paths_wanted_fini() frees @out.
 */
int paths_wanted_find(struct paths_wanted *out, const struct host *host, const struct paths_choice *choice,
		      const struct paths_memory *memory);
void paths_wanted_fini(struct paths_wanted *wanted);

/* Returns the used network with this address; NULL: there is none. */
const struct host_network *paths_wanted_used(const struct paths_wanted *wanted, const union sockaddr_ip *address);

/* Is the address's network gone by itself, and not excluded by a setting? */
bool paths_wanted_is_outage(const struct paths_wanted *wanted, const union sockaddr_ip *address);

/*
 * Does an endpoint of ours stay though its network is gone? It does if no network is left: no RM_ADDR could reach the peers, so they would
 * keep the old subflows, and refuse new ones as too many. It also stays while it carries a connection's last subflow: without that the
 * connection would end, or stall until the network is back.
 */
bool paths_wanted_keeps(const struct paths_wanted *wanted, const union sockaddr_ip *address);

/* Did we make this route or rule? */
bool paths_wanted_is_own(uint8_t protocol, uint32_t table, const struct paths_choice *choice,
			 const struct paths_memory *memory);

/* --- operations --- */

enum paths_operation_kind {
	PATHS_LIMIT_SET,
	PATHS_ROUTE_ADD,
	PATHS_RULE_ADD,
	PATHS_ENDPOINT_ADD,
	PATHS_ENDPOINT_CHANGE,
	PATHS_ENDPOINT_DELETE,
	PATHS_RULE_DELETE,
	PATHS_ROUTE_DELETE,
	PATHS_OPERATION_COUNT
};

#define PATHS_RULE_PRIORITY 8803 /* of our rules: before the main table's rule, after more specific ones of the administrator */

struct paths_operation {
	enum paths_operation_kind kind;
	char device[IF_NAMESIZE];  /* name of the route's or the endpoint's device, for the command */
	struct host_route route;
	struct host_rule rule;
	struct mptcp_endpoint endpoint;
	unsigned int limit;
};

#define PATHS_OPERATIONS_MAX 512

struct paths_operations {
	struct paths_operation list[PATHS_OPERATIONS_MAX];
	size_t count; /* the next look finds the operations that don't fit */
};

/* Returns the flags for the network's endpoint. */
uint32_t host_network_flags(const struct host_network *network);

/*
 * paths_difference_find() - compute the operations, in an order that never leaves the host without a path that it could have
 * @wanted: NULL: nothing is wanted; the operations remove all that we made
 */
void paths_difference_find(struct paths_operations *out, const struct paths_wanted *wanted, const struct host *host,
			   const struct paths_choice *choice, const struct paths_memory *memory);

#define PATHS_COMMAND_MAX 256

/* Formats an operation as the command of ip(8) that does the same. Returns @buf. */
const char *paths_operation_format(const struct paths_operation *operation, char buf[static PATHS_COMMAND_MAX]);

#endif
