/* SPDX-License-Identifier: BSD-3-Clause */
/* paths_world.c - see paths_world.h */
#include "config.h"

#include "paths_world.h"

#include "host/lookup.h"

#include <linux/mptcp.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

struct paths_world_lists lists;
struct host host;
struct paths_choice choice;
struct paths_memory memory;
struct paths_wanted wanted;
struct paths_operations operations;

void begin(void)
{
	memset(&lists, 0, sizeof(lists));
	memset(&memory, 0, sizeof(memory));
	host = (struct host){ .links = lists.links,
				      .addresses = lists.addresses,
				      .routes = lists.routes,
				      .rules = lists.rules,
				      .tables = lists.tables,
				      .endpoints.subflow_limit = 2 };
	choice = (struct paths_choice){ .table_first = 8803, .table_last = 8866 };
}

/* --- a host ---------------------------------------------------------------------------- */

union sockaddr_ip address_of(const char *text)
{
	union sockaddr_ip address;

	ck_assert_int_eq(sockaddr_ip_parse(&address, text, 0), 0);
	return address;
}

struct host_link *link_called(const char *name)
{
	for (size_t i = 0; i < host.link_count; i++)
		if (strcmp(lists.links[i].name, name) == 0)
			return &lists.links[i];
	ck_abort_msg("no link %s", name);
}

struct host_link *add_link(const char *name, const char *kind)
{
	struct host_link *link = &lists.links[host.link_count++];

	link->index = (unsigned int)host.link_count + 1;
	strcpy(link->name, name);
	strcpy(link->kind, kind);
	link->up = link->carrier = true;
	return link;
}

struct host_address *add_address(const char *device, const char *address)
{
	struct host_address *added = &lists.addresses[host.address_count++];

	*added = (struct host_address){ .index = link_called(device)->index, .address = address_of(address) };
	return added;
}

void remove_address(const char *address)
{
	union sockaddr_ip gone = address_of(address);

	for (size_t i = host.address_count; i-- > 0;)
		if (sockaddr_ip_equal(&lists.addresses[i].address, &gone))
			lists.addresses[i] = lists.addresses[--host.address_count];
}

struct host_route *add_route(const char *device, int family, const char *to, const char *gateway, uint32_t metric)
{
	struct host_route *route = &lists.routes[host.route_count++];

	*route = (struct host_route){ .family = family,
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
	for (size_t i = host.route_count; i-- > 0;)
		if (lists.routes[i].index == link_called(device)->index)
			lists.routes[i] = lists.routes[--host.route_count];
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
	struct mptcp_endpoint *endpoint = &host.endpoints.endpoint[host.endpoints.count++];

	*endpoint = (struct mptcp_endpoint){ .address = address_of(address),
					     .id = id,
					     .bound = device ? link_called(device)->index : 0,
					     .flags = MPTCP_PM_ADDR_FLAG_SUBFLOW };
	return endpoint;
}

/* --- what is done ----------------------------------------------------------------------- */

#define WG_QUICK 51820

unsigned int find_way(const union sockaddr_ip *to, unsigned int index)
{
	const int family = sockaddr_ip_is_v4(to) ? AF_INET : AF_INET6;
	const struct in6_addr address = sockaddr_ip_in6(to);
	const struct host_route *best = NULL;

	for (size_t i = 0; i < host.route_count; i++) {
		const struct host_route *route = &host.routes[i];
		const struct host_link *link = host_link_of(&host, route->index);
		const unsigned int rank = route->to.length + (route->table == WG_QUICK ? 1000u : 0);
		const unsigned int best_rank = best ? best->to.length + (best->table == WG_QUICK ? 1000u : 0) : 0;

		if (route->family == family && (!index || route->index == index) && (route->table == RT_TABLE_MAIN || route->table == WG_QUICK) && link && link->up &&
		    prefix_contains(&route->to, &address) &&
		    (!best || rank > best_rank || (rank == best_rank && route->metric < best->metric)))
			best = route;
	}
	return best ? best->index : 0;
}

void find_ways(const union sockaddr_ip *converter)
{
	const union sockaddr_ip v4 = host_way_anywhere(AF_INET), v6 = host_way_anywhere(AF_INET6);

	host.ways[HOST_WAY_V4] = find_way(&v4, 0);
	host.ways[HOST_WAY_V6] = find_way(&v6, 0);
	host.ways[HOST_WAY_CONVERTER] = converter ? find_way(converter, 0) : 0;
}

void look(void)
{
	find_ways(NULL);
	paths_memory_mark(&memory, &host.endpoints);
	paths_wanted_fini(&wanted);
	ck_assert_int_eq(paths_wanted_find(&wanted, &host, &choice, &memory), 0);
	paths_difference_find(&operations, &wanted, &host, &choice, &memory);
}

enum host_verdict verdict_of(const char *device, const char *address)
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
		memory.limit_before = memory.limit_set ? memory.limit_before : host.endpoints.subflow_limit;
		memory.limit_set = host.endpoints.subflow_limit = operation->limit;
		break;
	case PATHS_ROUTE_ADD:
		lists.routes[host.route_count++] = operation->route;
		break;
	case PATHS_ROUTE_DELETE:
		for (i = 0; memcmp(&lists.routes[i], &operation->route, sizeof(operation->route)) != 0; i++)
			ck_assert_uint_lt(i, host.route_count);
		lists.routes[i] = lists.routes[--host.route_count];
		break;
	case PATHS_RULE_ADD:
		lists.rules[host.rule_count++] = operation->rule;
		break;
	case PATHS_RULE_DELETE:
		for (i = 0; memcmp(&lists.rules[i], &operation->rule, sizeof(operation->rule)) != 0; i++)
			ck_assert_uint_lt(i, host.rule_count);
		lists.rules[i] = lists.rules[--host.rule_count];
		break;
	case PATHS_ENDPOINT_ADD:
		ck_assert_ptr_null(host_endpoint_of(&host, &operation->endpoint.address));
		host.endpoints.endpoint[host.endpoints.count++] = operation->endpoint;
		paths_memory_add(&memory, &(struct paths_memory_endpoint){ operation->endpoint.id, operation->endpoint.bound,
									 operation->endpoint.address, 1 });
		break;
	case PATHS_ENDPOINT_CHANGE:
		for (i = 0; i < host.endpoints.count; i++)
			if (host.endpoints.endpoint[i].id == operation->endpoint.id)
				host.endpoints.endpoint[i].flags = operation->endpoint.flags;
		break;
	case PATHS_ENDPOINT_DELETE:
		for (i = 0; host.endpoints.endpoint[i].id != operation->endpoint.id; i++)
			ck_assert_uint_lt(i, host.endpoints.count);
		host.endpoints.endpoint[i] = host.endpoints.endpoint[--host.endpoints.count];
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
