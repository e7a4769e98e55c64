/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path_start.c - chooses the network that a connection begins on, and whether it begins anew on another one
 *
 * While all is well the kernel chooses the network of a connection, and we ask nothing. We list the networks if the usual path has failed,
 * if a SYN stays unanswered, or if the user names networks. client/paths.c decides; host/survey.c sends the probes.
 *
 * A survey has the probes of one connection. The process has a few surveys, and at most one for each path at a time: a connection on a path
 * that another connection probes waits for the result, which is noted like any fact (paths_facts.c). So a hundred connections that begin on
 * a dead path send the probes of one. There is no lock:
 *
 *	owner              may touch the survey
 *	-----------------  ----------------------------------------------------------------------------------------------
 *	FREE               the thread that exchanges it for BUSY
 *	a path_start's     the thread that takes a step of that connection; anybody once the front end says that the connection
 *	  serial           doesn't wait any more (dial_host.is_waiting)
 *	BUSY               the thread that has set it
 *	LINGERS            a trial: the thread that exchanges it for BUSY
 *
 * A trial checks by several SYNs whether a failed path works again, after a connection has begun elsewhere. No connection waits for it: it
 * lingers until path_trials_look() finds its end.
 */
#include "config.h"

#include "engine/path_start.h"

#include "client/converters.h"
#include "common/thread.h"
#include "host/networks.h"
#include "host/survey.h"

#include <errno.h>

struct dial_host dial_host;

void dial_init(const struct dial_host *host)
{
	dial_host = *host;
}

#define SURVEYS 6
#define WAIT_FOR_OTHER_MS 20
#define TRIAL_LOOK_MS 20

enum { FREE = 0, BUSY = -1, LINGERS = -2 };

static struct place {
	_Atomic int64_t owner;
	struct path_start *_Atomic start; /* the owner's */
	struct survey survey;
} places[SURVEYS];

static _Atomic int64_t serials;

/* Set while a thread checks whether a path is being probed, and otherwise begins to probe it. Nobody waits for it. */
static atomic_flag beginning = ATOMIC_FLAG_INIT;

void path_start_init(struct path_start *start, bool may_move, const struct in6_addr *source)
{
	*start = (struct path_start){ .path.id.source = *source, .may_move = may_move };
	start->serial = atomic_fetch_add(&serials, 1) + 1;
}

/* --- surveys --- */

static bool is_left_behind(const struct place *place, int64_t owner)
{
	const struct path_start *start = atomic_load(&place->start);

	return owner > FREE && dial_host.is_waiting && !(start->serial == owner && dial_host.is_waiting(start));
}

/* Takes a place and makes it BUSY, with a survey without probes. Returns NULL if there is none. */
static struct place *place_take(void)
{
	for (int i = 0; i < SURVEYS; i++) {
		int64_t owner = atomic_load(&places[i].owner);
		const bool left = is_left_behind(&places[i], owner);

		if ((owner != FREE && !left) || !atomic_compare_exchange_strong(&places[i].owner, &owner, BUSY))
			continue;
		if (left)
			survey_close(&places[i].survey);
		survey_reset(&places[i].survey);
		return &places[i];
	}
	return NULL;
}

static struct place *place_of(const struct path_start *start)
{
	struct place *place = start->survey ? &places[start->survey - 1] : NULL;

	return place && atomic_load(&place->owner) == start->serial ? place : NULL;
}

/* Does another connection already probe the path? */
static bool is_being_asked(const struct path_id *id)
{
	for (int i = 0; i < SURVEYS; i++) {
		int64_t owner = atomic_load(&places[i].owner);

		if (owner > FREE && !is_left_behind(&places[i], owner) && path_is_same(&places[i].survey.own.id, id))
			return true;
	}
	return false;
}

void path_start_end(struct path_start *start)
{
	struct place *place = place_of(start);

	start->look_at = 0;
	start->survey = 0;
	if (!place)
		return;
	survey_close(&place->survey);
	atomic_store(&place->owner, FREE);
}

void path_start_repair_in_child(void)
{
	atomic_flag_clear(&beginning);
	for (int i = 0; i < SURVEYS; i++) {
		if (atomic_load(&places[i].owner) != FREE)
			survey_close(&places[i].survey);
		atomic_store(&places[i].owner, FREE);
	}
}

/* --- trials --- */

/* Begins a trial of @path, which has failed, so that a connection begins elsewhere, and for which paths_is_trial_due(). */
static void try_path(struct path_start *start, const struct path *path)
{
	struct place *place;
	bool lingers;

	start->tried_path = true;
	place = place_take();
	if (!place)
		return;
	lingers = survey_try(&place->survey, path);
	atomic_store(&place->owner, lingers ? LINGERS : FREE);
	if (lingers && dial_host.trial_begins)
		dial_host.trial_begins();
}

/* Returns false if the trial goes on. */
static bool trial_ends(struct survey *survey)
{
	bool works;

	if (!survey_trial_ends(survey, &works))
		return false;
	if (works)
		dial_host.log("the %s path to the converter works again", path_is_usual(&survey->own.id) ? "usual" : "preferred");
	return true;
}

int64_t path_trials_look(void)
{
	bool linger = false;

	for (int i = 0; i < SURVEYS; i++) {
		int64_t owner = LINGERS;

		if (!atomic_compare_exchange_strong(&places[i].owner, &owner, BUSY)) {
			linger |= owner == BUSY;
			continue;
		}
		if (trial_ends(&places[i].survey)) {
			atomic_store(&places[i].owner, FREE);
		} else {
			atomic_store(&places[i].owner, LINGERS);
			linger = true;
		}
	}
	return linger ? dial_host.clock() + TRIAL_LOOK_MS * CLOCK_NS_PER_MS : 0;
}

/* --- which path --- */

static void take(struct path_start *start, const struct path *path)
{
	start->path = *path;
	start->placed |= !path_is_usual(&path->id);
}

/* Not inlined, so that the list isn't on the stack of each connection. */
__attribute__((noinline)) static int choose_of_all(struct path_start *start, const struct converters_query *query, int converter,
						    union sockaddr_ip *addr)
{
	char text[SOCKADDR_STRLEN];
	struct path_list list;
	int best = path_list_choose(&list, dial_host.settings, query), missed;

	if (best < 0)
		return converter;
	take(start, &list.paths[best]);
	if (start->placed || list.paths[best].id.converter != converter)
		dial_host.log("converter %s: begins on %s%s", sockaddr_ip_format(&list.addrs[best], text), list.names[best],
			      list.paths[best].backup ? ", which is for backup" : "");
	missed = start->tried_path ? -1 : path_list_missed(&list, best);
	if (missed >= 0)
		try_path(start, &list.paths[missed]);
	*addr = list.addrs[best];
	return list.paths[best].id.converter;
}

int path_start_choose(struct path_start *start, const struct converters_query *query, int converter, union sockaddr_ip *addr)
{
	const struct path_id usual = { .converter = converter };
	const bool stays = !start->may_move || (start->placed && IN6_IS_ADDR_V4MAPPED(&start->path.id.source) == sockaddr_ip_is_v4(addr));

	start->path.id.converter = converter;
	if (!stays && (!path_is_sound(paths_facts_usual(converter).state) || host_preferences(dial_host.settings)->count || start->placed)) {
		start->path = (struct path){ .id.converter = converter };
		converter = choose_of_all(start, query, converter, addr);
	} else if (!start->may_move && !path_is_usual(&start->path.id)) {
		paths_facts(&start->path.id); /* takes over the facts that other processes know of it */
	}
	if (start->placed && !start->tried_path && paths_is_trial_due(&usual))
		try_path(start, &(struct path){ .id = usual });
	return converter;
}

void path_start_give_back(struct path_start *start)
{
	if (start->placed)
		start->path = (struct path){ .id.converter = start->path.id.converter };
}

/* Not inlined, so that the list isn't on the stack of each connection that fails. */
__attribute__((noinline)) static bool leave_refused(struct path_start *start, const struct converters_query *query, enum cache_path how,
						     const char *reason, union sockaddr_ip *addr)
{
	const struct path left = start->path;
	char text[SOCKADDR_STRLEN];
	struct path_list list;
	int best = path_list_refused(&list, dial_host.settings, query, &left.id, how);

	if (best < 0)
		return false;
	dial_host.log("converter %s: the path to it %s (%s), begins on %s", sockaddr_ip_format(converters_address(left.id.converter), text),
		      how == CACHE_PATH_SILENT ? "leads nowhere" : "refuses", reason, list.names[best]);
	take(start, &list.paths[best]);
	start->moves++;
	*addr = list.addrs[best];
	if (how != CACHE_PATH_SILENT)
		try_path(start, &left);
	return true;
}

bool path_start_refused(struct path_start *start, const struct converters_query *query, enum cache_path how, const char *reason,
			union sockaddr_ip *addr)
{
	if (!start->may_move)
		return false;
	if (start->moves < PATHS_MOVES_MAX && leave_refused(start, query, how, reason, addr))
		return true;
	/* After a refusal here a silent usual path is no better. One that refuses the converter's port may serve a direct connection. */
	if (how == CACHE_PATH_SILENT || paths_facts_usual(start->path.id.converter).state == CACHE_PATH_REFUSES)
		path_start_give_back(start);
	return false;
}

bool path_start_may_have_more(const union sockaddr_ip *addr)
{
	const char *reason = path_list_breaks_word(dial_host.settings, addr);
	char text[SOCKADDR_STRLEN];

	if (reason)
		dial_host.log("converter %s: asked over TCP, since %s", sockaddr_ip_format(addr, text), reason);
	return !reason;
}

int path_start_bind(const struct path_start *start, int fd)
{
	if (!start->placed || network_bind(fd, &start->path.id.source, start->path.bind_device ? start->path.device : 0))
		return 0;
	return errno ? -errno : -EADDRNOTAVAIL;
}

int path_start_bind_directly(const struct path_start *start, int fd, const union sockaddr_ip *server)
{
	struct path_direct taken;
	char text[SOCKADDR_STRLEN];
	int ret;

	if (start->placed && path_is_usual(&start->path.id))
		path_start_bind(start, fd);
	if (!start->may_move)
		return 0;
	ret = path_direct_take(fd, dial_host.settings, server, start->placed, start->path.device, &taken);
	if (ret > 0)
		dial_host.log("%s: directly by %s, since the usual network %s", sockaddr_ip_format(server, text), taken.name, taken.why);
	else if (ret < 0)
		dial_host.log("%s: not directly, since CONVERT_PATHS allows no network that leads there",
			      sockaddr_ip_format(server, text));
	return ret < 0 ? ret : 0;
}

/* --- does it work --- */

static void look_in(struct path_start *start, unsigned int ms)
{
	start->look_at = dial_host.clock() + (int64_t)ms * CLOCK_NS_PER_MS;
}

void path_start_put_off(struct path_start *start)
{
	look_in(start, WAIT_FOR_OTHER_MS);
}

/* Sets the time of the first look, after the SYN or the request was sent at @at. */
static void first_look(struct path_start *start, int64_t at)
{
	const struct path_facts facts = paths_facts_kept(&start->path.id);

	start->look_at = start->may_move && start->moves < PATHS_MOVES_MAX ?
				 at + paths_patience(facts.rtt_ms, facts.heard) * CLOCK_NS_PER_MS : 0;
}

void path_start_sent(struct path_start *start, int64_t at)
{
	start->syn_at = at;
	start->request_at = 0;
	start->others_ask = false;
	first_look(start, at);
}

void path_start_sent_behind(struct path_start *start)
{
	path_start_end(start);
	start->request_at = dial_host.clock();
	first_look(start, start->request_at);
}

static void move(struct path_start *start, const struct path_list *list, int best, union sockaddr_ip *addr)
{
	char text[SOCKADDR_STRLEN];

	dial_host.log("converter %s: the path to it %s, asked by %s",
		      sockaddr_ip_format(converters_address(start->path.id.converter), text), path_complaint(&start->path.id),
		      list->names[best]);
	*addr = list->addrs[best];
	take(start, &list->paths[best]);
}

/*
 * Returns whether another connection has found the path silent meanwhile, and there is a path that works. A path that only loses some SYNs
 * doesn't count: this connection's SYN has more likely arrived, and waits for its server. Not inlined because of the list.
 */
__attribute__((noinline)) static bool has_failed_since(struct path_start *start, const struct converters_query *query,
						       union sockaddr_ip *addr)
{
	struct path_list list;
	int best;

	if (paths_facts(&start->path.id).state != CACHE_PATH_SILENT)
		return false;
	best = path_list_elsewhere(&list, dial_host.settings, query, &start->path);
	if (best < 0)
		return false;
	move(start, &list, best, addr);
	return true;
}

/* Gives the connection a survey that hasn't sent a probe yet. Returns PATHS_PROBE, PATHS_STAY or PATHS_WAIT. */
static enum paths_do place_begin(struct path_start *start, const struct converters_query *query)
{
	struct place *place = place_take();
	bool open;

	if (!place)
		return PATHS_WAIT;
	atomic_store(&place->start, start);
	open = survey_begin(&place->survey, &start->path, dial_host.settings, query);
	start->survey = (uint8_t)(place - places + 1);
	atomic_store(&place->owner, start->serial);
	return open ? PATHS_PROBE : PATHS_STAY;
}

/*
 * Does the same, unless another thread probes the path or is about to. If the connections of several threads begin on one path at the same
 * time, one of them sends probes.
 */
static enum paths_do place_begin_alone(struct path_start *start, const struct converters_query *query)
{
	enum paths_do what = PATHS_WAIT;

	look_in(start, WAIT_FOR_OTHER_MS);
	if (atomic_flag_test_and_set(&beginning))
		return what;
	if (!is_being_asked(&start->path.id))
		what = place_begin(start, query);
	atomic_flag_clear(&beginning);
	return what;
}

/* Continues the survey. If the connection must leave its path, sets @best, the index of the new one in the survey's list. */
static enum paths_do survey_go_on(struct path_start *start, struct survey *survey, const struct path_start_syn *syn, int64_t now, int *best)
{
	const int64_t since = start->request_at ? start->request_at : start->syn_at;
	unsigned int again;
	enum paths_do what = survey_look(survey, now, (unsigned int)((now - since) / CLOCK_NS_PER_MS), syn->carries, &again);

	look_in(start, again);
	if (what != PATHS_MOVE && what != PATHS_BEHIND)
		return what;
	/* If an answer has come meanwhile, the path works, and the connection goes on with it. */
	return syn->is_unanswered(syn->owner) ? survey_leave(survey, what, syn->carries, best) : PATHS_STAY;
}

enum paths_do path_start_look(struct path_start *start, const struct converters_query *query, const struct path_start_syn *syn,
			      union sockaddr_ip *addr)
{
	const int64_t now = dial_host.clock(); /* before all looks */
	enum paths_do what = PATHS_PROBE;
	struct place *place;
	int best = -1;

	if (!place_of(start))
		what = has_failed_since(start, query, addr) ? PATHS_MOVE : place_begin_alone(start, query);
	place = place_of(start);
	if (place && what == PATHS_PROBE) {
		what = survey_go_on(start, &place->survey, syn, now, &best);
		if (what == PATHS_MOVE)
			move(start, &place->survey.list, best, addr);
	}
	if (what == PATHS_MOVE)
		start->moves++;
	if (what == PATHS_MOVE || what == PATHS_BEHIND || what == PATHS_STAY)
		path_start_end(start);
	return what;
}

/* --- is the converter silent, or this connection only? --- */

void path_start_ask(struct path_start *start, bool whole)
{
	struct place *place = place_of(start);

	if (place && place->survey.count)
		return;
	if (!place) {
		start->others_ask = start->look_at || is_being_asked(&start->path.id);
		place = start->others_ask ? NULL : place_take();
		if (!place)
			return;
		atomic_store(&place->start, start);
	}
	survey_ask(&place->survey, &start->path, whole);
	start->survey = (uint8_t)(place - places + 1);
	atomic_store(&place->owner, start->serial);
}

enum path_answer path_start_asked(struct path_start *start)
{
	struct place *place = place_of(start);
	enum survey_answer answer;

	if (!place || !place->survey.count)
		return !place && start->others_ask ? PATH_UNKNOWN : PATH_UNASKED;
	answer = survey_answer(&place->survey, dial_host.clock());
	return answer == SURVEY_ANSWERS ? PATH_ANSWERS : answer == SURVEY_SILENT ? PATH_SILENT : PATH_UNKNOWN;
}

/* --- facts that an attempt shows about its path --- */

void path_start_answered(const struct path_start *start, unsigned int ms, bool alone)
{
	const struct path_id *id = &start->path.id;

	if (!start->may_move)
		return;
	if (path_has_failed(paths_facts_usual(id->converter).state) && path_is_usual(id) &&
	    paths_facts_usual(id->converter).state != CACHE_PATH_REFUSES)
		paths_note_trial(id, true);
	paths_note_answer(id, ms, alone);
}

void path_start_served(const struct path_start *start)
{
	if (paths_facts_kept(&start->path.id).state == CACHE_PATH_REFUSES)
		paths_note_trial(&start->path.id, true);
}
