/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path_list.c - the paths that a connection can begin on: networks of this machine, each with a converter
 */
#include "config.h"

#include "networks/path_list.h"

#include "client/settings.h"
#include "networks/networks.h"

#include <errno.h>
#include <string.h>

#define CONVERTERS_LISTED 4

static void list_add(struct path_list *list, const struct settings *settings, int converter,
		     const union sockaddr_ip *addr, const struct network *network)
{
	struct path path = { .id.converter = converter, .preference = PATH_PREFERENCE_NONE };

	if (list->count == PATHS_MAX)
		return;
	if (network) {
		if (path_preferences_of(&settings->paths, network->name, &network->source, &path.preference) == PATH_USE_NEVER) {
			list->forbidden = !list->count;
			return;
		}
		path.backup = network->backup || path_preferences_of(&settings->paths, network->name, &network->source,
								 &path.preference) == PATH_USE_BACKUP;
		strcpy(list->names[list->count], network->name);
	}
	if (network && !network->usual) {
		path.id.source = network->source;
		path.device = network->device;
		path.bind_device = network->bind_device;
	}
	path.facts = paths_facts(&path.id);
	list->forbidden = false;
	list->addrs[list->count] = *addr;
	list->paths[list->count++] = path;
}

/* The networks by which the converters of an address family are reached, asked for once. */
struct family {
	bool asked;
	struct network networks[NETWORKS_MAX];
	size_t count;
};

static const struct family *family_of(struct family families[2], const struct settings *settings, int converter)
{
	const union sockaddr_ip *address = converters_address(converter);
	struct family *family = &families[sockaddr_ip_is_v4(address)];

	if (!family->asked)
		family->count = networks_to(address, settings->beside_vpn, family->networks);
	family->asked = true;
	return family;
}

void path_list_make(struct path_list *list, const struct settings *settings, const struct converters_query *query)
{
	struct converters_query next_query = *query;
	union sockaddr_ip addrs[CONVERTERS_LISTED];
	struct family families[2] = { { .asked = false } };
	int converters[CONVERTERS_LISTED], count = 0;

	list->count = 0;
	list->forbidden = false;
	next_query.may_resolve = false;
	while (count < CONVERTERS_LISTED) {
		enum policy_verdict verdict = POLICY_CONVERT;
		const char *reason;

		converters[count] = converters_choose(settings, &next_query, &addrs[count], &verdict, &reason);
		if (converters[count] < 0)
			break;
		next_query.tried |= 1u << converters[count++];
	}
	for (int usual = 1; usual >= 0; usual--)
		for (int c = 0; c < count; c++) {
			const struct family *family = family_of(families, settings, converters[c]);
			bool known = false;

			for (size_t i = 0; i < family->count; i++) {
				known |= family->networks[i].usual;
				if (family->networks[i].usual == (usual != 0))
					list_add(list, settings, converters[c], &addrs[c], &family->networks[i]);
			}
			if (usual && !known) /* netlink is forbidden, or the route has no device of ours */
				list_add(list, settings, converters[c], &addrs[c], NULL);
		}
}

int path_list_choose(struct path_list *list, const struct settings *settings, const struct converters_query *query)
{
	int best;

	path_list_make(list, settings, query);
	best = paths_best(list->paths, list->count, 0);
	return best >= 0 && path_has_failed(list->paths[best].facts.state) && !settings->paths.count ? -1 : best;
}

/* Would path @i be chosen instead of @best, if nothing were known against it? Of @best itself: is something known? */
static bool is_missed(const struct path_list *list, size_t i, size_t best)
{
	const bool first = i < best;
	struct path both[2] = { list->paths[first ? i : best], list->paths[first ? best : i] };

	if (path_is_sound(list->paths[i].facts.state))
		return false;
	if (i == best)
		return true;
	both[!first].facts.state = CACHE_PATH_WORKS;
	return paths_best(both, 2, 0) == !first;
}

int path_list_missed(const struct path_list *list, int best)
{
	for (size_t i = 0; i < list->count; i++)
		if (is_missed(list, i, (size_t)best) && paths_is_trial_due(&list->paths[i].id))
			return (int)i;
	return -1;
}

bool path_list_is_forbidden(const struct settings *settings, const struct converters_query *query)
{
	struct path_list list;

	if (!path_preferences_forbid(&settings->paths))
		return false;
	path_list_make(&list, settings, query);
	return list.forbidden;
}

uint32_t path_list_on_one_device(const struct path_list *list, const struct path *own, uint32_t among)
{
	uint32_t found = 0;
	int device = -1;

	for (size_t i = 0; i < list->count; i++) {
		if (!(among >> i & 1) || list->paths[i].device == own->device)
			continue;
		if (device >= 0 && list->paths[i].device != device)
			return 0;
		device = list->paths[i].device;
		found |= 1u << i;
	}
	return found;
}

int path_list_elsewhere(struct path_list *list, const struct settings *settings, const struct converters_query *query,
			const struct path *own)
{
	uint32_t sound = 0;
	int best;

	path_list_make(list, settings, query);
	best = paths_best(list->paths, list->count, 0);
	if (best < 0 || path_has_failed(list->paths[best].facts.state))
		return -1;
	if (path_works(list->paths[best].facts.state))
		return best;
	for (size_t i = 0; i < list->count; i++)
		if (!path_has_failed(list->paths[i].facts.state))
			sound |= 1u << i;
	return paths_best(list->paths, list->count, ~path_list_on_one_device(list, own, sound));
}

bool path_is_refused(int error)
{
	static const int errors[] = { ENETUNREACH, EHOSTUNREACH, EACCES, ENETDOWN, EHOSTDOWN, ENONET };

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (error == errors[i])
			return true;
	return false;
}

int path_list_refused(struct path_list *list, const struct settings *settings, const struct converters_query *query,
		      const struct path_id *own)
{
	int best;

	paths_note_failure(own, CACHE_PATH_SILENT);
	path_list_make(list, settings, query);
	best = paths_best(list->paths, list->count, 0);
	return best >= 0 && path_has_failed(list->paths[best].facts.state) ? -1 : best;
}

const char *path_complaint(const struct path_id *id)
{
	switch (paths_facts_kept(id).state) {
	case CACHE_PATH_DATALESS:
		return "loses SYNs with data";
	case CACHE_PATH_LOSES:
		return "loses packets";
	default:
		return "is silent";
	}
}
