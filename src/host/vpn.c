/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vpn.c - does a VPN take all traffic, so that nothing of ours may leave this host beside it?
 *
 * The kernel is asked which way it sends a packet, rather than its routes read: by halves (0.0.0.0/1 and 128.0.0.0/1), by a default route
 * of lower metric, by a hundred prefixes that leave private networks out, or by rules and marks, a VPN takes what the kernel sends there. A
 * VPN with a default route that another one is preferred to takes nothing. These rules need no lists, and run in hooks.
 */
#include "config.h"

#include "host/host.h"

#include <string.h>

bool host_kind_is_vpn(const char *kind)
{
	static const char *const kinds[] = { "tun", "wireguard", "ovpn", "xfrm", "vti", "vti6" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kind, kinds[i]) == 0)
			return true;
	return false;
}

const struct host_link *host_vpn_among(const struct host_link *links, size_t count, const unsigned int ways[static HOST_WAY_COUNT],
				       const struct host_word *word)
{
	for (size_t i = 0; i < count && !word->beside_vpn; i++)
		for (int to = 0; to < HOST_WAY_COUNT; to++)
			if (ways[to] && links[i].index == ways[to] && host_kind_is_vpn(links[i].kind) &&
			    !host_word_names(word->device, links[i].name))
				return &links[i];
	return NULL;
}

bool host_may_leave(const struct host_link *vpn, unsigned int index, unsigned int usual)
{
	return !vpn || index == usual;
}
