/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * networks.c - the networks of this machine that lead to an address, and how a socket is made to use one
 *
 * An address of an interface leads through that interface where somebody has made rules for it (ip rule add from …); nobody has, on most
 * machines. Then packets with that address leave by the usual network all the same, which would drop them. A socket that is bound to
 * the interface, too, gets the default route that this interface has in the main table, with whatever metric; any user may do that since
 * Linux 5.7. So the routes are asked twice: from the address, and if that leads elsewhere through the interface. For IPv4 Linux
 * assumes that everything is on the link of an interface without a route, and says so by naming no table.
 */
#include "config.h"

#include "networks/networks.h"

#include "common/clock.h"
#include "common/thread.h"
#include "common/vpn.h"
#include "networks/io.h"
#include "networks/nl.h"
#include "networks/several.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/mptcp.h>
#include <linux/rtnetlink.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>

#define ADDRESS_UNUSABLE (IFA_F_TENTATIVE | IFA_F_DADFAILED | IFA_F_DEPRECATED | IFA_F_OPTIMISTIC)

/* What has been found so far. */
struct search {
	int family;
	struct network *found;
	size_t count;
};

static struct in6_addr in6_of(int family, const uint8_t *bytes)
{
	struct in6_addr in6 = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	memcpy(&in6.s6_addr[family == AF_INET ? 12 : 0], bytes, family == AF_INET ? 4 : 16);
	return in6;
}

struct address {
	int family;
	uint32_t flags;
	struct in6_addr local, address;
	bool has_local, has_address;
};

static void read_address_part(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	struct address *address = arg;

	if (type == IFA_FLAGS)
		address->flags = nl_u32(value, len);
	if ((type != IFA_LOCAL && type != IFA_ADDRESS) || len < (address->family == AF_INET ? 4u : 16u))
		return;
	*(type == IFA_LOCAL ? &address->local : &address->address) = in6_of(address->family, value);
	*(type == IFA_LOCAL ? &address->has_local : &address->has_address) = true;
}

/* Notes the first usable address of each interface. On a point-to-point link IFA_ADDRESS is the peer's. */
static void read_address(void *arg, const uint8_t *body, size_t len)
{
	struct search *search = arg;
	struct ifaddrmsg message;
	struct address address;

	if (len < sizeof(message) || search->count == NETWORKS_MAX)
		return;
	memcpy(&message, body, sizeof(message));
	address = (struct address){ .family = message.ifa_family, .flags = message.ifa_flags };
	if (message.ifa_family != search->family || message.ifa_scope != RT_SCOPE_UNIVERSE)
		return;
	for (size_t i = 0; i < search->count; i++)
		if (search->found[i].device == (int)message.ifa_index)
			return;
	nl_attributes(body + NLMSG_ALIGN(sizeof(message)), len - NLMSG_ALIGN(sizeof(message)), read_address_part, &address);
	if ((address.flags & ADDRESS_UNUSABLE) || !(address.has_local || address.has_address))
		return;
	search->found[search->count++] = (struct network){
		.source = address.has_local ? address.local : address.address,
		.device = (int)message.ifa_index,
	};
}

static void addresses_find(int netlink, struct search *search)
{
	struct {
		struct nlmsghdr header;
		struct ifaddrmsg message;
	} question = {
		.header = { .nlmsg_len = sizeof(question), .nlmsg_type = RTM_GETADDR, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.message.ifa_family = (uint8_t)search->family,
	};

	nl_ask(netlink, &question.header, read_address, search);
}

/* A route to the destination. */
struct route {
	bool usable;
	bool local; /* it leads back to this host */
	int device;
	uint32_t table;
};

static void read_route_part(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	struct route *route = arg;

	if (type == RTA_OIF)
		route->device = (int)nl_u32(value, len);
	if (type == RTA_TABLE)
		route->table = nl_u32(value, len);
}

static void read_route(void *arg, const uint8_t *body, size_t len)
{
	struct route *route = arg;
	struct rtmsg message;

	if (len < sizeof(message))
		return;
	memcpy(&message, body, sizeof(message));
	route->usable = message.rtm_type == RTN_UNICAST;
	route->local = message.rtm_type == RTN_LOCAL;
	route->table = message.rtm_table;
	nl_attributes(body + NLMSG_ALIGN(sizeof(message)), len - NLMSG_ALIGN(sizeof(message)), read_route_part, route);
}

struct route_question {
	struct nlmsghdr header;
	struct rtmsg message;
	uint8_t attributes[3 * (NLA_HDRLEN + 16)];
};

static void question_add(struct route_question *question, uint16_t type, const void *value, size_t len)
{
	struct nlattr attribute = { .nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type };
	uint8_t *end = (uint8_t *)question + question->header.nlmsg_len;

	memcpy(end, &attribute, sizeof(attribute));
	memcpy(end + NLA_HDRLEN, value, len);
	question->header.nlmsg_len += NLA_ALIGN(attribute.nla_len);
}

static void question_add_address(struct route_question *question, uint16_t type, const struct in6_addr *address)
{
	const bool v4 = question->message.rtm_family == AF_INET;

	question_add(question, type, &address->s6_addr[v4 ? 12 : 0], v4 ? 4 : 16);
	*(type == RTA_DST ? &question->message.rtm_dst_len : &question->message.rtm_src_len) = v4 ? 32 : 128;
}

/* Asks for the route to @to. @source, @device: from where, NULL and 0 for wherever the kernel chooses. */
static struct route route_ask(int netlink, const union sockaddr_ip *to, const struct in6_addr *source, int device)
{
	const struct in6_addr destination = sockaddr_ip_in6(to);
	struct route_question question = {
		.header = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)), .nlmsg_type = RTM_GETROUTE,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.message.rtm_family = sockaddr_ip_is_v4(to) ? AF_INET : AF_INET6,
	};
	struct route route = { .usable = false };

	question_add_address(&question, RTA_DST, &destination);
	if (source)
		question_add_address(&question, RTA_SRC, source);
	if (device)
		question_add(&question, RTA_OIF, &device, sizeof(device));
	if (!nl_ask(netlink, &question.header, read_route, &route))
		route.usable = route.local = false;
	return route;
}

/* What was asked lately, by a hash of the address: 40 bits of that, 22 of the time in seconds, and the answer. Each is one atomic word. */
#define OWN_PLACES 64u
#define OWN_SECONDS 10 /* a machine's addresses change */
#define OWN_KEY_SHIFT 24
#define OWN_TIME_SHIFT 2
#define OWN_TIME_MASK 0x3fffffu

enum { OWN_NO = 1, OWN_YES };

/* A quarter of the work of asking by netlink: what can't be bound to isn't this host's. The opposite may be a sysctl's, ip_nonlocal_bind. */
static bool may_be_own(const struct in6_addr *in6)
{
	union sockaddr_ip host = { 0 };
	int family = IN6_IS_ADDR_V4MAPPED(in6) ? AF_INET : AF_INET6, fd = io_socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool bound;

	if (fd < 0)
		return true;
	sockaddr_ip_set(&host, family, in6, 0);
	bound = io_bind(fd, &host.sa, sockaddr_ip_len(&host)) == 0;
	io_close(fd);
	return bound;
}

static bool own_ask(const union sockaddr_ip *to, const struct in6_addr *in6)
{
	struct quiet quiet;
	bool own = false;
	int netlink;

	quiet_all(&quiet);
	netlink = may_be_own(in6) ? nl_open(NETLINK_ROUTE) : -1;
	if (netlink >= 0) {
		own = route_ask(netlink, to, NULL, 0).local;
		io_close(netlink);
	}
	quiet_end(&quiet);
	return own;
}

bool networks_is_own(const union sockaddr_ip *to)
{
	static _Atomic uint64_t places[OWN_PLACES];
	const struct in6_addr in6 = sockaddr_ip_in6(to);
	union sockaddr_ip host = { 0 };
	const uint32_t now = (uint32_t)clock_seconds();
	uint64_t key, entry;
	bool own;

	sockaddr_ip_set(&host, AF_INET6, &in6, 0);
	key = sockaddr_ip_hash(&host);
	entry = atomic_load(&places[key % OWN_PLACES]);
	if (entry && entry >> OWN_KEY_SHIFT == key >> OWN_KEY_SHIFT &&
	    ((now - (uint32_t)(entry >> OWN_TIME_SHIFT)) & OWN_TIME_MASK) < OWN_SECONDS)
		return (entry & 3) == OWN_YES;
	own = own_ask(to, &in6);
	atomic_store(&places[key % OWN_PLACES], (key >> OWN_KEY_SHIFT) << OWN_KEY_SHIFT |
						       (uint64_t)(now & OWN_TIME_MASK) << OWN_TIME_SHIFT | (own ? OWN_YES : OWN_NO));
	return own;
}

static void note_backup(void *arg, const struct paths_endpoint *endpoint)
{
	struct search *search = arg;

	for (size_t i = 0; i < search->count; i++)
		if ((endpoint->flags & MPTCP_PM_ADDR_FLAG_BACKUP) &&
		    memcmp(&search->found[i].source, &endpoint->address, sizeof(endpoint->address)) == 0)
			search->found[i].backup = true;
}

static bool network_leads(int netlink, const union sockaddr_ip *to, int usual, struct network *network)
{
	struct ifreq request = { .ifr_ifindex = network->device };
	struct route route;

	network->usual = network->device == usual;
	route = route_ask(netlink, to, &network->source, 0);
	network->bind_device = !network->usual && !(route.usable && route.device == network->device);
	if (network->bind_device)
		route = route_ask(netlink, to, &network->source, network->device);
	if (!route.usable || route.device != network->device || !route.table ||
	    io_ioctl(netlink, SIOCGIFNAME, &request) != 0)
		return false;
	memcpy(network->name, request.ifr_name, sizeof(network->name));
	network->name[sizeof(network->name) - 1] = '\0';
	return true;
}

struct link_kind {
	char name[16];
};

static void read_info_part(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	struct link_kind *kind = arg;

	if (type == IFLA_INFO_KIND && len < sizeof(kind->name))
		memcpy(kind->name, value, len);
}

static void read_link_part(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	if (type == IFLA_LINKINFO)
		nl_attributes(value, len, read_info_part, arg);
}

static void read_link(void *arg, const uint8_t *body, size_t len)
{
	const size_t skip = NLMSG_ALIGN(sizeof(struct ifinfomsg));

	if (len > skip)
		nl_attributes(body + skip, len - skip, read_link_part, arg);
}

static bool is_vpn(int netlink, int device)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg message;
	} question = {
		.header = { .nlmsg_len = sizeof(question), .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.message.ifi_index = device,
	};
	struct link_kind kind = { "" };

	return nl_ask(netlink, &question.header, read_link, &kind) && vpn_is_kind(kind.name);
}

/* Puts the usual network in front of the others. */
static void usual_first(struct network *found, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct network usual = found[i];

		if (!usual.usual)
			continue;
		memmove(found + 1, found, i * sizeof(*found));
		found[0] = usual;
	}
}

size_t networks_to(const union sockaddr_ip *to, bool beside_vpn, struct network out[NETWORKS_MAX])
{
	struct search search = { .family = sockaddr_ip_is_v4(to) ? AF_INET : AF_INET6, .found = out };
	int netlink = nl_open(NETLINK_ROUTE);
	size_t count = 0;
	struct route usual;
	bool alone;

	if (netlink < 0)
		return 0;
	usual = route_ask(netlink, to, NULL, 0);
	alone = !beside_vpn && usual.usable && is_vpn(netlink, usual.device);
	addresses_find(netlink, &search);
	for (size_t i = 0; i < search.count; i++)
		if (network_leads(netlink, to, usual.usable ? usual.device : 0, &out[i]) && (out[i].usual || !alone))
			out[count++] = out[i];
	io_close(netlink);
	search.count = count;
	usual_first(out, count);
	if (count > 1)
		paths_endpoints(note_backup, &search);
	return count;
}

bool network_bind(int fd, const struct in6_addr *source, int device)
{
	const int family = io_get_int(fd, SOL_SOCKET, SO_DOMAIN, AF_UNSPEC);
	union sockaddr_ip addr;

	if (device && io_get_int(fd, SOL_SOCKET, SO_BINDTOIFINDEX, 0) != device &&
	    !io_set_int(fd, SOL_SOCKET, SO_BINDTOIFINDEX, device))
		return false;
	if (IN6_IS_ADDR_UNSPECIFIED(source) && family == AF_INET)
		addr = (union sockaddr_ip){ .in.sin_family = AF_INET };
	else if (!sockaddr_ip_set(&addr, family, source, 0))
		return false;
	/*
	 * With the port chosen by connect() there may be as many connections from one address as there are ports for each peer. MPTCP
	 * sockets of Linux 6.1 don't take the option: bind() chooses the port then.
	 */
	if (!io_set_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1) && errno != EOPNOTSUPP)
		return false;
	return io_bind(fd, &addr.sa, sockaddr_ip_len(&addr)) == 0;
}

struct in6_addr network_source(int fd)
{
	union sockaddr_ip addr = { 0 };
	socklen_t len = sizeof(addr);
	struct in6_addr source = in6addr_any;

	if (io_getsockname(fd, &addr.sa, &len) == 0 && addr.sa.sa_family == AF_INET6)
		source = addr.in6.sin6_addr;
	else if (addr.sa.sa_family == AF_INET && addr.in.sin_addr.s_addr != htonl(INADDR_ANY))
		source = sockaddr_ip_in6(&addr);
	return source;
}

bool network_is_chosen(int fd)
{
	return io_get_int(fd, SOL_SOCKET, SO_BINDTOIFINDEX, 1) || io_get_int(fd, SOL_SOCKET, SO_MARK, 1);
}
