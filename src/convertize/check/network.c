/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * network.c - this host's addresses, and what the kernel's MPTCP path manager does with them
 *
 * Addresses come from getifaddrs(3), all else by netlink: default routes of every table, since
 * a host with two providers has one of them in a table of its own (rtnetlink(7)), and endpoints
 * and limits (endpoints.c). None of it needs a privilege.
 */
#include "config.h"

#include "convertize/check/network.h"

#include "host/endpoints.h"
#include "common/netlink.h"

#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/mptcp.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <unistd.h>

/* Routes of this length count as default routes: a VPN may leave the default route alone and add 0.0.0.0/1 and 128.0.0.0/1. */
#define DEFAULT_PREFIX_MAX 1

/* --- addresses ------------------------------------------------------------------ */

enum network_family network_family(const union sockaddr_ip *address)
{
	return sockaddr_ip_is_v4(address) ? NETWORK_IPV4 : NETWORK_IPV6;
}

const char *network_format_address(const union sockaddr_ip *address,
				   char buf[static SOCKADDR_STRLEN])
{
	char *end;

	/* "192.0.2.1:80", "[2001:db8::1]:80" */
	sockaddr_ip_format(address, buf);
	end = strrchr(buf, ':');
	*end = '\0';
	if (buf[0] == '[') {
		end[-1] = '\0';
		memmove(buf, buf + 1, (size_t)(end - 1 - buf));
	}
	return buf;
}

static bool is_global(const union sockaddr_ip *address)
{
	struct in6_addr in6 = sockaddr_ip_in6(address);

	if (sockaddr_ip_is_v4(address))
		return in6.s6_addr[12] != 127 &&
		       !(in6.s6_addr[12] == 169 && in6.s6_addr[13] == 254);
	return !IN6_IS_ADDR_LINKLOCAL(&in6) && !IN6_IS_ADDR_LOOPBACK(&in6);
}

static struct network_interface *find_interface(struct network *network, unsigned int index)
{
	for (size_t i = 0; i < network->interface_count; i++)
		if (network->interfaces[i].index == index)
			return &network->interfaces[i];
	return NULL;
}

const struct network_interface *network_interface(const struct network *network, unsigned int index)
{
	return find_interface((struct network *)network, index);
}

static void add_address(struct network *network, const char *name, const union sockaddr_ip *address)
{
	unsigned int index = if_nametoindex(name);
	struct network_interface *interface = find_interface(network, index);
	enum network_family family = network_family(address);

	if (!interface) {
		if (network->interface_count == NETWORK_INTERFACES_MAX)
			return;
		interface = &network->interfaces[network->interface_count++];
		strncpy(interface->name, name, sizeof(interface->name) - 1);
		interface->index = index;
	}
	if (interface->address[family].sa.sa_family == AF_UNSPEC)
		interface->address[family] = *address;
}

/* Reads the address of an entry of getifaddrs(3); false if it isn't a global one of a device that is up. */
static bool entry_address(const struct ifaddrs *at, union sockaddr_ip *out)
{
	const unsigned int up = IFF_UP | IFF_RUNNING;
	socklen_t len = sizeof(struct sockaddr_in6);

	if ((at->ifa_flags & (up | IFF_LOOPBACK)) != up || !at->ifa_addr)
		return false;
	if (at->ifa_addr->sa_family == AF_INET)
		len = sizeof(struct sockaddr_in);
	return sockaddr_ip_from(out, at->ifa_addr, len) && is_global(out);
}

static int read_addresses(struct network *network)
{
	union sockaddr_ip address;
	struct ifaddrs *list;

	if (getifaddrs(&list) < 0)
		return -errno;
	for (const struct ifaddrs *at = list; at; at = at->ifa_next)
		if (entry_address(at, &address))
			add_address(network, at->ifa_name, &address);
	freeifaddrs(list);
	return 0;
}

/* Returns the index of the interface that has an address, 0 if none has it. */
static unsigned int home_of(const union sockaddr_ip *wanted)
{
	union sockaddr_ip address;
	struct ifaddrs *list;
	unsigned int index = 0;

	if (getifaddrs(&list) < 0)
		return 0;
	for (const struct ifaddrs *at = list; at && !index; at = at->ifa_next)
		if (entry_address(at, &address) && sockaddr_ip_equal(&address, wanted))
			index = if_nametoindex(at->ifa_name);
	freeifaddrs(list);
	return index;
}

const struct network_interface *network_home(const struct network *network,
					     const union sockaddr_ip *address)
{
	union sockaddr_ip alone = *address;

	sockaddr_ip_set_port(&alone, 0);
	return network_interface(network, home_of(&alone));
}

static bool has_address(const struct network_interface *interface, int family)
{
	return interface->address[family].sa.sa_family != AF_UNSPEC;
}

/* --- default routes --------------------------------------------------------------- */

static void note_default(struct network *network, unsigned int index, int family)
{
	struct network_interface *interface = find_interface(network, index);

	if (interface)
		interface->usable[family == AF_INET ? NETWORK_IPV4 : NETWORK_IPV6] = true;
}

/* An array of struct rtnexthop, each with attributes of its own behind it. */
static void note_multipath(struct network *network, const struct nlattr *attr, int family)
{
	const char *at = mnl_attr_get_payload(attr);
	size_t left = mnl_attr_get_payload_len(attr);
	struct rtnexthop hop;

	while (left >= sizeof(hop)) {
		size_t size;

		memcpy(&hop, at, sizeof(hop));
		note_default(network, (unsigned int)hop.rtnh_ifindex, family);
		size = RTNH_ALIGN((size_t)hop.rtnh_len);
		if (size < sizeof(hop) || size > left)
			return;
		at += size;
		left -= size;
	}
}

static int on_route(const struct nlmsghdr *message, void *arg)
{
	const struct rtmsg *route = mnl_nlmsg_get_payload(message);
	struct network *network = arg;
	const struct nlattr *attr;

	if (message->nlmsg_type != RTM_NEWROUTE || route->rtm_type != RTN_UNICAST ||
	    route->rtm_dst_len > DEFAULT_PREFIX_MAX)
		return MNL_CB_OK;
	mnl_attr_for_each(attr, message, sizeof(*route)) {
		if (mnl_attr_get_type(attr) == RTA_OIF &&
		    mnl_attr_validate(attr, MNL_TYPE_U32) == 0)
			note_default(network, mnl_attr_get_u32(attr), route->rtm_family);
		if (mnl_attr_get_type(attr) == RTA_MULTIPATH)
			note_multipath(network, attr, route->rtm_family);
	}
	return MNL_CB_OK;
}

static void read_default_routes(struct network *network, struct netlink *netlink)
{
	static const unsigned char families[] = { AF_INET, AF_INET6 };

	if (netlink_open(netlink, NETLINK_ROUTE) < 0)
		return;
	for (size_t i = 0; i < sizeof(families); i++) {
		struct nlmsghdr *request = mnl_nlmsg_put_header(netlink->buf);
		struct rtmsg *route = mnl_nlmsg_put_extra_header(request, sizeof(*route));

		request->nlmsg_type = RTM_GETROUTE;
		request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
		route->rtm_family = families[i];
		netlink_ask(netlink, on_route, network);
	}
	netlink_close(netlink);
}

/* Bridges of containers have addresses and no default route, and aren't usable, unless no interface has a default route. */
static void settle_usable(struct network *network)
{
	bool any = false;

	for (size_t i = 0; i < network->interface_count; i++)
		for (int family = 0; family < NETWORK_FAMILY_COUNT; family++) {
			struct network_interface *interface = &network->interfaces[i];

			interface->usable[family] &= has_address(interface, family);
			any = any || interface->usable[family];
		}
	for (size_t i = 0; i < network->interface_count && !any; i++)
		for (int family = 0; family < NETWORK_FAMILY_COUNT; family++)
			network->interfaces[i].usable[family] =
				has_address(&network->interfaces[i], family);
}

/* Finds the interface that connections take, by connect() of a UDP socket, which sends nothing. */
static void read_first(struct network *network)
{
	static const char *const anywhere[] = { [NETWORK_IPV4] = "192.0.2.1",
						[NETWORK_IPV6] = "2001:db8::1" };

	for (int family = 0; family < NETWORK_FAMILY_COUNT; family++) {
		union sockaddr_ip to, from = { 0 };
		socklen_t len = sizeof(from);
		int fd;

		sockaddr_ip_parse(&to, anywhere[family], 9);
		fd = socket(to.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			continue;
		if (connect(fd, &to.sa, sockaddr_ip_len(&to)) == 0 &&
		    getsockname(fd, &from.sa, &len) == 0) {
			sockaddr_ip_set_port(&from, 0);
			network->first[family] = home_of(&from);
		}
		close(fd);
	}
}

/* --- the path manager --------------------------------------------------------------- */

static int read_path_manager(struct network *network)
{
	struct endpoints endpoints;
	int ret = endpoints_read(&endpoints);

	if (ret < 0)
		return ret;
	network->subflow_limit = endpoints.subflow_limit;
	static_assert(NETWORK_ENDPOINTS_MAX >= ENDPOINTS_MAX, "room for all of them");
	for (size_t i = 0; i < endpoints.count; i++) {
		const struct mptcp_endpoint *endpoint = &endpoints.endpoint[i];

		network->endpoints[network->endpoint_count++] = (struct network_endpoint){
			.address = endpoint->address,
			.id = endpoint->id,
			.bound = endpoint->bound,
			.home = home_of(&endpoint->address),
			.subflow = endpoint->flags & MPTCP_PM_ADDR_FLAG_SUBFLOW,
			.fullmesh_only = (endpoint->flags & (MPTCP_PM_ADDR_FLAG_SUBFLOW |
							     MPTCP_PM_ADDR_FLAG_FULLMESH)) ==
					 MPTCP_PM_ADDR_FLAG_FULLMESH,
		};
	}
	return 0;
}

int network_read(struct network *out)
{
	struct netlink netlink = { 0 };
	int ret;

	memset(out, 0, sizeof(*out));
	out->path_manager_error = read_path_manager(out);
	ret = read_addresses(out);
	read_default_routes(out, &netlink);
	settle_usable(out);
	read_first(out);
	return ret;
}
