/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * networks.c - finds the networks of this host that lead to an address, and binds sockets to them
 *
 * Packets from an interface's address leave through that interface if the administrator has made rules for it (ip rule add from …). Most
 * machines have no such rules: the packets then leave by the usual network, which would drop them. A socket that is also bound to the
 * interface uses the interface's default route in the main table, with any metric; any user may bind it since Linux 5.7. So we ask
 * for the route twice: from the address and, if that leads elsewhere, through the interface.
 */
#include "config.h"

#include "host/networks.h"

#include "common/clock.h"
#include "common/thread.h"
#include "host/host_model.h"
#include "host/lookup.h"
#include "host/raw_io.h"

#include <errno.h>
#include <linux/mptcp.h>
#include <linux/rtnetlink.h>
#include <stdatomic.h>
#include <string.h>

/* The state of the search. */
struct search {
	int family;
	struct network *found;
	size_t count;
};

/* Notes the first usable address of each interface. */
static void note_address(void *arg, const struct local_address *address)
{
	struct search *search = arg;

	if (search->count == NETWORKS_MAX || !host_address_is_usable(address))
		return;
	for (size_t i = 0; i < search->count; i++)
		if (search->found[i].device == address->device)
			return;
	search->found[search->count++] = (struct network){ .source = address->address, .device = address->device };
}

/* --- is it this host? --- */

/* Recent answers, by a hash of the address. Each is one atomic word: 40 bits of the hash, 22 of the time in seconds, the answer. */
#define OWN_PLACES 64u
#define OWN_SECONDS 10 /* a machine's addresses change */
#define OWN_KEY_SHIFT 24
#define OWN_TIME_SHIFT 2
#define OWN_TIME_MASK 0x3fffffu

enum { OWN_NO = 1, OWN_YES };

/*
 * Can a socket be bound to the address? If not, it isn't this host's: this test takes a quarter of the time of netlink. If it can, the
 * sysctl ip_nonlocal_bind may be the reason.
 */
static bool may_be_own(const struct in6_addr *in6)
{
	union sockaddr_ip host = { 0 };
	int family = IN6_IS_ADDR_V4MAPPED(in6) ? AF_INET : AF_INET6, fd = raw_socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool bound;

	if (fd < 0)
		return true;
	sockaddr_ip_set(&host, family, in6, 0);
	bound = raw_bind(fd, &host.sa, sockaddr_ip_len(&host)) == 0;
	raw_close(fd);
	return bound;
}

static bool own_ask(const union sockaddr_ip *to, const struct in6_addr *in6)
{
	struct host_way way = { .type = RTN_UNSPEC };
	struct quiet quiet;

	quiet_all(&quiet);
	if (may_be_own(in6))
		host_way_ask(-1, to, NULL, 0, &way);
	quiet_end(&quiet);
	return !way.error && way.type == RTN_LOCAL;
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

/* --- the search --- */

static void note_backup(void *arg, const struct mptcp_endpoint *endpoint)
{
	struct search *search = arg;
	const struct in6_addr address = sockaddr_ip_in6(&endpoint->address);

	for (size_t i = 0; i < search->count; i++)
		if ((endpoint->flags & MPTCP_PM_ADDR_FLAG_BACKUP) && IN6_ARE_ADDR_EQUAL(&search->found[i].source, &address))
			search->found[i].backup = true;
}

static bool network_leads(int netlink, const union sockaddr_ip *to, unsigned int usual, struct network *network)
{
	struct ifreq request = { .ifr_ifindex = network->device };
	const unsigned int device = (unsigned int)network->device;
	struct host_way way;

	network->usual = device == usual;
	host_way_ask(netlink, to, &network->source, 0, &way);
	network->bind_device = !network->usual && !host_way_leads(&way, device);
	if (network->bind_device)
		host_way_ask(netlink, to, &network->source, device, &way);
	if (!host_way_leads(&way, device) || raw_ioctl(netlink, SIOCGIFNAME, &request) != 0)
		return false;
	memcpy(network->name, request.ifr_name, sizeof(network->name));
	network->name[sizeof(network->name) - 1] = '\0';
	return true;
}

static void read_kind(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	struct host_link *link = arg;

	if (type == IFLA_INFO_KIND && len < sizeof(link->kind))
		memcpy(link->kind, value, len);
}

static void read_link_part(void *arg, uint16_t type, const uint8_t *value, size_t len)
{
	struct host_link *link = arg;

	if (type == IFLA_LINKINFO)
		nl_attributes(value, len, 0, read_kind, link);
	if (type == IFLA_IFNAME && len <= sizeof(link->name))
		memcpy(link->name, value, len);
}

static void read_link(void *arg, uint16_t type, const uint8_t *body, size_t len)
{
	if (type == RTM_NEWLINK)
		nl_attributes(body, len, sizeof(struct ifinfomsg), read_link_part, arg);
}

static struct host_link link_ask(int netlink, unsigned int device)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg message;
	} question = {
		.header = { .nlmsg_len = sizeof(question), .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.message.ifi_index = (int)device,
	};
	struct host_link link = { .index = device };

	nl_ask(netlink, &question.header, read_link, &link);
	return link;
}

/* Asks for the routes to @to and to anywhere. Returns true if one goes through a VPN beside which we may use no network. */
static bool is_in_vpn(int netlink, const union sockaddr_ip *to, const struct host_word *word, struct host_link *vpn, unsigned int *usual)
{
	const union sockaddr_ip v4 = host_way_anywhere(AF_INET), v6 = host_way_anywhere(AF_INET6);
	const union sockaddr_ip *const destinations[] = { [HOST_WAY_V4] = &v4, [HOST_WAY_V6] = &v6, [HOST_WAY_CONVERTER] = to };
	unsigned int ways[HOST_WAY_COUNT];
	struct host_way way;

	for (int i = HOST_WAY_COUNT - 1; i >= 0; i--) {
		host_way_ask(netlink, destinations[i], NULL, 0, &way);
		ways[i] = !way.error && way.type == RTN_UNICAST ? way.index : 0;
	}
	*usual = ways[HOST_WAY_CONVERTER];
	for (int i = 0; i < HOST_WAY_COUNT; i++) {
		if (!ways[i] || (i && ways[i] == vpn->index))
			continue;
		*vpn = link_ask(netlink, ways[i]);
		if (host_vpn_among(vpn, 1, ways, word))
			return true;
	}
	return false;
}

/* Moves the usual network to the front. */
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

size_t networks_to(const union sockaddr_ip *to, const struct host_word *word, struct network out[NETWORKS_MAX])
{
	struct search search = { .family = sockaddr_ip_is_v4(to) ? AF_INET : AF_INET6, .found = out };
	int netlink = nl_open(NETLINK_ROUTE);
	struct host_link vpn = { .index = 0 };
	unsigned int usual;
	size_t count = 0;
	bool in_vpn;

	if (netlink < 0)
		return 0;
	in_vpn = is_in_vpn(netlink, to, word, &vpn, &usual);
	addresses_visit(netlink, search.family, note_address, &search);
	for (size_t i = 0; i < search.count; i++)
		if (network_leads(netlink, to, usual, &out[i]) &&
		    host_may_leave(in_vpn ? &vpn : NULL, (unsigned int)out[i].device, usual))
			out[count++] = out[i];
	raw_close(netlink);
	search.count = count;
	usual_first(out, count);
	if (count > 1)
		endpoints_visit(note_backup, &search, NULL);
	return count;
}

/* --- a socket --- */

bool network_bind(int fd, const struct in6_addr *source, int device)
{
	const int family = raw_get_int(fd, SOL_SOCKET, SO_DOMAIN, AF_UNSPEC);
	union sockaddr_ip addr;

	if (device && raw_get_int(fd, SOL_SOCKET, SO_BINDTOIFINDEX, 0) != device &&
	    !raw_set_int(fd, SOL_SOCKET, SO_BINDTOIFINDEX, device))
		return false;
	if (IN6_IS_ADDR_UNSPECIFIED(source) && family == AF_INET)
		addr = (union sockaddr_ip){ .in.sin_family = AF_INET };
	else if (!sockaddr_ip_set(&addr, family, source, 0))
		return false;
	/*
	 * Let connect() choose the port: one address then has all ports for each peer. MPTCP sockets of Linux 6.1 refuse the option:
	 * there bind() chooses the port.
	 */
	if (!raw_set_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1) && errno != EOPNOTSUPP)
		return false;
	return raw_bind(fd, &addr.sa, sockaddr_ip_len(&addr)) == 0;
}

bool network_usual_source(const union sockaddr_ip *to, int device, struct in6_addr *source)
{
	const struct in6_addr in6 = sockaddr_ip_in6(to);
	const int family = sockaddr_ip_is_v4(to) ? AF_INET : AF_INET6;
	union sockaddr_ip own, plain = { 0 };
	socklen_t len = sizeof(own);
	int probe = raw_socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool known;

	if (probe < 0)
		return false;
	sockaddr_ip_set(&plain, family, &in6, sockaddr_ip_port(to));
	/* on a datagram socket connect() looks up the route and sends nothing */
	known = (!device || raw_set_int(probe, SOL_SOCKET, SO_BINDTOIFINDEX, device)) &&
		raw_connect(probe, &plain.sa, sockaddr_ip_len(&plain)) == 0 && raw_getsockname(probe, &own.sa, &len) == 0;
	raw_close(probe);
	if (known)
		*source = sockaddr_ip_in6(&own);
	return known;
}

static int device_called(const char *name)
{
	struct ifreq request = { .ifr_flags = 0 };
	int fd = raw_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool there;

	memcpy(request.ifr_name, name, sizeof(request.ifr_name));
	there = fd >= 0 && raw_ioctl(fd, SIOCGIFINDEX, &request) == 0;
	if (fd >= 0)
		raw_close(fd);
	return there ? request.ifr_ifindex : 0;
}

bool network_usual_is_never(const struct path_preferences *wanted, const union sockaddr_ip *to)
{
	struct in6_addr usual, other;

	if (!path_preferences_forbid(wanted) || !network_usual_source(to, 0, &usual))
		return false;
	for (size_t i = 0; i < wanted->count; i++) {
		const struct path_wish *wish = &wanted->wishes[i];
		const int device = *wish->device ? device_called(wish->device) : 0;

		if (wish->use != PATH_USE_NEVER)
			continue;
		if (*wish->device ? device && network_usual_source(to, device, &other) && IN6_ARE_ADDR_EQUAL(&usual, &other) :
				    IN6_ARE_ADDR_EQUAL(&usual, &wish->address))
			return true;
	}
	return false;
}

struct in6_addr network_source(int fd)
{
	union sockaddr_ip addr = { 0 };
	socklen_t len = sizeof(addr);
	struct in6_addr source = in6addr_any;

	if (raw_getsockname(fd, &addr.sa, &len) == 0 && addr.sa.sa_family == AF_INET6)
		source = addr.in6.sin6_addr;
	else if (addr.sa.sa_family == AF_INET && addr.in.sin_addr.s_addr != htonl(INADDR_ANY))
		source = sockaddr_ip_in6(&addr);
	return source;
}

bool network_is_chosen(int fd)
{
	return raw_get_int(fd, SOL_SOCKET, SO_BINDTOIFINDEX, 1) || raw_get_int(fd, SOL_SOCKET, SO_MARK, 1);
}

/* --- quotas that are used up --- */

/*
 * The path service publishes the devices whose quota is used up by rules (host_model.h), which each program reads at most once a second,
 * by four system calls. A change makes a new list; threads may still use the one before, which stays until there have been
 * QUOTA_LISTS - 1 more changes.
 */

#define QUOTA_LISTS 4
#define QUOTA_LOOK_NS CLOCK_NS_PER_S

static struct path_preferences quota_lists[QUOTA_LISTS];
static const struct path_preferences *_Atomic quota_list; /* NULL: no quota is used up */
static unsigned int next_quota_list; /* belongs to the thread that has moved quotas_look_at */
static _Atomic int64_t quotas_look_at;

/* Has the user a stricter wish for the device, or is it in the list already? */
static bool is_stricter(const struct path_preferences *list, const struct path_wish *wish)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->wishes[i].device, wish->device) == 0 && list->wishes[i].use >= wish->use)
			return true;
	return false;
}

/* Puts a device before the user's own wishes, since the first one for a device counts. */
static void note_quota(void *arg, const struct service_rule *rule)
{
	struct path_preferences *list = arg;
	struct path_wish wish = { .use = rule->priority == HOST_QUOTA_NEVER_PRIORITY ? PATH_USE_NEVER : PATH_USE_BACKUP };

	memcpy(wish.device, rule->device, sizeof(wish.device));
	if ((rule->priority != HOST_QUOTA_NEVER_PRIORITY && rule->priority != HOST_QUOTA_BACKUP_PRIORITY) || !*wish.device ||
	    list->count == PATH_PREFERENCES_MAX || is_stricter(list, &wish))
		return;
	memmove(list->wishes + 1, list->wishes, list->count * sizeof(wish));
	list->wishes[0] = wish;
	list->count++;
}

/* Reads the rules, and publishes a new list if they have changed. Keeps the present one if the kernel doesn't tell. */
static void quotas_look(const struct settings *settings)
{
	const struct path_preferences *before = atomic_load(&quota_list);
	struct path_preferences *list = &quota_lists[next_quota_list];
	int netlink = nl_open(NETLINK_ROUTE);

	if (netlink < 0)
		return;
	*list = settings->paths;
	if (service_rules_visit(netlink, AF_INET, note_quota, list) < 0) {
		/* nothing is known */
	} else if (list->count == settings->paths.count) {
		atomic_store(&quota_list, NULL);
	} else if (!before || before->count != list->count ||
		   memcmp(before->wishes, list->wishes, list->count * sizeof(list->wishes[0])) != 0) {
		atomic_store(&quota_list, list);
		next_quota_list = (next_quota_list + 1) % QUOTA_LISTS;
	}
	raw_close(netlink);
}

const struct path_preferences *host_preferences(const struct settings *settings)
{
	int64_t at = atomic_load(&quotas_look_at), now = clock_ns();
	const struct path_preferences *list;

	if (now >= at && atomic_compare_exchange_strong(&quotas_look_at, &at, now + QUOTA_LOOK_NS))
		quotas_look(settings);
	list = atomic_load(&quota_list);
	return list ? list : &settings->paths;
}
