/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge.c - decides whether connections may use a device with its address as a network
 *
 * A network has a default route. So we need no list of names to exclude the bridges of containers and virtual machines, which have
 * addresses and lead nowhere. Some devices do have a default route and still aren't separate networks: a tunnel goes over one of the
 * others, and its provider decides about traffic beside it; a veth leads to a container. We recognize them by the kernel's kind for them
 * (rtnetlink(7), IFLA_INFO_KIND), and use them only if a setting names them.
 *
 * First we judge each address alone. Then we compare those that remain: the same address on two devices, two addresses of one device,
 * devices without a carrier, more addresses than MPTCP supports.
 */
#include "config.h"

#include "host/host_model.h"

#include <assert.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

/* --- the model --- */

const struct host_link *host_link_of(const struct host *host, unsigned int index)
{
	for (size_t i = 0; i < host->link_count; i++)
		if (host->links[i].index == index)
			return &host->links[i];
	return NULL;
}

const struct host_link *host_home_of(const struct host *host, const union sockaddr_ip *address)
{
	union sockaddr_ip portless = *address;

	sockaddr_ip_set_port(&portless, 0);
	for (size_t i = 0; i < host->address_count; i++)
		if (sockaddr_ip_equal(&host->addresses[i].address, &portless))
			return host_link_of(host, host->addresses[i].index);
	return NULL;
}

const struct host_nm_device *host_nm_of(const struct host_managers *managers, const char *name)
{
	for (size_t i = 0; i < managers->nm_count; i++)
		if (strcmp(managers->nm[i].name, name) == 0)
			return &managers->nm[i];
	return NULL;
}

static int length_of(const struct host_route *route)
{
	return route->to.length - (route->family == AF_INET ? HOST_V4_BITS : 0);
}

bool host_route_is_default(const struct host_route *route)
{
	return length_of(route) == 0;
}

bool host_route_is_wide(const struct host_route *route)
{
	return length_of(route) <= 1;
}

bool host_table_is_taken(const struct host *host, uint32_t table, unsigned int index)
{
	for (size_t i = 0; i < host->table_count; i++)
		if (host->tables[i] == table)
			return true;
	for (size_t i = 0; i < host->route_count; i++)
		if (host->routes[i].table == table && host->routes[i].index != index)
			return true;
	return false;
}

const struct mptcp_endpoint *host_endpoint_of(const struct host *host, const union sockaddr_ip *address)
{
	for (size_t i = 0; i < host->endpoints.count; i++)
		if (sockaddr_ip_equal(&host->endpoints.endpoint[i].address, address))
			return &host->endpoints.endpoint[i];
	return NULL;
}

const char *host_format_address(const union sockaddr_ip *address, char buf[static PREFIX_STRLEN])
{
	const struct prefix whole = { .address = sockaddr_ip_in6(address), .length = 128 };

	return prefix_format(&whole, buf);
}

void host_fini(struct host *host)
{
	free(host->links);
	free(host->addresses);
	free(host->routes);
	free(host->rules);
	free(host->tables);
	memset(host, 0, sizeof(*host));
}

/* --- verdicts --- */

static const struct {
	const char *name, *text;
} verdicts[] = {
	[HOST_USED] = { "used", "it is used" },
	[HOST_NEVER] = { "never", "--never-device or --paths (in convertize.conf as well) excludes it" },
	[HOST_NOT_NAMED] = { "not-named", "--device (device in convertize.conf) names others" },
	[HOST_KIND] = { "kind", "a device of this kind is used only if --device (device in convertize.conf) names it" },
	[HOST_PART] = { "part", "it is part of another device" },
	[HOST_DISABLED] = { "disabled", "NetworkManager has connection.mptcp-flags disabled for it" },
	[HOST_DOWN] = { "down", "it is down" },
	[HOST_NO_CARRIER] = { "no-carrier", "it has no carrier" },
	[HOST_NOT_READY] = { "not-ready", "duplicate address detection isn't over, or has found a duplicate" },
	[HOST_DEPRECATED] = { "deprecated", "the address is deprecated" },
	[HOST_NO_ROUTE] = { "no-route", "there is no default route over it" },
	[HOST_SECOND] = { "second", "another address of this device is used" },
	[HOST_TWICE] = { "twice", "another device has the same address" },
	[HOST_VPN] = { "vpn", "all traffic goes through a VPN; --beside-vpn (beside-vpn in convertize.conf) uses networks beside it" },
	[HOST_FULL] = { "full", "MPTCP takes no more endpoints" },
};
static_assert(sizeof(verdicts) / sizeof(verdicts[0]) == HOST_VERDICT_COUNT, "a name for each verdict");

const char *host_verdict_name(enum host_verdict verdict)
{
	return verdicts[verdict].name;
}

const char *host_verdict_text(enum host_verdict verdict)
{
	return verdicts[verdict].text;
}

/* --- one address --- */

const struct host_link *host_vpn(const struct host *host, const struct network_policy *policy)
{
	const struct host_link *vpn = host_vpn_among(host->links, host->link_count, host->ways, policy);

	for (size_t i = 0; i < host->route_count && !vpn && !policy->beside_vpn; i++) {
		const struct host_route *route = &host->routes[i];
		const struct host_link *link = host_link_of(host, route->index);

		if (route->table != RT_TABLE_MAIN && route->protocol != HOST_PROTOCOL_OURS && host_route_is_wide(route) && link && link->up &&
		    host_kind_is_vpn(link->kind) && !name_list_has(policy->device, link->name))
			vpn = link;
	}
	return vpn;
}

/* Are devices of this kind networks of this machine? Ethernet, WiFi and USB devices have the empty kind. */
static bool is_network_kind(const char *kind)
{
	static const char *const kinds[] = { "", "wwan", "rmnet", "ppp", "vlan", "bond", "team", "bridge" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i], kind) == 0)
			return true;
	return false;
}

/* Judges a device without its addresses. Ignores the carrier. */
static enum host_verdict judge_link(const struct host_link *link, const struct network_policy *policy)
{
	if (policy->device && !name_list_has(policy->device, link->name))
		return HOST_NOT_NAMED;
	if (!policy->device && !is_network_kind(link->kind) &&
	    (!policy->any_kind || (host_kind_is_vpn(link->kind) && !policy->beside_vpn)))
		return HOST_KIND;
	if (link->master)
		return HOST_PART;
	return link->up ? HOST_USED : HOST_DOWN;
}

/* Does the path service have a rule for packets from the address? */
static bool has_service_rule(const struct host *host, const union sockaddr_ip *address)
{
	for (size_t i = 0; i < host->rule_count; i++)
		if (host->rules[i].protocol == HOST_PROTOCOL_OURS && sockaddr_ip_equal(&host->rules[i].from, address))
			return true;
	return false;
}

/* Returns the default route over the device with the lowest metric, in any table, that isn't the service's. */
static const struct host_route *find_default(const struct host *host, unsigned int index, int family)
{
	const struct host_route *found = NULL;

	for (size_t i = 0; i < host->route_count; i++) {
		const struct host_route *route = &host->routes[i];

		if (route->index == index && route->family == family && route->protocol != HOST_PROTOCOL_OURS &&
		    host_route_is_default(route) && (!found || route->metric < found->metric))
			found = route;
	}
	return found;
}

static enum host_keeper find_keeper(const struct host *host, const struct mptcp_endpoint *endpoint, const struct host_nm_device *nm)
{
	if (host->managers.mptcpd || host->managers.userspace)
		return HOST_KEEPER_MPTCPD;
	if (nm && nm->endpoints)
		return HOST_KEEPER_NM;
	return endpoint && !endpoint->is_ours ? HOST_KEEPER_OTHER : HOST_KEEPER_OURS;
}

static struct host_network judge_address(const struct host *host, const struct host_address *address, const struct host_link *link,
					 const struct host_link *vpn, const struct network_policy *policy)
{
	const struct host_nm_device *nm = host_nm_of(&host->managers, link->name);
	const struct host_route *route = find_default(host, link->index, address->address.sa.sa_family);
	const struct mptcp_endpoint *endpoint = host_endpoint_of(host, &address->address);
	const struct in6_addr in6 = sockaddr_ip_in6(&address->address);
	uint8_t preference;
	const enum path_use use = network_policy_use(policy, nm, link->name, &in6, &preference);
	struct host_network network = { .address = address->address, .link = *link, .verdict = judge_link(link, policy),
					.backup = use == PATH_USE_BACKUP, .keeper = find_keeper(host, endpoint, nm),
					.fitness = host_address_fitness(&in6, address->flags, endpoint,
									has_service_rule(host, &address->address)) };

	if (route) {
		network.has_route = true;
		network.gateway = route->gateway;
		network.onlink = route->onlink;
		network.metric = route->metric;
	}
	if (use == PATH_USE_NEVER)
		network.verdict = nm && nm->disabled ? HOST_DISABLED : HOST_NEVER;
	if (network.verdict == HOST_USED)
		network.verdict = host_address_judge(address->flags, endpoint);
	if (network.verdict == HOST_USED && !route)
		network.verdict = HOST_NO_ROUTE;
	if (network.verdict == HOST_USED && !host_allows_beside_vpn(vpn, link->index, host->ways[HOST_WAY_CONVERTER]))
		network.verdict = HOST_VPN;
	return network;
}

/* --- comparisons --- */

/* Keeps the fittest address of each family for each device. */
static void keep_one(struct host_network *networks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count && networks[i].verdict == HOST_USED; j++) {
			struct host_network *a = &networks[i], *b = &networks[j];

			if (b->verdict != HOST_USED || a->link.index != b->link.index || a->address.sa.sa_family != b->address.sa.sa_family)
				continue;
			if (b->fitness > a->fitness)
				a->verdict = HOST_SECOND;
			else
				b->verdict = HOST_SECOND;
		}
}

/* Is @a the better device for an address that both have? */
static bool is_better_home(const struct host_network *a, const struct host_network *b)
{
	if (a->link.carrier != b->link.carrier)
		return a->link.carrier;
	return a->metric <= b->metric;
}

/* Keeps one device for each address: an endpoint has one device, and a rule one table. */
static void keep_one_home(struct host_network *networks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count && networks[i].verdict == HOST_USED; j++) {
			struct host_network *a = &networks[i], *b = &networks[j];

			if (b->verdict != HOST_USED || !sockaddr_ip_equal(&a->address, &b->address))
				continue;
			if (is_better_home(a, b))
				b->verdict = HOST_TWICE;
			else
				a->verdict = HOST_TWICE;
		}
}

/*
 * Excludes devices without a carrier. Their subflows are closed, so that Linux sends their data over other networks at once, without
 * waiting for a timer; they return with the carrier. If no network has a carrier, all stay: there is no other network then.
 */
static void keep_carriers(struct host_network *networks, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++)
		any = any || (networks[i].verdict == HOST_USED && networks[i].link.carrier);
	for (size_t i = 0; i < count && any; i++)
		if (networks[i].verdict == HOST_USED && !networks[i].link.carrier)
			networks[i].verdict = HOST_NO_CARRIER;
}

static size_t count_foreign(const struct endpoints *endpoints)
{
	size_t count = 0;

	for (size_t i = 0; i < endpoints->count; i++)
		count += !endpoints->endpoint[i].is_ours;
	return count;
}

/* Of the networks whose endpoints are ours, keeps as many as MPTCP has room for, those with the lowest metrics. */
static void keep_room(struct host_network *networks, size_t network_count, size_t foreign)
{
	for (;;) {
		struct host_network *last = NULL;
		size_t count = foreign;

		for (size_t i = 0; i < network_count; i++) {
			struct host_network *network = &networks[i];

			if (network->verdict != HOST_USED || network->keeper != HOST_KEEPER_OURS)
				continue;
			count++;
			if (!last || network->metric >= last->metric)
				last = network;
		}
		if (count <= HOST_ENDPOINTS_USED_MAX || !last)
			return;
		last->verdict = HOST_FULL;
	}
}

/* --- all of it --- */

bool host_network_is_routed(const struct host_network *network)
{
	return network->verdict == HOST_USED || network->verdict == HOST_NO_CARRIER;
}

size_t host_networks_find(struct host_network **out, const struct host *host, const struct network_policy *policy)
{
	const struct host_link *vpn = host_vpn(host, policy);
	struct host_network *networks = calloc(host->address_count + 1, sizeof(*networks));
	size_t count = 0;

	*out = networks;
	for (size_t i = 0; networks && i < host->address_count; i++) {
		const struct host_address *address = &host->addresses[i];
		const struct host_link *link = host_link_of(host, address->index);
		const struct in6_addr in6 = sockaddr_ip_in6(&address->address);

		if (link && !link->loopback && host_address_is_global(&in6, address->scope))
			networks[count++] = judge_address(host, address, link, vpn, policy);
	}
	keep_one(networks, count);
	keep_one_home(networks, count);
	keep_carriers(networks, count);
	keep_room(networks, count, count_foreign(&host->endpoints));
	return count;
}
