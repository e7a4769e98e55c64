/* SPDX-License-Identifier: BSD-3-Clause */
/* hold_none.c - in place of hold.c without libnetfilter_queue: withholds no SYN */
#include "config.h"

#include "convertd/hold.h"

#include <stdlib.h>

struct hold {
	struct hold_table *table;
};

struct hold *hold_create(struct event_base *base, struct limits *limits, struct metrics *metrics,
			 int kept)
{
	struct hold *hold = calloc(1, sizeof(*hold));

	(void)base;
	(void)limits;
	(void)metrics;
	(void)kept;
	if (!hold)
		return NULL;
	hold->table = hold_table_create();
	if (hold->table)
		return hold;
	free(hold);
	return NULL;
}

void hold_destroy(struct hold *hold)
{
	if (!hold)
		return;
	hold_table_destroy(hold->table);
	free(hold);
}

bool hold_apply(struct hold *hold, const struct settings *settings, struct problems *problems)
{
	static const struct place place = { .name = "hold-syn" };
	static const char reason[] = "convertd was built without libnetfilter_queue and libnftnl";

	(void)hold;
	if (settings->hold_syn == SETTINGS_HOLD_ON) {
		problems_add(problems, &place, "on: %s; build it with them", reason);
		return false;
	}
	if (settings->hold_syn == SETTINGS_HOLD_AUTO)
		log_warning("SYNs are not withheld (%s): connections may take a round trip more; "
			    "build it with them, or pass --hold-syn off",
			    reason);
	return true;
}

void hold_stop(struct hold *hold)
{
	(void)hold;
}

bool hold_is_on(const struct hold *hold)
{
	(void)hold;
	return false;
}

int hold_rules_fd(const struct hold *hold)
{
	(void)hold;
	return -1;
}

void hold_configure(struct hold *hold, struct terms *terms)
{
	(void)hold;
	(void)terms;
}

struct hold_table *hold_get_table(struct hold *hold)
{
	return hold->table;
}
