/* SPDX-License-Identifier: BSD-3-Clause */
/* vpn.h - the kinds of devices that VPNs are made of, as the kernel names them (IFLA_INFO_KIND) */
#ifndef COMMON_VPN_H
#define COMMON_VPN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool vpn_is_kind(const char *kind)
{
	static const char *const kinds[] = { "tun", "wireguard", "ovpn", "xfrm", "vti", "vti6" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kind, kinds[i]) == 0)
			return true;
	return false;
}

#endif
