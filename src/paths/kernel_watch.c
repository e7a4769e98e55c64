/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_watch.c - hears that something has changed
 *
 * What the messages say is not relied upon, but for whether they matter: the host is then read anew. So it makes no difference that
 * some were lost (ENOBUFS, netlink(7)), which happens at a resume, or when a hundred containers start.
 */
#include "config.h"

#include "paths/kernel.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

int paths_kernel_watch(void)
{
	static const int groups[] = { RTNLGRP_LINK,	 RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE,
				      RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV4_RULE,   RTNLGRP_IPV6_RULE };
	const struct sockaddr_nl any = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE), error;

	if (fd < 0)
		return -errno;
	/* without an address of its own it would pass for the sender of the kernel's messages, and get none */
	error = bind(fd, (const struct sockaddr *)&any, sizeof(any)) < 0 ? errno : 0;
	for (size_t i = 0; !error && i < sizeof(groups) / sizeof(groups[0]); i++)
		if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i], sizeof(groups[i])) < 0)
			error = errno;
	if (!error)
		return fd;
	close(fd);
	return -error;
}

/* A route that another program has made for some destination is no matter of ours, and there may be thousands in a second. */
static bool matters(const struct nlmsghdr *message)
{
	const struct rtmsg *route = mnl_nlmsg_get_payload(message);

	if (message->nlmsg_type != RTM_NEWROUTE && message->nlmsg_type != RTM_DELROUTE)
		return true;
	if (mnl_nlmsg_get_payload_len(message) < sizeof(*route) || route->rtm_flags & RTM_F_CLONED)
		return false;
	return route->rtm_dst_len <= 1 || route->rtm_protocol == RTPROT_KERNEL || route->rtm_protocol == HOST_PROTOCOL_OURS;
}

bool paths_kernel_heard(int fd)
{
	_Alignas(struct nlmsghdr) char buf[32768];
	bool heard = false;

	for (;;) {
		ssize_t got = recv(fd, buf, sizeof(buf), 0);
		int left = (int)got;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno != ENOBUFS)
			return heard;
		heard = heard || got < 0;
		for (const struct nlmsghdr *message = (struct nlmsghdr *)buf; got > 0 && mnl_nlmsg_ok(message, left);
		     message = mnl_nlmsg_next(message, &left))
			heard = heard || matters(message);
	}
}
