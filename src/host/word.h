/* SPDX-License-Identifier: BSD-3-Clause */
/* word.h - the settings of users and administrators for this host's networks: never, backup, this one first */
#ifndef HOST_WORD_H
#define HOST_WORD_H

#include "client/client_log.h"
#include "client/settings.h"

/* All settings for networks, from all sources. Zeroed: none. */
struct host_word {
	const struct path_preferences *paths; /* CONVERT_PATHS, the user's; NULL: none */
	/* convertize.conf, the administrator's: names or patterns (fnmatch(3)), separated by commas; NULL: none */
	const char *device; /* use these devices, of any kind, and no others */
	const char *never;
	const char *backup;
	bool beside_vpn; /* use networks beside a VPN that takes all traffic: CONVERT_BESIDE_VPN */
	bool any_kind;   /* use devices of any kind: set for programs, but not for the path service, which wants separate networks */
};

/* The settings of NetworkManager's user for a device. */
struct host_nm_word {
	bool disabled; /* connection.mptcp-flags disabled: don't use it as a path */
	bool metered;  /* set by the user; NetworkManager's guess doesn't count, so it costs nobody a path */
};

/* Does a device's name match a pattern of the list? No if @list is NULL. */
bool host_word_names(const char *list, const char *name);

/*
 * host_word_of() - find the setting for the network with this device and address
 * The strictest setting of all sources counts. @nm: NULL: NetworkManager has none; @preference: set to the place in CONVERT_PATHS, lower
 * is better, or to PATH_PREFERENCE_NONE. Works in hooks.
 */
enum path_use host_word_of(const struct host_word *word, const struct host_nm_word *nm, const char *device,
			   const struct in6_addr *address, uint8_t *preference);

/*
 * network_is_there() - does this machine have the device or address that an element of CONVERT_PATHS names?
 * Takes two or three system calls, and a descriptor for a moment. Returns true if it can't ask the kernel.
 */
bool network_is_there(const struct path_wish *wish);

/* Reports the networks that the user names and this machine lacks. They may come later, but a misspelt name never does. */
void networks_tell_missing(const struct path_preferences *wanted, client_log *say);

#endif
