/* SPDX-License-Identifier: BSD-3-Clause */
/* survey.c - the probes that are sent for one connection: does its path work, and which other one does? */
#include "config.h"

#include "networks/survey.h"

#include <string.h>

#define TRIAL_PROBES 3
#define TRIAL_MS 1000 /* by then Linux sends a SYN again: an answer would say nothing about the first one */

bool path_is_same(const struct path_id *a, const struct path_id *b)
{
	return a->converter == b->converter && memcmp(&a->source, &b->source, sizeof(a->source)) == 0;
}

void survey_close(struct survey *survey)
{
	for (unsigned int i = 0; i < SURVEY_OWN_MAX; i++)
		path_probe_close(&survey->probes[i]);
	path_probe_close(&survey->plain);
	for (unsigned int i = 0; i < PATHS_MAX; i++)
		path_probe_close(&survey->others[i]);
}

void survey_reset(struct survey *survey)
{
	static const struct path_probe none = { .fd = -1 };

	for (unsigned int i = 0; i < SURVEY_OWN_MAX; i++)
		survey->probes[i] = none;
	for (unsigned int i = 0; i < PATHS_MAX; i++)
		survey->others[i] = none;
	survey->plain = none;
	survey->count = 0;
	survey->others_asked = false;
}

bool survey_begin(struct survey *survey, const struct path *own, const struct settings *settings, const struct converters_query *query)
{
	survey->own = *own;
	survey->own.facts = paths_facts(&own->id);
	path_list_make(&survey->list, settings, query);
	return survey->list.count > 1 || survey->own.facts.state != CACHE_PATH_WORKS;
}

/* --- a connection that waits --- */

static struct paths_view view_of(struct survey *survey, unsigned int waiting, bool syn_data)
{
	struct paths_view view = {
		.waiting = waiting,
		.rtt = survey->own.facts.rtt_ms,
		.probes = survey->count,
		.others_asked = survey->others_asked,
		.plain_answered = path_probe_look(&survey->plain),
		.syn_data = syn_data,
	};

	for (unsigned int i = 0; i < survey->count; i++) {
		struct path_probe *probe = &survey->probes[i];
		/* A reset says that the path works, as an answer does: the SYN's own reset is on its way. */
		bool answered = path_probe_look(probe) || probe->refused;

		view.answered += answered;
		if (probe->ms > view.slowest)
			view.slowest = probe->ms;
		if (!answered && !view.missing)
			view.missing = path_probe_age(probe) + 1;
		view.last = path_probe_age(probe);
	}
	for (size_t i = 0; i < survey->list.count; i++)
		view.other_answered |= path_probe_look(&survey->others[i]);
	return view;
}

static void probe_own(struct survey *survey)
{
	if (survey->count < SURVEY_OWN_MAX && path_probe_send(&survey->probes[survey->count], &survey->own, false))
		survey->count++;
}

static void ask_others(struct survey *survey)
{
	survey->others_asked = true;
	path_probe_send(&survey->plain, &survey->own, true);
	for (size_t i = 0; i < survey->list.count; i++)
		if (!path_is_same(&survey->list.paths[i].id, &survey->own.id))
			path_probe_send(&survey->others[i], &survey->list.paths[i], false);
}

/* Notes what the probes have shown of all paths, now that the own one has failed. */
static void findings_note(struct survey *survey, const struct paths_view *view)
{
	paths_note_failure(&survey->own.id, view->answered ? CACHE_PATH_LOSES : CACHE_PATH_SILENT);
	for (size_t i = 0; i < survey->list.count; i++) {
		const struct path_probe *probe = &survey->others[i];
		struct path *path = &survey->list.paths[i];

		if (path_is_same(&path->id, &survey->own.id))
			continue;
		if (probe->answered) {
			paths_note_trial(&path->id, true);
			paths_note_answer(&path->id, probe->ms, true);
		} else if (probe->fd >= 0 && path_probe_age(probe) >= paths_patience(path->facts.rtt_ms)) {
			paths_note_failure(&path->id, CACHE_PATH_SILENT);
		}
		path->facts = paths_facts(&path->id);
	}
}

/* Returns the best path that has answered. */
static int best_of(const struct survey *survey)
{
	uint32_t skip = 0;

	for (size_t i = 0; i < survey->list.count; i++)
		if (!survey->others[i].answered)
			skip |= 1u << i;
	return paths_best(survey->list.paths, survey->list.count, skip);
}

enum paths_do survey_look(struct survey *survey, unsigned int waiting, bool syn_data, unsigned int *again, int *best)
{
	const struct paths_view view = view_of(survey, waiting, syn_data);
	const struct paths_step step = paths_decide(&view);

	*again = step.again;
	switch (step.what) {
	case PATHS_PROBE:
		probe_own(survey);
		break;
	case PATHS_ASK_OTHERS:
		ask_others(survey);
		break;
	case PATHS_MOVE:
		findings_note(survey, &view);
		*best = best_of(survey);
		break;
	case PATHS_WAIT:
	case PATHS_BEHIND:
	case PATHS_STAY:
		break;
	}
	/* Without a probe the kernel refuses them. */
	return survey->count ? step.what : step.what == PATHS_WAIT ? PATHS_WAIT : PATHS_STAY;
}

/* --- trials --- */

bool survey_try(struct survey *survey, const struct path *path)
{
	survey->own = *path;
	while (survey->count < TRIAL_PROBES && path_probe_send(&survey->probes[survey->count], path, false))
		survey->count++;
	return survey->count > 0;
}

bool survey_trial_ends(struct survey *survey, bool *works)
{
	unsigned int answered = 0, age = path_probe_age(&survey->probes[0]);

	for (unsigned int i = 0; i < survey->count; i++)
		answered += path_probe_look(&survey->probes[i]);
	if (answered < survey->count && age < TRIAL_MS)
		return false;
	if (answered)
		paths_note_answer(&survey->own.id, survey->probes[0].ms ? survey->probes[0].ms : age, true);
	*works = paths_note_trial(&survey->own.id, survey->count && answered == survey->count);
	survey_close(survey);
	return true;
}
