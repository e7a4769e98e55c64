/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quota_word.c - the user's settings for networks, together with the quotas that are used up
 *
 * The path service publishes such devices by rules (host_model.h), which each program reads at most once a second, by four system calls. A
 * change makes a new list; threads may still use the one before, which stays until there have been LISTS - 1 more changes.
 */
#include "config.h"

#include "host/host_model.h"

#include "common/clock.h"
#include "host/networks.h"
#include "host/raw_io.h"

#include <stdatomic.h>
#include <string.h>

#define LISTS 4
#define LOOK_NS CLOCK_NS_PER_S

static struct path_preferences lists[LISTS];
static const struct path_preferences *_Atomic current; /* NULL: no quota is used up */
static unsigned int next_list; /* belongs to the thread that has moved look_at */
static _Atomic int64_t look_at;

/* Has the user a stricter wish for the device, or is it in the list already? */
static bool is_known(const struct path_preferences *list, const struct path_wish *wish)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->wishes[i].device, wish->device) == 0 && list->wishes[i].use >= wish->use)
			return true;
	return false;
}

/* Puts a device before the user's own wishes, since the first one for a device counts. */
static void note_rule(void *arg, const struct service_rule *rule)
{
	struct path_preferences *list = arg;
	struct path_wish wish = { .use = rule->priority == HOST_QUOTA_NEVER_PRIORITY ? PATH_USE_NEVER : PATH_USE_BACKUP };

	memcpy(wish.device, rule->device, sizeof(wish.device));
	if ((rule->priority != HOST_QUOTA_NEVER_PRIORITY && rule->priority != HOST_QUOTA_BACKUP_PRIORITY) || !*wish.device ||
	    list->count == PATH_PREFERENCES_MAX || is_known(list, &wish))
		return;
	memmove(list->wishes + 1, list->wishes, list->count * sizeof(wish));
	list->wishes[0] = wish;
	list->count++;
}

/* Reads the rules, and publishes a new list if they have changed. Keeps the present one if the kernel doesn't tell. */
static void look(const struct settings *settings)
{
	const struct path_preferences *before = atomic_load(&current);
	struct path_preferences *list = &lists[next_list];
	int netlink = nl_open(NETLINK_ROUTE);

	if (netlink < 0)
		return;
	*list = settings->paths;
	if (service_rules_visit(netlink, AF_INET, note_rule, list) < 0) {
		/* nothing is known */
	} else if (list->count == settings->paths.count) {
		atomic_store(&current, NULL);
	} else if (!before || before->count != list->count || memcmp(before->wishes, list->wishes, list->count * sizeof(list->wishes[0])) != 0) {
		atomic_store(&current, list);
		next_list = (next_list + 1) % LISTS;
	}
	raw_close(netlink);
}

const struct path_preferences *host_preferences(const struct settings *settings)
{
	int64_t at = atomic_load(&look_at), now = clock_ns();
	const struct path_preferences *list;

	if (now >= at && atomic_compare_exchange_strong(&look_at, &at, now + LOOK_NS))
		look(settings);
	list = atomic_load(&current);
	return list ? list : &settings->paths;
}
