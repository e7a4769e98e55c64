/* SPDX-License-Identifier: BSD-3-Clause */
/* paths_world.c - see paths_world.h */
#include "config.h"

#include "paths_world.h"

#include <linux/mptcp.h>
#include <linux/rtnetlink.h>
#include <string.h>

struct paths_world_lists lists;
struct paths_world world;
struct paths_choice choice;
struct paths_others others;
struct paths_memory memory;
struct paths_wanted wanted;
struct paths_operations operations;

void begin(void)
{
	memset(&lists, 0, sizeof(lists));
	memset(&memory, 0, sizeof(memory));
	memset(&others, 0, sizeof(others));
	world = (struct paths_world){ .links = lists.links,
				      .addresses = lists.addresses,
				      .routes = lists.routes,
				      .rules = lists.rules,
				      .tables = lists.tables,
				      .endpoints.subflow_limit = 2 };
	choice = (struct paths_choice){ .table_first = 8803, .table_last = 8866 };
}

/* --- a world ---------------------------------------------------------------------------- */

union sockaddr_ip address_of(const char *text)
{
	union sockaddr_ip address;

	ck_assert_int_eq(sockaddr_ip_parse(&address, text, 0), 0);
	return address;
}

struct paths_link *link_called(const char *name)
{
	for (size_t i = 0; i < world.link_count; i++)
		if (strcmp(lists.links[i].name, name) == 0)
			return &lists.links[i];
	ck_abort_msg("no link %s", name);
}

struct paths_link *add_link(const char *name, const char *kind)
{
	struct paths_link *link = &lists.links[world.link_count++];

	link->index = (unsigned int)world.link_count + 1;
	strcpy(link->name, name);
	strcpy(link->kind, kind);
	link->up = link->carrier = true;
	return link;
}

struct paths_address *add_address(const char *device, const char *address)
{
	struct paths_address *added = &lists.addresses[world.address_count++];

	*added = (struct paths_address){ .index = link_called(device)->index, .address = address_of(address) };
	return added;
}

void remove_address(const char *address)
{
	union sockaddr_ip gone = address_of(address);

	for (size_t i = world.address_count; i-- > 0;)
		if (sockaddr_ip_equal(&lists.addresses[i].address, &gone))
			lists.addresses[i] = lists.addresses[--world.address_count];
}

struct paths_route *add_route(const char *device, int family, const char *to, const char *gateway, uint32_t metric)
{
	struct paths_route *route = &lists.routes[world.route_count++];

	*route = (struct paths_route){ .family = family,
				       .table = RT_TABLE_MAIN,
				       .protocol = RTPROT_BOOT,
				       .index = link_called(device)->index,
				       .metric = metric };
	ck_assert_int_eq(prefix_parse(&route->to, to ? to : family == AF_INET ? "0.0.0.0/0" : "::/0",
				      strlen(to ? to : family == AF_INET ? "0.0.0.0/0" : "::/0")),
			 0);
	if (gateway)
		route->gateway = address_of(gateway);
	return route;
}

void remove_routes_of(const char *device)
{
	for (size_t i = world.route_count; i-- > 0;)
		if (lists.routes[i].index == link_called(device)->index)
			lists.routes[i] = lists.routes[--world.route_count];
}

void add_network(const char *device, const char *kind, const char *number, uint32_t metric)
{
	char text[64];

	add_link(device, kind);
	snprintf(text, sizeof(text), "%s.2", number);
	add_address(device, text);
	snprintf(text, sizeof(text), "%s.0/24", number);
	add_route(device, AF_INET, text, NULL, 0);
	snprintf(text, sizeof(text), "%s.1", number);
	add_route(device, AF_INET, NULL, text, metric);
}

void two_networks(void)
{
	add_network("wlan0", "", "192.0.2", 600);
	add_network("wwan0", "wwan", "198.51.100", 700);
}

struct mptcp_endpoint *add_endpoint(const char *address, uint8_t id, const char *device)
{
	struct mptcp_endpoint *endpoint = &world.endpoints.endpoint[world.endpoints.count++];

	*endpoint = (struct mptcp_endpoint){ .address = address_of(address),
					     .id = id,
					     .bound = device ? link_called(device)->index : 0,
					     .flags = MPTCP_PM_ADDR_FLAG_SUBFLOW };
	return endpoint;
}

/* --- what is done ----------------------------------------------------------------------- */

void look(void)
{
	paths_wanted_find(&wanted, &world, &choice, &others, &memory);
	paths_difference_find(&operations, &wanted, &world, &choice, &memory);
}

enum paths_verdict verdict_of(const char *device, const char *address)
{
	union sockaddr_ip like = address_of(address);

	for (size_t i = 0; i < wanted.count; i++)
		if (strcmp(wanted.networks[i].link.name, device) == 0 && sockaddr_ip_equal(&wanted.networks[i].address, &like))
			return wanted.networks[i].verdict;
	ck_abort_msg("%s %s is not among the networks", device, address);
}

/* Does an operation as the kernel would. */
static void apply(const struct paths_operation *operation)
{
	size_t i;

	switch (operation->kind) {
	case PATHS_LIMIT_SET:
		memory.limit_before = memory.limit_set ? memory.limit_before : world.endpoints.subflow_limit;
		memory.limit_set = world.endpoints.subflow_limit = operation->limit;
		break;
	case PATHS_ROUTE_ADD:
		lists.routes[world.route_count++] = operation->route;
		break;
	case PATHS_ROUTE_DELETE:
		for (i = 0; memcmp(&lists.routes[i], &operation->route, sizeof(operation->route)) != 0; i++)
			ck_assert_uint_lt(i, world.route_count);
		lists.routes[i] = lists.routes[--world.route_count];
		break;
	case PATHS_RULE_ADD:
		lists.rules[world.rule_count++] = operation->rule;
		break;
	case PATHS_RULE_DELETE:
		for (i = 0; memcmp(&lists.rules[i], &operation->rule, sizeof(operation->rule)) != 0; i++)
			ck_assert_uint_lt(i, world.rule_count);
		lists.rules[i] = lists.rules[--world.rule_count];
		break;
	case PATHS_ENDPOINT_ADD:
		ck_assert_ptr_null(paths_world_endpoint(&world, &operation->endpoint.address));
		world.endpoints.endpoint[world.endpoints.count++] = operation->endpoint;
		paths_memory_add(&memory, &(struct paths_memory_endpoint){ operation->endpoint.id, operation->endpoint.bound,
									 operation->endpoint.address, 1 });
		break;
	case PATHS_ENDPOINT_CHANGE:
		for (i = 0; i < world.endpoints.count; i++)
			if (world.endpoints.endpoint[i].id == operation->endpoint.id)
				world.endpoints.endpoint[i].flags = operation->endpoint.flags;
		break;
	case PATHS_ENDPOINT_DELETE:
		for (i = 0; world.endpoints.endpoint[i].id != operation->endpoint.id; i++)
			ck_assert_uint_lt(i, world.endpoints.count);
		world.endpoints.endpoint[i] = world.endpoints.endpoint[--world.endpoints.count];
		paths_memory_remove(&memory, operation->endpoint.id);
		break;
	default:
		ck_abort();
	}
}

void settle(void)
{
	look();
	for (size_t i = 0; i < operations.count; i++)
		apply(&operations.list[i]);
	look();
	ck_assert_uint_eq(operations.count, 0);
}

void expect_commands(const char *const commands[])
{
	char command[PATHS_COMMAND_MAX];
	size_t i;

	for (i = 0; i < operations.count; i++) {
		paths_operation_format(&operations.list[i], command);
		ck_assert_msg(commands[i] != NULL, "one more operation: %s", command);
		ck_assert_str_eq(command, commands[i]);
	}
	ck_assert_msg(commands[i] == NULL, "missing: %s", commands[i]);
}
