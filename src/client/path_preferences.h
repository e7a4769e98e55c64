/* SPDX-License-Identifier: BSD-3-Clause */
/* path_preferences.h - which networks the user wants connections to begin on (CONVERT_PATHS) */
#ifndef CLIENT_PATH_PREFERENCES_H
#define CLIENT_PATH_PREFERENCES_H

#include "common/sockaddr.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATH_PREFERENCES_MAX 8
#define PATH_PREFERENCE_NONE 255 /* of a network that isn't named */

enum path_use {
	PATH_USE_ORDERED, /* in the order of the list, before those that aren't named */
	PATH_USE_BACKUP,  /* only for what would fail otherwise */
	PATH_USE_NEVER,   /* no connection begins there */
	PATH_USE_COUNT
};

struct path_wish {
	char device[IF_NAMESIZE]; /* empty if it is an address */
	struct in6_addr address;  /* IPv4 as v4-mapped */
	enum path_use use;
};

struct path_preferences {
	struct path_wish wishes[PATH_PREFERENCES_MAX];
	size_t count; /* 0: the user has said nothing */
};

/*
 * path_preferences_add() - read one element of the list: DEVICE or ADDRESS, with =backup or =never behind it or without
 * Returns NULL, or what is wrong with it in words that complete "X …".
 */
const char *path_preferences_add(struct path_preferences *out, const char *text);

/* Writes which network an element names, as it was read: a device's name, or an address. Returns @buf. */
const char *path_wish_format(const struct path_wish *wish, char buf[static SOCKADDR_STRLEN]);

/* What it says beside the order: "backup", "never", or "". */
const char *path_use_name(enum path_use use);

/* Is there a network on which the user wants no connection to begin? */
bool path_preferences_forbid(const struct path_preferences *wanted);

/*
 * path_preferences_of() - what the user wants of the network with this device and address
 * @preference: lower is better; PATH_PREFERENCE_NONE where it isn't named
 */
enum path_use path_preferences_of(const struct path_preferences *wanted, const char *device, const struct in6_addr *address,
			      uint8_t *preference);

#endif
