/* SPDX-License-Identifier: BSD-3-Clause */
/* check_paths.c - the other paths to a converter, and all of them at once */
#include "config.h"

#include "common/os.h"
#include "convertize/check/check.h"
#include "host/host_model.h"

#include <errno.h>
#include <linux/mptcp.h>
#include <string.h>

#define PORT_OF_OTHERS 443 /* of web servers: hardly any firewall drops it; we send only a SYN there */
#define HOST_ANSWER_MS 1000
#define IPV6_MTU_MIN 1280

const char *check_path_name(const struct check_path *path)
{
	return path->home ? path->home->name : "this network";
}

/* --- finding them ------------------------------------------------------------------------ */

static void add_path(struct check_candidate *candidate, const union sockaddr_ip *from, const struct host_link *home, bool bound,
		     bool endpoint)
{
	union sockaddr_ip first = candidate->first.probe.local;

	sockaddr_ip_set_port(&first, 0);
	if (candidate->path_count == CHECK_PATHS_MAX || home == candidate->first.home || sockaddr_ip_equal(&first, from))
		return;
	for (size_t i = 0; i < candidate->path_count; i++)
		if (sockaddr_ip_equal(&candidate->paths[i].from, from))
			return;
	candidate->paths[candidate->path_count++] = (struct check_path){
		.candidate = candidate,
		.from = *from,
		.device = bound ? home->name : NULL,
		.home = home,
		.endpoint = endpoint,
	};
}

const struct host_link *check_home_of(const struct check_candidate *candidate, const union sockaddr_ip *address)
{
	const struct host_link *home = host_home_of(&candidate->converters->networks->host, address);

	return home && !home->loopback ? home : NULL;
}

/* Adds the paths of endpoints, bound as the kernel binds their subflows, then those of networks without an endpoint. */
static void find_paths(struct check_candidate *candidate)
{
	const struct check_networks *networks = candidate->converters->networks;
	const struct endpoints *endpoints = &networks->host.endpoints;

	for (size_t i = 0; i < endpoints->count; i++) {
		const struct mptcp_endpoint *endpoint = &endpoints->endpoint[i];
		const struct host_network *network = check_network_of(networks, &endpoint->address);

		if (endpoint->flags & MPTCP_PM_ADDR_FLAG_SUBFLOW && network && !check_network_is_refused(network) &&
		    sockaddr_ip_is_v4(&endpoint->address) == sockaddr_ip_is_v4(&candidate->address))
			add_path(candidate, &endpoint->address, host_link_of(&networks->host, network->link.index), endpoint->bound, true);
	}
	for (size_t i = 0; i < networks->count; i++) {
		const struct host_network *network = &networks->list[i];

		if (sockaddr_ip_is_v4(&network->address) == sockaddr_ip_is_v4(&candidate->address) &&
		    check_network_is_usable(networks, network))
			add_path(candidate, &network->address, host_link_of(&networks->host, network->link.index), true, false);
	}
}

/* Determines whether the converter's host answers at another port, after the converter's port was silent. */
static void look_at_host(struct check_path *path)
{
	struct probe_request request = check_request(path);
	struct probe_result result;

	sockaddr_ip_set_port(&request.converter, PORT_OF_OTHERS);
	request.tcp = true;
	request.connect_only = true;
	request.timeout_ms = HOST_ANSWER_MS;
	probe_run(&request, &result);
	path->host_answers = probe_is_connected(&result) || result.error == ECONNREFUSED;
}

/* Asks the kernel for the route to the candidate from this address. @index: of the device that the socket is bound to; 0: none */
static void ask_way(const struct check_candidate *candidate, const union sockaddr_ip *from, unsigned int index, struct host_way *out)
{
	const struct in6_addr source = sockaddr_ip_in6(from);

	host_way_ask(-1, &candidate->address, from->sa.sa_family == AF_UNSPEC ? NULL : &source, index, out);
}

void check_path_way(const struct check_path *path, struct host_way *out)
{
	ask_way(path->candidate, &path->from, path->device ? path->home->index : 0, out);
}

void check_paths_look(struct check_candidate *candidate)
{
	if (!candidate->first.home)
		return; /* the converter is on this machine */
	find_paths(candidate);
	for (size_t i = 0; i < candidate->path_count; i++) {
		struct check_path *path = &candidate->paths[i];

		check_path_way(path, &path->way);
		check_ask(path);
		if (!path->connected && path->probe.outcome == PROBE_NO_SYN_ACK)
			look_at_host(path);
		if (path->probe.outcome == PROBE_ANSWERED && !path->probe.response.has_error)
			check_measure(path);
	}
}

const struct check_path *check_paths_elsewhere(struct check_candidate *candidate)
{
	const struct host *host = &candidate->converters->networks->host;

	if (!candidate->first.device)
		candidate->first.home = host_link_of(host, host->ways[sockaddr_ip_is_v4(&candidate->address) ? HOST_WAY_V4 : HOST_WAY_V6]);
	if (!candidate->first.home)
		return NULL;
	look_at_host(&candidate->first);
	find_paths(candidate);
	for (size_t i = 0; i < candidate->path_count; i++) {
		check_ask(&candidate->paths[i]);
		if (candidate->paths[i].probe.outcome == PROBE_ANSWERED)
			return &candidate->paths[i];
	}
	return NULL;
}

/* The option of ip(8) for a family. */
static const char *family_option(const union sockaddr_ip *address)
{
	return sockaddr_ip_is_v4(address) ? "" : "-6";
}

bool check_paths_prefer(const struct check_path *path, struct fact *fact)
{
	const union sockaddr_ip *address = &path->candidate->address;
	char gateway[SOCKADDR_STRLEN], to[SOCKADDR_STRLEN];
	struct host_way way;

	ask_way(path->candidate, &path->from, path->home->index, &way);
	if (way.error || way.gateway.sa.sa_family == AF_UNSPEC)
		return false;
	fact_command(fact, COMMAND_HERE, "ip", family_option(address), "route", "replace", host_format_address(address, to), "via",
		     host_format_address(&way.gateway, gateway), "dev", path->home->name);
	return true;
}

/* --- packets that are too large ---------------------------------------------------------------------- */

/* Adds the command that limits the packets that this host sends and asks for to the size that the path carries. */
static void shrink(const struct check_path *path, struct fact *fact)
{
	char mtu[16], to[SOCKADDR_STRLEN], gateway[SOCKADDR_STRLEN], table[16];
	bool ipv4 = sockaddr_ip_is_v4(&path->candidate->address);
	union sockaddr_ip from = path->probe.local;
	struct host_way way;

	snprintf(mtu, sizeof(mtu), "%u", path->mtu);
	if (path->mtu >= IPV6_MTU_MIN && path->home) {
		fact_command(fact, COMMAND_HERE, "ip", "link", "set", "dev", path->home->name, "mtu", mtu);
		return;
	}
	/* ask with the path's address, since a rule for that address may choose another table than the usual one */
	sockaddr_ip_set_port(&from, 0);
	ask_way(path->candidate, &from, path->device ? path->home->index : 0, &way);
	if (!ipv4 || way.error || !path->home || way.gateway.sa.sa_family != AF_INET) {
		fact_remedy(fact, "use another network: IPv6 needs packets of %d bytes", IPV6_MTU_MIN);
		return;
	}
	/* a device with an MTU below IPv6's minimum loses its IPv6 addresses: so set the MTU of the route only */
	snprintf(table, sizeof(table), "%u", way.table);
	fact_command(fact, COMMAND_HERE, "ip", "route", "replace", host_format_address(&path->candidate->address, to), "via",
		     host_format_address(&way.gateway, gateway), "dev", path->home->name, "table", table, "mtu", mtu);
}

static void report_lost(const struct check_path *path)
{
	const char *name = check_path_name(path);
	const char *way = path->size == CHECK_SIZE_LOST_BACK ? "from" : "to";
	struct fact *fact;

	if (!path->mtu) {
		fact = path_fact(path, FACT_WARN, "path.mtu",
				 "over %s connections are made, but nothing of a transfer %s the converter gets through, however small "
				 "its packets are", name, way);
		fact_remedy(fact, "use another network than %s, where something on the way drops its packets, " OTHER_PORT, name);
	} else {
		fact = path_fact(path, FACT_WARN, "path.mtu",
				 "over %s packets of up to %u bytes get through, and larger ones %s the converter vanish without a word "
				 "(a path MTU black hole): transfers hang", name, path->mtu, way);
		shrink(path, fact);
	}
	fact_value_number(fact, path->mtu);
}

static void report_loss(const struct check_path *path)
{
	const char *name = check_path_name(path);
	struct fact *fact;

	if (path->lost_percent)
		fact = path_fact(path, FACT_WARN, "path.loss",
				 "over %s a transfer lost %u%% of its packets: connections are slow there", name, path->lost_percent);
	else
		fact = path_fact(path, FACT_WARN, "path.loss", "over %s some connections get no answer: it loses packets", name);
	fact_remedy(fact, "see why %s loses packets, such as a weak signal; --paths %s=backup keeps connections off it while others work",
		    name, name);
	fact_value_number(fact, path->lost_percent);
}

void check_paths_report_size(const struct check_path *path)
{
	struct fact *fact;

	if (path->lost_percent || path->unsteady)
		report_loss(path);
	/* nothing got through: the loss explains that */
	if (path->size == CHECK_SIZE_UNKNOWN || (path->size != CHECK_SIZE_CARRIED && !path->mtu && path->lost_percent))
		return;
	if (path->size != CHECK_SIZE_CARRIED) {
		report_lost(path);
		return;
	}
	fact = path_fact(path, FACT_OK, "path.mtu", path->both_ways ?
			 "over %s packets of up to %u bytes get through both ways (%zu KiB there and back in %.0f ms)" :
			 "over %s packets of up to %u bytes get through to the converter, which can't test the way back (%zu KiB, %.0f "
			 "ms)", check_path_name(path), path->mtu, path->carried / 1024, path->transfer_ms);
	fact_value_number(fact, path->mtu);
}

/* --- another path ---------------------------------------------------------------------------- */

/* Adds the commands that make packets from the path's address leave by its own device. */
static void plan_route(const struct check_path *path, struct fact *fact)
{
	char from[SOCKADDR_STRLEN], gateway[SOCKADDR_STRLEN] = "", table[16];
	const char *const name = path->home->name, *const family = family_option(&path->from), *other = "";
	struct host_route_plan plan;

	host_route_plan(&path->candidate->converters->networks->host, &path->from, path->home, &plan);
	snprintf(table, sizeof(table), "%u", plan.table);
	host_format_address(&path->from, from);
	if (plan.add_route && !plan.has_gateway && !path->home->point_to_point) {
		fact_remedy(fact,
			    "add a default route for the address, by its router, which isn't known here: ip %s%sroute add default via "
			    "ROUTER dev %s table %s%s%s%s%s", family, *family ? " " : "", name, table,
			    plan.add_rule ? ", ip rule add from " : "", plan.add_rule ? from : "", plan.add_rule ? " table " : "",
			    plan.add_rule ? table : "");
		return;
	}
	if (plan.has_gateway) {
		host_format_address(&plan.gateway, gateway);
		other = plan.gateway.sa.sa_family == path->from.sa.sa_family ? "" : "inet6";
	}
	if (plan.add_route)
		fact_command(fact, COMMAND_HERE, "ip", *other ? "-4" : family, "route", "replace", "default", *gateway ? "via" : "", other, gateway,
			     "dev", name, "table", table);
	if (plan.add_rule)
		fact_command(fact, COMMAND_HERE, "ip", family, "rule", "add", "from", from, "table", table);
	if (!plan.add_route && !plan.add_rule)
		fact_remedy(fact, "see ip rule and ip route show table %s: they send packets from %s elsewhere", table, from);
}

/* Do packets from the path's address leave by another network? Then it isn't a separate path, even if the converter answers. */
static bool is_misrouted(const struct check_path *path)
{
	return path->way.error || path->way.assumed ? !path->connected : path->way.index != path->home->index;
}

/*
 * Does this host drop the answers? It does if its reverse path filter is strict (ip-sysctl.rst, rp_filter) and packets from the address
 * leave by another device, unless their socket is bound to this one.
 */
static bool is_filtered(const struct check_path *path)
{
	char name[SYSCTL_NAME_MAX];
	int all = sysctl_read("net.ipv4.conf.all.rp_filter"), own;
	struct host_way way;

	sysctl_of_device(name, 4, path->home->name, "rp_filter");
	own = sysctl_read(name);
	ask_way(path->candidate, &path->from, 0, &way);
	return sockaddr_ip_is_v4(&path->from) && (all > own ? all : own) == 1 && !way.error &&
	       way.index != path->home->index;
}

/* Reports that the router of the path's own route doesn't answer on the link. */
static struct fact *report_silent_router(const struct check_path *path)
{
	const struct host_way *way = &path->way;
	char router[SOCKADDR_STRLEN], table[16];
	union sockaddr_ip other;
	struct fact *fact;

	fact = path_fact(path, FACT_WARN, "path", "no answer over %s: the router of its route, %s, does not answer there",
			 check_path_name(path), host_format_address(&way->gateway, router));
	snprintf(table, sizeof(table), "%u", way->table);
	if (host_other_router(&path->candidate->converters->networks->host, &way->gateway, path->home->index, &other))
		fact_command(fact, COMMAND_HERE, "ip", family_option(&path->from), "route", "replace", "default", "via",
			     host_format_address(&other, router), "dev", path->home->name, "table", table);
	else
		fact_remedy(fact, REMEDY_ROUTER, check_path_name(path));
	return fact;
}

/* Reports a path with correct routes on which nothing comes back. */
static struct fact *report_unanswered(const struct check_path *path)
{
	unsigned int port = sockaddr_ip_port(&path->candidate->address);
	const char *name = check_path_name(path);
	char to[SOCKADDR_STRLEN];
	struct fact *fact;

	if (path->probe.outcome == PROBE_LOCAL) {
		fact = path_fact(path, FACT_WARN, "path", "this machine can't connect over %s: %s", name, strerror(path->probe.error));
		fact_remedy(fact, "see ip address show dev %s: an address may be tentative, or a duplicate (dadfailed)", name);
	} else if (path->probe.error) {
		fact = path_fact(path, FACT_WARN, "path", "refused over %s (%s), by the network there", name, strerror(path->probe.error));
		fact_remedy(fact, REMEDY_PORT, port);
	} else if (path->host_answers) {
		fact = path_fact(path, FACT_WARN, "path",
				 "no answer over %s, though its host answers there at another port: a firewall on the way drops TCP to "
				 "port %u", name, port);
		fact_remedy(fact, REMEDY_PORT, port);
	} else {
		fact = path_fact(path, FACT_WARN, "path",
				 "no answer over %s, though packets leave there: that network is down, or a firewall drops them", name);
		fact_remedy(fact, "see what comes back: ping -I %s %s", name, host_format_address(&path->candidate->address, to));
	}
	return fact;
}

/* Reports why nothing answers over a path. */
static struct fact *report_dead(const struct check_path *path)
{
	const char *name = check_path_name(path);
	struct fact *fact;

	if (path->refused_here) {
		fact = path_fact(path, FACT_WARN, "path", "this machine's own firewall lets no SYN to it out over %s", name);
		fact_remedy(fact, REMEDY_OWN_FIREWALL, sockaddr_ip_port(&path->candidate->address));
	} else if (is_misrouted(path)) {
		fact = path_fact(path, FACT_WARN, "path", "no route to it over %s: packets from the address there %s", name,
				 path->way.error || path->way.assumed ? "go nowhere" : "leave by another network");
		plan_route(path, fact);
	} else if (is_filtered(path)) {
		fact = path_fact(path, FACT_WARN, "path",
				 "no answer over %s: this machine drops the answers, as its own route to the converter leaves by another "
				 "network (net.ipv4.conf.*.rp_filter = 1)", name);
		plan_route(path, fact);
	} else if (host_neighbour_is_silent(&path->way.gateway, path->home->index)) {
		fact = report_silent_router(path);
	} else {
		fact = report_unanswered(path);
	}
	return fact;
}

/*
 * Does the converter refuse connections from the path's address? It may admit other addresses, or have given the cookie to another
 * one. It removes Multipath TCP from SYNs that it refuses, but doesn't refuse joins to other connections.
 */
bool check_path_is_refused(const struct check_path *path)
{
	return path->probe.outcome == PROBE_ANSWERED && path->probe.response.has_error &&
	       (path->probe.response.error_code == CONVERT_ERROR_NOT_AUTHORIZED ||
		path->probe.response.error_code == CONVERT_ERROR_MISSING_COOKIE);
}

static struct fact *report_mptcp(const struct check_path *path)
{
	bool same = path->mptcp == path->candidate->first.mptcp; /* already reported as the converter's */
	const char *name = check_path_name(path);
	struct fact *fact;

	if (path->probe.outcome != PROBE_ANSWERED) {
		fact = path_fact(path, FACT_WARN, "path", "over %s %s", name,
				 check_path_has_portal(path) ? "a web server answers instead: a captive portal" :
							       "something else answers, or accepts connections in silence");
		fact_remedy(fact, REMEDY_PORTAL);
		return fact;
	}
	if (check_path_is_refused(path))
		return path_fact(path, FACT_NOTE, "path",
				 "answers over %s too, and refuses connections that begin there (error %u, %s); joining one needs no "
				 "permission", name, path->probe.response.error_code, convert_error_name(path->probe.response.error_code));
	if (path->mptcp == PROBE_MPTCP_KEPT)
		return path_fact(path, FACT_OK, "path", "Multipath TCP gets through over %s too, in %.1f ms", name,
				 path->probe.round_trip_ms);
	if (same)
		return path_fact(path, FACT_NOTE, "path", "is reached over %s too, and not by Multipath TCP either", name);
	fact = path_fact(path, FACT_WARN, "path", path->mptcp_dropped ?
			 "SYNs with Multipath TCP get no answer over %s, those without do: something on the way drops them" :
			 "Multipath TCP does not get through over %s: something on the way removes it", name);
	fact_remedy(fact, REMEDY_OPTION_30, "");
	return fact;
}

static void report_syn_data(const struct check_path *path)
{
	const char *name = check_path_name(path);
	struct fact *fact;

	if (path->syn_data == path->candidate->first.syn_data || path->syn_data == PROBE_SYN_DATA_TAKEN ||
	    path->syn_data == PROBE_SYN_DATA_UNUSED)
		return;
	if (path->syn_data == PROBE_SYN_DATA_REFUSED)
		fact = path_fact(path, FACT_WARN, "path.syn_data",
				 "data in SYNs over %s does not arrive: something on the way removes it, and connections over it take one "
				 "more round trip", name);
	else if (path->syn_passed)
		fact = path_fact(path, FACT_WARN, "path.syn_data",
				 "SYNs over %s with %zu bytes of data, as a request has, get no answer, with %zu they do: connections "
				 "over it begin a second late", name, path->syn_lost, path->syn_passed);
	else
		fact = path_fact(path, FACT_WARN, "path.syn_data",
				 "SYNs with data over %s get no answer, those without do: connections over it begin a second late", name);
	fact_remedy(fact, REMEDY_SYN_DATA);
	fact_value_bool(fact, false);
}

/* Reports that requests get through in SYNs and more data doesn't, unless the first path has the same fault. */
static void report_syn_bytes(const struct check_path *path)
{
	struct fact *fact;

	if (path->syn_data != PROBE_SYN_DATA_TAKEN || !path->syn_lost || path->candidate->first.syn_lost ||
	    path->size != CHECK_SIZE_CARRIED)
		return;
	fact = path_fact(path, FACT_WARN, "path.syn_bytes",
			 "SYNs over %s with %zu bytes of data get no answer, with %zu they do: requests get through, but connections "
			 "with early data begin a second late", check_path_name(path), path->syn_lost, path->syn_passed);
	fact_remedy(fact, REMEDY_SYN_BYTES, "");
	fact_value_number(fact, (double)path->syn_passed);
}

void check_paths_report(const struct check_candidate *candidate)
{
	for (size_t i = 0; i < candidate->path_count; i++) {
		const struct check_path *path = &candidate->paths[i];
		bool alive = path->connected && !is_misrouted(path);
		struct fact *fact = alive ? report_mptcp(path) : report_dead(path);

		fact_value_bool(fact, alive && (path->mptcp == PROBE_MPTCP_KEPT || check_path_is_refused(path)));
		if (!alive || check_path_is_refused(path) || path->probe.outcome != PROBE_ANSWERED)
			continue;
		report_syn_data(path);
		report_syn_bytes(path);
		check_paths_report_size(path);
	}
	check_measure_all(candidate);
}
