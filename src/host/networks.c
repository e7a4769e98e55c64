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

#define ENDPOINTS_NOTED 16 /* the kernel takes HOST_ENDPOINTS_USED_MAX */

struct noted_endpoint {
	struct in6_addr address;
	bool backup;
	bool has_rule; /* the path service has a rule for the address */
};

/* The state of the search. */
struct search {
	int netlink;
	const union sockaddr_ip *to;
	unsigned int usual; /* index of the interface that the kernel chooses */
	const struct network_policy *policy;
	struct noted_endpoint endpoints[ENDPOINTS_NOTED];
	size_t endpoint_count;
	struct network *found; /* one for each interface, with its fittest address */
	size_t count;
	size_t leading; /* the first ones of @found, which are known to lead to @to */
};

static void note_endpoint(void *arg, const struct mptcp_endpoint *endpoint)
{
	struct search *search = arg;

	if (search->endpoint_count < ENDPOINTS_NOTED && !sockaddr_ip_port(&endpoint->address))
		search->endpoints[search->endpoint_count++] = (struct noted_endpoint){
			.address = sockaddr_ip_in6(&endpoint->address), .backup = endpoint->flags & MPTCP_PM_ADDR_FLAG_BACKUP };
}

static struct noted_endpoint *endpoint_of(struct search *search, const struct in6_addr *address)
{
	for (size_t i = 0; i < search->endpoint_count; i++)
		if (IN6_ARE_ADDR_EQUAL(&search->endpoints[i].address, address))
			return &search->endpoints[i];
	return NULL;
}

static void note_rule(void *arg, const struct service_rule *rule)
{
	struct noted_endpoint *endpoint = endpoint_of(arg, &rule->from);

	if (endpoint)
		endpoint->has_rule = true;
}

/* Asks for the route to @to. A part of a bridge, a bond or a VRF is a network only if the kernel chooses it. */
static bool network_leads(int netlink, const struct search *search, struct network *network)
{
	const unsigned int device = (unsigned int)network->device;
	struct host_link link;
	struct host_way way;

	network->usual = device == search->usual;
	host_way_ask(netlink, search->to, &network->source, 0, &way);
	network->bind_device = !network->usual && !host_way_leads(&way, device);
	if (network->bind_device)
		host_way_ask(netlink, search->to, &network->source, device, &way);
	if (!host_way_leads(&way, device))
		return false;
	link = host_link_ask(netlink, device);
	network->carrier = link.carrier;
	return network->usual || !link.master;
}

/* Keeps the networks that lead to @to. */
static void keep_leading(int netlink, struct search *search)
{
	for (size_t i = search->leading; i < search->count; i++)
		if (network_leads(netlink, search, &search->found[i]))
			search->found[search->leading++] = search->found[i];
	search->count = search->leading;
}

/*
 * Makes room for one more interface: those of containers may be many, with low numbers, and lead nowhere. The kernel lists an interface's
 * addresses one after the other, so all addresses of the earlier ones are noted. Asks by a socket of its own, since the other one still
 * lists addresses.
 */
static void make_room(struct search *search)
{
	const int netlink = search->leading < NETWORKS_MAX ? nl_open(NETLINK_ROUTE) : -1;

	if (netlink < 0)
		return;
	keep_leading(netlink, search);
	raw_close(netlink);
}

/* Notes the address if it is the fittest of its interface so far. The first of equals stays. */
static void note_address(void *arg, const struct local_address *address)
{
	struct search *search = arg;
	const struct in6_addr *source = &address->address;
	const struct noted_endpoint *endpoint = endpoint_of(search, source);
	struct network network = { .source = *source, .device = address->device, .backup = endpoint && endpoint->backup };
	size_t i = 0;

	if (!host_address_is_global(source, address->scope) || host_address_judge(address->flags, endpoint) != HOST_USED ||
	    !host_device_name(search->netlink, (unsigned int)address->device, network.name))
		return;
	network.use = network_policy_use(search->policy, NULL, network.name, source, &network.preference);
	if (network.use != PATH_USE_NEVER)
		network.fitness = host_address_fitness(source, address->flags, endpoint, endpoint && endpoint->has_rule);
	while (i < search->count && search->found[i].device != address->device)
		i++;
	if (i == NETWORKS_MAX) {
		make_room(search);
		i = search->count;
	}
	if (i == NETWORKS_MAX || (i < search->count && network.fitness <= search->found[i].fitness))
		return;
	search->found[i] = network;
	search->count += i == search->count;
}

/* Asks for the routes to @to and to anywhere. Returns true if one goes through a VPN beside which we may use no network. */
static bool is_in_vpn(int netlink, const union sockaddr_ip *to, const struct network_policy *policy, struct host_link *vpn, unsigned int *usual)
{
	unsigned int ways[HOST_WAY_COUNT];

	host_ways_ask(netlink, to, ways);
	*usual = ways[HOST_WAY_CONVERTER];
	for (int i = 0; i < HOST_WAY_COUNT; i++) {
		if (!ways[i] || (i && ways[i] == vpn->index))
			continue;
		*vpn = host_link_ask(netlink, ways[i]);
		if (host_vpn_among(vpn, 1, ways, policy))
			return true;
	}
	return false;
}

/* Marks as unused the worse of two devices with the same address, and devices without a carrier if a network has one: see judge.c. */
static void compare(struct network *found, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++) {
			struct network *a = &found[i], *b = &found[j];
			const bool first = a->carrier != b->carrier ? a->carrier : !b->usual;

			if (a->fitness && b->fitness && IN6_ARE_ADDR_EQUAL(&a->source, &b->source))
				*(first ? &b->unused : &a->unused) = true;
		}
	for (size_t i = 0; i < count; i++)
		any |= found[i].carrier && found[i].fitness && !found[i].unused;
	for (size_t i = 0; i < count; i++)
		found[i].unused |= any && found[i].fitness && !found[i].carrier;
}

/* Removes the unused networks, except the usual one, which it moves to the front. Returns the number that is left. */
static size_t usual_first(struct network *found, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		const struct network network = found[i];
		const size_t place = network.usual ? 0 : kept;

		if (network.unused && !network.usual)
			continue;
		memmove(found + place + 1, found + place, (kept - place) * sizeof(*found));
		found[place] = network;
		kept++;
	}
	return kept;
}

size_t networks_to(const union sockaddr_ip *to, const struct network_policy *policy, struct network out[NETWORKS_MAX])
{
	const int family = sockaddr_ip_is_v4(to) ? AF_INET : AF_INET6;
	struct search search = { .netlink = nl_open(NETLINK_ROUTE), .to = to, .policy = policy, .found = out };
	struct host_link vpn = { .index = 0 };
	size_t count = 0;
	bool in_vpn;

	if (search.netlink < 0)
		return 0;
	in_vpn = is_in_vpn(search.netlink, to, policy, &vpn, &search.usual);
	endpoints_visit(note_endpoint, &search, NULL);
	if (search.endpoint_count)
		service_rules_visit(search.netlink, family, note_rule, &search);
	addresses_visit(search.netlink, family, note_address, &search);
	keep_leading(search.netlink, &search);
	for (size_t i = 0; i < search.count; i++)
		if (host_allows_beside_vpn(in_vpn ? &vpn : NULL, (unsigned int)out[i].device, search.usual))
			out[count++] = out[i];
	raw_close(search.netlink);
	compare(out, count);
	count = usual_first(out, count);
	if (count == 1)
		out->backup = false; /* there is no other one that it could stand back for */
	return count;
}

/* --- a socket --- */

bool network_bind(int fd, const struct in6_addr *source, int device)
{
	const int family = raw_get_socket(fd, SO_DOMAIN, AF_UNSPEC);
	union sockaddr_ip addr;

	if (raw_get_socket(fd, SO_BINDTOIFINDEX, 0) != device && !raw_set_int(fd, SOL_SOCKET, SO_BINDTOIFINDEX, device))
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

bool network_needs_socket(int fd, int device)
{
	const int bound = raw_get_socket(fd, SO_BINDTOIFINDEX, 0);

	return bound && bound != device;
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

	if (raw_getsockname(fd, &addr.sa, &len) == 0 && (addr.sa.sa_family == AF_INET6 || addr.sa.sa_family == AF_INET))
		source = sockaddr_ip_in6(&addr);
	return IN6_IS_ADDR_V4MAPPED(&source) && !source.s6_addr32[3] ? in6addr_any : source;
}

bool network_is_chosen(int fd)
{
	return raw_get_socket(fd, SO_BINDTOIFINDEX, 1) || raw_get_socket(fd, SO_MARK, 1);
}

/* --- devices that the path service excludes --- */

/*
 * The path service publishes devices whose quota is used up, or that are metered, by rules (host_model.h). Each program reads them at most
 * once a second, by some seven system calls. A change makes a new list; threads may still use an earlier one, which stays until there are
 * SERVICE_LISTS - 1 newer ones.
 */

#define SERVICE_LISTS 4
#define SERVICE_LOOK_NS CLOCK_NS_PER_S

static struct path_preferences service_lists[SERVICE_LISTS];
static const struct path_preferences *_Atomic service_list; /* NULL: the service excludes no device */
static unsigned int next_service_list; /* belongs to the thread that has moved service_look_at */
static _Atomic int64_t service_look_at;

/* Has the list a wish for the device, the user's or one that we added, that is at least as strict? */
static bool is_covered(const struct path_preferences *list, const struct path_wish *wish)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->wishes[i].device, wish->device) == 0 && list->wishes[i].use >= wish->use)
			return true;
	return false;
}

/* Adds a device to the user's own wishes. */
static void note_exclusion(void *arg, const struct service_rule *rule)
{
	struct path_preferences *list = arg;
	struct path_wish wish = { .use = rule->priority == HOST_PROGRAMS_NEVER_PRIORITY ? PATH_USE_NEVER : PATH_USE_BACKUP };

	memcpy(wish.device, rule->device, sizeof(wish.device));
	if ((rule->priority != HOST_PROGRAMS_NEVER_PRIORITY && rule->priority != HOST_PROGRAMS_BACKUP_PRIORITY) || !*wish.device ||
	    list->count == sizeof(list->wishes) / sizeof(wish) || is_covered(list, &wish))
		return;
	list->wishes[list->count++] = wish;
}

/* Reads the rules, and publishes a new list if they have changed. Keeps the present one if the kernel doesn't tell. */
static void service_look(const struct settings *settings)
{
	const struct path_preferences *before = atomic_load(&service_list);
	struct path_preferences *list = &service_lists[next_service_list];
	int netlink = nl_open(NETLINK_ROUTE);

	if (netlink < 0)
		return;
	*list = settings->paths;
	if (service_rules_visit(netlink, AF_INET, note_exclusion, list) < 0) {
		/* nothing is known */
	} else if (list->count == settings->paths.count) {
		atomic_store(&service_list, NULL);
	} else if (!before || before->count != list->count ||
		   memcmp(before->wishes, list->wishes, list->count * sizeof(list->wishes[0])) != 0) {
		atomic_store(&service_list, list);
		next_service_list = (next_service_list + 1) % SERVICE_LISTS;
	}
	raw_close(netlink);
}

const struct path_preferences *host_preferences(const struct settings *settings)
{
	int64_t at = atomic_load(&service_look_at), now = clock_ns();
	const struct path_preferences *list;

	if (now >= at && atomic_compare_exchange_strong(&service_look_at, &at, now + SERVICE_LOOK_NS))
		service_look(settings);
	list = atomic_load(&service_list);
	return list ? list : &settings->paths;
}
