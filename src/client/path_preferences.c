/* SPDX-License-Identifier: BSD-3-Clause */
/* path_preferences.c - which networks the user wants connections to begin on (CONVERT_PATHS) */
#include "config.h"

#include "client/path_preferences.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <string.h>

static const char *const use_names[] = { [PATH_USE_ORDERED] = "", [PATH_USE_BACKUP] = "backup", [PATH_USE_NEVER] = "never" };
static_assert(sizeof(use_names) / sizeof(use_names[0]) == PATH_USE_COUNT, "a name for each");

static bool use_read(enum path_use *out, const char *text)
{
	for (int use = PATH_USE_BACKUP; use < PATH_USE_COUNT; use++) {
		*out = (enum path_use)use;
		if (strcmp(text, use_names[use]) == 0)
			return true;
	}
	return false;
}

/* As the kernel's dev_valid_name() has it; what looks like an address with a typing error is none. */
static bool device_is_plausible(const char *name)
{
	if (!*name || strlen(name) >= IF_NAMESIZE || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	for (const char *c = name; *c; c++)
		if (isspace((unsigned char)*c) || *c == '/' || *c == ':')
			return false;
	return name[strspn(name, "0123456789.")] != '\0';
}

const char *path_preferences_add(struct path_preferences *out, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : strlen(text);
	struct path_wish *wish = &out->wishes[out->count];
	char name[SOCKADDR_STRLEN];
	union sockaddr_ip addr;

	if (out->count == PATH_PREFERENCES_MAX)
		return "is one network more than can be named";
	*wish = (struct path_wish){ .use = PATH_USE_ORDERED };
	if (equals && !use_read(&wish->use, equals + 1))
		return "has something else behind the = than backup or never; say wwan0=backup, the network first";
	if (len >= sizeof(name))
		return "is neither a device nor an address";
	memcpy(name, text, len);
	name[len] = '\0';
	if (sockaddr_ip_parse(&addr, name, 1) == 0 && sockaddr_ip_port(&addr) == 1)
		wish->address = sockaddr_ip_in6(&addr);
	else if (device_is_plausible(name))
		strcpy(wish->device, name);
	else
		return "is neither a device nor an address; say wlan0, 192.0.2.7, wwan0=backup or tun0=never";
	out->count++;
	return NULL;
}

const char *path_wish_format(const struct path_wish *wish, char buf[static SOCKADDR_STRLEN])
{
	struct in6_addr address = wish->address;
	const bool v4 = IN6_IS_ADDR_V4MAPPED(&address);

	if (*wish->device)
		return strcpy(buf, wish->device);
	inet_ntop(v4 ? AF_INET : AF_INET6, &address.s6_addr[v4 ? 12 : 0], buf, SOCKADDR_STRLEN);
	return buf;
}

const char *path_use_name(enum path_use use)
{
	return use_names[use];
}

bool path_preferences_forbid(const struct path_preferences *wanted)
{
	for (size_t i = 0; i < wanted->count; i++)
		if (wanted->wishes[i].use == PATH_USE_NEVER)
			return true;
	return false;
}

enum path_use path_preferences_of(const struct path_preferences *wanted, const char *device, const struct in6_addr *address,
			      uint8_t *preference)
{
	*preference = PATH_PREFERENCE_NONE;
	for (size_t i = 0; i < wanted->count; i++) {
		const struct path_wish *wish = &wanted->wishes[i];

		if (*wish->device ? strcmp(wish->device, device) != 0 : memcmp(&wish->address, address, sizeof(*address)) != 0)
			continue;
		if (wish->use == PATH_USE_ORDERED)
			*preference = (uint8_t)i;
		return wish->use;
	}
	return PATH_USE_ORDERED;
}
