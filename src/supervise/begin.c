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
#include "common/errors.h"
#include "host/path_list.h"
#include "supervise/log.h"

#include <errno.h>
#include <stdlib.h>

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

/* A connection begins elsewhere since @path has failed, and paths_is_trial_due() of it: asks it whether it works again. */
static void try_path(struct begin *begin, const struct path *path)
{
	begin->tried_path = true;
	trial = malloc(sizeof(*trial));
	if (!trial)
		return;
	survey_reset(trial);
	if (survey_try(trial, path))
		return;
	free(trial);
	trial = NULL;
}

bool begin_trials_go_on(void)
{
	return trial != NULL;
}

int64_t begin_trials_look(int64_t now)
{
	bool works = false;

	if (!trial)
		return 0;
	if (!survey_trial_ends(trial, &works))
		return now + TRIAL_LOOK_MS * CLOCK_NS_PER_MS;
	if (works)
		log_line("the %s path to the converter works again", path_is_usual(&trial->own.id) ? "usual" : "preferred");
	free(trial);
	trial = NULL;
	return 0;
}

int begin_choose(struct begin *begin, const struct converters_query *query, int converter, union sockaddr_ip *addr)
{
	const struct settings *settings = begin->settings;
	char text[SOCKADDR_STRLEN];
	struct path_list list;
	int best, missed;

	/* A connection that has moved goes on where it is, as far as that has an address of the converter's family. */
	if (!begin->may_move || (begin->placed && IN6_IS_ADDR_V4MAPPED(&begin->own.id.source) == sockaddr_ip_is_v4(addr))) {
		begin->own.id.converter = converter;
		paths_facts(&begin->own.id); /* takes over what others know of it */
		return converter;
	}
	begin->own = (struct path){ .id.converter = converter };
	if (path_is_sound(paths_facts_usual(converter).state) && !settings->paths.count && !begin->placed)
		return converter;
	best = path_list_choose(&list, settings, query);
	if (best < 0)
		return converter;
	take(begin, &list.paths[best]);
	if (begin->placed || list.paths[best].id.converter != converter)
		log_line("converter %s: begins on %s%s", sockaddr_ip_format(&list.addrs[best], text), list.names[best],
			 list.paths[best].backup ? ", which is for backup" : "");
	missed = begin->tried_path || trial ? -1 : path_list_missed(&list, best);
	if (missed >= 0)
		try_path(begin, &list.paths[missed]);
	*addr = list.addrs[best];
	return list.paths[best].id.converter;
}

void begin_give_back(struct begin *begin)
{
	if (!begin->placed)
		return;
	begin->own.id.source = in6addr_any;
	begin->own.device = 0;
	begin->own.bind_device = false;
}

bool begin_leave(struct begin *begin, const struct converters_query *query, int error, union sockaddr_ip *addr)
{
	char text[SOCKADDR_STRLEN];
	struct path_list list;
	int best = -1;

	if (!path_is_refused(error) || !begin->may_move)
		return false;
	if (begin->moves < PATHS_MOVES_MAX)
		best = path_list_refused(&list, begin->settings, query, &begin->own.id);
	if (best < 0) {
		begin_give_back(begin);
		return false;
	}
	log_line("converter %s: the path to it leads nowhere (%s), begins on %s",
		 sockaddr_ip_format(converters_address(begin->own.id.converter), text), error_text(error), list.names[best]);
	begin_end(begin);
	take(begin, &list.paths[best]);
	begin->moves++;
	*addr = list.addrs[best];
	return true;
}

int begin_place(const struct begin *begin, int fd)
{
	if (!begin->placed || network_bind(fd, &begin->own.id.source, begin->own.bind_device ? begin->own.device : 0))
		return 0;
	return errno ? -errno : -EADDRNOTAVAIL;
}

int begin_place_direct(const struct begin *begin, int fd, const union sockaddr_ip *server)
{
	struct path_direct taken;
	char text[SOCKADDR_STRLEN];
	int ret;

	if (begin->placed && path_is_usual(&begin->own.id))
		begin_place(begin, fd);
	if (!begin->may_move)
		return 0;
	ret = path_direct_take(fd, begin->settings, server, begin->placed, begin->own.device, &taken);
	if (ret > 0)
		log_line("%s: directly by %s, since the usual network %s", sockaddr_ip_format(server, text), taken.name, taken.why);
	else if (ret < 0)
		log_line("%s: not directly, since CONVERT_PATHS allows no network that leads there", sockaddr_ip_format(server, text));
	return ret < 0 ? ret : 0;
}

/* --- does it work --- */

/* What is to be answered was sent @now. */
static void first_look(struct begin *begin, int64_t now)
{
	const struct path_facts facts = paths_facts_kept(&begin->own.id);

	begin->look_at = 0;
	if (begin->may_move && begin->moves < PATHS_MOVES_MAX)
		begin->look_at = now + paths_patience(facts.rtt_ms, facts.heard) * CLOCK_NS_PER_MS;
}

void begin_sent(struct begin *begin, int64_t now)
{
	begin->syn_at = now;
	begin->request_at = 0;
	first_look(begin, now);
}

void begin_sent_behind(struct begin *begin, int64_t now)
{
	begin->request_at = now;
	first_look(begin, now);
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

/*
 * Has somebody else found out meanwhile that the path is silent, and is there one that works? If it loses some SYNs, this one's has arrived
 * more likely than not, and waits for its server.
 */
static bool has_failed_since(struct begin *begin, const struct converters_query *query, union sockaddr_ip *addr)
{
	struct path_list list;
	int best;

	if (paths_facts(&begin->own.id).state != CACHE_PATH_SILENT)
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

/* Goes on with the survey; where the path is to be left, with @best of the survey's list. */
static enum paths_do survey_go_on(struct begin *begin, const struct begin_syn *syn, int64_t now, int *best)
{
	const int64_t since = begin->request_at ? begin->request_at : begin->syn_at;
	unsigned int again;
	enum paths_do what = survey_look(begin->survey, now, (unsigned int)((now - since) / CLOCK_NS_PER_MS), syn->carries, &again);

	begin->look_at = now + again * CLOCK_NS_PER_MS;
	if (what != PATHS_MOVE && what != PATHS_BEHIND)
		return what;
	/* An answer that has come meanwhile is what the connection is to go on with, and says that the path works. */
	return syn->is_unanswered(syn->owner) ? survey_leave(begin->survey, what, syn->carries, best) : PATHS_STAY;
}

enum paths_do begin_look(struct begin *begin, const struct converters_query *query, const struct begin_syn *syn, int64_t now,
			 union sockaddr_ip *addr)
{
	enum paths_do what = begin->survey ? PATHS_PROBE : survey_start(begin, query, now, addr);
	char text[SOCKADDR_STRLEN];
	int best = -1;

	if (begin->survey)
		what = survey_go_on(begin, syn, now, &best);
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
