/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vpn.c - determines whether a VPN takes all traffic, so that none of ours may leave this host beside it
 *
 * We don't read routes, but ask the kernel for the route of a packet. That works for a VPN with two halves (0.0.0.0/1 and 128.0.0.0/1),
 * with a default route of lower metric, with a hundred prefixes that leave private networks out, or with rules and marks. A VPN whose
 * default route has a higher metric than another one takes no traffic. These rules need no lists, and run in hooks.
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
