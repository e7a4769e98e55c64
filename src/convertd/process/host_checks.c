/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host_checks.c - tells families.c which address families have a route out of this host, and lists the sysctls that convertd wants
 *
 * A route leads out if it is the default, or has a next hop. It may be in any table: connect() finds out for each
 * destination whether policy rules lead to that table. We read the kernel's list only up to the first route that leads
 * out, so that it is short on routers with a million of them.
 *
 * There may be many changes a second. The first one starts a timer of SETTLE_SECONDS, and until it fires we read no
 * message; then we discard them all at once and ask for the routes. A receive queue that overflows meanwhile does no
 * harm.
 */
#include "config.h"

#include "convertd/process/service.h"

#include "common/clock.h"
#include "common/netlink.h"
#include "daemon/log.h"
#include "convertd/config/convertd_settings.h"
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

struct family_routes {
	const struct convertd_settings *settings; /* the settings in force; NULL: none yet */
	int changes;                              /* a netlink socket that receives changes; -1: we don't hear of them */
	struct event *readable, *settled;
};

/* Notes in @out whether the route leads out; the first one that does ends the list. */
static int on_route(const struct nlmsghdr *header, void *out)
{
	const struct rtmsg *route = mnl_nlmsg_get_payload(header);
	const struct nlattr *attribute;
	bool leads = route->rtm_dst_len == 0;

	if (header->nlmsg_type != RTM_NEWROUTE || route->rtm_type != RTN_UNICAST)
		return MNL_CB_OK;
	mnl_attr_for_each(attribute, header, sizeof(*route)) {
		uint16_t type = mnl_attr_get_type(attribute);

		leads |= type == RTA_GATEWAY || type == RTA_VIA || type == RTA_MULTIPATH || type == RTA_NH_ID;
	}
	*(bool *)out = leads;
	return leads ? MNL_CB_STOP : MNL_CB_OK;
}

/*
 * Tells whether a route of @family (AF_INET, AF_INET6) leads beyond the networks of this host's interfaces. Returns true as
 * well where the kernel can't be asked. If the list changes while we read it (-EINTR), we hear of that and ask again.
 */
static bool has_route(int family)
{
	struct netlink netlink;
	bool found = false;
	int error = netlink_open(&netlink, NETLINK_ROUTE);

	if (error)
		return true;
	error = netlink_dump(&netlink, RTM_GETROUTE, family, on_route, &found);
	netlink_close(&netlink);
	return found || (error && error != -EINTR);
}

/* Tells whether the rules allow clients to reach the Internet by this family. */
static bool is_wanted(const struct convertd_settings *settings, enum family family)
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
		bool routed = has_route(families[i]);
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
	char byte;

	(void)fd;
	(void)what;
	while (recv(routes->changes, &byte, sizeof(byte), 0) >= 0 || errno == ENOBUFS || errno == EINTR)
		;
	event_add(routes->readable, NULL);
	if (!routes->settings)
		return;
	families_routes_changed(clock_now_ms());
	check(routes, false);
}

static bool watch(struct family_routes *routes, struct event_base *base)
{
	static const struct sockaddr_nl groups = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};

	routes->changes = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (routes->changes < 0 || bind(routes->changes, (const struct sockaddr *)&groups, sizeof(groups)) < 0)
		return false;
	routes->readable = event_new(base, routes->changes, EV_READ | EV_PERSIST, on_change, routes);
	routes->settled = event_new(base, -1, 0, on_settled, routes);
	return routes->readable && routes->settled && event_add(routes->readable, NULL) == 0;
}

struct family_routes *family_routes_create(struct event_base *base)
{
	struct family_routes *routes = calloc(1, sizeof(*routes));

	if (routes && !watch(routes, base))
		log_warning("changes of routes aren't seen before a reload: %s", strerror(errno));
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
	free(routes);
}

void family_routes_check(struct family_routes *routes, const struct convertd_settings *settings)
{
	routes->settings = settings;
	check(routes, true);
}

/* ----- the sysctls that convertd wants, with the consequences of other values ----- */

const struct sysctl_wish sysctl_wishes[] = {
	{ "net.ipv4.tcp_fastopen", SYSCTL_BITS, LISTENER_SYSCTL_FASTOPEN,
	  "the kernel drops data in SYNs, each connection takes one more round trip and MPTCP clients "
	  "fall back to TCP" },
	{ "net.mptcp.enabled", SYSCTL_IS, 1, "clients use one path only" },
	/* Clients choose the servers, so a client could choose one that swallows SYNs. */
	{ "net.mptcp.blackhole_timeout", SYSCTL_IS, 0,
	  "one server that swallows SYNs switches MPTCP off towards all servers for this many seconds" },
	{ "net.core.somaxconn", SYSCTL_LEAST, LISTENER_BACKLOG,
	  "when many clients come at once, some have to send their SYN again" },
	/* Linux ignores the data of a SYN that it answers with a SYN cookie. */
	{ "net.ipv4.tcp_syncookies", SYSCTL_IS, 1,
	  "with 0 a flood of SYNs keeps clients out, with 2 the kernel drops data in SYNs" },
	/* This is about SYNs that convertd never sees, to which the kernel answers 40 bytes with 44 for each SYN+ACK. */
	{ "net.ipv4.tcp_synack_retries", SYSCTL_MOST, 1,
	  "the kernel answers a forged SYN by more than three times its bytes" },
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
