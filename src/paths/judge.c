/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge.c - is a device with its address a network that connections are to use, and if not, why not?
 *
 * A network is something that has a default route: so the bridges of containers and virtual machines, which have addresses and lead
 * nowhere, need no list of names. What is left are devices that do lead somewhere, and are no network of their own: a
 * tunnel goes over one of the others, and its provider has the say about what goes beside it; a veth is the end of a
 * container's cable. They are told by the kind that the kernel has for them (rtnetlink(7), IFLA_INFO_KIND), and used if named.
 */
#include "config.h"

#include "paths/judge.h"

#include "common/vpn.h"

#include <assert.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <string.h>

static const struct {
	const char *name, *text;
} verdicts[] = {
	[PATHS_USED] = { "used", "it is used" },
	[PATHS_NEVER] = { "never", "--never-device (never-device in convertize.conf) names it" },
	[PATHS_NOT_NAMED] = { "not-named", "--device (device in convertize.conf) names others" },
	[PATHS_KIND] = { "kind", "a device of this kind is used only if --device (device in convertize.conf) names it" },
	[PATHS_PART] = { "part", "it is part of another device" },
	[PATHS_DISABLED] = { "disabled", "NetworkManager has connection.mptcp-flags disabled for it" },
	[PATHS_DOWN] = { "down", "it is down" },
	[PATHS_NO_CARRIER] = { "no-carrier", "it has no carrier" },
	[PATHS_NOT_READY] = { "not-ready", "duplicate address detection isn't over, or has found a duplicate" },
	[PATHS_DEPRECATED] = { "deprecated", "the address is deprecated" },
	[PATHS_NO_ROUTE] = { "no-route", "there is no default route over it" },
	[PATHS_SECOND] = { "second", "another address of this device is used" },
	[PATHS_TWICE] = { "twice", "another device has the same address" },
	[PATHS_VPN] = { "vpn", "all traffic goes through a VPN; --beside-vpn (beside-vpn in convertize.conf) has paths beside it" },
	[PATHS_FULL] = { "full", "MPTCP takes no more endpoints" },
};
static_assert(sizeof(verdicts) / sizeof(verdicts[0]) == PATHS_VERDICT_COUNT, "a name for each verdict");

/* Kinds that are networks of this machine's own; the empty one is that of Ethernet, WiFi and USB devices. */
static const char *const network_kinds[] = { "", "wwan", "rmnet", "ppp", "vlan", "bond", "team", "bridge", NULL };

static bool is_among(const char *const kinds[], const char *kind)
{
	for (size_t i = 0; kinds[i]; i++)
		if (strcmp(kinds[i], kind) == 0)
			return true;
	return false;
}

const char *paths_verdict_name(enum paths_verdict verdict)
{
	return verdicts[verdict].name;
}

const char *paths_verdict_text(enum paths_verdict verdict)
{
	return verdicts[verdict].text;
}

enum paths_verdict paths_judge_link(const struct paths_link *link, const struct paths_choice *choice,
				    const struct paths_others *others)
{
	const struct paths_nm_device *nm = paths_others_nm(others, link->name);

	if (paths_choice_names(choice->never, link->name))
		return PATHS_NEVER;
	if (choice->device && !paths_choice_names(choice->device, link->name))
		return PATHS_NOT_NAMED;
	if (!choice->device && !is_among(network_kinds, link->kind))
		return PATHS_KIND;
	if (link->master)
		return PATHS_PART;
	if (nm && nm->disabled)
		return PATHS_DISABLED;
	return link->up ? PATHS_USED : PATHS_DOWN;
}

bool paths_judge_is_global(const struct paths_address *address)
{
	struct in6_addr in6 = sockaddr_ip_in6(&address->address);

	if (address->scope >= RT_SCOPE_LINK)
		return false;
	/* 169.254.0.0/16 may have been given by hand, with the scope of any other */
	return !sockaddr_ip_is_v4(&address->address) || in6.s6_addr[12] != 169 || in6.s6_addr[13] != 254;
}

enum paths_verdict paths_judge_address(const struct paths_address *address, bool has_endpoint)
{
	/* an optimistic address (RFC 4429) is tentative as well, and may be used */
	if (address->flags & IFA_F_DADFAILED ||
	    (address->flags & IFA_F_TENTATIVE && !(address->flags & IFA_F_OPTIMISTIC)))
		return PATHS_NOT_READY;
	/* RFC 4862, 5.5.4: it serves the connections that have it, and begins none */
	return address->flags & IFA_F_DEPRECATED && !has_endpoint ? PATHS_DEPRECATED : PATHS_USED;
}

const struct paths_link *paths_judge_vpn(const struct paths_world *world, const struct paths_choice *choice)
{
	if (choice->beside_vpn)
		return NULL;
	for (size_t i = 0; i < world->route_count; i++) {
		const struct paths_route *route = &world->routes[i];
		const struct paths_link *link = paths_world_link(world, route->index);

		if (link && link->up && route->protocol != PATHS_PROTOCOL && paths_route_is_wide(route) &&
		    vpn_is_kind(link->kind) && !paths_choice_names(choice->device, link->name))
			return link;
	}
	return NULL;
}
