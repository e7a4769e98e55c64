/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.h - what the path service wants of the kernel, and what is to be done for it (no I/O)
 *
 * Three steps: the choice (choice.c, from the options), what is wanted (wanted.c, from the host, the choice and the memory), and the
 * difference to what there is (difference.c), a list of operations.
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
 * paths_choice_read() - take over what the settings say
 * @tables: "FIRST-LAST"; NULL: PATHS_TABLE_FIRST and _LAST
 * @beside_vpn: "1", "0" or NULL
 * The texts stay the caller's and must last. Returns false with the reason and the remedy in @problem, which begins with the
 * option's name.
 */
bool paths_choice_read(struct paths_choice *out, const char *device, const char *never, const char *backup,
		       const char *tables, const char *beside_vpn, char problem[static PATHS_PROBLEM_MAX]);

/* --- what is wanted --- */

struct paths_wanted {
	struct host_network *networks; /* allocated */
	size_t count;
	unsigned int limit;       /* of subflows, at least */
	bool may_keep;            /* endpoints whose networks have gone may stay: nobody else keeps them, and there is no VPN */
	bool keeps;               /* no network is left: all of them stay (paths_wanted_keeps()) */
	union sockaddr_ip needed[HOST_ENDPOINTS_USED_MAX]; /* those that stay, since connections have no other subflow yet */
	size_t needed_count;
	bool ends;                /* these are what is left for connections that are open: nothing is made, and the limit is given back */
};

/* paths_wanted_find() - what there should be; the same input has the same result. Returns 0 or -ENOMEM. paths_wanted_fini() frees it. */
int paths_wanted_find(struct paths_wanted *out, const struct host *host, const struct paths_choice *choice,
		      const struct paths_memory *memory);
void paths_wanted_fini(struct paths_wanted *wanted);

/* The network that is used and has this address; NULL: there is none. */
const struct host_network *paths_wanted_used(const struct paths_wanted *wanted, const union sockaddr_ip *address);

/* Has the network of the address gone by itself, rather than that somebody wants it not to be used? */
bool paths_wanted_is_outage(const struct paths_wanted *wanted, const union sockaddr_ip *address);

/*
 * Does an endpoint of ours stay though its network has gone? Without any network nobody can be told that subflows end: peers would keep
 * theirs, and refuse new ones as too many. And a connection whose last subflow is closed before another one is established ends for want
 * of any, or stands still until this network is back.
 */
bool paths_wanted_keeps(const struct paths_wanted *wanted, const union sockaddr_ip *address);

/* Is a route or a rule one that we have made? */
bool paths_wanted_is_own(uint8_t protocol, uint32_t table, const struct paths_choice *choice,
			 const struct paths_memory *memory);

/* --- what is to be done --- */

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

#define PATHS_RULE_PRIORITY 8803 /* of ours: before the main table's, behind those of whoever is more particular */

struct paths_operation {
	enum paths_operation_kind kind;
	char device[IF_NAMESIZE];  /* the name of the route's or the endpoint's, for the command */
	struct host_route route;
	struct host_rule rule;
	struct mptcp_endpoint endpoint;
	unsigned int limit;
};

#define PATHS_OPERATIONS_MAX 512

struct paths_operations {
	struct paths_operation list[PATHS_OPERATIONS_MAX];
	size_t count; /* what there was no room for is found the next time */
};

/* The flags of its endpoint. */
uint32_t host_network_flags(const struct host_network *network);

/*
 * paths_difference_find() - what is to be done, in an order in which there is no moment without a path that there could be
 * @wanted: NULL: nothing is; what was made is taken away
 */
void paths_difference_find(struct paths_operations *out, const struct paths_wanted *wanted, const struct host *host,
			   const struct paths_choice *choice, const struct paths_memory *memory);

#define PATHS_COMMAND_MAX 256

/* An operation as the command of ip(8) that does the same. Returns @buf. */
const char *paths_operation_format(const struct paths_operation *operation, char buf[static PATHS_COMMAND_MAX]);

#endif
