/* SPDX-License-Identifier: BSD-3-Clause */
/* withholding_none.c - in place of withholding.c without libnetfilter_queue: withholds no SYN */
#include "config.h"

#include "convertd/process/withholding.h"

#include "convertd/base/log.h"

#include <stdlib.h>

struct withholding {
	char none;
};

struct withholding *withholding_create(struct workers *workers, int kept)
{
	(void)workers;
	(void)kept;
	return calloc(1, sizeof(struct withholding));
}

void withholding_destroy(struct withholding *w)
{
	free(w);
}

bool withholding_apply(struct withholding *w, const struct settings *settings, struct problems *problems)
{
	static const struct place place = { .name = "hold-syn" };
	static const char reason[] = "convertd was built without libnetfilter_queue and libnftnl";

	(void)w;
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

void withholding_stop(struct withholding *w)
{
	(void)w;
}

void withholding_judge_again(struct withholding *w, const struct worker_context *worker)
{
	(void)w;
	(void)worker;
}

void withholding_forget(struct withholding *w)
{
	(void)w;
}

bool withholding_is_on(const struct withholding *w)
{
	(void)w;
	return false;
}

bool withholding_refuses(const struct withholding *w)
{
	(void)w;
	return false;
}

int withholding_rules_fd(const struct withholding *w)
{
	(void)w;
	return -1;
}
