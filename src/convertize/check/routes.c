/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * routes.c - which way packets go from here, and what is missing for them to go another way
 *
 * A host with two providers has a rule for the address of each, "from ADDRESS lookup TABLE", and in that
 * table a default route over its network (ip-rule(8)). The kernel itself is asked which way one packet takes
 * (RTM_GETROUTE); the lists of routes and rules serve to find out what is missing.
 */
#include "config.h"

#include "convertize/check/routes.h"

#include "common/netlink.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TABLE_FIRST 100 /* the first table that is proposed; the kernel's own are 0 and 253 to 255 */

static void note_table(struct routes *routes, uint32_t table)
{
	for (size_t i = 0; i < routes->table_count; i++)
		if (routes->tables[i] == table)
			return;
	if (routes->table_count < sizeof(routes->tables) / sizeof(routes->tables[0]))
		routes->tables[routes->table_count++] = table;
}

/* --- lists ------------------------------------------------------------------------- */

static int on_route(const struct nlmsghdr *message, void *arg)
{
	const struct rtmsg *route = mnl_nlmsg_get_payload(message);
	struct routes *routes = arg;
	struct routes_hop hop = { .table = route->rtm_table, .family = route->rtm_family };
	const struct nlattr *attr;

	if (message->nlmsg_type != RTM_NEWROUTE || route->rtm_type != RTN_UNICAST)
		return MNL_CB_OK;
	mnl_attr_for_each(attr, message, sizeof(*route)) {
		switch (mnl_attr_get_type(attr)) {
		case RTA_OIF:
			hop.index = netlink_read_u32(attr);
			break;
		case RTA_TABLE:
			hop.table = netlink_read_u32(attr);
			break;
		case RTA_PRIORITY:
			hop.metric = netlink_read_u32(attr);
			break;
		case RTA_GATEWAY:
			netlink_read_address(&hop.gateway, attr, route->rtm_family);
			break;
		}
	}
	hop.is_default = route->rtm_dst_len == 0;
	note_table(routes, hop.table);
	if ((hop.is_default || hop.gateway.sa.sa_family != AF_UNSPEC) &&
	    routes->hop_count < ROUTES_MAX)
		routes->hops[routes->hop_count++] = hop;
	return MNL_CB_OK;
}

static int on_rule(const struct nlmsghdr *message, void *arg)
{
	const struct fib_rule_hdr *header = mnl_nlmsg_get_payload(message);
	struct routes *routes = arg;
	struct routes_rule rule = { .length = header->src_len, .table = header->table };
	const struct nlattr *attr;

	if (message->nlmsg_type != RTM_NEWRULE || header->action != FR_ACT_TO_TBL)
		return MNL_CB_OK;
	mnl_attr_for_each(attr, message, sizeof(*header)) {
		if (mnl_attr_get_type(attr) == FRA_SRC)
			netlink_read_address(&rule.from, attr, header->family);
		if (mnl_attr_get_type(attr) == FRA_TABLE)
			rule.table = netlink_read_u32(attr);
	}
	note_table(routes, rule.table);
	if (rule.from.sa.sa_family != AF_UNSPEC && routes->rule_count < ROUTES_MAX)
		routes->rules[routes->rule_count++] = rule;
	return MNL_CB_OK;
}

void routes_read(struct routes *out)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct netlink netlink;

	memset(out, 0, sizeof(*out));
	if (netlink_open(&netlink, NETLINK_ROUTE) < 0)
		return;
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		netlink_dump(&netlink, RTM_GETROUTE, families[i], on_route, out);
		netlink_dump(&netlink, RTM_GETRULE, families[i], on_rule, out);
	}
	netlink_close(&netlink);
}

/* --- one packet --------------------------------------------------------------------- */

static int on_way(const struct nlmsghdr *message, void *arg)
{
	const struct rtmsg *route = mnl_nlmsg_get_payload(message);
	struct routes_way *way = arg;
	const struct nlattr *attr;

	if (message->nlmsg_type != RTM_NEWROUTE)
		return MNL_CB_OK;
	way->table = route->rtm_table;
	mnl_attr_for_each(attr, message, sizeof(*route)) {
		if (mnl_attr_get_type(attr) == RTA_OIF)
			way->index = netlink_read_u32(attr);
		if (mnl_attr_get_type(attr) == RTA_TABLE)
			way->table = netlink_read_u32(attr);
		if (mnl_attr_get_type(attr) == RTA_GATEWAY)
			netlink_read_address(&way->gateway, attr, route->rtm_family);
	}
	return MNL_CB_OK;
}

void routes_find(const union sockaddr_ip *to, const union sockaddr_ip *from, unsigned int index,
		 struct routes_way *out)
{
	uint8_t bits = to->sa.sa_family == AF_INET ? 32 : 128;
	struct nlmsghdr *request;
	struct netlink netlink;
	struct rtmsg *route;

	memset(out, 0, sizeof(*out));
	out->error = -netlink_open(&netlink, NETLINK_ROUTE);
	if (out->error)
		return;
	request = mnl_nlmsg_put_header(netlink.buf);
	route = mnl_nlmsg_put_extra_header(request, sizeof(*route));
	request->nlmsg_type = RTM_GETROUTE;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	route->rtm_family = (unsigned char)to->sa.sa_family;
	route->rtm_flags = RTM_F_LOOKUP_TABLE;
	route->rtm_dst_len = bits;
	netlink_put_address(request, RTA_DST, to);
	if (from->sa.sa_family == to->sa.sa_family) {
		route->rtm_src_len = bits;
		netlink_put_address(request, RTA_SRC, from);
	}
	if (index)
		mnl_attr_put_u32(request, RTA_OIF, index);
	out->error = -netlink_ask(&netlink, on_way, out);
	netlink_close(&netlink);
	/* ip_route_output_key_hash_rcu(): "Apparently, routing tables are wrong. Assume …" */
	out->assumed = !out->error && index && out->table == RT_TABLE_UNSPEC;
}

/* --- what is missing ------------------------------------------------------------------ */

struct neighbours {
	unsigned int index;
	int family;
	union sockaddr_ip found;
	size_t count, routers;
};

static int on_neighbour(const struct nlmsghdr *message, void *arg)
{
	const struct ndmsg *header = mnl_nlmsg_get_payload(message);
	struct neighbours *neighbours = arg;
	bool router = header->ndm_flags & NTF_ROUTER;
	const struct nlattr *attr;

	if (message->nlmsg_type != RTM_NEWNEIGH || header->ndm_family != neighbours->family ||
	    header->ndm_ifindex != (int)neighbours->index || header->ndm_type != RTN_UNICAST ||
	    header->ndm_state & (NUD_FAILED | NUD_INCOMPLETE | NUD_NOARP))
		return MNL_CB_OK;
	neighbours->count++;
	neighbours->routers += router;
	if (neighbours->count > 1 && !router)
		return MNL_CB_OK;
	mnl_attr_for_each(attr, message, sizeof(*header))
		if (mnl_attr_get_type(attr) == NDA_DST)
			netlink_read_address(&neighbours->found, attr, header->ndm_family);
	return MNL_CB_OK;
}

/* Finds the only neighbour that was talked to on a device, or the only one that has said that it is a router. */
static bool find_neighbour(unsigned int index, int family, union sockaddr_ip *out)
{
	struct neighbours neighbours = { .index = index, .family = family };
	struct netlink netlink;

	if (netlink_open(&netlink, NETLINK_ROUTE) < 0)
		return false;
	netlink_dump(&netlink, RTM_GETNEIGH, family, on_neighbour, &neighbours);
	netlink_close(&netlink);
	if (neighbours.found.sa.sa_family != family ||
	    (neighbours.count != 1 && neighbours.routers != 1))
		return false;
	*out = neighbours.found;
	return true;
}

struct wanted {
	const union sockaddr_ip *address;
	unsigned int index;
	bool silent;
};

static int on_wanted(const struct nlmsghdr *message, void *arg)
{
	const struct ndmsg *header = mnl_nlmsg_get_payload(message);
	struct wanted *wanted = arg;
	union sockaddr_ip address;
	const struct nlattr *attr;

	if (message->nlmsg_type != RTM_NEWNEIGH || header->ndm_ifindex != (int)wanted->index ||
	    header->ndm_family != wanted->address->sa.sa_family)
		return MNL_CB_OK;
	mnl_attr_for_each(attr, message, sizeof(*header))
		if (mnl_attr_get_type(attr) == NDA_DST &&
		    netlink_read_address(&address, attr, header->ndm_family) &&
		    sockaddr_ip_equal(&address, wanted->address))
			wanted->silent = header->ndm_state & (NUD_FAILED | NUD_INCOMPLETE);
	return MNL_CB_OK;
}

bool routes_is_silent(const union sockaddr_ip *router, unsigned int index)
{
	struct wanted wanted = { .address = router, .index = index };
	struct netlink netlink;

	if (router->sa.sa_family == AF_UNSPEC || netlink_open(&netlink, NETLINK_ROUTE) < 0)
		return false;
	netlink_dump(&netlink, RTM_GETNEIGH, router->sa.sa_family, on_wanted, &wanted);
	netlink_close(&netlink);
	return wanted.silent;
}

bool routes_other_router(const struct routes *routes, const union sockaddr_ip *router,
			 unsigned int index, union sockaddr_ip *out)
{
	for (size_t i = 0; i < routes->hop_count; i++) {
		const struct routes_hop *hop = &routes->hops[i];

		if (hop->index == index && hop->gateway.sa.sa_family == router->sa.sa_family &&
		    !sockaddr_ip_equal(&hop->gateway, router)) {
			*out = hop->gateway;
			return true;
		}
	}
	return false;
}

static const struct routes_hop *find_default(const struct routes *routes, int family,
					     unsigned int index, uint32_t table)
{
	for (size_t i = 0; i < routes->hop_count; i++) {
		const struct routes_hop *hop = &routes->hops[i];

		if (hop->is_default && hop->family == family && hop->index == index &&
		    (table ? hop->table == table : hop->table != RT_TABLE_MAIN))
			return hop;
	}
	return NULL;
}

static bool find_gateway(const struct routes *routes, int family, unsigned int index,
			 union sockaddr_ip *out)
{
	const struct routes_hop *found = NULL;

	for (size_t i = 0; i < routes->hop_count; i++) {
		const struct routes_hop *hop = &routes->hops[i];

		if (hop->family == family && hop->index == index &&
		    hop->gateway.sa.sa_family == family && (!found || hop->is_default))
			found = hop;
	}
	if (!found)
		return find_neighbour(index, family, out);
	*out = found->gateway;
	return true;
}

static uint32_t free_table(const struct routes *routes, unsigned int index)
{
	uint32_t table = TABLE_FIRST + index % 100;
	size_t i = 0;

	while (i < routes->table_count)
		if (routes->tables[i++] == table) {
			table++;
			i = 0;
		}
	return table;
}

static bool is_point_to_point(const char *name)
{
	struct ifreq request = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is;

	if (fd < 0)
		return false;
	strncpy(request.ifr_name, name, sizeof(request.ifr_name) - 1);
	is = ioctl(fd, SIOCGIFFLAGS, &request) == 0 && request.ifr_flags & IFF_POINTOPOINT;
	close(fd);
	return is;
}

void routes_plan(const struct routes *routes, const union sockaddr_ip *from, unsigned int index,
		 const char *name, struct routes_plan *out)
{
	uint8_t bits = from->sa.sa_family == AF_INET ? 32 : 128;
	const struct routes_hop *own = find_default(routes, from->sa.sa_family, index, 0);

	*out = (struct routes_plan){ .add_rule = true };
	for (size_t i = 0; i < routes->rule_count && out->add_rule; i++)
		if (routes->rules[i].length == bits &&
		    sockaddr_ip_equal(&routes->rules[i].from, from)) {
			out->add_rule = false;
			out->table = routes->rules[i].table;
		}
	if (out->add_rule)
		out->table = own ? own->table : free_table(routes, index);
	out->add_route =
		!find_default(routes, from->sa.sa_family, index, out->table);
	out->no_gateway = is_point_to_point(name);
	out->has_gateway =
		find_gateway(routes, from->sa.sa_family, index, &out->gateway);
}
