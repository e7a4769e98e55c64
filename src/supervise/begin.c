/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * begin.c - the network that a connection begins on, and whether it begins anew on another one
 *
 * client/paths.c decides and networks/survey.c asks, as in the preloaded library. All connections of all programs are the same
 * process's here: of those that wait on one path one sends probes, and the others wait for what that finds out.
 */
#include "config.h"

#include "supervise/begin.h"

#include "client/converters.h"
#include "common/clock.h"
#include "networks/path_direct.h"
#include "supervise/log.h"

#include <errno.h>
#include <stdlib.h>

#define MOVES_MAX 4           /* of one connection: what comes behind is left to CONVERT_TIMEOUT */
#define ASKED_MAX 6           /* paths that are asked at a time */
#define WAIT_FOR_OTHER_MS 20
#define TRIAL_LOOK_MS 20

static struct survey *asked[ASKED_MAX]; /* one for each path */
static struct survey *trial;

/* --- which one --- */

void begin_init(struct begin *begin, const struct settings *settings, int fd, bool bound)
{
	*begin = (struct begin){ .settings = settings, .may_move = !bound && !network_is_chosen(fd) };
	if (bound)
		begin->own.id.source = network_source(fd);
}

static void take(struct begin *begin, const struct path *path)
{
	begin->own = *path;
	begin->placed |= !IN6_IS_ADDR_UNSPECIFIED(&path->id.source);
}

/* A connection begins elsewhere since the usual path to @converter has failed: asks that path whether it works again. */
static void try_usual(struct begin *begin, int converter)
{
	const struct path usual = { .id.converter = converter };

	if (begin->tried_usual || trial || !paths_is_trial_due(&usual.id))
		return;
	begin->tried_usual = true;
	trial = malloc(sizeof(*trial));
	if (!trial)
		return;
	survey_reset(trial);
	if (survey_try(trial, &usual))
		return;
	free(trial);
	trial = NULL;
}

int64_t begin_trials_look(int64_t now)
{
	bool works = false;

	if (!trial)
		return 0;
	if (!survey_trial_ends(trial, &works))
		return now + TRIAL_LOOK_MS * CLOCK_NS_PER_MS;
	if (works)
		log_line("the usual path to the converter works again");
	free(trial);
	trial = NULL;
	return 0;
}

int begin_choose(struct begin *begin, const struct converters_query *query, int converter, union sockaddr_ip *addr)
{
	const struct settings *settings = begin->settings;
	char text[SOCKADDR_STRLEN];
	struct path_list list;
	int best;

	/* A connection that has moved goes on where it is, as far as that has an address of the converter's family. */
	if (!begin->may_move || (begin->placed && IN6_IS_ADDR_V4MAPPED(&begin->own.id.source) == sockaddr_ip_is_v4(addr))) {
		begin->own.id.converter = converter;
		paths_facts(&begin->own.id); /* takes over what others know of it */
		return converter;
	}
	begin->own = (struct path){ .id.converter = converter };
	if (path_is_sound(paths_facts_usual(converter).state) && !settings->paths.count && !begin->placed)
		return converter;
	if (paths_facts_usual(converter).state == CACHE_PATH_DATALESS)
		try_usual(begin, converter);
	best = path_list_choose(&list, settings, query);
	if (best < 0)
		return converter;
	take(begin, &list.paths[best]);
	if (begin->placed || list.paths[best].id.converter != converter) {
		log_line("converter %s: begins on %s%s", sockaddr_ip_format(&list.addrs[best], text), list.names[best],
			 list.paths[best].backup ? ", which is for backup" : "");
		try_usual(begin, converter);
	}
	*addr = list.addrs[best];
	return list.paths[best].id.converter;
}

int begin_place(const struct begin *begin, int fd)
{
	if (!begin->placed || network_bind(fd, &begin->own.id.source, begin->own.bind_device ? begin->own.device : 0))
		return 0;
	return errno ? -errno : -EADDRNOTAVAIL;
}

void begin_place_direct(const struct begin *begin, int fd, const union sockaddr_ip *server)
{
	char name[IF_NAMESIZE], text[SOCKADDR_STRLEN];

	if (begin->may_move && (begin->placed || path_direct_is_bad()) &&
	    path_direct_bind(fd, begin->settings, server, begin->placed ? begin->own.device : 0, name))
		log_line("%s: directly by %s, since the usual network is silent", sockaddr_ip_format(server, text), name);
}

/* --- does it work --- */

void begin_sent(struct begin *begin, int64_t now)
{
	const struct path_facts facts = paths_facts_kept(&begin->own.id);

	begin->syn_at = now;
	begin->look_at = 0;
	if (begin->may_move && begin->moves < MOVES_MAX)
		begin->look_at = now + paths_patience(facts.rtt_ms, facts.heard) * CLOCK_NS_PER_MS;
}

void begin_end(struct begin *begin)
{
	begin->look_at = 0;
	if (!begin->survey)
		return;
	for (int i = 0; i < ASKED_MAX; i++)
		if (asked[i] == begin->survey)
			asked[i] = NULL;
	survey_close(begin->survey);
	free(begin->survey);
	begin->survey = NULL;
}

/* Returns a place for a survey of the path; NULL if there is none, or another connection asks about it. */
static struct survey **place_for(const struct path_id *id)
{
	struct survey **place = NULL;

	for (int i = 0; i < ASKED_MAX; i++) {
		if (!asked[i])
			place = &asked[i];
		else if (path_is_same(&asked[i]->own.id, id))
			return NULL;
	}
	return place;
}

/* Has somebody else found out meanwhile that the path has failed, and is there one that works? */
static bool has_failed_since(struct begin *begin, const struct converters_query *query, union sockaddr_ip *addr)
{
	struct path_list list;
	int best;

	if (!path_has_failed(paths_facts(&begin->own.id).state))
		return false;
	best = path_list_elsewhere(&list, begin->settings, query, &begin->own);
	if (best < 0)
		return false;
	*addr = list.addrs[best];
	take(begin, &list.paths[best]);
	return true;
}

static enum paths_do survey_start(struct begin *begin, const struct converters_query *query, int64_t now, union sockaddr_ip *addr)
{
	struct survey **place;

	if (has_failed_since(begin, query, addr))
		return PATHS_MOVE;
	place = place_for(&begin->own.id);
	begin->look_at = now + WAIT_FOR_OTHER_MS * CLOCK_NS_PER_MS;
	if (!place)
		return PATHS_WAIT;
	begin->survey = malloc(sizeof(*begin->survey));
	if (!begin->survey)
		return PATHS_WAIT;
	*place = begin->survey;
	survey_reset(begin->survey);
	if (survey_begin(begin->survey, &begin->own, begin->settings, query))
		return PATHS_PROBE;
	begin_end(begin);
	return PATHS_STAY;
}

enum paths_do begin_look(struct begin *begin, const struct converters_query *query, enum survey_syn syn, int64_t now,
			 union sockaddr_ip *addr)
{
	enum paths_do what = begin->survey ? PATHS_PROBE : survey_start(begin, query, now, addr);
	char text[SOCKADDR_STRLEN];
	unsigned int again = 0;
	int best = -1;

	if (begin->survey) {
		what = survey_look(begin->survey, (unsigned int)((now - begin->syn_at) / CLOCK_NS_PER_MS), syn, &again, &best);
		begin->look_at = now + again * CLOCK_NS_PER_MS;
	}
	if (what == PATHS_MOVE && begin->survey) {
		*addr = begin->survey->list.addrs[best];
		log_line("converter %s: the path to it %s, asked by %s", sockaddr_ip_format(converters_address(begin->own.id.converter), text),
			 path_complaint(&begin->own.id), begin->survey->list.names[best]);
		take(begin, &begin->survey->list.paths[best]);
	}
	if (what == PATHS_MOVE)
		begin->moves++;
	if (what == PATHS_MOVE || what == PATHS_BEHIND || what == PATHS_STAY)
		begin_end(begin);
	return what;
}

/* --- what is learned --- */

void begin_reached(const struct begin *begin, unsigned int ms, bool alone)
{
	const struct path_id *id = &begin->own.id;

	if (!begin->may_move)
		return;
	if (path_has_failed(paths_facts_usual(id->converter).state) && IN6_IS_ADDR_UNSPECIFIED(&id->source))
		paths_note_trial(id, true);
	paths_note_answer(id, ms, alone);
}
