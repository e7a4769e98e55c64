/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * several.c - may an MPTCP connection get a second path?
 *
 * The kernel's path manager (ip-mptcp(8)) opens subflows from endpoints with the flag "subflow" or "fullmesh", and to
 * addresses that the peer announces, if its limit for these isn't 0, as it is by default. An endpoint with the address
 * that the connection has anyway adds nothing, nor does one of the other family.
 *
 * The questions are those of src/common/endpoints.c, by nl.c.
 */
#include "config.h"

#include "networks/several.h"

#include "networks/io.h"
#include "networks/nl.h"

#include <linux/genetlink.h>
#include <linux/mptcp.h>
#include <linux/netlink.h>
#include <string.h>

#define ENDPOINT_USED (MPTCP_PM_ADDR_FLAG_SUBFLOW | MPTCP_PM_ADDR_FLAG_FULLMESH)

struct question {
	struct nlmsghdr header;
	struct genlmsghdr generic;
	struct nlattr attribute; /* with a name behind it, or unused */
	char name[GENL_NAMSIZ];
};

/* What the answers say. */
struct answers {
	struct in6_addr source; /* of the connection that is asked about; IPv4 as v4-mapped */
	bool several;
};

/* All messages of generic netlink have a header of their own in front of their attributes. */
static void read_generic(void *arg, const uint8_t *body, size_t len, nl_attribute_reader *read)
{
	if (len > sizeof(struct genlmsghdr))
		nl_attributes(body + sizeof(struct genlmsghdr), len - sizeof(struct genlmsghdr), read, arg);
}

static void read_family_part(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	if (type == CTRL_ATTR_FAMILY_ID)
		*(uint16_t *)arg = (uint16_t)nl_u32(value, len < 2 ? len : 2);
}

static void read_family(void *arg, const uint8_t *body, size_t len)
{
	read_generic(arg, body, len, read_family_part);
}

static void read_endpoint_part(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct paths_endpoint *endpoint = arg;

	if (type == MPTCP_PM_ADDR_ATTR_FLAGS)
		endpoint->flags = nl_u32(value, len);
	if (type == MPTCP_PM_ADDR_ATTR_ADDR6 && len >= 16)
		memcpy(endpoint->address.s6_addr, value, 16);
	if (type == MPTCP_PM_ADDR_ATTR_ADDR4 && len >= 4) {
		memcpy(endpoint->address.s6_addr, mapped, 12);
		memcpy(endpoint->address.s6_addr + 12, value, 4);
	}
}

/* Who is told of each endpoint. */
struct endpoint_visit {
	paths_endpoint_visitor *visit;
	void *arg;
};

static void read_endpoint_list(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	const struct endpoint_visit *visit = arg;
	struct paths_endpoint endpoint = { .flags = 0 };

	if (type != MPTCP_PM_ATTR_ADDR)
		return;
	nl_attributes(value, len, read_endpoint_part, &endpoint);
	visit->visit(visit->arg, &endpoint);
}

static void read_endpoint(void *arg, const uint8_t *body, size_t len)
{
	read_generic(arg, body, len, read_endpoint_list);
}

static void read_limit_part(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	if (type == MPTCP_PM_ATTR_RCV_ADD_ADDRS)
		*(bool *)arg |= nl_u32(value, len) != 0;
}

static void read_limit(void *arg, const uint8_t *body, size_t len)
{
	read_generic(arg, body, len, read_limit_part);
}

static struct question question_of(uint16_t type, uint16_t flags, uint8_t command)
{
	return (struct question){
		.header = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct genlmsghdr)),
			    .nlmsg_type = type,
			    .nlmsg_flags = NLM_F_REQUEST | flags },
		.generic = { .cmd = command, .version = 1 },
	};
}

/* Returns the number of the path manager's family, 0 if the kernel has none. */
static uint16_t family_ask(int netlink)
{
	struct question question = question_of(GENL_ID_CTRL, NLM_F_ACK, CTRL_CMD_GETFAMILY);
	uint16_t family = 0;

	question.attribute = (struct nlattr){ .nla_len = NLA_HDRLEN + sizeof(MPTCP_PM_NAME),
					      .nla_type = CTRL_ATTR_FAMILY_NAME };
	memcpy(question.name, MPTCP_PM_NAME, sizeof(MPTCP_PM_NAME));
	question.header.nlmsg_len += NLA_ALIGN(question.attribute.nla_len);
	return nl_ask(netlink, &question.header, read_family, &family) ? family : 0;
}

static bool endpoints_ask(int netlink, uint16_t family, paths_endpoint_visitor *visitor, void *arg)
{
	struct question question = question_of(family, NLM_F_DUMP, MPTCP_PM_CMD_GET_ADDR);
	struct endpoint_visit visit = { visitor, arg };

	return nl_ask(netlink, &question.header, read_endpoint, &visit);
}

void paths_endpoints(paths_endpoint_visitor *visitor, void *arg)
{
	int netlink = nl_open(NETLINK_GENERIC);
	uint16_t family = netlink < 0 ? 0 : family_ask(netlink);

	if (family)
		endpoints_ask(netlink, family, visitor, arg);
	if (netlink >= 0)
		io_close(netlink);
}

static void note_endpoint(void *arg, const struct paths_endpoint *endpoint)
{
	struct answers *answers = arg;
	const struct in6_addr *source = &answers->source;

	answers->several |= (endpoint->flags & ENDPOINT_USED) &&
			    IN6_IS_ADDR_V4MAPPED(&endpoint->address) == IN6_IS_ADDR_V4MAPPED(source) &&
			    memcmp(&endpoint->address, source, sizeof(*source)) != 0;
}

static bool ask_all(int netlink, struct answers *answers)
{
	uint16_t family = family_ask(netlink);
	struct question question = question_of(family, NLM_F_ACK, MPTCP_PM_CMD_GET_LIMITS);

	return family && endpoints_ask(netlink, family, note_endpoint, answers) &&
	       nl_ask(netlink, &question.header, read_limit, &answers->several);
}

/* A path manager in user space (mptcpd(8)) may do anything at any time. */
static bool kernel_manages_paths(void)
{
	int fd = io_open("/proc/sys/net/mptcp/pm_type", O_RDONLY | O_CLOEXEC);
	char type = 0;
	bool known;

	if (fd < 0)
		return false;
	known = io_read(fd, &type, 1) == 1;
	io_close(fd);
	return known && type == '0';
}

static bool is_any(const struct in6_addr *address)
{
	return IN6_IS_ADDR_UNSPECIFIED(address) ||
	       (IN6_IS_ADDR_V4MAPPED(address) && memcmp(address->s6_addr + 12, "\0\0\0", 4) == 0);
}

/* Finds the address that the connection will come from: the one that the socket is bound to, or what the routes say. */
static bool source_of(int fd, const union sockaddr_ip *to, struct in6_addr *source)
{
	union sockaddr_ip own, plain;
	socklen_t len = sizeof(own);
	struct in6_addr in6 = sockaddr_ip_in6(to);
	int family = sockaddr_ip_is_v4(to) ? AF_INET : AF_INET6, probe;
	bool known;

	if (io_getsockname(fd, &own.sa, &len) != 0)
		return false;
	*source = sockaddr_ip_in6(&own);
	if (!is_any(source))
		return true;
	if (io_get_int(fd, SOL_SOCKET, SO_BINDTOIFINDEX, 1) || io_get_int(fd, SOL_SOCKET, SO_MARK, 1))
		return false; /* routes of its own */
	plain = *to;
	if (to->sa.sa_family != family && !sockaddr_ip_set(&plain, family, &in6, sockaddr_ip_port(to)))
		return false;
	probe = io_socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (probe < 0)
		return false;
	len = sizeof(own);
	/* On a datagram socket connect() looks up the route, and sends nothing. */
	known = io_connect(probe, &plain.sa, sockaddr_ip_len(&plain)) == 0 &&
		io_getsockname(probe, &own.sa, &len) == 0;
	io_close(probe);
	*source = sockaddr_ip_in6(&own);
	return known;
}

bool paths_may_be_several(int fd, const union sockaddr_ip *to)
{
	struct answers answers = { .several = false };
	bool known;
	int netlink;

	if (!source_of(fd, to, &answers.source) || !kernel_manages_paths())
		return true;
	netlink = nl_open(NETLINK_GENERIC);
	if (netlink < 0)
		return true;
	known = ask_all(netlink, &answers);
	io_close(netlink);
	return !known || answers.several;
}
