/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path_start.c - chooses the network that a connection begins on, and whether it begins anew on another one
 *
 * While all is well the kernel chooses the network of a connection, and we ask nothing. We list the networks if the usual path has failed,
 * if a SYN stays unanswered, or if CONVERT_PATHS or a quota names some. client/paths.c decides; host/survey.c sends the probes.
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
 *	TRIAL              a trial: the thread that exchanges it for BUSY
 *
 * A trial checks by several SYNs whether a failed path works again, after a connection has begun elsewhere. No connection waits for it: it
 * keeps its slot until path_trials_look() finds its end.
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

enum { FREE = 0, BUSY = -1, TRIAL = -2 };

static struct slot {
	_Atomic int64_t owner;
	struct path_start *_Atomic start; /* the owner's */
	struct survey survey;
} slots[SURVEYS];

static _Atomic int64_t serials;

/* Set while a thread checks that no other one probes its path, and begins to probe it. Threads that find this set look again later. */
static atomic_flag beginning = ATOMIC_FLAG_INIT;

void path_start_init(struct path_start *start, bool may_move, const struct in6_addr *source)
{
	*start = (struct path_start){ .path.id.source = *source, .may_move = may_move };
	start->serial = atomic_fetch_add(&serials, 1) + 1;
}

/* --- surveys --- */

/* Has the owner's connection ended without path_start_end()? */
static bool is_abandoned(const struct slot *slot, int64_t owner)
{
	const struct path_start *start = atomic_load(&slot->start);

	return owner > FREE && dial_host.is_waiting && !dial_host.is_waiting(start, owner);
}

/* Takes a slot and makes it BUSY, with a survey without probes. Returns NULL if there is none. */
static struct slot *slot_take(void)
{
	for (int i = 0; i < SURVEYS; i++) {
		int64_t owner = atomic_load(&slots[i].owner);
		const bool left = is_abandoned(&slots[i], owner);

		if ((owner != FREE && !left) || !atomic_compare_exchange_strong(&slots[i].owner, &owner, BUSY))
			continue;
		if (left)
			survey_close(&slots[i].survey);
		survey_reset(&slots[i].survey);
		return &slots[i];
	}
	return NULL;
}

static struct slot *slot_of(const struct path_start *start)
{
	struct slot *slot = start->survey ? &slots[start->survey - 1] : NULL;

	return slot && atomic_load(&slot->owner) == start->serial ? slot : NULL;
}

/* Does another connection already probe the path? */
static bool is_being_asked(const struct path_id *id)
{
	for (int i = 0; i < SURVEYS; i++) {
		int64_t owner = atomic_load(&slots[i].owner);

		if (owner > FREE && !is_abandoned(&slots[i], owner) && path_is_same(&slots[i].survey.own.id, id))
			return true;
	}
	return false;
}

void path_start_end(struct path_start *start)
{
	struct slot *slot = slot_of(start);

	start->look_at = 0;
	start->survey = 0;
	if (!slot)
		return;
	survey_close(&slot->survey);
	atomic_store(&slot->owner, FREE);
}

void path_start_repair_in_child(void)
{
	atomic_flag_clear(&beginning);
	for (int i = 0; i < SURVEYS; i++) {
		if (atomic_load(&slots[i].owner) != FREE)
			survey_close(&slots[i].survey);
		atomic_store(&slots[i].owner, FREE);
	}
}

/* --- trials --- */

/* Begins a trial of @path, which has failed, if there is a slot. */
static void try_path(struct path_start *start, const struct path *path)
{
	struct slot *slot;
	bool begun;

	start->tried_path = true;
	slot = slot_take();
	if (!slot)
		return;
	begun = survey_try(&slot->survey, path);
	atomic_store(&slot->owner, begun ? TRIAL : FREE);
	if (begun && dial_host.trial_begins)
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
	bool any = false;

	for (int i = 0; i < SURVEYS; i++) {
		int64_t owner = TRIAL;

		if (!atomic_compare_exchange_strong(&slots[i].owner, &owner, BUSY)) {
			any |= owner == BUSY;
			continue;
		}
		if (trial_ends(&slots[i].survey)) {
			atomic_store(&slots[i].owner, FREE);
		} else {
			atomic_store(&slots[i].owner, TRIAL);
			any = true;
		}
	}
	return any ? dial_host.clock() + TRIAL_LOOK_MS * CLOCK_NS_PER_MS : 0;
}

/* --- which path --- */

static void take_path(struct path_start *start, const struct path *path)
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
	take_path(start, &list.paths[best]);
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
	take_path(start, &list.paths[best]);
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
	/* After a refusal, a direct connection may work over a usual path that refuses as well, but not over a silent one. */
	if (how == CACHE_PATH_SILENT || paths_facts_usual(start->path.id.converter).state == CACHE_PATH_REFUSES)
		path_start_give_back(start);
	return false;
}

bool path_start_may_have_more(const union sockaddr_ip *addr)
{
	const char *reason = path_list_policy_breach(dial_host.settings, addr);
	char text[SOCKADDR_STRLEN];

	if (reason)
		dial_host.log("converter %s: asked over TCP, since %s", sockaddr_ip_format(addr, text), reason);
	return !reason;
}

static int device_of(const struct path_start *start)
{
	return start->path.bind_device ? start->path.device : 0;
}

bool path_start_needs_socket(const struct path_start *start, int fd)
{
	return start->placed && network_needs_socket(fd, device_of(start));
}

int path_start_bind(const struct path_start *start, int fd)
{
	if (!start->placed || network_bind(fd, &start->path.id.source, device_of(start)))
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
		dial_host.log("%s: not directly, since CONVERT_PATHS or a quota allows no network that leads there",
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

static void move_to(struct path_start *start, const struct path_list *list, int best, union sockaddr_ip *addr)
{
	char text[SOCKADDR_STRLEN];

	dial_host.log("converter %s: the path to it %s, asked by %s",
		      sockaddr_ip_format(converters_address(start->path.id.converter), text), path_complaint(&start->path.id),
		      list->names[best]);
	*addr = list->addrs[best];
	take_path(start, &list->paths[best]);
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
	move_to(start, &list, best, addr);
	return true;
}

/* Gives the connection a survey that hasn't sent a probe yet. Returns PATHS_PROBE, PATHS_STAY or PATHS_WAIT. */
static enum paths_do slot_begin(struct path_start *start, const struct converters_query *query)
{
	struct slot *slot = slot_take();
	bool open;

	if (!slot)
		return PATHS_WAIT;
	atomic_store(&slot->start, start);
	open = survey_begin(&slot->survey, &start->path, dial_host.settings, query);
	start->survey = (uint8_t)(slot - slots + 1);
	atomic_store(&slot->owner, start->serial);
	return open ? PATHS_PROBE : PATHS_STAY;
}

/*
 * As slot_begin(), unless another thread probes the path or is about to. If the connections of several threads begin on one path at the
 * same time, one of them sends probes.
 */
static enum paths_do slot_begin_alone(struct path_start *start, const struct converters_query *query)
{
	enum paths_do what = PATHS_WAIT;

	look_in(start, WAIT_FOR_OTHER_MS);
	if (atomic_flag_test_and_set(&beginning))
		return what;
	if (!is_being_asked(&start->path.id))
		what = slot_begin(start, query);
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
	struct slot *slot;
	int best = -1;

	if (!slot_of(start))
		what = has_failed_since(start, query, addr) ? PATHS_MOVE : slot_begin_alone(start, query);
	slot = slot_of(start);
	if (slot && what == PATHS_PROBE) {
		what = survey_go_on(start, &slot->survey, syn, now, &best);
		if (what == PATHS_MOVE)
			move_to(start, &slot->survey.list, best, addr);
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
	struct slot *slot = slot_of(start);

	if (slot && slot->survey.count)
		return;
	if (!slot) {
		start->others_ask = start->look_at || is_being_asked(&start->path.id);
		slot = start->others_ask ? NULL : slot_take();
		if (!slot)
			return;
		atomic_store(&slot->start, start);
	}
	survey_ask(&slot->survey, &start->path, whole);
	start->survey = (uint8_t)(slot - slots + 1);
	atomic_store(&slot->owner, start->serial);
}

enum path_answer path_start_asked(struct path_start *start)
{
	struct slot *slot = slot_of(start);
	enum survey_answer answer;

	if (!slot || !slot->survey.count)
		return !slot && start->others_ask ? PATH_UNKNOWN : PATH_UNASKED;
	answer = survey_answer(&slot->survey, dial_host.clock());
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
