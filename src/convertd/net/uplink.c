/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uplink.c - watching the kernel's routes: which address families lead out of this host?
 *
 * convertd asks before it connects to a server of a family, so that a client learns at once that it can't (families.c).
 *
 * A route leads out if it is the default, or has a next hop. It may be in any table: whether policy rules lead to
 * that table, connect() finds out for each destination. The kernel's dump is read only up to the first such
 * route, so that it is short on routers with a million of them.
 *
 * There may be many changes a second. The first one starts a timer of SETTLE_SECONDS, and until it fires no message is
 * read; then all are thrown away at once and the owner is told. A receive queue that overflows meanwhile does no harm,
 * since the owner asks for the routes themselves.
 */
#include "config.h"

#include "convertd/net/uplink.h"

#include <errno.h>
#include <event2/event.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SETTLE_SECONDS 1

/* The kernel puts at most this many bytes into one message of a dump, unless it is offered a larger buffer. */
#define ANSWER_MAX 32768

struct uplink {
	int changes, questions; /* netlink sockets: one is told of changes, one asks for dumps */
	uint32_t sequence;
	struct event *readable, *settled;
	uplink_changed_fn *changed;
	void *arg;
	char answer[ANSWER_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
};

/* Opens a netlink socket that is told of changes in @groups (rtnetlink(7)). Returns -1 with errno set. */
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

static void on_change(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval settle = { .tv_sec = SETTLE_SECONDS };
	struct uplink *uplink = arg;

	(void)fd;
	(void)what;
	event_del(uplink->readable);
	event_add(uplink->settled, &settle);
}

static void on_settled(evutil_socket_t fd, short what, void *arg)
{
	struct uplink *uplink = arg;

	(void)fd;
	(void)what;
	while (recv(uplink->changes, uplink->answer, sizeof(uplink->answer), 0) >= 0 ||
	       errno == ENOBUFS || errno == EINTR)
		;
	event_add(uplink->readable, NULL);
	uplink->changed(uplink->arg);
}

struct uplink *uplink_create(struct event_base *base, uplink_changed_fn *changed, void *arg)
{
	struct uplink *uplink = calloc(1, sizeof(*uplink));
	int error;

	if (!uplink)
		return NULL;
	uplink->changed = changed;
	uplink->arg = arg;
	uplink->questions = -1;
	uplink->changes = open_socket(RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE | RTMGRP_IPV4_IFADDR |
				      RTMGRP_IPV6_IFADDR);
	if (uplink->changes >= 0)
		uplink->questions = open_socket(0);
	if (uplink->questions >= 0) {
		uplink->readable = event_new(base, uplink->changes, EV_READ | EV_PERSIST, on_change, uplink);
		uplink->settled = event_new(base, -1, 0, on_settled, uplink);
	}
	if (uplink->readable && uplink->settled && event_add(uplink->readable, NULL) == 0)
		return uplink;
	error = errno;
	uplink_destroy(uplink);
	errno = error;
	return NULL;
}

void uplink_destroy(struct uplink *uplink)
{
	if (!uplink)
		return;
	if (uplink->readable)
		event_free(uplink->readable);
	if (uplink->settled)
		event_free(uplink->settled);
	if (uplink->changes >= 0)
		close(uplink->changes);
	if (uplink->questions >= 0)
		close(uplink->questions);
	free(uplink);
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
static int read_part(struct uplink *uplink, ssize_t len)
{
	const struct nlmsghdr *header = (const struct nlmsghdr *)uplink->answer;
	unsigned left = (unsigned)len;

	for (; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
		if (header->nlmsg_seq != uplink->sequence)
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
static bool renew(struct uplink *uplink)
{
	close(uplink->questions);
	uplink->questions = open_socket(0);
	return uplink->questions >= 0;
}

bool uplink_has_route(struct uplink *uplink, int family)
{
	struct {
		struct nlmsghdr header;
		struct rtmsg route;
	} question = {
		.header = { .nlmsg_len = sizeof(question),
			    .nlmsg_type = RTM_GETROUTE,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			    .nlmsg_seq = ++uplink->sequence },
		.route = { .rtm_family = (unsigned char)family },
	};
	int found = -EAGAIN;

	if (send(uplink->questions, &question, sizeof(question), 0) < 0)
		return true;
	/* recv() doesn't wait: the kernel makes the dump's next part within the call. */
	while (found == -EAGAIN) {
		ssize_t len = recv(uplink->questions, uplink->answer, sizeof(uplink->answer), 0);

		if (len < 0 && errno == EINTR)
			continue;
		if (len <= 0)
			return true;
		found = read_part(uplink, len);
	}
	if (found)
		renew(uplink);
	return found != 0;
}
