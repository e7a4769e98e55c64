/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host_read.c - reads the host for programs with libmnl: links, addresses, routes, rules, ways, endpoints
 *
 * Each list is a dump of rtnetlink(7). If something changes meanwhile, the kernel reports it (NLM_F_DUMP_INTR), and we read all lists
 * again. We keep only the routes that matter here, and some that show a router's address: there may be a million others.
 */
#include "config.h"

#include "host/host_model.h"

#include "common/netlink.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define TRIES 10
#define VIA_MAX 64 /* routes that we keep only because they show a router */

static const int families[] = { AF_INET, AF_INET6 };

struct reading {
	struct host *host;
	size_t via;
	int error;
};

/* Appends a zeroed element to a list of @count elements, and returns it; NULL if memory runs out. */
static void *grow(void *list, size_t *count, size_t size, struct reading *reading)
{
	void **place = list, *grown = *place;

	/* the list is full when the count is a power of two */
	if ((*count & (*count - 1)) == 0)
		grown = reallocarray(*place, *count ? *count * 2 : 1, size);
	if (!grown) {
		reading->error = -ENOMEM;
		return NULL;
	}
	*place = grown;
	return memset((char *)grown + (*count)++ * size, 0, size);
}

/* --- links ------------------ */

static void read_stats(struct host_link *link, const struct nlattr *attr)
{
	struct rtnl_link_stats64 stats = { 0 };
	size_t len = mnl_attr_get_payload_len(attr);

	/* newer kernels append members, and netlink aligns to only four bytes */
	memcpy(&stats, mnl_attr_get_payload(attr), len < sizeof(stats) ? len : sizeof(stats));
	link->received = stats.rx_bytes;
	link->sent = stats.tx_bytes;
}

static void read_text(char *out, size_t size, const struct nlattr *attr)
{
	size_t len = mnl_attr_get_payload_len(attr);

	len = len < size ? len : size - 1;
	memcpy(out, mnl_attr_get_payload(attr), len);
	out[len] = '\0';
}

static int on_link(const struct nlmsghdr *message, void *arg)
{
	const struct ifinfomsg *header = mnl_nlmsg_get_payload(message);
	struct reading *reading = arg;
	struct host_link *link;
	const struct nlattr *attr, *inner;

	if (message->nlmsg_type != RTM_NEWLINK)
		return MNL_CB_OK;
	link = grow(&reading->host->links, &reading->host->link_count, sizeof(*link), reading);
	if (!link)
		return MNL_CB_ERROR;
	link->index = (unsigned int)header->ifi_index;
	link->loopback = header->ifi_flags & IFF_LOOPBACK;
	link->point_to_point = header->ifi_flags & IFF_POINTOPOINT;
	link->up = header->ifi_flags & IFF_UP;
	link->carrier = header->ifi_flags & IFF_RUNNING;
	mnl_attr_for_each(attr, message, sizeof(*header)) {
		switch (mnl_attr_get_type(attr)) {
		case IFLA_IFNAME:
			read_text(link->name, sizeof(link->name), attr);
			break;
		case IFLA_MASTER:
			link->master = netlink_read_u32(attr);
			break;
		case IFLA_STATS64:
			read_stats(link, attr);
			break;
		case IFLA_LINKINFO:
			mnl_attr_for_each_nested(inner, attr)
				if (mnl_attr_get_type(inner) == IFLA_INFO_KIND)
					read_text(link->kind, sizeof(link->kind), inner);
			break;
		}
	}
	return MNL_CB_OK;
}

/* --- addresses -------------- */

static int on_address(const struct nlmsghdr *message, void *arg)
{
	const struct ifaddrmsg *header = mnl_nlmsg_get_payload(message);
	struct host_address found = { .index = header->ifa_index, .scope = header->ifa_scope, .flags = header->ifa_flags };
	struct reading *reading = arg;
	struct host_address *address;
	const struct nlattr *attr;
	bool local = false;

	if (message->nlmsg_type != RTM_NEWADDR)
		return MNL_CB_OK;
	mnl_attr_for_each(attr, message, sizeof(*header)) {
		/* with IFA_LOCAL, IFA_ADDRESS is the peer's address */
		if (mnl_attr_get_type(attr) == IFA_LOCAL)
			local = netlink_read_address(&found.address, attr, header->ifa_family);
		if (mnl_attr_get_type(attr) == IFA_ADDRESS && !local)
			netlink_read_address(&found.address, attr, header->ifa_family);
		if (mnl_attr_get_type(attr) == IFA_FLAGS)
			found.flags = netlink_read_u32(attr);
	}
	if (found.address.sa.sa_family == AF_UNSPEC)
		return MNL_CB_OK;
	address = grow(&reading->host->addresses, &reading->host->address_count, sizeof(*address), reading);
	if (!address)
		return MNL_CB_ERROR;
	*address = found;
	return MNL_CB_OK;
}

/* --- routes ----------------- */

static void note_table(struct reading *reading, uint32_t table)
{
	struct host *host = reading->host;
	uint32_t *place;

	/* skip the kernel's own tables, and repetitions: the routes of a table come one after the other */
	if (table == RT_TABLE_MAIN || table == RT_TABLE_LOCAL || table == RT_TABLE_DEFAULT ||
	    (host->table_count && host->tables[host->table_count - 1] == table))
		return;
	place = grow(&host->tables, &host->table_count, sizeof(*place), reading);
	if (place)
		*place = table;
}

/* Keeps the route if it matters here. */
static void keep_route(struct reading *reading, const struct host_route *found)
{
	struct host *host = reading->host;
	const bool via = found->gateway.sa.sa_family != AF_UNSPEC;
	struct host_route *route;

	if (found->protocol != HOST_PROTOCOL_OURS && !host_route_is_wide(found) &&
	    (via ? reading->via++ >= VIA_MAX :
		   found->table != RT_TABLE_MAIN || (found->family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&found->to.address))))
		return;
	route = grow(&host->routes, &host->route_count, sizeof(*route), reading);
	if (route)
		*route = *found;
}

/* Reads a router. RTA_VIA: its address has the other family, and follows the family's number (struct rtvia, RFC 8950). */
static void read_gateway(struct host_route *route, const struct nlattr *attr)
{
	const struct rtvia *via = mnl_attr_get_payload(attr);
	const size_t len = mnl_attr_get_payload_len(attr);
	struct in6_addr in6;

	if (mnl_attr_get_type(attr) == RTA_GATEWAY)
		netlink_read_address(&route->gateway, attr, route->family);
	else if (len == sizeof(*via) + sizeof(in6) && via->rtvia_family == AF_INET6) {
		memcpy(&in6, via->rtvia_addr, sizeof(in6));
		sockaddr_ip_set(&route->gateway, AF_INET6, &in6, 0);
	}
}

/* Keeps one route for each next hop of a multipath route: an array of struct rtnexthop, each followed by its attributes. */
static void keep_hops(struct reading *reading, const struct host_route *found, const struct nlattr *attr)
{
	const char *at = mnl_attr_get_payload(attr);
	size_t left = mnl_attr_get_payload_len(attr), size;
	struct rtnexthop hop;

	for (; left >= sizeof(hop); at += size, left -= size) {
		struct host_route route = *found;
		const struct nlattr *inner;

		memcpy(&hop, at, sizeof(hop));
		size = RTNH_ALIGN((size_t)hop.rtnh_len);
		if (hop.rtnh_len < sizeof(hop) || size > left)
			return;
		route.index = (unsigned int)hop.rtnh_ifindex;
		route.onlink = hop.rtnh_flags & RTNH_F_ONLINK;
		for (inner = (const struct nlattr *)(at + sizeof(hop));
		     mnl_attr_ok(inner, (int)(at + hop.rtnh_len - (const char *)inner)); inner = mnl_attr_next(inner))
			if (mnl_attr_get_type(inner) == RTA_GATEWAY || mnl_attr_get_type(inner) == RTA_VIA)
				read_gateway(&route, inner);
		keep_route(reading, &route);
	}
}

static struct prefix prefix_to(const union sockaddr_ip *to, int family, uint8_t length)
{
	union sockaddr_ip address = *to;
	struct in6_addr in6;

	address.sa.sa_family = (sa_family_t)family;
	in6 = sockaddr_ip_in6(&address);
	return prefix_of(&in6, (uint8_t)(length + (family == AF_INET ? HOST_V4_BITS : 0)));
}

static int on_route(const struct nlmsghdr *message, void *arg)
{
	const struct rtmsg *header = mnl_nlmsg_get_payload(message);
	struct host_route found = { .family = header->rtm_family,
				     .table = header->rtm_table,
				     .protocol = header->rtm_protocol,
				     .onlink = header->rtm_flags & RTNH_F_ONLINK };
	const struct nlattr *attr, *hops = NULL;
	struct reading *reading = arg;
	union sockaddr_ip to = { 0 };

	if (message->nlmsg_type != RTM_NEWROUTE || header->rtm_flags & RTM_F_CLONED)
		return MNL_CB_OK;
	mnl_attr_for_each(attr, message, sizeof(*header)) {
		switch (mnl_attr_get_type(attr)) {
		case RTA_DST:
			netlink_read_address(&to, attr, found.family);
			break;
		case RTA_GATEWAY:
		case RTA_VIA:
			read_gateway(&found, attr);
			break;
		case RTA_OIF:
			found.index = netlink_read_u32(attr);
			break;
		case RTA_PRIORITY:
			found.metric = netlink_read_u32(attr);
			break;
		case RTA_TABLE:
			found.table = netlink_read_u32(attr);
			break;
		case RTA_MULTIPATH:
			hops = attr;
			break;
		}
	}
	if (found.protocol != HOST_PROTOCOL_OURS)
		note_table(reading, found.table);
	found.to = prefix_to(&to, found.family, header->rtm_dst_len);
	if (header->rtm_type == RTN_UNICAST && hops)
		keep_hops(reading, &found, hops);
	else if (header->rtm_type == RTN_UNICAST)
		keep_route(reading, &found);
	return reading->error ? MNL_CB_ERROR : MNL_CB_OK;
}

/* --- rules ------------------ */

static int on_rule(const struct nlmsghdr *message, void *arg)
{
	const struct fib_rule_hdr *header = mnl_nlmsg_get_payload(message);
	struct host_rule found = { .table = header->table }, *rule;
	bool whole = header->src_len == (header->family == AF_INET ? 32 : 128) && !header->dst_len && !header->tos &&
		     !(header->flags & FIB_RULE_INVERT), is_exclusion;
	struct reading *reading = arg;
	const struct nlattr *attr;

	if (message->nlmsg_type != RTM_NEWRULE || (header->action != FR_ACT_TO_TBL && header->action != FR_ACT_NOP))
		return MNL_CB_OK;
	mnl_attr_for_each(attr, message, sizeof(*header)) {
		switch (mnl_attr_get_type(attr)) {
		case FRA_SRC:
			netlink_read_address(&found.from, attr, header->family);
			break;
		case FRA_TABLE:
			found.table = netlink_read_u32(attr);
			break;
		case FRA_PRIORITY:
			found.priority = netlink_read_u32(attr);
			break;
		case FRA_PROTOCOL:
			if (mnl_attr_validate(attr, MNL_TYPE_U8) == 0)
				found.protocol = mnl_attr_get_u8(attr);
			break;
		case FRA_SUPPRESS_PREFIXLEN: /* ~0: none */
			found.shortest = (uint8_t)(netlink_read_u32(attr) + 1);
			break;
		case FRA_OIFNAME:
			read_text(found.device, sizeof(found.device), attr);
			whole = false;
			break;
		case FRA_IIFNAME: /* a rule with such a condition doesn't apply to all packets from the address */
		case FRA_FWMARK:
		case FRA_UID_RANGE:
		case FRA_IP_PROTO:
		case FRA_SPORT_RANGE:
		case FRA_DPORT_RANGE:
			whole = false;
			break;
		}
	}
	whole = whole && (!found.shortest || found.protocol == HOST_PROTOCOL_OURS);
	is_exclusion = header->action == FR_ACT_NOP && found.protocol == HOST_PROTOCOL_OURS && found.device[0];
	if (found.protocol != HOST_PROTOCOL_OURS && header->action == FR_ACT_TO_TBL)
		note_table(reading, found.table);
	if (!is_exclusion && (!whole || found.from.sa.sa_family == AF_UNSPEC || header->action != FR_ACT_TO_TBL))
		return reading->error ? MNL_CB_ERROR : MNL_CB_OK;
	rule = grow(&reading->host->rules, &reading->host->rule_count, sizeof(*rule), reading);
	if (rule)
		*rule = found;
	return reading->error ? MNL_CB_ERROR : MNL_CB_OK;
}

/* --- all of it -------------- */

static int read_lists(struct netlink *netlink, struct reading *reading, bool links_only)
{
	int ret = netlink_dump(netlink, RTM_GETLINK, AF_UNSPEC, on_link, reading);

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]) && !links_only; i++) {
		static const struct {
			uint16_t type;
			mnl_cb_t on_message;
		} lists[] = { { RTM_GETADDR, on_address }, { RTM_GETROUTE, on_route }, { RTM_GETRULE, on_rule } };

		for (size_t j = 0; j < sizeof(lists) / sizeof(lists[0]) && ret == 0; j++)
			ret = netlink_dump(netlink, lists[j].type, families[i], lists[j].on_message, reading);
		/* a kernel without IPv6 or without rules lacks the list */
		if (ret == -EAFNOSUPPORT || ret == -EOPNOTSUPP)
			ret = 0;
	}
	return reading->error ? reading->error : ret;
}

/* Reads all lists, or only the links, and again if one has changed meanwhile. @netlink: NULL: open a socket. Returns 0 or -errno. */
static int read_all(struct host *out, struct netlink *netlink, bool links_only)
{
	struct netlink *own = netlink ? NULL : calloc(1, sizeof(*own));
	int ret = netlink ? -EINTR : !own ? -ENOMEM : netlink_open(own, NETLINK_ROUTE);

	memset(out, 0, sizeof(*out));
	if (ret == 0)
		ret = -EINTR;
	for (int i = 0; i < TRIES && ret == -EINTR; i++) {
		struct reading reading = { .host = out };

		ret = read_lists(netlink ? netlink : own, &reading, links_only);
		if (ret < 0)
			host_fini(out);
	}
	if (own)
		netlink_close(own);
	free(own);
	return ret;
}

int host_links_read(struct host *out, struct netlink *netlink)
{
	return read_all(out, netlink, true);
}

int host_read(struct host *out, struct netlink *netlink)
{
	int ret = read_all(out, netlink, false);

	if (ret == 0) {
		host_ways_ask(-1, NULL, out->ways);
		out->endpoints_error = endpoints_read(&out->endpoints);
	}
	return ret;
}
