/* SPDX-License-Identifier: BSD-3-Clause */
/* path_direct.c - the network that a direct connection takes where the usual one is silent */
#include "config.h"

#include "networks/path_direct.h"

#include "client/converters.h"
#include "client/path_preferences.h"
#include "client/paths_facts.h"

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

bool path_direct_is_bad(void)
{
	for (int i = 0; i < converters_count(); i++)
		if (paths_facts_usual(i).state == CACHE_PATH_SILENT)
			return true;
	return false;
}

bool path_direct_bind(int fd, const struct settings *settings, const union sockaddr_ip *server, int device, char name[IF_NAMESIZE])
{
	struct network networks[NETWORKS_MAX];
	size_t count = networks_to(server, networks);

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
