/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * difference.c - computes the operations that turn the kernel's state into the wanted one
 *
 * Additions come first, in an order in which nothing depends on a later one: the limit of subflows, routes, rules, endpoints.
 * Deletions follow, endpoints first: so a connection gets its new subflow before it loses the old one, and no subflow leaves by
 * a wrong route because its rule is gone. The rules that exclude devices come last, when they are true. Only an endpoint that changes
 * its device, or opens no subflows, is deleted before it is added.
 */
#include "config.h"

#include "paths/plan.h"

#include "common/quote.h"

#include <linux/mptcp.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#define ENDPOINT_ID_FIRST 100 /* Linux assigns IDs from 1 up: so an administrator recognizes ours */

struct difference {
	struct paths_operations *out;
	const struct paths_wanted *wanted;
	const struct host *host;
	const struct paths_choice *choice;
	const struct paths_memory *memory;
};

/* Adds an operation. @index: of the device of its route or endpoint; 0: none */
static struct paths_operation *add(const struct difference *difference, enum paths_operation_kind kind, unsigned int index)
{
	static struct paths_operation none; /* takes the operations that don't fit */
	struct paths_operations *out = difference->out;
	struct paths_operation *operation = out->count < PATHS_OPERATIONS_MAX ? &out->list[out->count++] : &none;
	const struct host_link *link = host_link_of(difference->host, index);

	memset(operation, 0, sizeof(*operation));
	operation->kind = kind;
	if (link)
		memcpy(operation->device, link->name, sizeof(operation->device));
	return operation;
}

/* --- routes ----------------------------------------------------------------------------- */

/*
 * Writes a route that a network's table needs: like route @at of the host, if that leads to a network on its link; or the default route, if
 * @at is the count of the host's routes. Returns false if the table needs none.
 */
static bool wanted_route(const struct difference *difference, const struct host_network *network, size_t at, struct host_route *out)
{
	const struct host *host = difference->host;
	const int family = network->address.sa.sa_family;

	if (!host_network_is_routed(network) || !network->table_is_ours || !network->table)
		return false;
	*out = (struct host_route){ .family = family, .table = network->table, .protocol = HOST_PROTOCOL_OURS,
				    .index = network->link.index };
	if (at < host->route_count) {
		const struct host_route *main = &host->routes[at];

		out->to = main->to;
		return main->table == RT_TABLE_MAIN && main->index == network->link.index && main->family == family &&
		       main->gateway.sa.sa_family == AF_UNSPEC && !host_route_is_wide(main) && main->protocol != HOST_PROTOCOL_OURS;
	}
	out->to = prefix_of(&(struct in6_addr)IN6ADDR_ANY_INIT, 0);
	if (family == AF_INET) {
		union sockaddr_ip any = { .in.sin_family = AF_INET };
		struct in6_addr mapped = sockaddr_ip_in6(&any);

		out->to = prefix_of(&mapped, HOST_V4_BITS);
	}
	out->gateway = network->gateway;
	out->onlink = network->onlink;
	return true;
}

/* Ignores the metric: we make only one route of each kind. */
static bool is_same_route(const struct host_route *a, const struct host_route *b)
{
	return a->family == b->family && a->table == b->table && a->index == b->index && a->to.length == b->to.length &&
	       memcmp(&a->to.address, &b->to.address, sizeof(a->to.address)) == 0 &&
	       a->gateway.sa.sa_family == b->gateway.sa.sa_family &&
	       (a->gateway.sa.sa_family == AF_UNSPEC || sockaddr_ip_equal(&a->gateway, &b->gateway));
}

static bool is_own_route(const struct difference *difference, const struct host_route *route)
{
	return paths_wanted_is_own(route->protocol, route->table, difference->choice, difference->memory);
}

/* Is the route there, or will one of the operations so far add it? */
static bool has_route(const struct difference *difference, const struct host_route *route)
{
	for (size_t i = 0; i < difference->host->route_count; i++)
		if (is_own_route(difference, &difference->host->routes[i]) && is_same_route(&difference->host->routes[i], route))
			return true;
	for (size_t i = 0; i < difference->out->count; i++)
		if (difference->out->list[i].kind == PATHS_ROUTE_ADD && is_same_route(&difference->out->list[i].route, route))
			return true;
	return false;
}

static void add_routes(const struct difference *difference)
{
	struct host_route route;

	for (size_t i = 0; difference->wanted && i < difference->wanted->count; i++)
		for (size_t at = 0; at <= difference->host->route_count; at++)
			if (wanted_route(difference, &difference->wanted->networks[i], at, &route) && !has_route(difference, &route))
				add(difference, PATHS_ROUTE_ADD, route.index)->route = route;
}

static bool is_wanted_route(const struct difference *difference, const struct host_route *route)
{
	struct host_route other;

	for (size_t i = 0; difference->wanted && i < difference->wanted->count; i++)
		for (size_t at = 0; at <= difference->host->route_count; at++)
			if (wanted_route(difference, &difference->wanted->networks[i], at, &other) && is_same_route(route, &other))
				return true;
	return false;
}

static void delete_routes(const struct difference *difference)
{
	for (size_t i = 0; i < difference->host->route_count; i++) {
		const struct host_route *route = &difference->host->routes[i];

		if (is_own_route(difference, route) && !is_wanted_route(difference, route))
			add(difference, PATHS_ROUTE_DELETE, route->index)->route = *route;
	}
}

/* --- rules ------------------------------------------------------------------------------ */

static bool is_exclusion(const struct host_rule *rule)
{
	return rule->from.sa.sa_family == AF_UNSPEC;
}

static bool is_own_rule(const struct difference *difference, const struct host_rule *rule)
{
	/* host_read() reads only our exclusions */
	return is_exclusion(rule) || paths_wanted_is_own_rule(rule, difference->choice, difference->memory);
}

/*
 * All packets from the address follow our rules, also those of other programs to containers, through tunnels or to routers beside the
 * default one. So the main table's narrower routes apply as they do without us. Those on the network's own link come first, since another
 * device may have a network with the same prefix.
 */
#define NARROW 2 /* the shortest prefix that isn't wide: host_route_is_wide() */
static const struct own_rule {
	uint32_t table; /* 0: the network's */
	uint32_t priority;
	uint8_t shortest;
} own_rules[] = {
	{ 0, PATHS_RULE_PRIORITY - 2, NARROW },
	{ RT_TABLE_MAIN, PATHS_RULE_PRIORITY - 1, NARROW },
	{ 0, PATHS_RULE_PRIORITY, 0 },
};
#define OWN_RULES (sizeof(own_rules) / sizeof(own_rules[0]))

static struct host_rule own_rule_of(const struct host_network *network, const struct own_rule *own)
{
	return (struct host_rule){ .from = network->address, .table = own->table ? own->table : network->table, .shortest = own->shortest,
				   .priority = own->priority, .protocol = HOST_PROTOCOL_OURS };
}

static bool is_same_rule(const struct host_rule *a, const struct host_rule *b)
{
	return a->table == b->table && a->shortest == b->shortest && sockaddr_ip_equal(&a->from, &b->from);
}

static bool has_own_rules(const struct host_network *network)
{
	return host_network_is_routed(network) && network->table_is_ours && network->table;
}

/* Does the network need this rule? */
static bool is_wanted_rule(const struct host_network *network, const struct host_rule *rule)
{
	bool wanted = false;

	for (size_t i = 0; i < OWN_RULES && has_own_rules(network); i++) {
		const struct host_rule own = own_rule_of(network, &own_rules[i]);

		wanted |= is_same_rule(&own, rule);
	}
	return wanted;
}

static void add_rule(const struct difference *difference, const struct host_rule *rule)
{
	for (size_t i = 0; i < difference->host->rule_count; i++)
		if (is_own_rule(difference, &difference->host->rules[i]) && is_same_rule(&difference->host->rules[i], rule))
			return;
	add(difference, PATHS_RULE_ADD, 0)->rule = *rule;
}

static void add_rules(const struct difference *difference)
{
	for (size_t i = 0; difference->wanted && i < difference->wanted->count; i++)
		for (size_t j = 0; j < OWN_RULES && has_own_rules(&difference->wanted->networks[i]); j++) {
			const struct host_rule rule = own_rule_of(&difference->wanted->networks[i], &own_rules[j]);

			add_rule(difference, &rule);
		}
}

static bool is_exclusion_among(const struct host_rule *rule, const struct host_rule *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_exclusion(rule) && is_exclusion(&list[i]) && rule->priority == list[i].priority &&
		    strcmp(rule->device, list[i].device) == 0)
			return true;
	return false;
}

static void add_exclusions(const struct difference *difference)
{
	const struct host *host = difference->host;

	for (size_t i = 0; difference->wanted && i < difference->wanted->exclusion_count; i++)
		if (!is_exclusion_among(&difference->wanted->exclusions[i], host->rules, host->rule_count))
			add(difference, PATHS_RULE_ADD, 0)->rule = difference->wanted->exclusions[i];
}

/* Deletes our rules that aren't wanted, and duplicates of wanted ones. */
static void delete_rules(const struct difference *difference)
{
	const struct host *host = difference->host;

	for (size_t i = 0; i < host->rule_count; i++) {
		const struct host_rule *rule = &host->rules[i];
		bool wanted = difference->wanted && is_exclusion_among(rule, difference->wanted->exclusions, difference->wanted->exclusion_count);

		if (!is_own_rule(difference, rule))
			continue;
		for (size_t j = 0; difference->wanted && j < difference->wanted->count && !wanted; j++)
			wanted = is_wanted_rule(&difference->wanted->networks[j], rule);
		wanted = wanted || (difference->wanted && paths_wanted_needs(difference->wanted, &rule->from));
		for (size_t j = 0; j < i && wanted && !is_exclusion(rule); j++)
			wanted = !is_own_rule(difference, &host->rules[j]) || !is_same_rule(&host->rules[j], rule);
		if (!wanted)
			add(difference, PATHS_RULE_DELETE, 0)->rule = *rule;
	}
}

/* --- endpoints -------------------------------------------------------------------------- */

uint32_t paths_endpoint_flags(const struct host_network *network)
{
	return MPTCP_PM_ADDR_FLAG_SUBFLOW | (network->backup ? MPTCP_PM_ADDR_FLAG_BACKUP : 0);
}

static bool is_used_id(const struct difference *difference, unsigned int id)
{
	for (size_t i = 0; i < difference->host->endpoints.count; i++)
		if (difference->host->endpoints.endpoint[i].id == id)
			return true;
	for (size_t i = 0; i < difference->out->count; i++)
		if (difference->out->list[i].kind == PATHS_ENDPOINT_ADD && difference->out->list[i].endpoint.id == id)
			return true;
	return false;
}

static uint8_t find_id(const struct difference *difference)
{
	unsigned int id = ENDPOINT_ID_FIRST;

	while (id < UINT8_MAX && is_used_id(difference, id))
		id++;
	return (uint8_t)id;
}

static bool is_wanted_endpoint(const struct host_network *network)
{
	return network->verdict == HOST_USED && network->keeper == HOST_KEEPER_OURS;
}

static void mend_endpoint(const struct difference *difference, const struct host_network *network)
{
	const struct mptcp_endpoint *there = host_endpoint_of(difference->host, &network->address);
	struct mptcp_endpoint endpoint = { .address = network->address, .bound = network->link.index };

	endpoint.flags = paths_endpoint_flags(network);
	/* an endpoint that opens no subflows comes from a manager that was killed while it announced the address: outage.c */
	if (there && (there->bound != endpoint.bound || !(there->flags & MPTCP_PM_ADDR_FLAG_SUBFLOW))) {
		add(difference, PATHS_ENDPOINT_DELETE, there->bound)->endpoint = *there;
		there = NULL;
	}
	endpoint.id = there ? there->id : find_id(difference);
	/* without a carrier the SYN would fail, and Linux wouldn't repeat it with one: make the endpoint when the carrier is there */
	if (!there && network->link.carrier)
		add(difference, PATHS_ENDPOINT_ADD, endpoint.bound)->endpoint = endpoint;
	else if (there && (there->flags ^ endpoint.flags) & MPTCP_PM_ADDR_FLAG_BACKUP)
		add(difference, PATHS_ENDPOINT_CHANGE, endpoint.bound)->endpoint = endpoint;
}

static void delete_endpoints(const struct difference *difference)
{
	const struct endpoints *endpoints = &difference->host->endpoints;

	for (size_t i = 0; i < endpoints->count; i++) {
		const struct mptcp_endpoint *endpoint = &endpoints->endpoint[i];
		bool wanted = difference->wanted && paths_wanted_keeps(difference->wanted, &endpoint->address);

		if (!endpoint->is_ours)
			continue;
		for (size_t j = 0; difference->wanted && j < difference->wanted->count; j++)
			wanted = wanted || (is_wanted_endpoint(&difference->wanted->networks[j]) &&
					    sockaddr_ip_equal(&difference->wanted->networks[j].address, &endpoint->address));
		if (!wanted)
			add(difference, PATHS_ENDPOINT_DELETE, endpoint->bound)->endpoint = *endpoint;
	}
}

/* --- all of it -------------------------------------------------------------------------- */

/* While the service runs, only raises the limit, as others may rely on it. At the end restores the old one, unless ours was changed. */
static void mend_limit(const struct difference *difference)
{
	const struct paths_memory *memory = difference->memory;
	unsigned int now = difference->host->endpoints.subflow_limit;
	bool ends = !difference->wanted || difference->wanted->ends;

	if (!ends && now < difference->wanted->limit)
		add(difference, PATHS_LIMIT_SET, 0)->limit = difference->wanted->limit;
	if (ends && memory->limit_set && now == memory->limit_set && memory->limit_before != now)
		add(difference, PATHS_LIMIT_SET, 0)->limit = memory->limit_before;
}

void paths_difference_find(struct paths_operations *out, const struct paths_wanted *wanted, const struct host *host,
			   const struct paths_choice *choice, const struct paths_memory *memory)
{
	const struct difference difference = { out, wanted, host, choice, memory };

	out->count = 0;
	mend_limit(&difference);
	add_routes(&difference);
	add_rules(&difference);
	for (size_t i = 0; wanted && i < wanted->count; i++)
		if (is_wanted_endpoint(&wanted->networks[i]))
			mend_endpoint(&difference, &wanted->networks[i]);
	delete_endpoints(&difference);
	delete_rules(&difference);
	delete_routes(&difference);
	add_exclusions(&difference);
}

/* --- as commands ------------------------------------------------------------------------ */

static const char *family_option(const union sockaddr_ip *address)
{
	return sockaddr_ip_is_v4(address) ? "" : "-6 ";
}

static void format_route(const struct paths_operation *operation, const char *verb, char buf[static PATHS_COMMAND_MAX])
{
	const struct host_route *route = &operation->route;
	char to[PREFIX_STRLEN] = "default", gateway[PREFIX_STRLEN], device[SHELL_WORD_MAX(IF_NAMESIZE)];
	bool via = route->gateway.sa.sa_family != AF_UNSPEC, is_other = via && route->gateway.sa.sa_family != route->family;

	if (!host_route_is_default(route))
		prefix_format(&route->to, to);
	snprintf(buf, PATHS_COMMAND_MAX, "ip %sroute %s %s%s%s dev %s%s table %u proto %d", route->family != AF_INET ? "-6 " : is_other ? "-4 " : "",
		 verb, to, via ? is_other ? " via inet6 " : " via " : "", via ? host_format_address(&route->gateway, gateway) : "", shell_quote(operation->device, device),
		 route->onlink ? " onlink" : "", route->table, HOST_PROTOCOL_OURS);
}

static void format_rule(const struct host_rule *rule, const char *verb, char buf[static PATHS_COMMAND_MAX])
{
	char address[PREFIX_STRLEN], suppressed[40] = "";

	if (rule->shortest)
		snprintf(suppressed, sizeof(suppressed), " suppress_prefixlength %d", rule->shortest - 1);
	snprintf(buf, PATHS_COMMAND_MAX, "ip %srule %s from %s table %u%s priority %u protocol %d", family_option(&rule->from), verb,
		 host_format_address(&rule->from, address), rule->table, suppressed, rule->priority, HOST_PROTOCOL_OURS);
}

const char *paths_operation_format(const struct paths_operation *operation, char buf[static PATHS_COMMAND_MAX])
{
	const struct host_rule *rule = &operation->rule;
	const struct mptcp_endpoint *endpoint = &operation->endpoint;
	bool backup = endpoint->flags & MPTCP_PM_ADDR_FLAG_BACKUP;
	char address[PREFIX_STRLEN], device[SHELL_WORD_MAX(IF_NAMESIZE)];

	switch (operation->kind) {
	case PATHS_LIMIT_SET:
		snprintf(buf, PATHS_COMMAND_MAX, "ip mptcp limits set subflows %u", operation->limit);
		break;
	case PATHS_ROUTE_ADD:
		format_route(operation, "replace", buf);
		break;
	case PATHS_ROUTE_DELETE:
		format_route(operation, "del", buf);
		break;
	case PATHS_RULE_ADD:
	case PATHS_RULE_DELETE:
		if (is_exclusion(rule))
			snprintf(buf, PATHS_COMMAND_MAX, "ip rule %s oif %s nop priority %u protocol %d",
				 operation->kind == PATHS_RULE_ADD ? "add" : "del", shell_quote(rule->device, device), rule->priority,
				 HOST_PROTOCOL_OURS);
		else
			format_rule(rule, operation->kind == PATHS_RULE_ADD ? "add" : "del", buf);
		break;
	case PATHS_ENDPOINT_ADD:
		snprintf(buf, PATHS_COMMAND_MAX, "ip mptcp endpoint add %s id %u dev %s subflow%s",
			 host_format_address(&endpoint->address, address), endpoint->id, shell_quote(operation->device, device), backup ? " backup" : "");
		break;
	case PATHS_ENDPOINT_CHANGE:
		snprintf(buf, PATHS_COMMAND_MAX, "ip mptcp endpoint change id %u %s", endpoint->id, backup ? "backup" : "nobackup");
		break;
	case PATHS_ENDPOINT_DELETE:
		snprintf(buf, PATHS_COMMAND_MAX, "ip mptcp endpoint delete id %u", endpoint->id);
		break;
	default:
		*buf = '\0';
	}
	return buf;
}
