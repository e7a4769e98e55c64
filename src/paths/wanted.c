/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wanted.c - which endpoints, rules and tables there should be, from what the kernel has and what was chosen
 *
 * Each device has one address of each family that is used: a second one would be a second path over the same network. For that
 * address there is an endpoint, from which Linux opens subflows; a rule, "from ADDRESS lookup TABLE", for whatever is bound to the
 * address; and a table for the device with its default route and the networks on its link.
 *
 * First each address is judged alone, then those that are left are compared: the same address on two devices, two addresses
 * of one device, devices without carrier, more addresses than MPTCP takes.
 */
#include "config.h"

#include "paths/wanted.h"

#include <linux/if_addr.h>
#include <linux/mptcp.h>
#include <string.h>

#define LIMIT_MIN 2 /* Linux' own since 5.19: room for a subflow that replaces another one */

/* --- whose is it? ----------------------------------------------------------------------- */

bool paths_wanted_is_own(uint8_t protocol, uint32_t table, const struct paths_choice *choice,
			 const struct paths_memory *memory)
{
	return protocol == PATHS_PROTOCOL && ((table >= choice->table_first && table <= choice->table_last) ||
					      (table >= memory->table_first && table <= memory->table_last));
}

static enum paths_keeper find_keeper(const struct paths_network *network, const struct paths_world *world,
				     const struct paths_others *others, const struct paths_memory *memory)
{
	const struct paths_nm_device *nm = paths_others_nm(others, network->link.name);
	const struct mptcp_endpoint *endpoint = paths_world_endpoint(world, &network->address);

	if (others->mptcpd || others->userspace)
		return PATHS_KEEPER_MPTCPD;
	if (nm && nm->endpoints)
		return PATHS_KEEPER_NM;
	return endpoint && !paths_memory_find(memory, endpoint) ? PATHS_KEEPER_OTHER : PATHS_KEEPER_OURS;
}

/* --- one address ------------------------------------------------------------------------ */

/* Finds the default route over the device that other programs have made, in whichever table: the one with the least metric. */
static const struct paths_route *find_default(const struct paths_world *world, unsigned int index, int family)
{
	const struct paths_route *found = NULL;

	for (size_t i = 0; i < world->route_count; i++) {
		const struct paths_route *route = &world->routes[i];

		if (route->index == index && route->family == family && route->protocol != PATHS_PROTOCOL &&
		    paths_route_is_default(route) && (!found || route->metric < found->metric))
			found = route;
	}
	return found;
}

static void add_network(struct paths_wanted *out, const struct paths_address *address, const struct paths_world *world,
			const struct paths_choice *choice, const struct paths_others *others)
{
	const struct paths_link *link = paths_world_link(world, address->index);
	struct paths_network *network = &out->networks[out->count];
	const struct paths_nm_device *nm;
	const struct paths_route *route;

	if (!link || link->loopback || !paths_judge_is_global(address) || out->count == PATHS_NETWORKS_MAX)
		return;
	out->count++;
	nm = paths_others_nm(others, link->name);
	route = find_default(world, link->index, address->address.sa.sa_family);
	*network = (struct paths_network){
		.address = address->address,
		.link = *link,
		.verdict = paths_judge_link(link, choice, others),
		/* a guess costs nobody a path */
		.backup = paths_choice_names(choice->backup, link->name) || (nm && nm->metered == PATHS_METERED_YES),
	};
	if (route) {
		network->has_route = true;
		network->gateway = route->gateway;
		network->onlink = route->onlink;
		network->metric = route->metric;
	}
	if (network->verdict == PATHS_USED)
		network->verdict = paths_judge_address(address, paths_world_endpoint(world, &address->address));
	if (network->verdict == PATHS_USED && !route)
		network->verdict = PATHS_NO_ROUTE;
	if (network->verdict == PATHS_USED && out->vpn)
		network->verdict = PATHS_VPN;
}

/* --- one against the other ------------------------------------------------------------- */

static const struct paths_address *address_of(const struct paths_network *network, const struct paths_world *world)
{
	for (size_t i = 0; i < world->address_count; i++)
		if (world->addresses[i].index == network->link.index &&
		    sockaddr_ip_equal(&world->addresses[i].address, &network->address))
			return &world->addresses[i];
	return NULL;
}

/*
 * How well is an address fit among those of its device? One that will last; that somebody keeps an endpoint for; that tells
 * no one who we are (RFC 8981); that is used already, so that running connections keep theirs.
 */
static unsigned int fitness(const struct paths_network *network, const struct paths_world *world,
			    const struct paths_memory *memory)
{
	const struct paths_address *address = address_of(network, world);
	const struct mptcp_endpoint *endpoint = paths_world_endpoint(world, &network->address);
	bool is_own = endpoint && paths_memory_find(memory, endpoint);

	bool lasts = address && !(address->flags & IFA_F_DEPRECATED);
	bool is_temporary = address && !sockaddr_ip_is_v4(&network->address) && address->flags & IFA_F_TEMPORARY;

	return (lasts ? 8u : 0) + (endpoint && !is_own ? 4u : 0) + (is_temporary ? 2u : 0) + (is_own ? 1u : 0);
}

/* Leaves one address of each family to a device. */
static void leave_one(struct paths_wanted *out, const struct paths_world *world, const struct paths_memory *memory)
{
	for (size_t i = 0; i < out->count; i++)
		for (size_t j = i + 1; j < out->count; j++) {
			struct paths_network *a = &out->networks[i], *b = &out->networks[j];

			if (a->verdict != PATHS_USED || b->verdict != PATHS_USED || a->link.index != b->link.index ||
			    a->address.sa.sa_family != b->address.sa.sa_family)
				continue;
			if (fitness(b, world, memory) > fitness(a, world, memory))
				a->verdict = PATHS_SECOND;
			else
				b->verdict = PATHS_SECOND;
		}
}

/* Is @a the better device for an address that both have? */
static bool is_better_home(const struct paths_network *a, const struct paths_network *b)
{
	if (a->link.carrier != b->link.carrier)
		return a->link.carrier;
	return a->metric <= b->metric;
}

/* An endpoint has one device, and a rule one table. */
static void leave_one_home(struct paths_wanted *out)
{
	for (size_t i = 0; i < out->count; i++)
		for (size_t j = i + 1; j < out->count; j++) {
			struct paths_network *a = &out->networks[i], *b = &out->networks[j];

			if (a->verdict != PATHS_USED || b->verdict != PATHS_USED ||
			    !sockaddr_ip_equal(&a->address, &b->address))
				continue;
			if (is_better_home(a, b))
				b->verdict = PATHS_TWICE;
			else
				a->verdict = PATHS_TWICE;
		}
}

/*
 * A device that loses its carrier loses its subflows, so that what was under way is sent elsewhere at once, rather than when
 * a timer has expired; with the carrier they come back. But the last network keeps what it has: to it there is no elsewhere.
 */
static void leave_carriers(struct paths_wanted *out)
{
	bool any = false;

	for (size_t i = 0; i < out->count; i++)
		any = any || (out->networks[i].verdict == PATHS_USED && out->networks[i].link.carrier);
	for (size_t i = 0; i < out->count && any; i++)
		if (out->networks[i].verdict == PATHS_USED && !out->networks[i].link.carrier)
			out->networks[i].verdict = PATHS_NO_CARRIER;
}

static size_t count_foreign(const struct paths_world *world, const struct paths_memory *memory)
{
	size_t count = 0;

	for (size_t i = 0; i < world->endpoints.count; i++)
		count += !paths_memory_find(memory, &world->endpoints.endpoint[i]);
	return count;
}

/* Leaves as many as MPTCP takes, those whose routes are preferred. */
static void leave_room(struct paths_wanted *out, size_t foreign)
{
	for (;;) {
		struct paths_network *last = NULL;
		size_t count = foreign;

		for (size_t i = 0; i < out->count; i++) {
			struct paths_network *network = &out->networks[i];

			if (network->verdict != PATHS_USED || network->keeper != PATHS_KEEPER_OURS)
				continue;
			count++;
			if (!last || network->metric >= last->metric)
				last = network;
		}
		if (count <= PATHS_ENDPOINTS_MAX || !last)
			return;
		last->verdict = PATHS_FULL;
	}
}

/* --- tables ----------------------------------------------------------------------------- */

static bool is_taken(uint32_t table, unsigned int index, const struct paths_wanted *wanted, const struct paths_world *world)
{
	for (size_t i = 0; i < world->table_count; i++)
		if (world->tables[i] == table)
			return true;
	for (size_t i = 0; i < world->route_count; i++)
		if (world->routes[i].table == table && world->routes[i].index != index)
			return true;
	for (size_t i = 0; i < wanted->count; i++)
		if (wanted->networks[i].table == table && wanted->networks[i].link.index != index)
			return true;
	return false;
}

/* The table of the device: the one that it has, or the first that is free behind the place that its number gives it. */
static uint32_t find_table(unsigned int index, const struct paths_wanted *wanted, const struct paths_world *world,
			   const struct paths_choice *choice)
{
	uint32_t first = choice->table_first, count = choice->table_last - first + 1, table;

	for (size_t i = 0; i < world->route_count; i++) {
		const struct paths_route *route = &world->routes[i];

		if (route->protocol == PATHS_PROTOCOL && route->index == index && route->table >= first &&
		    route->table <= choice->table_last && !is_taken(route->table, index, wanted, world))
			return route->table;
	}
	for (uint32_t i = 0; i < count; i++) {
		/* of a range that ends with the last table there is, the sum may be larger than that */
		table = first + (uint32_t)(((uint64_t)index + i) % count);
		if (!is_taken(table, index, wanted, world))
			return table;
	}
	return 0;
}

static const struct paths_rule *find_foreign_rule(const struct paths_world *world, const union sockaddr_ip *from,
						  const struct paths_choice *choice, const struct paths_memory *memory)
{
	for (size_t i = 0; i < world->rule_count; i++)
		if (sockaddr_ip_equal(&world->rules[i].from, from) &&
		    !paths_wanted_is_own(world->rules[i].protocol, world->rules[i].table, choice, memory))
			return &world->rules[i];
	return NULL;
}

/* --- all of it -------------------------------------------------------------------------- */

bool paths_network_is_routed(const struct paths_network *network)
{
	return network->verdict == PATHS_USED || network->verdict == PATHS_NO_CARRIER;
}

/* Has a network gone for which this is the reason, rather than that somebody wants it not to be used? */
static bool is_outage(enum paths_verdict verdict)
{
	return verdict == PATHS_DOWN || verdict == PATHS_NO_CARRIER || verdict == PATHS_NO_ROUTE || verdict == PATHS_NOT_READY;
}

bool paths_wanted_keeps(const struct paths_wanted *wanted, const union sockaddr_ip *address)
{
	for (size_t i = 0; i < wanted->count; i++)
		if (sockaddr_ip_equal(&wanted->networks[i].address, address))
			return wanted->keeps && is_outage(wanted->networks[i].verdict);
	return wanted->keeps;
}

static bool is_any_used(const struct paths_wanted *wanted)
{
	for (size_t i = 0; i < wanted->count; i++)
		if (wanted->networks[i].verdict == PATHS_USED)
			return true;
	return false;
}

static unsigned int find_limit(const struct paths_wanted *wanted)
{
	unsigned int count[2] = { 0 }, most;

	for (size_t i = 0; i < wanted->count; i++)
		if (wanted->networks[i].verdict == PATHS_USED)
			count[sockaddr_ip_is_v4(&wanted->networks[i].address)]++;
	most = count[0] > count[1] ? count[0] : count[1];
	return most < LIMIT_MIN ? LIMIT_MIN : most > PATHS_ENDPOINTS_MAX ? PATHS_ENDPOINTS_MAX : most;
}

void paths_wanted_find(struct paths_wanted *out, const struct paths_world *world, const struct paths_choice *choice,
		       const struct paths_others *others, const struct paths_memory *memory)
{
	const struct paths_link *vpn = paths_judge_vpn(world, choice);

	memset(out, 0, sizeof(*out));
	out->vpn = vpn ? vpn->name : NULL;
	for (size_t i = 0; i < world->address_count; i++)
		add_network(out, &world->addresses[i], world, choice, others);
	leave_one(out, world, memory);
	leave_one_home(out);
	leave_carriers(out);
	for (size_t i = 0; i < out->count; i++)
		out->networks[i].keeper = find_keeper(&out->networks[i], world, others, memory);
	leave_room(out, count_foreign(world, memory));
	for (size_t i = 0; i < out->count; i++) {
		struct paths_network *network = &out->networks[i];
		const struct paths_rule *rule = find_foreign_rule(world, &network->address, choice, memory);

		if (!paths_network_is_routed(network))
			continue;
		network->table_is_ours = !rule;
		network->table = rule ? rule->table : find_table(network->link.index, out, world, choice);
	}
	out->limit = find_limit(out);
	out->keeps = !vpn && !others->mptcpd && !others->userspace && !is_any_used(out);
}
