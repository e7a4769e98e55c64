/* SPDX-License-Identifier: BSD-3-Clause */
/* word.h - what users and administrators have said of this host's networks: never, backup, this one first */
#ifndef HOST_WORD_H
#define HOST_WORD_H

#include "client/client_log.h"
#include "client/settings.h"

/* All that somebody can say of networks, wherever it was said. Zeroed: nothing was. */
struct host_word {
	const struct path_preferences *paths; /* CONVERT_PATHS, the user's; NULL: nothing */
	/* convertize.conf, the administrator's: names or patterns (fnmatch(3)) with commas between; NULL: none */
	const char *device; /* these devices, of whatever kind, and no others */
	const char *never;
	const char *backup;
	bool beside_vpn; /* networks beside a VPN that takes all traffic, CONVERT_BESIDE_VPN */
	bool any_kind;   /* devices of each kind: programs may use what leads to the converter, the service what is a network of its own */
};

/* What NetworkManager's user has said of a device. */
struct host_nm_word {
	bool disabled; /* connection.mptcp-flags disabled: this is no path */
	bool metered;  /* said, and not guessed: a guess costs nobody a path */
};

/* Does a device's name match one of the patterns of such a list? Not if that is NULL. */
bool host_word_names(const char *list, const char *name);

/*
 * host_word_of() - what is wanted of the network with this device and address
 * The strictest word counts, whoever has said it. @nm: NULL: NetworkManager has none; @preference: set to the place in CONVERT_PATHS, lower
 * is better, PATH_PREFERENCE_NONE where it isn't named. Works in hooks.
 */
enum path_use host_word_of(const struct host_word *word, const struct host_nm_word *nm, const char *device,
			   const struct in6_addr *address, uint8_t *preference);

/*
 * network_is_there() - has this machine the device, or the address, that an element of CONVERT_PATHS names?
 * Two or three system calls, with a descriptor for a moment. Where the kernel can't be asked the answer is yes.
 */
bool network_is_there(const struct path_wish *wish);

/* Says which of the networks that the user names aren't there. They may come later; but a misspelt name never does. */
void networks_tell_missing(const struct path_preferences *wanted, client_log *say);

#endif
