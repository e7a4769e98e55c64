/* SPDX-License-Identifier: BSD-3-Clause */
/* path_direct.c - the network that a direct connection takes where the usual one is silent, or isn't to be used */
#include "config.h"

#include "networks/path_direct.h"

#include "client/converters.h"
#include "client/settings.h"
#include "client/paths_facts.h"

#include <errno.h>
#include <string.h>

/* Are converters silent on the usual path, while one has answered on the path from @network? */
static bool is_known_better(const struct network *network)
{
	bool silent = false, better = false;

	for (int i = 0; i < converters_count(); i++) {
		const struct path_id usual = { .converter = i }, other = { .converter = i, .source = network->source };
		enum cache_path state = paths_facts(&usual).state;

		if (path_works(state))
			return false;
		silent |= state == CACHE_PATH_SILENT;
		better |= path_works(paths_facts(&other).state);
	}
	return silent && better;
}

/* Is the usual path to one of the converters known to be silent? Without a system call. */
static bool is_silent(void)
{
	for (int i = 0; i < converters_count(); i++)
		if (paths_facts_usual(i).state == CACHE_PATH_SILENT)
			return true;
	return false;
}

/* Binds @fd to the network of @device; 0: to one that is known to be better than the usual one. Returns false if there is none. */
static bool bind_to_better(int fd, const struct settings *settings, const union sockaddr_ip *server, int device, char name[IF_NAMESIZE])
{
	struct network networks[NETWORKS_MAX];
	size_t count = networks_to(server, settings->beside_vpn, networks);

	for (size_t i = 0; i < count; i++) {
		const struct network *network = &networks[i];
		uint8_t preference;

		if (network->usual || (device ? network->device != device : !is_known_better(network)) ||
		    path_preferences_of(&settings->paths, network->name, &network->source, &preference) == PATH_USE_NEVER ||
		    !network_bind(fd, &network->source, network->bind_device ? network->device : 0))
			continue;
		strcpy(name, network->name);
		return true;
	}
	return false;
}

/* Binds @fd to the best network without =never, if the usual one has that. Returns 1, 0 if nothing had to be done, or -ENETUNREACH. */
static int bind_to_allowed(int fd, const struct settings *settings, const union sockaddr_ip *server, char name[IF_NAMESIZE])
{
	struct network networks[NETWORKS_MAX];
	const struct in6_addr source = network_source(fd);
	uint8_t preference, least = UINT8_MAX;
	size_t count, best = NETWORKS_MAX;

	if (!path_preferences_forbid(&settings->paths) || !IN6_IS_ADDR_UNSPECIFIED(&source))
		return 0;
	count = networks_to(server, settings->beside_vpn, networks);
	if (!count || !networks[0].usual ||
	    path_preferences_of(&settings->paths, networks[0].name, &networks[0].source, &preference) != PATH_USE_NEVER)
		return 0;
	for (size_t i = 1; i < count; i++) {
		if (path_preferences_of(&settings->paths, networks[i].name, &networks[i].source, &preference) == PATH_USE_NEVER ||
		    (best < NETWORKS_MAX && preference >= least))
			continue;
		best = i;
		least = preference;
	}
	if (best == NETWORKS_MAX || !network_bind(fd, &networks[best].source, networks[best].bind_device ? networks[best].device : 0))
		return -ENETUNREACH;
	strcpy(name, networks[best].name);
	return 1;
}

int path_direct_take(int fd, const struct settings *settings, const union sockaddr_ip *server, bool moved, int device, struct path_direct *taken)
{
	const bool silent = is_silent();

	if ((moved || silent) && bind_to_better(fd, settings, server, moved ? device : 0, taken->name)) {
		taken->why = silent ? "is silent" : "doesn't work";
		return 1;
	}
	taken->why = "is not to be used";
	return bind_to_allowed(fd, settings, server, taken->name);
}
