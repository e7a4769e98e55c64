/* SPDX-License-Identifier: BSD-3-Clause */
/* hold_none.c - in place of hold.c without libnetfilter_queue: withholds no SYN */
#include "config.h"

#include "convertd/syn/hold.h"

#include "convertd/base/log.h"

#include <stdlib.h>

struct hold {
	char none;
};

struct hold *hold_create(struct workers *workers, int kept)
{
	(void)workers;
	(void)kept;
	return calloc(1, sizeof(struct hold));
}

void hold_destroy(struct hold *hold)
{
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

void hold_judge_again(struct hold *hold, const struct worker_context *worker)
{
	(void)hold;
	(void)worker;
}

void hold_forget(struct hold *hold)
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
