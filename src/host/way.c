/* SPDX-License-Identifier: BSD-3-Clause */
/* way.c - asks the kernel for the route of a packet: its own lookup, with all rules and tables (RTM_GETROUTE) */
#include "config.h"

#include "host/way.h"

#include "host/nl.h"
#include "host/raw_io.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>

struct question {
	struct nlmsghdr header;
	struct rtmsg message;
	uint8_t attributes[3 * (NLA_HDRLEN + 16)];
};

static void add(struct question *question, uint16_t type, const void *value, size_t len)
{
	struct nlattr attribute = { .nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type };
	uint8_t *end = (uint8_t *)question + question->header.nlmsg_len;

	memcpy(end, &attribute, sizeof(attribute));
	memcpy(end + NLA_HDRLEN, value, len);
	question->header.nlmsg_len += NLA_ALIGN(attribute.nla_len);
}

static void add_address(struct question *question, uint16_t type, const struct in6_addr *address)
{
	const bool v4 = question->message.rtm_family == AF_INET;

	add(question, type, &address->s6_addr[v4 ? 12 : 0], v4 ? 4 : 16);
	*(type == RTA_DST ? &question->message.rtm_dst_len : &question->message.rtm_src_len) = v4 ? 32 : 128;
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
	if (type == RTA_GATEWAY && len == sizeof(struct in_addr)) {
		way->gateway.in.sin_family = AF_INET;
		memcpy(&way->gateway.in.sin_addr, value, len);
	} else if (type == RTA_GATEWAY && len == sizeof(struct in6_addr)) {
		way->gateway.in6.sin6_family = AF_INET6;
		memcpy(&way->gateway.in6.sin6_addr, value, len);
	}
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
	static _Atomic uint32_t sequence; /* so that we skip the answer to an earlier question whose recv() failed */
	const struct in6_addr destination = sockaddr_ip_in6(to);
	struct question question = {
		.header = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)), .nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST,
			    .nlmsg_seq = ++sequence },
		.message = { .rtm_family = sockaddr_ip_is_v4(to) ? AF_INET : AF_INET6, .rtm_flags = RTM_F_LOOKUP_TABLE },
	};
	int own = netlink < 0 ? nl_open(NETLINK_ROUTE) : -1, error;

	*out = (struct host_way){ .error = EIO };
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
