/* SPDX-License-Identifier: BSD-3-Clause */
/* network_policy.c - the settings of users and administrators for this host's networks, and VPNs that take all traffic */
#include "config.h"

#include "host/host_model.h"

#include "host/raw_io.h"

#include <errno.h>
#include <fnmatch.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <string.h>

#define PATTERN_MAX 64 /* room for a pattern with brackets, for a name of IF_NAMESIZE - 1 bytes */

const char *name_list_next(const char **list, size_t *len)
{
	const char *found = *list ? *list + strspn(*list, ", ") : "";

	*len = strcspn(found, ", ");
	*list = found + *len;
	return *len ? found : NULL;
}

bool name_is_pattern(const char *name)
{
	return strpbrk(name, "*?[");
}

bool name_list_has(const char *list, const char *name)
{
	char pattern[PATTERN_MAX];
	const char *found;
	size_t len;

	while ((found = name_list_next(&list, &len))) {
		if (len >= sizeof(pattern))
			continue;
		memcpy(pattern, found, len);
		pattern[len] = '\0';
		if (fnmatch(pattern, name, 0) == 0)
			return true;
	}
	return false;
}

enum path_use network_policy_use(const struct network_policy *policy, const struct host_nm_device *nm, const char *device,
				 const struct in6_addr *address, uint8_t *preference)
{
	enum path_use use = PATH_USE_ORDERED;

	*preference = PATH_PREFERENCE_NONE;
	if (policy->paths)
		use = path_preferences_of(policy->paths, device, address, preference);
	if (use == PATH_USE_NEVER || name_list_has(policy->never, device) || (nm && nm->disabled))
		return PATH_USE_NEVER;
	return name_list_has(policy->backup, device) || (nm && nm->metered == HOST_METERED_YES) ? PATH_USE_BACKUP : use;
}

/* --- is it there? --- */

static bool has_device(int fd, const char *name)
{
	struct ifreq request = { .ifr_flags = 0 };

	strcpy(request.ifr_name, name);
	return raw_ioctl(fd, SIOCGIFINDEX, &request) == 0 || errno != ENODEV;
}

/* Does this machine have the address? It does if bind() accepts it. */
static bool has_address(int fd, const union sockaddr_ip *address)
{
	return raw_bind(fd, &address->sa, sockaddr_ip_len(address)) == 0 || errno != EADDRNOTAVAIL;
}

bool network_is_there(const struct path_wish *wish)
{
	const int family = IN6_IS_ADDR_V4MAPPED(&wish->address) || *wish->device ? AF_INET : AF_INET6;
	int before = errno, fd = raw_socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union sockaddr_ip address;
	bool there = true;

	if (fd >= 0) {
		sockaddr_ip_set(&address, family, &wish->address, 0);
		there = *wish->device ? has_device(fd, wish->device) : has_address(fd, &address);
		raw_close(fd);
	}
	errno = before;
	return there;
}

void networks_tell_missing(const struct path_preferences *wanted, client_log *say)
{
	char name[SOCKADDR_STRLEN];

	for (size_t i = 0; i < wanted->count; i++)
		if (!network_is_there(&wanted->wishes[i]))
			say("CONVERT_PATHS names %s: there is no such device or address now", path_wish_format(&wanted->wishes[i], name));
}

/* --- addresses --- */

bool host_address_is_global(const struct in6_addr *address, uint8_t scope)
{
	if (scope >= RT_SCOPE_LINK)
		return false;
	/* an address of 169.254.0.0/16 that was set by hand may have any scope */
	return !IN6_IS_ADDR_V4MAPPED(address) || address->s6_addr[12] != 169 || address->s6_addr[13] != 254;
}

enum host_verdict host_address_judge(uint32_t flags, bool has_endpoint)
{
	/* an optimistic address (RFC 4429) is also tentative, but usable */
	if (flags & IFA_F_DADFAILED || (flags & IFA_F_TENTATIVE && !(flags & IFA_F_OPTIMISTIC)))
		return HOST_NOT_READY;
	/* RFC 4862, 5.5.4: a deprecated address serves existing connections only */
	return flags & IFA_F_DEPRECATED && !has_endpoint ? HOST_DEPRECATED : HOST_USED;
}

unsigned int host_address_fitness(const struct in6_addr *address, uint32_t flags, bool has_endpoint, bool has_rule)
{
	/* IPv4 has the same flag for secondary addresses */
	const bool is_temporary = !IN6_IS_ADDR_V4MAPPED(address) && flags & IFA_F_TEMPORARY;

	return 1 + (flags & IFA_F_DEPRECATED ? 0u : 8u) + (has_endpoint && !has_rule ? 4u : 0) + (is_temporary ? 2u : 0) +
	       (has_endpoint && has_rule ? 1u : 0);
}

/* --- VPNs --- */

/*
 * We don't read routes, but ask the kernel for the route of a packet. That works for a VPN with two halves (0.0.0.0/1 and 128.0.0.0/1),
 * with a default route of lower metric, with a hundred prefixes that leave private networks out, or with rules and marks. A VPN whose
 * default route has a higher metric than another one takes no traffic. These rules need no lists, and run in hooks.
 */
bool host_kind_is_vpn(const char *kind)
{
	static const char *const kinds[] = { "tun", "wireguard", "ovpn", "xfrm", "vti", "vti6" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kind, kinds[i]) == 0)
			return true;
	return false;
}

const struct host_link *host_vpn_among(const struct host_link *links, size_t count, const unsigned int ways[static HOST_WAY_COUNT],
				       const struct network_policy *policy)
{
	for (size_t i = 0; i < count && !policy->beside_vpn; i++)
		for (int to = 0; to < HOST_WAY_COUNT; to++)
			if (ways[to] && links[i].index == ways[to] && host_kind_is_vpn(links[i].kind) &&
			    !name_list_has(policy->device, links[i].name))
				return &links[i];
	return NULL;
}

bool host_allows_beside_vpn(const struct host_link *vpn, unsigned int index, unsigned int usual)
{
	return !vpn || index == usual;
}
