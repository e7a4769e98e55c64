/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths.c - may an MPTCP connection get a second path?
 *
 * The kernel's path manager (ip-mptcp(8)) opens subflows from endpoints with the flag "subflow" or "fullmesh", and to
 * addresses that the peer announces, if its limit for these isn't 0, as it is by default. An endpoint with the address
 * that the connection has anyway adds nothing, nor does one of the other family.
 *
 * The questions are those of src/common/endpoints.c, in the few lines that can run in a hook: no library, no
 * allocation, little stack.
 */
#include "config.h"

#include "shim/socket/paths.h"

#include "shim/system/next.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/mptcp.h>
#include <linux/netlink.h>
#include <string.h>
#include <unistd.h>

/* Larger than what the kernel puts into one message of a dump unless it is asked for more (NLMSG_GOODSIZE). */
#define ANSWER_MAX 4096
#define ENDPOINT_USED (MPTCP_PM_ADDR_FLAG_SUBFLOW | MPTCP_PM_ADDR_FLAG_FULLMESH)

struct question {
	struct nlmsghdr header;
	struct genlmsghdr generic;
	struct nlattr attribute; /* with a name behind it, or unused */
	char name[GENL_NAMSIZ];
};

/* What the answers say; the last one sets @done. */
struct answers {
	struct in6_addr source; /* of the connection that is asked about; IPv4 as v4-mapped */
	uint16_t family;        /* of the path manager, for further questions; 0: not known */
	bool several;
	bool done;
	bool failed;
};

typedef void attribute_reader(struct answers *answers, uint16_t type, const uint8_t *value,
			      size_t len);

/* Calls @read for each attribute in the @len bytes at @list. */
static void read_attributes(struct answers *answers, const uint8_t *list, size_t len,
			    attribute_reader *read)
{
	struct nlattr attribute;

	while (len >= sizeof(attribute)) {
		size_t step;

		memcpy(&attribute, list, sizeof(attribute));
		if (attribute.nla_len < sizeof(attribute) || attribute.nla_len > len)
			break;
		read(answers, attribute.nla_type & NLA_TYPE_MASK, list + sizeof(attribute),
		     attribute.nla_len - sizeof(attribute));
		step = NLA_ALIGN(attribute.nla_len);
		if (step >= len)
			break;
		list += step;
		len -= step;
	}
}

static uint32_t read_u32(const uint8_t *value, size_t len)
{
	uint32_t number = 0;

	memcpy(&number, value, len < sizeof(number) ? len : sizeof(number));
	return number;
}

static void read_family(struct answers *answers, uint16_t type, const uint8_t *value, size_t len)
{
	if (type == CTRL_ATTR_FAMILY_ID)
		answers->family = (uint16_t)read_u32(value, len < 2 ? len : 2);
}

/* An endpoint, whose attributes are read one after the other. */
struct endpoint_answers {
	struct answers answers; /* first: it is what readers are given */
	struct in6_addr address;
	uint32_t flags;
};

static void read_endpoint_part(struct answers *answers, uint16_t type, const uint8_t *value,
			       size_t len)
{
	struct endpoint_answers *endpoint = (struct endpoint_answers *)answers;
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (type == MPTCP_PM_ADDR_ATTR_FLAGS)
		endpoint->flags = read_u32(value, len);
	if (type == MPTCP_PM_ADDR_ATTR_ADDR6 && len >= 16)
		memcpy(endpoint->address.s6_addr, value, 16);
	if (type == MPTCP_PM_ADDR_ATTR_ADDR4 && len >= 4) {
		memcpy(endpoint->address.s6_addr, mapped, 12);
		memcpy(endpoint->address.s6_addr + 12, value, 4);
	}
}

static void read_endpoint(struct answers *answers, uint16_t type, const uint8_t *value, size_t len)
{
	struct endpoint_answers endpoint = { .flags = 0 };
	const struct in6_addr *source = &answers->source;

	if (type != MPTCP_PM_ATTR_ADDR)
		return;
	read_attributes(&endpoint.answers, value, len, read_endpoint_part);
	answers->several |= (endpoint.flags & ENDPOINT_USED) &&
			    IN6_IS_ADDR_V4MAPPED(&endpoint.address) == IN6_IS_ADDR_V4MAPPED(source) &&
			    memcmp(&endpoint.address, source, sizeof(*source)) != 0;
}

static void read_limit(struct answers *answers, uint16_t type, const uint8_t *value, size_t len)
{
	if (type == MPTCP_PM_ATTR_RCV_ADD_ADDRS)
		answers->several |= read_u32(value, len) != 0;
}

static void read_messages(struct answers *answers, const uint8_t *bytes, size_t len,
			  attribute_reader *read)
{
	struct nlmsghdr header;

	for (; len >= sizeof(header); bytes += NLMSG_ALIGN(header.nlmsg_len),
				      len -= NLMSG_ALIGN(header.nlmsg_len)) {
		size_t body = NLMSG_LENGTH(sizeof(struct genlmsghdr));

		memcpy(&header, bytes, sizeof(header));
		if (header.nlmsg_len < sizeof(header) || NLMSG_ALIGN(header.nlmsg_len) > len) {
			answers->failed = true;
			return;
		}
		if (header.nlmsg_type == NLMSG_ERROR || header.nlmsg_type == NLMSG_DONE) {
			/* Both begin with an error number, which is 0 in an acknowledgement. */
			answers->failed |= header.nlmsg_len < NLMSG_LENGTH(4) ||
					   read_u32(bytes + NLMSG_HDRLEN, 4) != 0;
			answers->done = true;
		} else if (header.nlmsg_len > body) {
			read_attributes(answers, bytes + body, header.nlmsg_len - body, read);
		}
	}
}

/* Asks the kernel, and calls @read for each answer. Returns false if the kernel can't be asked. */
static bool ask(int netlink, struct question *question, struct answers *answers,
		attribute_reader *read)
{
	uint8_t answer[ANSWER_MAX];

	answers->done = answers->failed = false;
	if (next.send(netlink, question, question->header.nlmsg_len, 0) < 0)
		return false;
	/* The kernel writes its answer within send(), and goes on with a dump within recv(), so that neither waits. */
	while (!answers->done && !answers->failed) {
		ssize_t len = next.recv(netlink, answer, sizeof(answer), MSG_DONTWAIT | MSG_TRUNC);

		if (len <= 0 || (size_t)len > sizeof(answer))
			return false;
		read_messages(answers, answer, (size_t)len, read);
	}
	return !answers->failed;
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

static bool ask_all(int netlink, struct answers *answers)
{
	struct question question = question_of(GENL_ID_CTRL, NLM_F_ACK, CTRL_CMD_GETFAMILY);

	question.attribute = (struct nlattr){ .nla_len = NLA_HDRLEN + sizeof(MPTCP_PM_NAME),
					      .nla_type = CTRL_ATTR_FAMILY_NAME };
	memcpy(question.name, MPTCP_PM_NAME, sizeof(MPTCP_PM_NAME));
	question.header.nlmsg_len += NLA_ALIGN(question.attribute.nla_len);
	if (!ask(netlink, &question, answers, read_family) || !answers->family)
		return false;
	question = question_of(answers->family, NLM_F_DUMP, MPTCP_PM_CMD_GET_ADDR);
	if (!ask(netlink, &question, answers, read_endpoint))
		return false;
	question = question_of(answers->family, NLM_F_ACK, MPTCP_PM_CMD_GET_LIMITS);
	return ask(netlink, &question, answers, read_limit);
}

/* A path manager in user space (mptcpd(8)) may do anything at any time. */
static bool kernel_manages_paths(void)
{
	int fd = open("/proc/sys/net/mptcp/pm_type", O_RDONLY | O_CLOEXEC);
	char type = 0;
	bool known;

	if (fd < 0)
		return false;
	known = next.read(fd, &type, 1) == 1;
	next_close_now(fd);
	return known && type == '0';
}

static bool option_is_set(int fd, int name)
{
	socklen_t len = sizeof(int);
	int value = 0;

	return next.getsockopt(fd, SOL_SOCKET, name, &value, &len) != 0 || value != 0;
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

	if (next.getsockname(fd, &own.sa, &len) != 0)
		return false;
	*source = sockaddr_ip_in6(&own);
	if (!is_any(source))
		return true;
	if (option_is_set(fd, SO_BINDTOIFINDEX) || option_is_set(fd, SO_MARK))
		return false; /* routes of its own */
	plain = *to;
	if (to->sa.sa_family != family && !sockaddr_ip_set(&plain, family, &in6, sockaddr_ip_port(to)))
		return false;
	probe = next_socket_now(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (probe < 0)
		return false;
	len = sizeof(own);
	/* On a datagram socket connect() looks up the route, and sends nothing. */
	known = next.connect(probe, &plain.sa, sockaddr_ip_len(&plain)) == 0 &&
		next.getsockname(probe, &own.sa, &len) == 0;
	next_close_now(probe);
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
	netlink = next_socket_now(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (netlink < 0)
		return true;
	known = ask_all(netlink, &answers);
	next_close_now(netlink);
	return !known || answers.several;
}
