/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_networks.c - this host's networks and MPTCP endpoints, as the doctor sees them
 *
 * host/judge.c decides which networks connections may use, by the settings of this user (CONVERT_PATHS, CONVERT_BESIDE_VPN), of the
 * administrator (convertize.conf) and of NetworkManager, and by the quotas that the path service publishes. For a forbidden network the
 * doctor sends nothing, proposes no endpoint, route or rule, and reports an endpoint that is there.
 */
#include "config.h"

#include "common/os.h"
#include "convertize/check/check.h"
#include "host/lookup.h"
#include "host/networks.h"
#include "paths/plan.h"

#include <linux/mptcp.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

/* --- the networks --- */

/* Finds the device by which packets to the converters leave: among several, one behind a VPN decides. */
static unsigned int find_way(const struct host *host, const struct check_addresses *addresses)
{
	unsigned int found = 0;

	for (size_t i = 0; i < addresses->count; i++) {
		const struct host_link *link;
		struct host_way way;

		host_way_ask(-1, &addresses->list[i], NULL, 0, &way);
		link = way.error || way.type != RTN_UNICAST ? NULL : host_link_of(host, way.index);
		if (link && (!found || host_kind_is_vpn(link->kind)))
			found = link->index;
	}
	return found;
}

int check_networks_read(struct check_networks *out, const struct settings *settings, const struct check_addresses *addresses)
{
	const struct network_policy policy = { .paths = host_preferences(settings), .device = option_value(OPTION_DEVICE),
				       .never = option_value(OPTION_NEVER_DEVICE), .backup = option_value(OPTION_BACKUP_DEVICE),
				       .beside_vpn = settings->beside_vpn, .any_kind = true };
	struct paths_memory memory;
	int ret;

	memset(out, 0, sizeof(*out));
	ret = paths_host_read(&out->host, &memory);
	if (ret < 0)
		return ret;
	out->host.ways[HOST_WAY_CONVERTER] = find_way(&out->host, addresses);
	out->vpn = host_vpn(&out->host, &policy);
	out->count = host_networks_find(&out->list, &out->host, &policy);
	for (size_t i = 0; i < out->count; i++)
		out->any_route |= out->list[i].has_route;
	for (size_t i = 0; i < out->count; i++) {
		const struct host_network *network = &out->list[i];
		const bool is_v4 = sockaddr_ip_is_v4(&network->address);

		out->any_excluded |= network->verdict == HOST_NEVER || network->verdict == HOST_NOT_NAMED;
		out->any_carrier[is_v4] |= network->link.carrier;
		out->any_usable[is_v4] |= check_network_is_usable(out, network);
	}
	return 0;
}

void check_networks_fini(struct check_networks *networks)
{
	free(networks->list);
	host_fini(&networks->host);
}

static bool is_first(const struct check_networks *networks, const struct host_network *network)
{
	return network->link.index == networks->host.ways[sockaddr_ip_is_v4(&network->address) ? HOST_WAY_V4 : HOST_WAY_V6];
}

bool check_network_is_usable(const struct check_networks *networks, const struct host_network *network)
{
	if (network->verdict == HOST_KIND || network->verdict == HOST_VPN)
		return is_first(networks, network); /* a VPN itself */
	return network->verdict == HOST_USED || (network->verdict == HOST_NO_ROUTE && !networks->any_route);
}

/* Returns the first network of a device that lacks only a default route; NULL: there is none, or another network of the device is used. */
static const struct host_network *routeless(const struct check_networks *networks, unsigned int index)
{
	const struct host_network *first = NULL;

	for (size_t i = 0; i < networks->count; i++) {
		const struct host_network *network = &networks->list[i];

		if (network->link.index != index)
			continue;
		if (network->verdict == HOST_USED || check_network_is_usable(networks, network))
			return NULL;
		if (!first && network->verdict == HOST_NO_ROUTE)
			first = network;
	}
	/* networks of containers and virtual machines lead nowhere on purpose */
	return first && strcmp(first->link.kind, "bridge") != 0 && strcmp(first->link.kind, "veth") != 0 &&
			       strcmp(first->link.kind, "dummy") != 0 ? first : NULL;
}

bool check_network_is_refused(const struct host_network *network)
{
	return network->verdict == HOST_VPN || network->verdict == HOST_NEVER || network->verdict == HOST_DISABLED ||
	       network->verdict == HOST_NOT_NAMED;
}

bool check_keep_off(const struct check_networks *networks, const struct settings *settings, const union sockaddr_ip *to,
		    const struct host_network **out)
{
	*out = NULL;
	if (!network_usual_is_never(host_preferences(settings), to))
		return true;
	for (size_t i = 0; i < networks->count; i++) {
		const struct host_network *network = &networks->list[i];

		if (sockaddr_ip_is_v4(&network->address) == sockaddr_ip_is_v4(to) && check_network_is_usable(networks, network) &&
		    (!*out || (*out)->backup > network->backup))
			*out = network;
	}
	return *out;
}

const struct host_network *check_network_of(const struct check_networks *networks, const union sockaddr_ip *address)
{
	union sockaddr_ip portless = *address;

	sockaddr_ip_set_port(&portless, 0);
	for (size_t i = 0; i < networks->count; i++)
		if (sockaddr_ip_equal(&networks->list[i].address, &portless))
			return &networks->list[i];
	return NULL;
}

/* --- addresses --- */

static void report_addresses(struct report *report, const struct check_networks *networks)
{
	static const enum fact_status statuses[] = { FACT_FAIL, FACT_NOTE, FACT_OK };
	const struct host *host = &networks->host;
	char *list = NULL, text[PREFIX_STRLEN];
	size_t size, count = 0;
	FILE *stream = open_memstream(&list, &size);
	struct fact *fact;

	if (!stream)
		return;
	for (size_t i = 0; i < host->link_count; i++) {
		const char *start = host->links[i].name;

		for (size_t j = 0; j < networks->count; j++) {
			const struct host_network *network = &networks->list[j];

			if (network->link.index != host->links[i].index || !check_network_is_usable(networks, network))
				continue;
			if (start == host->links[i].name)
				fputs(count++ ? ", " : ": ", stream);
			fprintf(stream, "%s %s", start, host_format_address(&network->address, text));
			start = " and";
		}
	}
	fclose(stream);
	if (!count && networks->any_excluded) {
		fact = report_plain(report, FACT_FAIL, "network.interfaces", "CONVERT_PATHS or a quota allows no network");
		fact_remedy(fact, REMEDY_ALLOW);
		free(list);
		return;
	}
	fact = report_plain(report, statuses[count < 2 ? count : 2], "network.interfaces", "%zu network%s%s", count, count == 1 ? "" : "s",
			    list ? list : "");
	if (count < 2 && !networks->vpn)
		fact_remedy(fact, "%s", count ? "connect this machine to a second network, for a second path" : REMEDY_FIRST_NETWORK);
	fact_value_number(fact, (double)count);
	free(list);
}

/* Does the device have an address of this family? @usable: one that connections may use now */
static bool has_family(const struct check_networks *networks, unsigned int index, bool is_v4, bool usable)
{
	for (size_t i = 0; i < networks->count; i++)
		if (networks->list[i].link.index == index && sockaddr_ip_is_v4(&networks->list[i].address) == is_v4 &&
		    (!usable || check_network_is_usable(networks, &networks->list[i])))
			return true;
	return false;
}

void check_families(struct report *report, const struct check_networks *networks, bool is_v4)
{
	const char *names[] = { "IPv6", "IPv4" };

	for (size_t i = 0; i < networks->host.link_count; i++) {
		const struct host_link *link = &networks->host.links[i];
		struct fact *fact;

		if (has_family(networks, link->index, is_v4, false) || !has_family(networks, link->index, !is_v4, true))
			continue;
		fact = report_fact(report, FACT_WARN, "network.family", link->name,
				   "has no %s address, so connections to the converter don't use this network", names[is_v4]);
		fact_remedy(fact, "name a converter's address of the family that all networks have");
	}
}

static void report_vpn(struct report *report, const struct check_networks *networks)
{
	struct fact *fact;

	if (!networks->vpn)
		return;
	fact = report_fact(report, FACT_NOTE, "network.vpn", networks->vpn->name,
			   "all traffic goes through this VPN, and the networks beside it are left alone");
	fact_remedy(fact, "give --beside-vpn (CONVERT_BESIDE_VPN=1), if connections may leave it");
	fact_value_text(fact, networks->vpn->name);
}

/* --- endpoints --- */

/* Does the kernel open subflows from the endpoint? It does with the flag "subflow", perhaps together with "fullmesh". */
static bool begins_subflows(const struct mptcp_endpoint *endpoint)
{
	return endpoint->flags & MPTCP_PM_ADDR_FLAG_SUBFLOW;
}

/* Does the kernel use the endpoint only towards addresses that a converter announces? */
static bool is_fullmesh_only(const struct mptcp_endpoint *endpoint)
{
	return !begins_subflows(endpoint) && endpoint->flags & MPTCP_PM_ADDR_FLAG_FULLMESH;
}

/* Does an address of this network's device have an endpoint from which the kernel opens subflows? */
static bool has_endpoint(const struct check_networks *networks, const struct host_network *network)
{
	for (size_t i = 0; i < networks->host.endpoints.count; i++) {
		const struct mptcp_endpoint *endpoint = &networks->host.endpoints.endpoint[i];
		const struct host_link *home = host_home_of(&networks->host, &endpoint->address);

		if ((begins_subflows(endpoint) || is_fullmesh_only(endpoint)) && home && home->index == network->link.index &&
		    sockaddr_ip_is_v4(&endpoint->address) == sockaddr_ip_is_v4(&network->address))
			return true;
	}
	return false;
}

/*
 * Reports the networks of a family that have no endpoint, except the one that connections take anyway. Returns the number of networks
 * besides that one.
 */
static size_t report_missing(struct report *report, const struct check_networks *networks, bool is_v4)
{
	char text[PREFIX_STRLEN];
	size_t wanted = 0;

	for (size_t i = 0; i < networks->count; i++) {
		const struct host_network *network = &networks->list[i];
		struct fact *fact;

		if (sockaddr_ip_is_v4(&network->address) != is_v4 || !check_network_is_usable(networks, network) || is_first(networks, network))
			continue;
		wanted++;
		if (has_endpoint(networks, network))
			continue;
		host_format_address(&network->address, text);
		fact = report_fact(report, FACT_WARN, "network.endpoint", network->link.name,
				   "no MPTCP endpoint has its address %s, so that no second path uses it", text);
		if (network->keeper == HOST_KEEPER_NM || network->keeper == HOST_KEEPER_MPTCPD)
			fact_remedy(fact, "%s", network->keeper == HOST_KEEPER_NM ?
				    "have NetworkManager make it, which keeps endpoints here: connection.mptcp-flags" :
				    "have mptcpd make it, which keeps endpoints here");
		else
			fact_command(fact, COMMAND_HERE, "ip", "mptcp", "endpoint", "add", text, "dev", network->link.name, "subflow",
				     network->backup ? "backup" : "");
		fact_value_text(fact, text);
	}
	return wanted;
}

/* Reports devices whose networks would be used if there were a default route over them. */
static void report_routeless(struct report *report, const struct check_networks *networks)
{
	for (size_t i = 0; i < networks->host.link_count; i++) {
		const struct host_network *network = routeless(networks, networks->host.links[i].index);
		char text[PREFIX_STRLEN];
		struct fact *fact;

		/* with an endpoint it is a path, whose routes are checked on the way to a converter */
		if (!network || has_endpoint(networks, network))
			continue;
		fact = report_fact(report, FACT_WARN, "network.route", network->link.name,
				   "has the address %s, and %s: no connection uses it", host_format_address(&network->address, text),
				   host_verdict_text(network->verdict));
		fact_remedy(fact, "add it, by that network's router: ip route add default via ROUTER dev %s metric 1000",
			    network->link.name);
		fact_value_text(fact, text);
	}
}

static void add_command(struct fact *fact, const struct mptcp_endpoint *endpoint, const char *verb, const char *flag)
{
	char id[8];

	snprintf(id, sizeof(id), "%u", endpoint->id);
	fact_command(fact, COMMAND_HERE, "ip", "mptcp", "endpoint", verb, "id", id, flag);
}

/* Reports an endpoint from which Linux 6.18 opens no subflow to the address that a connection was made to. */
static void report_fullmesh(struct report *report, const struct mptcp_endpoint *endpoint, const struct host_network *network)
{
	char text[PREFIX_STRLEN];
	struct fact *fact;

	host_format_address(&endpoint->address, text);
	fact = report_fact(report, FACT_WARN, "network.endpoint", network ? network->link.name : NULL,
			   "MPTCP endpoint %s has fullmesh without subflow: no second path uses it, unless the converter announces an "
			   "address", text);
	add_command(fact, endpoint, "delete", "");
	if (network)
		fact_command(fact, COMMAND_HERE, "ip", "mptcp", "endpoint", "add", text, "dev", network->link.name, "subflow", "fullmesh");
	fact_value_text(fact, text);
}

/* Returns the way to change an endpoint whose keeper would undo the doctor's command; NULL: nobody keeps it. */
static const char *remedy_of(const struct mptcp_endpoint *endpoint, const struct host_network *network)
{
	if (network->keeper == HOST_KEEPER_NM)
		return "set connection.mptcp-flags disabled by nmcli connection modify: NetworkManager keeps it";
	if (network->keeper == HOST_KEEPER_MPTCPD)
		return REMEDY_MPTCPD;
	return endpoint->is_ours ? "say the same by paths in /etc/convertize.conf: convertize paths --manage keeps it" : NULL;
}

/*
 * Reports an endpoint by which connections would use a network that they must not use, or should use last. @network is NULL if this
 * machine doesn't have the address.
 */
static void report_endpoint(struct report *report, const struct mptcp_endpoint *endpoint, const struct host_network *network)
{
	const bool refused = network && check_network_is_refused(network);
	const bool unmarked = network && network->backup && !(endpoint->flags & MPTCP_PM_ADDR_FLAG_BACKUP);
	const bool astray = network && endpoint->bound && endpoint->bound != network->link.index;
	const char *remedy = network ? remedy_of(endpoint, network) : NULL;
	char text[PREFIX_STRLEN];
	struct fact *fact;

	host_format_address(&endpoint->address, text);
	fact = report_fact(report, network && !refused && !unmarked && !astray ? FACT_OK : FACT_WARN, "network.endpoint",
			   network ? network->link.name : NULL,
			   "MPTCP endpoint %s%s", text,
			   !network			      ? " is not an address of this machine" :
			   network->verdict == HOST_VPN ? " takes connections out of the VPN" :
			   refused			      ? " takes connections to a network that they must not use" :
			   astray ? " is bound to another device, so that no second path uses it" :
			   unmarked ? " takes connections to a network that is only a backup" :
					 "");
	if ((refused || unmarked || astray) && remedy)
		fact_remedy(fact, "%s", remedy);
	else if (!network || refused)
		add_command(fact, endpoint, "delete", "");
	else if (unmarked && !astray)
		add_command(fact, endpoint, "change", "backup");
	if (astray && !refused && !remedy) {
		add_command(fact, endpoint, "delete", "");
		fact_command(fact, COMMAND_HERE, "ip", "mptcp", "endpoint", "add", text, "dev", network->link.name, "subflow",
			     network->backup ? "backup" : "");
	}
	fact_value_text(fact, text);
}

static void report_limit(struct report *report, unsigned int limit, size_t wanted)
{
	char count[24];
	struct fact *fact;

	if (limit >= wanted) {
		fact = report_plain(report, FACT_OK, "network.subflow_limit", "a connection may have %u path%s besides its first", limit,
				    limit == 1 ? "" : "s");
	} else {
		fact = report_plain(report, FACT_WARN, "network.subflow_limit",
				    "a connection may have %u path%s besides its first, and there could be %zu", limit,
				    limit == 1 ? "" : "s", wanted);
		snprintf(count, sizeof(count), "%zu", wanted);
		fact_command(fact, COMMAND_HERE, "ip", "mptcp", "limits", "set", "subflows", count);
	}
	fact_value_number(fact, limit);
}

static void report_endpoints(struct report *report, const struct check_networks *networks)
{
	const struct endpoints *endpoints = &networks->host.endpoints;
	size_t ipv4, ipv6;

	for (size_t i = 0; i < endpoints->count; i++) {
		const struct mptcp_endpoint *endpoint = &endpoints->endpoint[i];
		const struct host_network *network = check_network_of(networks, &endpoint->address);

		if (is_fullmesh_only(endpoint))
			report_fullmesh(report, endpoint, network);
		if (begins_subflows(endpoint))
			report_endpoint(report, endpoint, network);
	}
	ipv4 = report_missing(report, networks, true);
	ipv6 = report_missing(report, networks, false);
	report_limit(report, endpoints->subflow_limit, ipv4 > ipv6 ? ipv4 : ipv6);
}

void check_networks_report(struct report *report, const struct check_networks *networks)
{
	if (networks->error) {
		fact_remedy(report_plain(report, FACT_WARN, "network.interfaces", "the networks can't be read: %s",
					 strerror(networks->error)), "let the security policy allow sockets of AF_NETLINK");
		return;
	}
	report_addresses(report, networks);
	report_routeless(report, networks);
	report_vpn(report, networks);
	if (networks->host.managers.userspace)
		report_plain(report, FACT_NOTE, "network.path_manager",
			     "a path manager in user space, such as mptcpd, manages the paths (net.mptcp.pm_type = 1)");
	else if (!networks->host.endpoints_error)
		report_endpoints(report, networks);
	else if (sysctl_read("net.mptcp.enabled") >= 0) /* check_kernel() has reported a kernel without MPTCP */
		report_plain(report, FACT_WARN, "network.path_manager", "MPTCP's endpoints and limits can't be read: %s",
			     strerror(-networks->host.endpoints_error));
}

/* Reports whether connections can use Multipath TCP and keep off the networks that the user excludes. */
static void report_policy(struct report *report, const struct settings *settings, const struct check_addresses *addresses)
{
	static const char *const remedies[] = {
		[BREACH_ENDPOINT] = "see ip mptcp endpoint: delete the one there, or change it to backup",
		[BREACH_NO_BACKUP] = "see ip mptcp endpoint: delete the one there, or change it to backup",
		[BREACH_SERVICE] = "say the same by paths in /etc/convertize.conf, and systemctl restart convertize-paths",
		[BREACH_ABSENT] = "say the same by paths in /etc/convertize.conf, and systemctl restart convertize-paths",
		[BREACH_MANAGER] = REMEDY_MPTCPD,
		[BREACH_COUNT] = NULL,
	};
	const struct network_policy policy = { .paths = host_preferences(settings) };
	enum policy_breach breach = BREACH_NONE;
	struct fact *fact;

	if (!settings->enabled || !path_preferences_restrict(policy.paths))
		return;
	for (size_t i = 0; i < addresses->count && !breach; i++)
		breach = networks_policy_breach(&policy, &addresses->list[i]);
	if (!breach) {
		report_plain(report, FACT_OK, "paths.word", "no subflow takes a network that CONVERT_PATHS or a quota excludes");
		return;
	}
	fact = report_plain(report, FACT_WARN, "paths.word", "connections use TCP instead of Multipath TCP, since %s",
			    policy_breach_text(breach));
	if (breach == BREACH_ANNOUNCED)
		fact_command(fact, COMMAND_HERE, "ip", "mptcp", "limits", "set", "add_addr_accepted", "0");
	else if (remedies[breach])
		fact_remedy(fact, "%s", remedies[breach]);
}

void check_wishes(struct report *report, const struct settings *settings, const struct check_addresses *addresses)
{
	const struct path_preferences *wanted = &settings->paths;

	report_policy(report, settings, addresses);
	for (size_t i = 0; i < wanted->count; i++) {
		const struct path_wish *wish = &wanted->wishes[i];
		char name[SOCKADDR_STRLEN];
		struct fact *fact;

		if (network_is_there(wish))
			continue;
		path_wish_format(wish, name);
		/* a missing network with =never does no harm */
		fact = report_fact(report, wish->use == PATH_USE_NEVER ? FACT_NOTE : FACT_WARN, "paths.missing", name,
				   "CONVERT_PATHS names it, and there is no such %s now", *wish->device ? "device" : "address");
		fact_remedy(fact, "name one of those that \"ip address\" shows, unless it comes later");
		fact_value_text(fact, name);
	}
}
