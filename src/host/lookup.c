/* SPDX-License-Identifier: BSD-3-Clause */
/* lookup.c - asks the kernel for the route of a packet, devices, addresses, the service's rules, and MPTCP's endpoints */
#include "config.h"

#include "host/lookup.h"

#include "host/raw_io.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/genetlink.h>
#include <linux/if_addr.h>
#include <linux/mptcp.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>

/* --- questions --- */

struct question {
	struct nlmsghdr header;
	union {
		struct rtmsg route;
		struct ifinfomsg link;
		struct genlmsghdr generic;
	};
	uint8_t attributes[3 * (NLA_HDRLEN + 16)];
};

/* @size: bytes of the family's own header, behind which add() puts attributes */
static struct question question_of(uint16_t type, uint16_t flags, size_t size)
{
	return (struct question){
		.header = { .nlmsg_len = (uint32_t)NLMSG_LENGTH(size), .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags },
	};
}

static void add(struct question *question, uint16_t type, const void *value, size_t len)
{
	struct nlattr attribute = { .nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type };
	uint8_t *end = (uint8_t *)question + question->header.nlmsg_len;

	memcpy(end, &attribute, sizeof(attribute));
	memcpy(end + NLA_HDRLEN, value, len);
	question->header.nlmsg_len += NLA_ALIGN(attribute.nla_len);
}

/* --- routes --- */

static void add_address(struct question *question, uint16_t type, const struct in6_addr *address)
{
	const bool v4 = question->route.rtm_family == AF_INET;

	add(question, type, &address->s6_addr[v4 ? 12 : 0], v4 ? 4 : 16);
	*(type == RTA_DST ? &question->route.rtm_dst_len : &question->route.rtm_src_len) = v4 ? 32 : 128;
}

/* Reads an address of either family, by its length. Leaves the port as it is. Returns false for another length. */
static bool read_ip(union sockaddr_ip *out, const uint8_t *value, size_t len)
{
	if (len != sizeof(out->in.sin_addr) && len != sizeof(out->in6.sin6_addr))
		return false;
	out->sa.sa_family = len == sizeof(out->in.sin_addr) ? AF_INET : AF_INET6;
	memcpy(out->sa.sa_family == AF_INET ? (void *)&out->in.sin_addr : (void *)&out->in6.sin6_addr, value, len);
	return true;
}

static void read_part(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	struct host_way *way = arg;

	if (type == RTA_OIF)
		way->index = nl_u32(value, len);
	if (type == RTA_TABLE)
		way->table = nl_u32(value, len);
	if (type == RTA_PREFSRC)
		way->has_source = true;
	if (type == RTA_GATEWAY)
		read_ip(&way->gateway, value, len);
}

static void read_way(void *arg, uint16_t type, const uint8_t *body, size_t len)
{
	struct host_way *way = arg;
	struct rtmsg message;

	if (type != RTM_NEWROUTE || len < sizeof(message))
		return;
	memcpy(&message, body, sizeof(message));
	way->type = message.rtm_type;
	way->table = message.rtm_table;
	nl_attributes(body, len, sizeof(message), read_part, way);
	way->error = 0;
}

void host_way_ask(int netlink, const union sockaddr_ip *to, const struct in6_addr *from, unsigned int index, struct host_way *out)
{
	static _Atomic uint32_t sequence; /* so that we skip a late answer to an earlier question, whose recv() failed */
	const struct in6_addr destination = sockaddr_ip_in6(to);
	struct question question = question_of(RTM_GETROUTE, 0, sizeof(question.route));
	int own = netlink < 0 ? nl_open(NETLINK_ROUTE) : -1, error;

	*out = (struct host_way){ .error = EIO };
	question.header.nlmsg_seq = ++sequence;
	question.route.rtm_family = sockaddr_ip_is_v4(to) ? AF_INET : AF_INET6;
	question.route.rtm_flags = RTM_F_LOOKUP_TABLE;
	add_address(&question, RTA_DST, &destination);
	if (from && !IN6_IS_ADDR_UNSPECIFIED(from))
		add_address(&question, RTA_SRC, from);
	if (index)
		add(&question, RTA_OIF, &index, sizeof(index));
	error = netlink < 0 && own < 0 ? -errno : nl_ask_briefly(netlink < 0 ? own : netlink, &question.header, read_way, out);
	if (error)
		out->error = -error;
	if (own >= 0)
		raw_close(own);
	/* ip_route_output_key_hash_rcu(): "Apparently, routing tables are wrong. Assume …" */
	out->assumed = !out->error && index && out->table == RT_TABLE_UNSPEC;
	if (out->gateway.sa.sa_family != AF_UNSPEC && sockaddr_ip_is_v4(&out->gateway) != sockaddr_ip_is_v4(to))
		out->gateway = (union sockaddr_ip){ .sa.sa_family = AF_UNSPEC };
}

bool host_way_leads(const struct host_way *way, unsigned int index)
{
	return !way->error && way->type == RTN_UNICAST && way->index == index && !way->assumed;
}

union sockaddr_ip host_way_anywhere(int family)
{
	union sockaddr_ip address = { 0 };

	/* AS112's addresses, whose servers answer DNS queries about private addresses: RFC 7534 */
	sockaddr_ip_set(&address, family,
			family == AF_INET ? &(struct in6_addr){ .s6_addr = { [10] = 0xff, 0xff, 192, 175, 48, 1 } } :
					    &(struct in6_addr){ .s6_addr = { 0x26, 0x20, 0x00, 0x4f, 0x80, [15] = 1 } }, 0);
	return address;
}

void host_ways_ask(int netlink, const union sockaddr_ip *converter, unsigned int ways[static HOST_WAY_COUNT])
{
	const union sockaddr_ip v4 = host_way_anywhere(AF_INET), v6 = host_way_anywhere(AF_INET6);
	const union sockaddr_ip *const to[] = { [HOST_WAY_V4] = &v4, [HOST_WAY_V6] = &v6, [HOST_WAY_CONVERTER] = converter };

	for (int i = 0; i < HOST_WAY_COUNT; i++) {
		struct host_way way = { .error = EHOSTUNREACH };

		if (to[i])
			host_way_ask(netlink, to[i], NULL, 0, &way);
		ways[i] = !way.error && way.type == RTN_UNICAST ? way.index : 0;
	}
}

/* --- links --- */

static void read_kind(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	struct host_link *link = arg;

	if (type == IFLA_INFO_KIND && len < sizeof(link->kind))
		memcpy(link->kind, value, len);
}

static void read_link_part(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	struct host_link *link = arg;

	if (type == IFLA_LINKINFO)
		nl_attributes(value, len, 0, read_kind, link);
	if (type == IFLA_IFNAME && len <= sizeof(link->name))
		memcpy(link->name, value, len);
	if (type == IFLA_MASTER)
		link->master = nl_u32(value, len);
}

static void read_link(void *arg, uint16_t type, const uint8_t *body, size_t len)
{
	struct host_link *link = arg;
	struct ifinfomsg message;

	if (type != RTM_NEWLINK || len < sizeof(message))
		return;
	memcpy(&message, body, sizeof(message));
	link->carrier = message.ifi_flags & IFF_RUNNING;
	nl_attributes(body, len, sizeof(message), read_link_part, link);
}

struct host_link host_link_ask(int netlink, unsigned int index)
{
	struct question question = question_of(RTM_GETLINK, NLM_F_ACK, sizeof(question.link));
	struct host_link link = { .index = index };

	question.link.ifi_index = (int)index;
	nl_ask(netlink, &question.header, read_link, &link);
	return link;
}

bool host_device_name(int fd, unsigned int index, char name[static IF_NAMESIZE])
{
	struct ifreq request = { .ifr_ifindex = (int)index };
	const bool there = raw_ioctl(fd, SIOCGIFNAME, &request) == 0;

	memcpy(name, request.ifr_name, IF_NAMESIZE);
	name[there ? IF_NAMESIZE - 1 : 0] = '\0';
	return there;
}

/* A caller's function for each element of a list. */
struct visit {
	address_visitor *address;
	service_rule_visitor *rule;
	endpoint_visitor *endpoint;
	void *arg;
};

/* Asks for a whole list of @type. The header of addresses is shorter than that of routes and rules; the kernel looks at the family alone. */
static int ask_list(int netlink, uint16_t type, int family, nl_reader *read, struct visit *visit)
{
	struct question question = question_of(type, NLM_F_DUMP, sizeof(question.route));

	question.route.rtm_family = (uint8_t)family;
	return nl_ask(netlink, &question.header, read, visit);
}

/* --- addresses --- */

struct address_parts {
	struct local_address found;
	bool is_local; /* the address is IFA_LOCAL's: on a point-to-point link IFA_ADDRESS is the peer's */
	bool known;
};

static void read_address_part(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	struct address_parts *parts = arg;
	union sockaddr_ip address = { 0 };

	if (type == IFA_FLAGS)
		parts->found.flags = nl_u32(value, len);
	if ((type != IFA_LOCAL && type != IFA_ADDRESS) || parts->is_local || !read_ip(&address, value, len))
		return;
	parts->found.address = sockaddr_ip_in6(&address);
	parts->is_local = type == IFA_LOCAL;
	parts->known = true;
}

static void read_address(void *arg, uint16_t type, const uint8_t *body, size_t len)
{
	const struct visit *visit = arg;
	struct address_parts parts = { .known = false };
	struct ifaddrmsg message;

	if (type != RTM_NEWADDR || len < sizeof(message))
		return;
	memcpy(&message, body, sizeof(message));
	parts.found = (struct local_address){ .device = (int)message.ifa_index, .flags = message.ifa_flags, .scope = message.ifa_scope };
	nl_attributes(body, len, sizeof(message), read_address_part, &parts);
	if (parts.known)
		visit->address(visit->arg, &parts.found);
}

int addresses_visit(int netlink, int family, address_visitor *visitor, void *arg)
{
	struct visit visit = { .address = visitor, .arg = arg };

	return ask_list(netlink, RTM_GETADDR, family, read_address, &visit);
}

/* --- the path service's rules --- */

struct rule_parts {
	struct service_rule found;
	uint8_t protocol;
};

static void read_rule_part(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	struct rule_parts *parts = arg;
	union sockaddr_ip address = { 0 };

	if (type == FRA_PROTOCOL && len)
		parts->protocol = *value;
	if (type == FRA_PRIORITY)
		parts->found.priority = nl_u32(value, len);
	if (type == FRA_OIFNAME && len <= sizeof(parts->found.device))
		memcpy(parts->found.device, value, len);
	if (type == FRA_SRC && read_ip(&address, value, len))
		parts->found.from = sockaddr_ip_in6(&address);
}

static void read_rule(void *arg, uint16_t type, const uint8_t *body, size_t len)
{
	const struct visit *visit = arg;
	struct rule_parts parts = { .protocol = 0 };

	if (type != RTM_NEWRULE)
		return;
	nl_attributes(body, len, sizeof(struct fib_rule_hdr), read_rule_part, &parts);
	parts.found.device[sizeof(parts.found.device) - 1] = '\0';
	if (parts.protocol == HOST_PROTOCOL_OURS)
		visit->rule(visit->arg, &parts.found);
}

int service_rules_visit(int netlink, int family, service_rule_visitor *visitor, void *arg)
{
	struct visit visit = { .rule = visitor, .arg = arg };
	const int ret = ask_list(netlink, RTM_GETRULE, family, read_rule, &visit);

	return ret == -EOPNOTSUPP || ret == -EAFNOSUPPORT ? 0 : ret; /* a kernel without rules */
}

/* --- endpoints --- */

static struct question generic_question_of(int family, uint16_t flags, uint8_t command)
{
	struct question question = question_of((uint16_t)family, flags, sizeof(question.generic));

	question.generic = (struct genlmsghdr){ .cmd = command, .version = 1 };
	return question;
}

static void read_family_part(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	if (type == CTRL_ATTR_FAMILY_ID)
		*(uint16_t *)arg = (uint16_t)nl_u32(value, len < 2 ? len : 2);
}

static void read_family(void *arg, uint16_t type, const uint8_t *body, size_t len)
{
	(void)type;
	nl_attributes(body, len, sizeof(struct genlmsghdr), read_family_part, arg);
}

int endpoints_family(int netlink)
{
	struct question question = generic_question_of(GENL_ID_CTRL, NLM_F_ACK, CTRL_CMD_GETFAMILY);
	uint16_t family = 0;
	int ret;

	add(&question, CTRL_ATTR_FAMILY_NAME, MPTCP_PM_NAME, sizeof(MPTCP_PM_NAME));
	ret = nl_ask(netlink, &question.header, read_family, &family);
	return ret < 0 ? ret : family;
}

static void read_endpoint_part(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	struct mptcp_endpoint *endpoint = arg;

	switch (type) {
	case MPTCP_PM_ADDR_ATTR_ADDR4:
	case MPTCP_PM_ADDR_ATTR_ADDR6:
		read_ip(&endpoint->address, value, len);
		break;
	case MPTCP_PM_ADDR_ATTR_PORT: /* in host byte order; both families have the port in the same place */
		endpoint->address.in.sin_port = htons((uint16_t)nl_u32(value, len < 2 ? len : 2));
		break;
	case MPTCP_PM_ADDR_ATTR_ID:
		endpoint->id = (uint8_t)nl_u32(value, len < 1 ? len : 1);
		break;
	case MPTCP_PM_ADDR_ATTR_IF_IDX:
		endpoint->bound = nl_u32(value, len);
		break;
	case MPTCP_PM_ADDR_ATTR_FLAGS:
		endpoint->flags = nl_u32(value, len);
		break;
	}
}

static void read_list_part(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	const struct visit *visit = arg;
	struct mptcp_endpoint endpoint = { .id = 0 };

	if (type != MPTCP_PM_ATTR_ADDR)
		return;
	nl_attributes(value, len, 0, read_endpoint_part, &endpoint);
	if (endpoint.address.sa.sa_family != AF_UNSPEC)
		visit->endpoint(visit->arg, &endpoint);
}

static void read_list(void *arg, uint16_t type, const uint8_t *body, size_t len)
{
	(void)type;
	nl_attributes(body, len, sizeof(struct genlmsghdr), read_list_part, arg);
}

static void read_limits_part(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	struct mptcp_limits *limits = arg;

	if (type == MPTCP_PM_ATTR_SUBFLOWS)
		limits->subflows = nl_u32(value, len);
	if (type == MPTCP_PM_ATTR_RCV_ADD_ADDRS)
		limits->accepted = nl_u32(value, len);
}

static void read_limits(void *arg, uint16_t type, const uint8_t *body, size_t len)
{
	(void)type;
	nl_attributes(body, len, sizeof(struct genlmsghdr), read_limits_part, arg);
}

static int ask_all(int netlink, struct visit *visit, struct mptcp_limits *limits)
{
	const int family = endpoints_family(netlink);
	struct question list = generic_question_of(family, NLM_F_DUMP, MPTCP_PM_CMD_GET_ADDR);
	struct question limit = generic_question_of(family, NLM_F_ACK, MPTCP_PM_CMD_GET_LIMITS);
	int ret = family < 0 ? family : nl_ask(netlink, &list.header, read_list, visit);

	return ret < 0 || !limits ? ret : nl_ask(netlink, &limit.header, read_limits, limits);
}

int endpoints_visit(endpoint_visitor *visitor, void *arg, struct mptcp_limits *limits)
{
	struct visit visit = { .endpoint = visitor, .arg = arg };
	int netlink = nl_open(NETLINK_GENERIC), ret;

	if (netlink < 0)
		return -errno;
	ret = ask_all(netlink, &visit, limits);
	raw_close(netlink);
	return ret;
}

static void endpoint_add(void *arg, const struct mptcp_endpoint *endpoint)
{
	struct endpoints *out = arg;

	if (out->count < ENDPOINTS_MAX)
		out->endpoint[out->count++] = *endpoint;
}

int endpoints_read(struct endpoints *out)
{
	struct mptcp_limits limits = { 0 };
	int ret;

	memset(out, 0, sizeof(*out));
	ret = endpoints_visit(endpoint_add, out, &limits);
	out->subflow_limit = limits.subflows;
	return ret;
}
