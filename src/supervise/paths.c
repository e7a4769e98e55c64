/* SPDX-License-Identifier: BSD-3-Clause */
/* paths.c - may an MPTCP connection get a second path? */
#include "config.h"

#include "supervise/paths.h"

#include "common/clock.h"
#include "common/endpoints.h"

#include <linux/mptcp.h>
#include <unistd.h>

#define FRESH_NS (2 * CLOCK_NS_PER_S)

static struct endpoints endpoints;
static bool known;

/* Has the kernel endpoints to open subflows from, or can't it be asked? */
static void renew(void)
{
	static int64_t asked;
	struct netlink netlink;
	int64_t now = clock_ns();

	if (asked && now - asked < FRESH_NS)
		return;
	asked = now;
	known = endpoints_read(&endpoints, &netlink) == 0;
}

/* The address that a connection to @to has here: the one that a datagram would have. */
static bool source_of(const union sockaddr_ip *to, union sockaddr_ip *out)
{
	int fd = socket(to->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*out);
	bool found = fd >= 0 && connect(fd, &to->sa, sockaddr_ip_len(to)) == 0 && getsockname(fd, &out->sa, &len) == 0;

	if (fd >= 0)
		close(fd);
	return found;
}

/* An endpoint with the address that the connection has anyway adds nothing, nor does one of the other family. */
bool paths_may_be_several(const union sockaddr_ip *to)
{
	union sockaddr_ip source;
	struct in6_addr own;

	renew();
	if (!known || (endpoints.count && !source_of(to, &source)))
		return true;
	for (size_t i = 0; i < endpoints.count; i++) {
		const struct mptcp_endpoint *endpoint = &endpoints.endpoint[i];
		struct in6_addr other = sockaddr_ip_in6(&endpoint->address);

		own = sockaddr_ip_in6(&source);
		if (endpoint->flags & (MPTCP_PM_ADDR_FLAG_SUBFLOW | MPTCP_PM_ADDR_FLAG_FULLMESH) &&
		    sockaddr_ip_is_v4(&endpoint->address) == sockaddr_ip_is_v4(&source) && !IN6_ARE_ADDR_EQUAL(&own, &other))
			return true;
	}
	return false;
}
