/* SPDX-License-Identifier: BSD-3-Clause */
/* difference.h - what is to be done so that the kernel has what is wanted, as a list of operations (no I/O) */
#ifndef PATHS_DIFFERENCE_H
#define PATHS_DIFFERENCE_H

#include "paths/wanted.h"

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
	struct paths_route route;
	struct paths_rule rule;
	struct mptcp_endpoint endpoint;
	unsigned int limit;
};

#define PATHS_OPERATIONS_MAX 512

struct paths_operations {
	struct paths_operation list[PATHS_OPERATIONS_MAX];
	size_t count; /* what there was no room for is found the next time */
};

/* The flags of its endpoint. */
uint32_t paths_network_flags(const struct paths_network *network);

/*
 * paths_difference_find() - what is to be done, in an order in which there is no moment without a path that there could be
 * @wanted: NULL: nothing is; what was made is taken away
 */
void paths_difference_find(struct paths_operations *out, const struct paths_wanted *wanted, const struct paths_world *world,
			   const struct paths_choice *choice, const struct paths_memory *memory);

#define PATHS_COMMAND_MAX 256

/* An operation as the command of ip(8) that does the same. Returns @buf. */
const char *paths_operation_format(const struct paths_operation *operation, char buf[static PATHS_COMMAND_MAX]);

#endif
