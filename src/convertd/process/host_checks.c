/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host_checks.c - watches the kernel's routes: tells families.c which address families lead out of this host
 *
 * convertd asks before it connects to a server of a family, so that a client learns at once that it can't (families.c).
 *
 * A route leads out if it is the default, or has a next hop. It may be in any table: connect() finds out for each
 * destination whether policy rules lead to that table. The kernel's dump is read only up to the first route that leads
 * out, so that it is short on routers with a million of them.
 *
 * There may be many changes a second. The first one starts a timer of SETTLE_SECONDS, and until it fires no message is
 * read; then all are thrown away at once and the routes are asked for. A receive queue that overflows meanwhile does no
 * harm.
 */
#include "config.h"

#include "convertd/process/host_checks.h"

#include "common/clock.h"
#include "daemon/log.h"
#include "convertd/config/settings.h"
#include "convertd/policy/families.h"
#include "serve/listening.h"

#include <errno.h>
#include <event2/event.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SETTLE_SECONDS 1

/* The kernel puts at most this many bytes into one message of a dump, unless it is offered a larger buffer. */
#define ANSWER_MAX 32768

struct family_routes {
	const struct settings *settings; /* the settings in force; NULL: none yet */
	int changes, questions; /* netlink sockets: one receives changes, one asks for dumps; -1: routes aren't known */
	uint32_t sequence;
	struct event *readable, *settled;
	char answer[ANSWER_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
};

/* Opens a netlink socket that receives changes in @groups (rtnetlink(7)). Returns -1 with errno set. */
static int open_socket(uint32_t groups)
{
	const struct sockaddr_nl own = { .nl_family = AF_NETLINK, .nl_groups = groups };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&own, sizeof(own)) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool leads_out(const struct nlmsghdr *header)
{
	const struct rtmsg *route = NLMSG_DATA(header);
	const struct rtattr *attribute = RTM_RTA(route);
	int left = (int)RTM_PAYLOAD(header);

	if (header->nlmsg_type != RTM_NEWROUTE || route->rtm_type != RTN_UNICAST)
		return false;
	if (route->rtm_dst_len == 0)
		return true;
	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left))
		if (attribute->rta_type == RTA_GATEWAY || attribute->rta_type == RTA_VIA ||
		    attribute->rta_type == RTA_MULTIPATH || attribute->rta_type == RTA_NH_ID)
			return true;
	return false;
}

/*
 * Looks at one part of the dump. Returns 1 if it has a route that leads out (or the kernel reports an error), 0 if the
 * dump ends without any, -EAGAIN if more is to come.
 */
static int read_part(struct family_routes *routes, ssize_t len)
{
	const struct nlmsghdr *header = (const struct nlmsghdr *)routes->answer;
	unsigned left = (unsigned)len;

	for (; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
		if (header->nlmsg_seq != routes->sequence)
			continue;
		if (header->nlmsg_type == NLMSG_DONE)
			return 0;
		if (header->nlmsg_type == NLMSG_ERROR)
			return 1;
		if (leads_out(header))
			return 1;
	}
	return -EAGAIN;
}

/* Replaces the socket of a dump that wasn't read to its end: on the same socket no other could begin. */
static bool renew(struct family_routes *routes)
{
	close(routes->questions);
	routes->questions = open_socket(0);
	return routes->questions >= 0;
}

/*
 * Tells whether a route of @family (AF_INET, AF_INET6) leads beyond the networks of this host's interfaces. Returns true as
 * well where the kernel can't be asked.
 */
static bool has_route(struct family_routes *routes, int family)
{
	struct {
		struct nlmsghdr header;
		struct rtmsg route;
	} question = {
		.header = { .nlmsg_len = sizeof(question),
			    .nlmsg_type = RTM_GETROUTE,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			    .nlmsg_seq = ++routes->sequence },
		.route = { .rtm_family = (unsigned char)family },
	};
	int found = -EAGAIN;

	if (routes->questions < 0 || send(routes->questions, &question, sizeof(question), 0) < 0)
		return true;
	/* recv() doesn't wait: the kernel makes the dump's next part within the call. */
	while (found == -EAGAIN) {
		ssize_t len = recv(routes->questions, routes->answer, sizeof(routes->answer), 0);

		if (len < 0 && errno == EINTR)
			continue;
		if (len <= 0)
			return true;
		found = read_part(routes, len);
	}
	if (found)
		renew(routes);
	return found != 0;
}

/* Tells whether the rules allow clients to reach the Internet by this family. */
static bool is_wanted(const struct settings *settings, enum family family)
{
	/* Examples of public addresses; nothing is sent there. */
	static const struct in6_addr public[] = {
		[FAMILY_V4] = { { { [10] = 0xff, 0xff, 8, 8, 8, 8 } } },
		[FAMILY_V6] = { { { 0x20, 0x01, 0x48, 0x60 } } },
	};

	return access_rules_allow(&settings->access.destinations, &public[family], 443);
}

/* Tells families.c about the routes. @again: a missing route is logged although it was missing before */
static void check(struct family_routes *routes, bool again)
{
	static const int families[] = { [FAMILY_V4] = AF_INET, [FAMILY_V6] = AF_INET6 };

	for (int i = 0; i < FAMILY_COUNT; i++) {
		enum family family = (enum family)i;
		bool routed = has_route(routes, families[i]);
		bool tell = is_wanted(routes->settings, family) && (again || families_is_routed(family));

		families_set_routed(family, routed, tell, clock_now_ms());
	}
}

static void on_change(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval settle = { .tv_sec = SETTLE_SECONDS };
	struct family_routes *routes = arg;

	(void)fd;
	(void)what;
	event_del(routes->readable);
	event_add(routes->settled, &settle);
}

static void on_settled(evutil_socket_t fd, short what, void *arg)
{
	struct family_routes *routes = arg;

	(void)fd;
	(void)what;
	while (recv(routes->changes, routes->answer, sizeof(routes->answer), 0) >= 0 ||
	       errno == ENOBUFS || errno == EINTR)
		;
	event_add(routes->readable, NULL);
	if (!routes->settings)
		return;
	families_routes_changed(clock_now_ms());
	check(routes, false);
}

static bool watch(struct family_routes *routes, struct event_base *base)
{
	routes->changes = open_socket(RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE | RTMGRP_IPV4_IFADDR |
				      RTMGRP_IPV6_IFADDR);
	if (routes->changes < 0)
		return false;
	routes->questions = open_socket(0);
	routes->readable = event_new(base, routes->changes, EV_READ | EV_PERSIST, on_change, routes);
	routes->settled = event_new(base, -1, 0, on_settled, routes);
	return routes->questions >= 0 && routes->readable && routes->settled &&
	       event_add(routes->readable, NULL) == 0;
}

struct family_routes *family_routes_create(struct event_base *base)
{
	struct family_routes *routes = calloc(1, sizeof(*routes));

	if (!routes)
		return NULL;
	routes->changes = routes->questions = -1;
	if (!watch(routes, base))
		log_warning("routes can't be watched: %s", strerror(errno));
	return routes;
}

void family_routes_destroy(struct family_routes *routes)
{
	if (!routes)
		return;
	if (routes->readable)
		event_free(routes->readable);
	if (routes->settled)
		event_free(routes->settled);
	if (routes->changes >= 0)
		close(routes->changes);
	if (routes->questions >= 0)
		close(routes->questions);
	free(routes);
}

void family_routes_check(struct family_routes *routes, const struct settings *settings)
{
	routes->settings = settings;
	check(routes, true);
}

/* ----- the sysctls that convertd wants, with the consequences of other values ----- */

const struct sysctl_wish sysctl_wishes[] = {
	{ "net.ipv4.tcp_fastopen", SYSCTL_BITS, LISTENER_SYSCTL_FASTOPEN,
	  "the kernel drops data in SYNs, each connection takes a round trip more and MPTCP clients "
	  "fall back to TCP" },
	{ "net.mptcp.enabled", SYSCTL_IS, 1, "clients use one path only" },
	/* Clients choose the servers, so a client could choose one that swallows SYNs. */
	{ "net.mptcp.blackhole_timeout", SYSCTL_IS, 0,
	  "one server that swallows SYNs switches MPTCP off towards all of them for so many seconds" },
	{ "net.core.somaxconn", SYSCTL_LEAST, LISTENER_BACKLOG,
	  "when many clients come at once, some have to send their SYN again" },
	/* Linux ignores the data of a SYN that it answers with a SYN cookie. */
	{ "net.ipv4.tcp_syncookies", SYSCTL_IS, 1,
	  "with 0 a flood of SYNs keeps clients out, with 2 the kernel drops data in SYNs" },
	/* This is about SYNs that convertd never sees, to which the kernel answers 40 bytes with 44 for each SYN+ACK. */
	{ "net.ipv4.tcp_synack_retries", SYSCTL_MOST, 1,
	  "for forged SYNs that are none of ours the kernel sends more than three times their bytes to "
	  "strangers" },
	{ .name = NULL },
};

bool sysctl_wish_met(const struct sysctl_wish *wish, int value)
{
	switch (wish->rule) {
	case SYSCTL_IS:
		return value == wish->value;
	case SYSCTL_LEAST:
		return value >= wish->value;
	case SYSCTL_MOST:
		return value <= wish->value;
	case SYSCTL_BITS:
		return (value & wish->value) == wish->value;
	}
	return false;
}

int sysctl_wish_remedy(const struct sysctl_wish *wish, int value)
{
	return wish->rule == SYSCTL_BITS ? value | wish->value : wish->value;
}
