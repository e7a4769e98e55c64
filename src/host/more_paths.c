/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * more_paths.c - the paths that the kernel would give to a Multipath TCP connection besides its first one
 *
 * The kernel's path manager (ip-mptcp(8)) opens subflows from its endpoints, for all connections. A socket can't exclude one: binding it to
 * a device binds only its first subflow. So a connection that must keep off a network is a plain TCP connection, unless no endpoint leads
 * over that network.
 *
 * An endpoint that somebody makes later gives a subflow to open connections, too. So we also look for endpoints to come:
 *
 *	the path service (convertize paths --manage)   has a rule for each network that it uses, even while it makes the endpoint anew; and
 *	                                               says by rules which devices it never uses, or as a backup (host_model.h)
 *	other managers                                 keep endpoints for all networks, and have made one for each network that is ready
 *
 * So Multipath TCP is safe if each network that the user excludes is ready and has no endpoint, or the service excludes it, too.
 */
#include "config.h"

#include "host/networks.h"

#include "host/host_model.h"
#include "host/lookup.h"
#include "host/raw_io.h"

#include <assert.h>
#include <linux/mptcp.h>
#include <linux/rtnetlink.h>
#include <string.h>

/* --- may there be several? --- */

/* The search for an endpoint that would open a second path. */
struct second_path {
	struct in6_addr source; /* of the connection; IPv4 as v4-mapped */
	bool may_be;
};

/*
 * Subflows come from endpoints with the flag "subflow" or "fullmesh". An endpoint with the connection's own address adds no path, nor does
 * one of the other family.
 */
static void note_endpoint(void *arg, const struct mptcp_endpoint *endpoint)
{
	struct second_path *second = arg;
	const struct in6_addr address = sockaddr_ip_in6(&endpoint->address);

	second->may_be |= (endpoint->flags & (MPTCP_PM_ADDR_FLAG_SUBFLOW | MPTCP_PM_ADDR_FLAG_FULLMESH)) &&
			  IN6_IS_ADDR_V4MAPPED(&address) == IN6_IS_ADDR_V4MAPPED(&second->source) &&
			  !IN6_ARE_ADDR_EQUAL(&address, &second->source);
}

/*
 * Who manages paths? BREACH_NONE: the kernel; BREACH_MANAGER: a path manager in user space, such as mptcpd(8), which may add one at any
 * time; BREACH_UNKNOWN: /proc doesn't tell.
 */
static enum policy_breach path_manager_breach(void)
{
	int fd = (int)RAWCALL(SYS_openat, AT_FDCWD, "/proc/sys/net/mptcp/pm_type", O_RDONLY | O_CLOEXEC, 0);
	char type = 0;
	bool known;

	if (fd < 0)
		return BREACH_UNKNOWN;
	known = RAWCALL(SYS_read, fd, &type, 1) == 1;
	raw_close(fd);
	if (!known)
		return BREACH_UNKNOWN;
	return type == '0' ? BREACH_NONE : BREACH_MANAGER;
}

/* Finds the connection's source address: the one that the socket is bound to, or the one that the routes give. */
static bool source_of(int fd, const union sockaddr_ip *to, struct in6_addr *source)
{
	*source = network_source(fd);
	return !IN6_IS_ADDR_UNSPECIFIED(source) || (!network_is_chosen(fd) && network_usual_source(to, 0, source));
}

bool networks_may_be_several(int fd, const union sockaddr_ip *to)
{
	struct second_path second = { .may_be = false };
	struct mptcp_limits limits = { .accepted = 0 };

	if (!source_of(fd, to, &second.source) || path_manager_breach())
		return true;
	/* a peer may announce addresses; by default the kernel accepts none */
	return endpoints_visit(note_endpoint, &second, &limits) < 0 || second.may_be || limits.accepted;
}

/* --- the user's policy --- */

#define EXCLUDED_MAX 16

const char *policy_breach_text(enum policy_breach breach)
{
	static const char *const texts[] = {
		[BREACH_NONE] = "nothing",
		[BREACH_ENDPOINT] = "an MPTCP endpoint is on a network that CONVERT_PATHS or a quota excludes",
		[BREACH_NO_BACKUP] = "an MPTCP endpoint without the flag backup is on a network that CONVERT_PATHS or a quota has for "
				     "backup",
		[BREACH_SERVICE] = "the path service uses a network that CONVERT_PATHS or a quota excludes",
		[BREACH_ABSENT] = "a network that CONVERT_PATHS or a quota excludes isn't ready now, and may come with an MPTCP endpoint",
		[BREACH_ANNOUNCED] = "the kernel connects to addresses that the converter announces, over any network",
		[BREACH_MANAGER] = "a program manages the paths of Multipath TCP",
		[BREACH_UNKNOWN] = "the kernel doesn't tell this program its MPTCP endpoints, or who manages them",
	};
	static_assert(sizeof(texts) / sizeof(texts[0]) == BREACH_COUNT, "a text for each");

	return texts[breach];
}

/* The search for an endpoint that breaks the policy. */
struct breach {
	int netlink;
	const struct network_policy *policy;
	const union sockaddr_ip *to;
	struct in6_addr excluded[EXCLUDED_MAX]; /* of networks with =never or =backup, of the family of @to; IPv4 as v4-mapped */
	enum path_use uses[EXCLUDED_MAX];
	size_t count;
	bool is_kept[EXCLUDED_MAX];       /* the path service keeps an endpoint for it */
	bool there[PATH_PREFERENCES_MAX + PATH_EXCLUSIONS_MAX]; /* for each wish: its network is ready, or the service obeys it, too */
	enum policy_breach found;
};

/* Returns the policy's setting for a device and an address. A device without a name, as it has gone meanwhile, has only its address. */
static enum path_use device_use(const struct breach *breach, int device, const struct in6_addr *address, char name[static IF_NAMESIZE])
{
	uint8_t preference;

	host_device_name(breach->netlink, (unsigned int)device, name);
	return network_policy_use(breach->policy, NULL, name, address, &preference);
}

/*
 * Has the device @name a carrier, and do packets from its address leave by it? Otherwise the network isn't ready, and a manager may make
 * its endpoint later.
 */
static bool is_ready(const struct breach *breach, const struct local_address *address, const char name[static IF_NAMESIZE])
{
	const bool v4 = IN6_IS_ADDR_V4MAPPED(&address->address);
	const union sockaddr_ip anywhere = host_way_anywhere(v4 ? AF_INET : AF_INET6);
	struct ifreq request = { .ifr_flags = 0 };
	struct host_way way;

	memcpy(request.ifr_name, name, IF_NAMESIZE);
	if (raw_ioctl(breach->netlink, SIOCGIFFLAGS, &request) != 0 || !(request.ifr_flags & IFF_RUNNING))
		return false;
	/* by a socket of its own, since the other one is still listing addresses */
	host_way_ask(-1, v4 == sockaddr_ip_is_v4(breach->to) ? breach->to : &anywhere, &address->address, (unsigned int)address->device, &way);
	return host_way_leads(&way, (unsigned int)address->device);
}

/* Notes an address of a network that is excluded. */
static void note_excluded(void *arg, const struct local_address *address)
{
	struct breach *breach = arg;
	char name[IF_NAMESIZE];
	const enum path_use use = device_use(breach, address->device, &address->address, name);

	if (use == PATH_USE_ORDERED)
		return;
	for (size_t i = 0; i < breach->policy->paths->count; i++) {
		const struct path_wish *wish = &breach->policy->paths->wishes[i];

		if (*wish->device ? strcmp(wish->device, name) == 0 : IN6_ARE_ADDR_EQUAL(&wish->address, &address->address))
			breach->there[i] |= address->scope == RT_SCOPE_UNIVERSE && is_ready(breach, address, name);
	}
	if (IN6_IS_ADDR_V4MAPPED(&address->address) != sockaddr_ip_is_v4(breach->to))
		return;
	if (breach->count == EXCLUDED_MAX) {
		breach->found = BREACH_UNKNOWN;
		return;
	}
	breach->excluded[breach->count] = address->address;
	breach->uses[breach->count++] = use;
}

/* Notes a rule: the service never uses a device, or only as a backup; or it keeps an endpoint for the address, now or in a moment. */
static void note_service(void *arg, const struct service_rule *rule)
{
	struct breach *breach = arg;
	const enum path_use use = rule->priority == HOST_POLICY_NEVER_PRIORITY  ? PATH_USE_NEVER :
				  rule->priority == HOST_POLICY_BACKUP_PRIORITY ? PATH_USE_BACKUP :
										  PATH_USE_ORDERED;

	for (size_t i = 0; *rule->device && i < breach->policy->paths->count; i++) {
		const struct path_wish *wish = &breach->policy->paths->wishes[i];

		breach->there[i] |= *wish->device && use >= wish->use && name_list_has(rule->device, wish->device);
	}
	for (size_t i = 0; !*rule->device && i < breach->count; i++)
		if (IN6_ARE_ADDR_EQUAL(&breach->excluded[i], &rule->from))
			breach->is_kept[i] = true;
}

/* Returns the strictest setting for the networks of an endpoint: of its address, and of the device that its packets leave by. */
static enum path_use endpoint_use(const struct breach *breach, const struct mptcp_endpoint *endpoint)
{
	const struct in6_addr address = sockaddr_ip_in6(&endpoint->address);
	char name[IF_NAMESIZE];
	struct host_way way;
	enum path_use use;

	host_way_ask(breach->netlink, breach->to, &address, endpoint->bound, &way);
	use = device_use(breach, endpoint->bound ? (int)endpoint->bound : (int)way.index, &address, name);
	for (size_t i = 0; i < breach->count; i++)
		if (IN6_ARE_ADDR_EQUAL(&breach->excluded[i], &address) && breach->uses[i] > use)
			use = breach->uses[i];
	return use;
}

/* An implicit endpoint only numbers an address that connections use already. Any other makes the peer or this host open subflows. */
static void find_breach(void *arg, const struct mptcp_endpoint *endpoint)
{
	struct breach *breach = arg;
	enum path_use use;

	if (endpoint->flags == MPTCP_PM_ADDR_FLAG_IMPLICIT || sockaddr_ip_is_v4(&endpoint->address) != sockaddr_ip_is_v4(breach->to))
		return;
	use = endpoint_use(breach, endpoint);
	for (size_t i = 0; i < breach->count && use == PATH_USE_BACKUP && endpoint->flags & MPTCP_PM_ADDR_FLAG_BACKUP; i++) {
		const struct in6_addr address = sockaddr_ip_in6(&endpoint->address);

		breach->is_kept[i] &= !IN6_ARE_ADDR_EQUAL(&breach->excluded[i], &address);
	}
	if (use == PATH_USE_NEVER)
		breach->found = BREACH_ENDPOINT;
	else if (use == PATH_USE_BACKUP && !(endpoint->flags & MPTCP_PM_ADDR_FLAG_BACKUP) && !breach->found)
		breach->found = BREACH_NO_BACKUP;
}

/* Looks at the addresses, and then at the endpoints and limits, with an open socket. */
static void look_for_breach(struct breach *breach)
{
	struct mptcp_limits limits = { .accepted = 0 };

	if (addresses_visit(breach->netlink, AF_UNSPEC, note_excluded, breach) < 0 ||
	    service_rules_visit(breach->netlink, AF_UNSPEC, note_service, breach) < 0 || endpoints_visit(find_breach, breach, &limits) < 0)
		breach->found = BREACH_UNKNOWN;
	if (limits.accepted && !breach->found)
		breach->found = BREACH_ANNOUNCED;
	for (size_t i = 0; i < breach->count && !breach->found; i++)
		if (breach->is_kept[i])
			breach->found = BREACH_SERVICE;
	for (size_t i = 0; i < breach->policy->paths->count && !breach->found; i++)
		if (breach->policy->paths->wishes[i].use != PATH_USE_ORDERED && !breach->there[i])
			breach->found = BREACH_ABSENT;
}

enum policy_breach networks_policy_breach(const struct network_policy *policy, const union sockaddr_ip *to)
{
	struct breach breach = { .policy = policy, .to = to };

	if (!policy->paths || !path_preferences_restrict(policy->paths))
		return BREACH_NONE;
	breach.found = path_manager_breach();
	if (breach.found)
		return breach.found;
	breach.netlink = nl_open(NETLINK_ROUTE);
	if (breach.netlink < 0)
		return BREACH_UNKNOWN;
	look_for_breach(&breach);
	raw_close(breach.netlink);
	return breach.found;
}
