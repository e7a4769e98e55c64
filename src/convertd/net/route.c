/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route.c - asks the kernel where an address leads
 *
 * Only the routing tables know which addresses are this host's own: besides the addresses of
 * interfaces there are the broadcast and anycast addresses of their networks, and whole prefixes of
 * "local" routes. A copy of all that would be out of date whenever something changes. So the kernel
 * is asked before each connect(): it makes the same lookup in the same tables, some microseconds
 * earlier, and only a route that changes within that time is missed. Its answer is remembered until it may have
 * changed (route_memory.c).
 *
 * The answer to a request is in our queue when send() returns (rtnetlink answers in the caller's
 * context), so no call here ever waits.
 */
#include "config.h"

#include "convertd/net/route.h"

#include "common/clock.h"
#include "convertd/net/route_memory.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* In bytes. An answer has some 160; longer ones are cut, behind the part that is looked at. */
#define ANSWER_MAX 4096

struct route {
	int fd;
	uint32_t sequence;
	struct route_memory *memory; /* NULL: the kernel doesn't tell of changes, and is asked each time */
};

struct question {
	struct nlmsghdr header;
	struct rtmsg route;
	struct rtattr attribute;
	uint8_t address[sizeof(struct in6_addr)];
};

struct route *route_create(void)
{
	static const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct route *route = calloc(1, sizeof(*route));
	int error;

	if (!route)
		return NULL;
	route->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	/* A connected netlink socket takes messages from the kernel alone. */
	if (route->fd >= 0 &&
	    connect(route->fd, (const struct sockaddr *)&kernel, sizeof(kernel)) == 0) {
		route->memory = route_memory_create();
		return route;
	}
	error = errno;
	route_destroy(route);
	errno = error;
	return NULL;
}

void route_destroy(struct route *route)
{
	if (!route)
		return;
	route_memory_destroy(route->memory);
	if (route->fd >= 0)
		close(route->fd);
	free(route);
}

static void question_init(struct question *question, uint32_t sequence,
			  const struct in6_addr *address)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(address);
	uint8_t size = v4 ? 4 : 16;

	memset(question, 0, sizeof(*question));
	question->header.nlmsg_type = RTM_GETROUTE;
	question->header.nlmsg_flags = NLM_F_REQUEST;
	question->header.nlmsg_seq = sequence;
	question->header.nlmsg_len =
		(uint32_t)(offsetof(struct question, address) + NLMSG_ALIGN(size));
	question->route.rtm_family = v4 ? AF_INET : AF_INET6;
	question->route.rtm_dst_len = (uint8_t)(size * 8);
	question->attribute.rta_type = RTA_DST;
	question->attribute.rta_len = (unsigned short)RTA_LENGTH(size);
	memcpy(question->address, &address->s6_addr[16 - size], size);
}

/* Translates the kernel's answer, an RTM_NEWROUTE or an error. */
static enum route_kind read_answer(const struct nlmsghdr *header)
{
	if (header->nlmsg_type == NLMSG_ERROR) {
		switch (-((const struct nlmsgerr *)NLMSG_DATA(header))->error) {
		case ENETUNREACH:  /* no route, a throw route */
		case EHOSTUNREACH: /* an unreachable route */
		case EACCES:       /* a prohibit route */
		case EINVAL:       /* a blackhole */
			return ROUTE_ELSEWHERE;
		default:
			return ROUTE_UNKNOWN;
		}
	}
	if (header->nlmsg_type != RTM_NEWROUTE)
		return ROUTE_UNKNOWN;
	switch (((const struct rtmsg *)NLMSG_DATA(header))->rtm_type) {
	case RTN_LOCAL:
	case RTN_ANYCAST:
		return ROUTE_OWN;
	case RTN_BROADCAST:
	case RTN_MULTICAST:
		return ROUTE_BROADCAST;
	default:
		return ROUTE_ELSEWHERE;
	}
}

/* Asks the kernel for the route to @address. Returns the number of bytes in @answer, or 0 without an answer. */
static size_t ask(struct route *route, const struct in6_addr *address, char answer[static ANSWER_MAX])
{
	const struct nlmsghdr *header = (const struct nlmsghdr *)answer;
	struct question question;

	question_init(&question, ++route->sequence, address);
	if (send(route->fd, &question, question.header.nlmsg_len, 0) < 0)
		return 0;
	for (;;) {
		ssize_t n = recv(route->fd, answer, ANSWER_MAX, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < (ssize_t)(NLMSG_HDRLEN + sizeof(struct rtmsg)))
			return 0;
		/* The answer to an earlier question, whose recv() failed, is skipped. */
		if (header->nlmsg_seq == route->sequence)
			return (size_t)n;
	}
}

static enum route_kind ask_kind(struct route *route, const struct in6_addr *address)
{
	char answer[ANSWER_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));

	return ask(route, address, answer) ? read_answer((const struct nlmsghdr *)answer) :
					     ROUTE_UNKNOWN;
}

enum route_kind route_find(struct route *route, const struct in6_addr *address)
{
	uint64_t now_ms = clock_now_ms();
	enum route_kind kind;

	if (route->memory && route_memory_find(route->memory, address, now_ms, &kind))
		return kind;
	kind = ask_kind(route, address);
	if (route->memory && kind != ROUTE_UNKNOWN)
		route_memory_note(route->memory, address, now_ms, kind);
	return kind;
}

/* Finds an attribute in an answer of @got bytes. Returns NULL where there is none, or no route. */
static const struct rtattr *find_attribute(const struct nlmsghdr *header, size_t got, unsigned short type)
{
	const struct rtattr *attribute;
	int left;

	if (!got || got < header->nlmsg_len || header->nlmsg_type != RTM_NEWROUTE)
		return NULL;
	attribute = RTM_RTA(NLMSG_DATA(header));
	left = (int)RTM_PAYLOAD(header);
	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left))
		if (attribute->rta_type == type)
			return attribute;
	return NULL;
}

bool route_gateway(struct route *route, const struct in6_addr *address, struct in6_addr *gateway)
{
	char answer[ANSWER_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
	size_t got = ask(route, address, answer);
	const struct rtattr *attribute = find_attribute((const struct nlmsghdr *)answer, got, RTA_GATEWAY);

	if (!attribute)
		return false;
	memset(gateway, 0, sizeof(*gateway));
	if (RTA_PAYLOAD(attribute) == sizeof(*gateway)) {
		memcpy(gateway, RTA_DATA(attribute), sizeof(*gateway));
		return true;
	}
	gateway->s6_addr[10] = gateway->s6_addr[11] = 0xff;
	memcpy(&gateway->s6_addr[12], RTA_DATA(attribute), 4);
	return RTA_PAYLOAD(attribute) == 4;
}

bool route_has_source(struct route *route, const struct in6_addr *address)
{
	char answer[ANSWER_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
	size_t got = ask(route, address, answer);

	return find_attribute((const struct nlmsghdr *)answer, got, RTA_PREFSRC);
}
