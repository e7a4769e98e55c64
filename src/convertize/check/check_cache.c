/* SPDX-License-Identifier: BSD-3-Clause */
/* check_cache.c - where this user's programs keep what they learn from connections */
#include "config.h"

#include "convertize/check/check.h"

#include <errno.h>

int check_cache_open(struct cache *cache, const struct settings *settings, struct cache_place *place)
{
	struct cache_search search = { settings->cache, settings->runtime_dir, false };

	return cache_find(cache, &search, place);
}

static void report_refused(struct report *report, const struct cache_place *place)
{
	struct fact *fact = report_fact(report, FACT_WARN, "cache.refused", NULL, "what programs learn is not kept in %s: %s",
					place->refused, cache_problem(place->refusal));

	fact_remedy(fact, "make it a directory of this user's alone, or --cache DIRECTORY");
	fact_value_text(fact, place->refused);
}

void check_cache(struct report *report, const struct settings *settings)
{
	struct cache_place place;
	struct cache cache;
	int ret = check_cache_open(&cache, settings, &place);
	struct fact *fact;

	cache_close(&cache);
	if (place.refused)
		report_refused(report, &place);
	if (place.path) {
		fact = report_fact(report, FACT_OK, "cache", NULL, "what programs learn is kept in %s", place.path);
		fact_value_text(fact, place.path);
	} else if (ret == -ECANCELED) {
		report_fact(report, FACT_NOTE, "cache", NULL,
			    "what a program learns is not kept for the next one (CONVERT_CACHE=none)");
	} else if (!place.refused) {
		fact = report_fact(report, FACT_WARN, "cache", NULL, "what a program learns is not kept for the next one%s%s",
				   ret == -ENOENT ? "" : ": ", ret == -ENOENT ? "" : cache_problem(ret));
		fact_remedy(fact, "--cache DIRECTORY, one of this user's alone");
	}
}
