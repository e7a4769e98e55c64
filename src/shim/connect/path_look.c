/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path_look.c - does the path of an unanswered SYN or request work, and does a better one work again?
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
#include "common/thread.h"
#include "host/survey.h"
#include "shim/socket/tcpinfo.h"
#include "shim/system/log.h"
#include "shim/system/waiting.h"
#include "shim/wait/deadlines.h"

#include <errno.h>
#include <stdatomic.h>

#define SURVEYS 6
#define WAIT_FOR_OTHER_MS 20

static const struct settings *settings;

enum { FREE = 0, BUSY = -1, LINGERS = -2 };

static struct place {
	_Atomic int64_t owner;
	uint64_t cookie; /* of the owner's socket */
	struct survey survey;
} places[SURVEYS];

/* Set while somebody looks whether a path is asked about, and begins to ask if it isn't. Nobody waits for it. */
static atomic_flag beginning = ATOMIC_FLAG_INIT;

void path_look_init(const struct settings *kept)
{
	settings = kept;
}

/* --- surveys --- */

static bool is_left_behind(const struct place *place, int64_t owner)
{
	const struct conn *conn = owner > FREE ? conn_by_index((uint32_t)owner - 1) : NULL;

	return owner > FREE && (!conn || !conn_is_pending(conn) || conn->cookie != place->cookie);
}

/* Returns a place that is BUSY from then on, whose survey has no probes, or NULL. */
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

static struct place *place_of(const struct conn *conn)
{
	struct place *place = conn->attempt.survey ? &places[conn->attempt.survey - 1] : NULL;

	return place && atomic_load(&place->owner) == (int64_t)conn->index + 1 ? place : NULL;
}

/* Is another connection asking about the path already? */
static bool is_being_asked(const struct path_id *id)
{
	for (int i = 0; i < SURVEYS; i++) {
		int64_t owner = atomic_load(&places[i].owner);

		if (owner > FREE && !is_left_behind(&places[i], owner) && path_is_same(&places[i].survey.own.id, id))
			return true;
	}
	return false;
}

static void place_leave(struct conn *conn)
{
	struct place *place = place_of(conn);

	conn->attempt.survey = 0;
	if (!place)
		return;
	survey_close(&place->survey);
	atomic_store(&place->owner, FREE);
}

/* --- trials --- */

/* Returns false if it goes on. */
static bool trial_ends(struct survey *survey)
{
	bool works;

	if (!survey_trial_ends(survey, &works))
		return false;
	if (works)
		log_line("the %s path to the converter works again", path_is_usual(&survey->own.id) ? "usual" : "preferred");
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
	if (!linger)
		conn_linger(NULL);
	quiet_end(&quiet);
	errno = saved_errno;
}

void path_look_try(struct conn *conn, const struct path *path)
{
	struct place *place;
	bool lingers;

	conn->call.tried_path = true;
	place = place_take();
	if (!place)
		return;
	lingers = survey_try(&place->survey, path);
	atomic_store(&place->owner, lingers ? LINGERS : FREE);
	if (lingers)
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

void path_look_begin(struct conn *conn)
{
	const struct path_id id = path_of(conn);
	const struct path_facts facts = paths_facts_kept(&id);

	conn->attempt.converter_at = atomic_load(&conn->deadline);
	conn->attempt.syn_at = clock_ns();
	if (conn->call.bound || conn->call.moves >= PATHS_MOVES_MAX)
		return;
	schedule(conn, in_ms(paths_patience(facts.rtt_ms, facts.heard)));
}

void path_look_behind(struct conn *conn, int fd)
{
	const struct tcp_info info = tcpinfo_of(fd);
	const struct path_id id = path_of(conn);
	struct path_facts facts;

	place_leave(conn);
	conn->attempt.request_at = clock_ns();
	if (conn->call.bound || conn->call.moves >= PATHS_MOVES_MAX) {
		schedule(conn, 0);
		return;
	}
	path_note_handshake(conn, &info);
	facts = paths_facts_kept(&id);
	schedule(conn, in_ms(paths_patience(facts.rtt_ms, facts.heard)));
}

bool path_look_due(struct conn *conn)
{
	if (!conn->attempt.look_at || clock_ns() < conn->attempt.look_at)
		return false;
	if (!stack_is_small())
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
	place_leave(conn);
	conn->attempt.look_at = 0;
}

/* --- looking --- */

static unsigned int waiting_ms(const struct conn *conn, int64_t now)
{
	const int64_t since = conn->attempt.request_at ? conn->attempt.request_at : conn->attempt.syn_at;

	return (unsigned int)((now - since) / CLOCK_NS_PER_MS);
}

/* A request that isn't acknowledged yet is so on a Multipath TCP socket's first subflow: there are others only once it is. */
static bool is_unanswered(const struct conn *conn, int fd)
{
	const struct tcp_info info = tcpinfo_of(fd);

	return info.tcpi_state == TCPINFO_SYN_SENT ||
	       (conn->attempt.request_at && info.tcpi_state == TCPINFO_ESTABLISHED && info.tcpi_unacked);
}

static enum survey_syn unanswered(const struct conn *conn)
{
	if (conn->attempt.request_at)
		return SURVEY_BEHIND;
	if (!conn->attempt.syn_data)
		return SURVEY_PLAIN;
	return conn->attempt.ask_blind ? SURVEY_DATA_ONLY : SURVEY_DATA;
}

static struct path path_now(const struct conn *conn)
{
	return (struct path){
		.id = path_of(conn),
		.device = conn->call.network,
		.bind_device = conn->call.device && conn->call.placed,
	};
}

/*
 * Has somebody else found out meanwhile that the path is silent, and is there one that works? If it loses some SYNs, this one's has arrived
 * more likely than not, and waits for its server.
 */
static bool is_known_to_have_failed(struct conn *conn, const struct converters_query *query, struct path_list *list, int *best)
{
	const struct path own = path_now(conn);

	if (paths_facts(&own.id).state != CACHE_PATH_SILENT)
		return false;
	*best = path_list_elsewhere(list, settings, query, &own);
	return *best >= 0;
}

/* Has @conn own a survey, with its first probe still to be sent. Returns false if that isn't for it to do, or not now. */
static bool place_begin(struct conn *conn, const struct converters_query *query)
{
	const struct path own = path_now(conn);
	struct place *place = place_take();
	bool open;

	if (!place)
		return false;
	place->cookie = conn->cookie;
	open = survey_begin(&place->survey, &own, settings, query);
	conn->attempt.survey = (uint8_t)(place - places + 1);
	atomic_store(&place->owner, (int64_t)conn->index + 1);
	if (!open)
		path_look_end(conn);
	return open;
}

/*
 * Likewise, unless somebody asks about the path already, or is about to: of several threads whose connections begin on one path at the same
 * time one asks.
 */
static bool place_begin_alone(struct conn *conn, const struct path_id *id, const struct converters_query *query)
{
	bool begun;

	if (atomic_flag_test_and_set(&beginning))
		return false;
	begun = !is_being_asked(id) && place_begin(conn, query);
	atomic_flag_clear(&beginning);
	return begun;
}

static enum paths_do place_go_on(struct conn *conn, int fd, struct place *place, int64_t now, struct path_list *list, int *best)
{
	const enum survey_syn syn = unanswered(conn);
	unsigned int again;
	enum paths_do what = survey_look(&place->survey, now, waiting_ms(conn, now), syn, &again);

	/* An answer that has come meanwhile is what the connection is to go on with, and says that the path works. */
	if (what == PATHS_MOVE || what == PATHS_BEHIND)
		what = is_unanswered(conn, fd) ? survey_leave(&place->survey, what, syn, best) : PATHS_STAY;
	if (what == PATHS_MOVE)
		*list = place->survey.list;
	else if (what == PATHS_BEHIND || what == PATHS_STAY)
		path_look_end(conn);
	else
		schedule(conn, in_ms(again));
	return what;
}

enum paths_do path_look(struct conn *conn, int fd, const struct converters_query *query, struct path_list *list, int *best)
{
	const struct path_id id = path_of(conn);
	struct place *place = place_of(conn);
	enum paths_do what = PATHS_WAIT;
	const int64_t now = clock_ns(); /* before anything is looked at */

	if (!is_unanswered(conn, fd) || conn_has(conn, CONN_WROTE) || !path_may_move(conn, fd)) {
		path_look_end(conn);
	} else if (place) {
		what = place_go_on(conn, fd, place, now, list, best);
	} else if (is_known_to_have_failed(conn, query, list, best)) {
		what = PATHS_MOVE;
	} else if (!place_begin_alone(conn, &id, query)) {
		if (conn->attempt.look_at)
			schedule(conn, in_ms(WAIT_FOR_OTHER_MS));
		return PATHS_WAIT;
	} else {
		what = place_go_on(conn, fd, place_of(conn), now, list, best);
	}
	if (!conn->attempt.look_at)
		schedule(conn, 0);
	return what;
}

void path_look_repair_in_child(void)
{
	atomic_flag_clear(&beginning);
	for (int i = 0; i < SURVEYS; i++) {
		if (atomic_load(&places[i].owner) != FREE)
			survey_close(&places[i].survey);
		atomic_store(&places[i].owner, FREE);
	}
}
