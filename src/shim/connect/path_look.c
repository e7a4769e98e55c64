/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path_look.c - does the path of an unanswered SYN work, and does a better one work again?
 *
 * There is no timer and no thread. A pending connection's deadline (deadlines.h) is the time to look at its path as long as that is
 * earlier than the time to look at its converter; so whatever the application waits in carries the look on.
 *
 * A survey has the probes of one connection. There are a few for the whole process, one for each path at a time: a connection that waits on
 * a path which another one is asking about waits for what that finds out, which is noted as any fact (paths_facts.h). So a hundred
 * connections that begin on a dead path send the probes of one.
 *
 *	owner                 what may happen to the survey
 *	--------------------  --------------------------------------------------------------------------------------------
 *	FREE                  whoever exchanges it for BUSY has it
 *	a conn's index + 1    only who has claimed that conn looks at it; anybody may take it once the conn isn't pending any more
 *	BUSY                  nobody else touches it
 *	LINGERS               a trial: whoever exchanges it for BUSY looks at it
 *
 * A trial asks a path that has failed whether it works again, by several SYNs, when a connection has begun elsewhere. No connection waits
 * for it: it lingers until the application's next call of ours, in which it is looked at (conn_linger()).
 */
#include "config.h"

#include "shim/connect/path_look.h"

#include "client/converters_facts.h"
#include "common/clock.h"
#include "shim/connect/path_probes.h"
#include "shim/socket/tcpinfo.h"
#include "shim/system/log.h"
#include "shim/system/quiet.h"
#include "shim/wait/deadlines.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#define SURVEYS 6
#define OWN_MAX 8
#define MOVES_MAX 4       /* of one connection: what comes behind is left to CONVERT_TIMEOUT */
#define TRIAL_PROBES 3
#define TRIAL_MS 1000     /* by then Linux sends a SYN again: an answer would say nothing about the first one */
#define WAIT_FOR_OTHER_MS 20

enum { FREE = 0, BUSY = -1, LINGERS = -2 };

static struct survey {
	_Atomic int64_t owner;
	uint64_t cookie; /* of the owner's socket */
	struct path own;
	struct path_list list;
	struct path_probe probes[OWN_MAX];  /* on the own path */
	struct path_probe plain;            /* the one without data in its SYN */
	struct path_probe others[PATHS_MAX];
	unsigned int count;                 /* of probes */
	bool others_asked;
} surveys[SURVEYS];

/* --- surveys --- */

static void probes_close(struct survey *survey)
{
	for (unsigned int i = 0; i < OWN_MAX; i++)
		path_probe_close(&survey->probes[i]);
	path_probe_close(&survey->plain);
	for (unsigned int i = 0; i < PATHS_MAX; i++)
		path_probe_close(&survey->others[i]);
}

static void probes_reset(struct survey *survey)
{
	static const struct path_probe none = { .fd = -1 };

	for (unsigned int i = 0; i < OWN_MAX; i++)
		survey->probes[i] = none;
	for (unsigned int i = 0; i < PATHS_MAX; i++)
		survey->others[i] = none;
	survey->plain = none;
	survey->count = 0;
	survey->others_asked = false;
}

static bool is_left_behind(const struct survey *survey, int64_t owner)
{
	const struct conn *conn = owner > FREE ? conn_by_index((uint32_t)owner - 1) : NULL;

	return owner > FREE && (!conn || !conn_is_pending(conn) || conn->cookie != survey->cookie);
}

/* Returns a survey that is BUSY from then on, with no probes, or NULL. */
static struct survey *survey_take(void)
{
	for (int i = 0; i < SURVEYS; i++) {
		int64_t owner = atomic_load(&surveys[i].owner);
		const bool left = is_left_behind(&surveys[i], owner);

		if ((owner != FREE && !left) || !atomic_compare_exchange_strong(&surveys[i].owner, &owner, BUSY))
			continue;
		if (left)
			probes_close(&surveys[i]);
		probes_reset(&surveys[i]);
		return &surveys[i];
	}
	return NULL;
}

static struct survey *survey_of(const struct conn *conn)
{
	struct survey *survey = conn->attempt.survey ? &surveys[conn->attempt.survey - 1] : NULL;

	return survey && atomic_load(&survey->owner) == (int64_t)conn->index + 1 ? survey : NULL;
}

static bool is_same(const struct path_id *a, const struct path_id *b)
{
	return a->converter == b->converter && memcmp(&a->source, &b->source, sizeof(a->source)) == 0;
}

/* Is another connection asking about the path already? */
static bool is_being_asked(const struct path_id *id)
{
	for (int i = 0; i < SURVEYS; i++) {
		int64_t owner = atomic_load(&surveys[i].owner);

		if (owner > FREE && !is_left_behind(&surveys[i], owner) && is_same(&surveys[i].own.id, id))
			return true;
	}
	return false;
}

static void survey_end(struct conn *conn)
{
	struct survey *survey = survey_of(conn);

	conn->attempt.survey = 0;
	if (!survey)
		return;
	probes_close(survey);
	atomic_store(&survey->owner, FREE);
}

/* --- trials --- */

/* Notes how a trial has ended. Returns false if it hasn't. */
static bool trial_ends(struct survey *survey)
{
	unsigned int answered = 0, age = path_probe_age(&survey->probes[0]);

	for (unsigned int i = 0; i < survey->count; i++)
		answered += path_probe_look(&survey->probes[i]);
	if (answered < survey->count && age < TRIAL_MS)
		return false;
	if (answered)
		paths_note_answer(&survey->own.id, survey->probes[0].ms ? survey->probes[0].ms : age, true);
	if (paths_note_trial(&survey->own.id, survey->count && answered == survey->count))
		log_line("the usual path to the converter works again");
	probes_close(survey);
	return true;
}

/* Looks at all trials. From any hook, in any state: what another thread looks at is left to it. */
static void trials_look(void)
{
	int saved_errno = errno;
	bool linger = false;
	struct quiet quiet;

	quiet_all(&quiet);
	for (int i = 0; i < SURVEYS; i++) {
		int64_t owner = LINGERS;

		if (!atomic_compare_exchange_strong(&surveys[i].owner, &owner, BUSY)) {
			linger |= owner == BUSY;
			continue;
		}
		if (trial_ends(&surveys[i])) {
			atomic_store(&surveys[i].owner, FREE);
		} else {
			atomic_store(&surveys[i].owner, LINGERS);
			linger = true;
		}
	}
	if (!linger)
		conn_linger(NULL);
	quiet_end(&quiet);
	errno = saved_errno;
}

void path_look_try(struct conn *conn, int converter)
{
	const struct path usual = { .id.converter = converter };
	struct survey *survey;

	if (conn->call.tried_usual || !paths_is_trial_due(&usual.id))
		return;
	conn->call.tried_usual = true;
	survey = survey_take();
	if (!survey)
		return;
	survey->own = usual;
	while (survey->count < TRIAL_PROBES && path_probe_send(&survey->probes[survey->count], &usual, false))
		survey->count++;
	atomic_store(&survey->owner, survey->count ? LINGERS : FREE);
	if (survey->count)
		conn_linger(trials_look);
}

/* --- when --- */

static void schedule(struct conn *conn, int64_t at)
{
	const int64_t converter = conn->attempt.converter_at;

	conn->attempt.look_at = at;
	deadlines_set(conn, at && (!converter || at < converter) ? at : converter);
}

static int64_t in_ms(unsigned int ms)
{
	return clock_ns() + (int64_t)ms * CLOCK_NS_PER_MS;
}

void path_look_begin(struct conn *conn, int fd)
{
	const struct path_id id = path_of(conn);

	(void)fd;
	conn->attempt.converter_at = atomic_load(&conn->deadline);
	if (conn->call.bound || conn->call.moves >= MOVES_MAX)
		return;
	conn->attempt.syn_at = clock_ns();
	schedule(conn, in_ms(paths_patience(paths_facts_kept(&id).rtt_ms)));
}

/* Is this a signal handler on a stack of its own? Those are small (sigaltstack(2)), and a look takes some kilobytes. */
static bool is_on_signal_stack(void)
{
	stack_t stack;

	return sigaltstack(NULL, &stack) == 0 && stack.ss_flags & SS_ONSTACK;
}

bool path_look_due(struct conn *conn)
{
	if (!conn->attempt.look_at || clock_ns() < conn->attempt.look_at)
		return false;
	if (!is_on_signal_stack())
		return true;
	schedule(conn, in_ms(WAIT_FOR_OTHER_MS));
	return false;
}

void path_look_go_on(struct conn *conn)
{
	conn->attempt.converter_at = atomic_load(&conn->deadline);
	schedule(conn, conn->attempt.look_at);
}

void path_look_end(struct conn *conn)
{
	survey_end(conn);
	conn->attempt.look_at = 0;
}

/* --- looking --- */

static unsigned int waiting_ms(const struct conn *conn)
{
	return (unsigned int)((clock_ns() - conn->attempt.syn_at) / CLOCK_NS_PER_MS);
}

static struct paths_view view_of(const struct conn *conn, struct survey *survey)
{
	struct paths_view view = {
		.waiting = waiting_ms(conn),
		.rtt = survey->own.facts.rtt_ms,
		.probes = survey->count,
		.others_asked = survey->others_asked,
		.plain_answered = path_probe_look(&survey->plain),
		.syn_data = conn->attempt.syn_data,
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
	if (survey->count < OWN_MAX && path_probe_send(&survey->probes[survey->count], &survey->own, false))
		survey->count++;
}

static void ask_others(struct survey *survey)
{
	survey->others_asked = true;
	path_probe_send(&survey->plain, &survey->own, true);
	for (size_t i = 0; i < survey->list.count; i++)
		if (!is_same(&survey->list.paths[i].id, &survey->own.id))
			path_probe_send(&survey->others[i], &survey->list.paths[i], false);
}

/* Notes what the probes have shown of all paths, now that the own one has failed. */
static void findings_note(struct survey *survey, const struct paths_view *view)
{
	paths_note_failure(&survey->own.id, view->answered ? CACHE_PATH_LOSES : CACHE_PATH_SILENT);
	for (size_t i = 0; i < survey->list.count; i++) {
		const struct path_probe *probe = &survey->others[i];
		struct path *path = &survey->list.paths[i];

		if (is_same(&path->id, &survey->own.id))
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

/* Has somebody else found out meanwhile that the path has failed, and is there one that works? */
static bool is_known_to_have_failed(struct conn *conn, const struct converters_query *query, struct path_list *list, int *best)
{
	const struct path_id id = path_of(conn);
	enum cache_path state = paths_facts(&id).state;

	if (state != CACHE_PATH_SILENT && state != CACHE_PATH_LOSES)
		return false;
	path_list_make(list, query);
	*best = paths_best(list->paths, list->count, 0);
	return *best >= 0 && list->paths[*best].facts.state == CACHE_PATH_WORKS;
}

/* Has @conn own a survey, with its first probe still to be sent. Returns false if that isn't for it to do, or not now. */
static bool survey_begin(struct conn *conn, const struct converters_query *query)
{
	struct survey *survey = survey_take();

	if (!survey)
		return false;
	survey->cookie = conn->cookie;
	survey->own = (struct path){
		.id = path_of(conn),
		.device = conn->call.network,
		.bind_device = conn->call.device && conn->call.placed,
	};
	survey->own.facts = paths_facts(&survey->own.id);
	path_list_make(&survey->list, query);
	conn->attempt.survey = (uint8_t)(survey - surveys + 1);
	atomic_store(&survey->owner, (int64_t)conn->index + 1);
	/* With one path, known to work, there is nothing to be found out. */
	if (survey->list.count > 1 || survey->own.facts.state != CACHE_PATH_WORKS)
		return true;
	path_look_end(conn);
	return false;
}

static enum paths_do survey_go_on(struct conn *conn, struct survey *survey, struct path_list *list, int *best)
{
	const struct paths_view view = view_of(conn, survey);
	const struct paths_step step = paths_decide(&view);

	switch (step.what) {
	case PATHS_WAIT:
		break;
	case PATHS_PROBE:
		probe_own(survey);
		break;
	case PATHS_ASK_OTHERS:
		ask_others(survey);
		break;
	case PATHS_MOVE:
		findings_note(survey, &view);
		*best = best_of(survey);
		*list = survey->list;
		break;
	case PATHS_BEHIND:
	case PATHS_STAY:
		path_look_end(conn);
		break;
	}
	if (!survey->count) /* the kernel refuses */
		path_look_end(conn);
	else if (conn->attempt.look_at)
		schedule(conn, in_ms(step.again));
	return step.what;
}

enum paths_do path_look(struct conn *conn, int fd, const struct converters_query *query, struct path_list *list, int *best)
{
	const struct path_id id = path_of(conn);
	struct survey *survey = survey_of(conn);
	enum paths_do what = PATHS_WAIT;

	if (tcpinfo_of(fd).tcpi_state != TCPINFO_SYN_SENT || conn_has(conn, CONN_WROTE) || !path_may_move(conn, fd)) {
		path_look_end(conn);
	} else if (survey) {
		what = survey_go_on(conn, survey, list, best);
	} else if (is_known_to_have_failed(conn, query, list, best)) {
		what = PATHS_MOVE;
	} else if (is_being_asked(&id) || !survey_begin(conn, query)) {
		if (conn->attempt.look_at)
			schedule(conn, in_ms(WAIT_FOR_OTHER_MS));
		return PATHS_WAIT;
	} else {
		what = survey_go_on(conn, survey_of(conn), list, best);
	}
	if (!conn->attempt.look_at)
		schedule(conn, 0);
	return what;
}

void path_look_repair_in_child(void)
{
	for (int i = 0; i < SURVEYS; i++) {
		if (atomic_load(&surveys[i].owner) != FREE)
			probes_close(&surveys[i]);
		atomic_store(&surveys[i].owner, FREE);
	}
}
