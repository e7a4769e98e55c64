/* SPDX-License-Identifier: BSD-3-Clause */
/* survey.c - the probes for one connection: does its path work, and which other one does? */
#include "config.h"

#include "host/survey.h"

#include "client/cache.h"
#include "client/converters.h"
#include "common/clock.h"
#include "host/networks.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIAL_PROBES 3
#define SILENT_MS 100 /* another path of known round trip counts as silent after this time: less than from KNOWN_PROBE_MS to MOVE_MS */
#define TRIAL_MS 1000 /* then Linux repeats a SYN: an answer would prove nothing about the first one */

bool path_is_same(const struct path_id *a, const struct path_id *b)
{
	return a->converter == b->converter && memcmp(&a->source, &b->source, sizeof(a->source)) == 0;
}

void survey_close(struct survey *survey)
{
	for (unsigned int i = 0; i < SURVEY_OWN_MAX; i++)
		path_probe_close(&survey->probes[i]);
	path_probe_close(&survey->plain);
	for (unsigned int i = 0; i < PATHS_MAX; i++) {
		path_probe_close(&survey->others[i]);
		path_probe_close(&survey->others_plain[i]);
	}
}

void survey_reset(struct survey *survey)
{
	static const struct path_probe none = { .fd = -1 };

	for (unsigned int i = 0; i < SURVEY_OWN_MAX; i++)
		survey->probes[i] = none;
	for (unsigned int i = 0; i < PATHS_MAX; i++)
		survey->others[i] = survey->others_plain[i] = none;
	survey->plain = none;
	survey->count = 0;
	survey->others_asked = survey->answered = false;
	survey->now = 0;
}

bool survey_begin(struct survey *survey, const struct path *own, const struct settings *settings, const struct converters_query *query)
{
	survey->own = *own;
	survey->own.facts = paths_facts(&own->id);
	survey->held = converters_withholds_ms(settings, own->id.converter);
	path_list_make(&survey->list, settings, query);
	return survey->list.count > 1 || !path_works(survey->own.facts.state);
}

static unsigned int age_of(const struct survey *survey, const struct path_probe *probe)
{
	return path_probe_age(probe, survey->now);
}

/* --- a connection that waits --- */

/* Has the path answered only the probe without data? Both left at the same time. */
static bool loses_data(const struct survey *survey, const struct path_probe *probe, const struct path_probe *plain)
{
	return plain->answered && !probe->answered && paths_is_overdue(age_of(survey, probe), plain->ms);
}

static bool is_own(const struct survey *survey, size_t i)
{
	return path_is_same(&survey->list.paths[i].id, &survey->own.id);
}

/* Must we ask another path early (others_far of struct paths_seen)? Paths for backup and dead ones don't count. */
static bool are_far(const struct survey *survey)
{
	for (size_t i = 0; i < survey->list.count; i++) {
		const struct path *path = &survey->list.paths[i];

		if (!is_own(survey, i) && !path->backup && !path_is_dead(path->facts.state) &&
		    (!path->facts.rtt_ms || path->facts.rtt_ms > PATHS_FAR_MS))
			return true;
	}
	return false;
}

/* Looks at another path's probe. Notes its round trip at once, even if the connection stays: later probes to it can then wait longer. */
static bool other_look(struct survey *survey, size_t i)
{
	struct path_probe *probe = &survey->others[i];
	const bool before = probe->answered;

	if (path_probe_look(probe) && !before)
		paths_note_answer(&survey->list.paths[i].id, probe->ms, true);
	return probe->answered;
}

/*
 * Returns the paths, a bit for each, to which the connection may move before they answer: their network is so far away that the answer
 * would come too late. Returns none if another path has answered, or if several networks qualify, since we can't choose between them. We
 * wait for the answer of a near network: a slow converter answers on no path. A path of unknown round trip qualifies only if we know the
 * round trip of the connection's own path: otherwise this one may be as long.
 */
static uint32_t likely_ones(const struct survey *survey)
{
	uint32_t likely = 0;

	for (size_t i = 0; i < survey->list.count; i++) {
		const struct path *path = &survey->list.paths[i];
		const struct path_probe *probe = &survey->others[i];

		if (probe->answered || loses_data(survey, probe, &survey->others_plain[i]))
			return 0;
		if (path_is_dead(path->facts.state) || probe->fd < 0)
			continue;
		if (path->facts.rtt_ms ? path->facts.rtt_ms > PATHS_FAR_MS && !paths_is_overdue(age_of(survey, probe), path->facts.rtt_ms) :
					 survey->own.facts.rtt_ms)
			likely |= 1u << i;
	}
	return path_list_on_one_device(&survey->list, &survey->own, likely);
}

static struct paths_seen view_of(struct survey *survey, unsigned int waiting, enum survey_syn syn)
{
	struct paths_seen view = {
		.waiting = waiting,
		.rtt = survey->own.facts.rtt_ms,
		.heard = survey->own.facts.heard,
		.held = survey->held,
		.others_far = are_far(survey),
		.probes = survey->count,
		.others_asked = survey->others_asked,
		.plain_answered = path_probe_look(&survey->plain),
		.syn_data = syn == SURVEY_DATA || syn == SURVEY_DATA_ONLY,
		.behind = syn == SURVEY_BEHIND,
	};

	for (unsigned int i = 0; i < survey->count; i++) {
		struct path_probe *probe = &survey->probes[i];
		/* A reset shows that the path works, as an answer does: the SYN's own reset is on its way. */
		const bool answered = path_probe_look(probe) || probe->refused;

		view.answered += answered;
		if (probe->ms > view.slowest)
			view.slowest = probe->ms;
		if (!answered)
			paths_seen_add_missing(&view, age_of(survey, probe));
		view.last = age_of(survey, probe);
	}
	for (size_t i = 0; i < survey->list.count; i++) {
		const struct path_probe *probe = &survey->others[i];

		path_probe_look(&survey->others_plain[i]);
		if (other_look(survey, i))
			paths_seen_add_answer(&view, survey->list.paths[i].facts.rtt_ms, probe->ms, age_of(survey, probe));
		view.other_answered |= loses_data(survey, probe, &survey->others_plain[i]);
	}
	if (view.plain_answered)
		paths_seen_add_plain(&view, survey->plain.ms);
	survey->answered = view.answered;
	view.other_likely = likely_ones(survey) != 0;
	return view;
}

static void probe_own(struct survey *survey)
{
	if (survey->count < SURVEY_OWN_MAX && path_probe_send(&survey->probes[survey->count], &survey->own, false))
		survey->count++;
}

/*
 * Sends a probe of each kind on each other path without one. @backup: also on paths for backup. @again: also on paths that have answered,
 * since the answer came before the connection's path failed, and the converter may have stopped on all paths since.
 */
static void probe_others(struct survey *survey, bool backup, bool again)
{
	for (size_t i = 0; i < survey->list.count; i++) {
		const struct path *path = &survey->list.paths[i];
		const struct path_probe *probe = &survey->others[i];

		if (is_own(survey, i) || (probe->sent && !(again && probe->answered)) || (path->backup && !backup))
			continue;
		path_probe_close(&survey->others_plain[i]);
		path_probe_send(&survey->others[i], path, false);
		if (path->facts.state != CACHE_PATH_REFUSES) /* without data, no answer shows that a converter sent it */
			path_probe_send(&survey->others_plain[i], path, true);
	}
}

static void ask_others(struct survey *survey)
{
	survey->others_asked = true;
	path_probe_send(&survey->plain, &survey->own, true);
	for (int i = 1; i < PATHS_DATA_PROBES; i++)
		probe_own(survey);
	probe_others(survey, true, true);
}

static void other_note(const struct survey *survey, const struct path *path, const struct path_probe *probe, const struct path_probe *plain)
{
	const bool dataless = loses_data(survey, probe, plain);

	if (probe->answered || dataless) {
		paths_note_trial(&path->id, probe->answered);
		if (dataless)
			paths_note_answer(&path->id, plain->ms, true);
	} else if (probe->fd >= 0 && path->facts.state != CACHE_PATH_REFUSES && path->facts.rtt_ms && age_of(survey, probe) >= SILENT_MS &&
		   paths_is_overdue(age_of(survey, probe), path->facts.rtt_ms)) {
		paths_note_failure(&path->id, CACHE_PATH_SILENT);
	}
	/* One lost probe may be chance: don't tell all programs that a path known to work fails. */
	if (dataless && !path_works(path->facts.state))
		paths_note_failure(&path->id, CACHE_PATH_DATALESS);
}

/* Notes the probes' findings about all paths. @how: the failure of the connection's path */
static void findings_note(struct survey *survey, enum cache_path how)
{
	paths_note_failure(&survey->own.id, how);
	if (survey->plain.answered)
		paths_note_answer(&survey->own.id, survey->plain.ms, true);
	for (size_t i = 0; i < survey->list.count; i++) {
		struct path *path = &survey->list.paths[i];

		if (!is_own(survey, i))
			other_note(survey, path, &survey->others[i], &survey->others_plain[i]);
		path->facts = paths_facts(&path->id);
		/* But this connection uses the finding. */
		if (path->facts.state == CACHE_PATH_WORKS && loses_data(survey, &survey->others[i], &survey->others_plain[i]))
			path->facts.state = CACHE_PATH_DATALESS;
	}
}

/* A path that loses SYNs with data remains a candidate, except for a connection that can send nothing else. */
enum paths_do survey_leave(struct survey *survey, enum paths_do what, enum survey_syn syn, int *best)
{
	const enum cache_path how = what == PATHS_BEHIND ? CACHE_PATH_DATALESS : survey->answered ? CACHE_PATH_LOSES : CACHE_PATH_SILENT;
	const bool stays = how == CACHE_PATH_DATALESS && syn == SURVEY_DATA;
	const uint32_t likely = likely_ones(survey);
	int own = -1;
	uint32_t skip = 0;

	findings_note(survey, how);
	for (size_t i = 0; i < survey->list.count; i++) {
		const bool plain = survey->others_plain[i].answered && syn != SURVEY_DATA_ONLY;

		if (is_own(survey, i))
			own = (int)i;
		if ((int)i == own ? !stays : !survey->others[i].answered && !plain && !(likely >> i & 1))
			skip |= 1u << i;
	}
	*best = paths_best(survey->list.paths, survey->list.count, skip);
	if (*best >= 0 && *best != own)
		return PATHS_MOVE;
	return how == CACHE_PATH_DATALESS ? PATHS_BEHIND : PATHS_WAIT;
}

enum paths_do survey_look(struct survey *survey, int64_t now, unsigned int waiting, enum survey_syn syn, unsigned int *again)
{
	struct paths_seen view;
	struct paths_step step;

	survey->now = now;
	view = view_of(survey, waiting, syn);
	step = paths_decide(&view);
	*again = step.again;
	switch (step.what) {
	case PATHS_PROBE:
		probe_own(survey);
		break;
	case PATHS_PROBE_ALL:
		probe_own(survey);
		probe_others(survey, false, false);
		break;
	case PATHS_ASK_OTHERS:
		ask_others(survey);
		break;
	case PATHS_MOVE:
	case PATHS_BEHIND:
		return step.what;
	case PATHS_WAIT:
	case PATHS_STAY:
		break;
	}
	/* If there is no probe by now, the kernel has refused to send any. */
	return survey->count ? step.what : step.what == PATHS_WAIT ? PATHS_WAIT : PATHS_STAY;
}

/* --- a question before a silent converter is blamed --- */

void survey_ask(struct survey *survey, const struct path *own, bool whole)
{
	survey->own = *own;
	survey->own.facts = paths_facts_kept(&own->id);
	probe_own(survey);
	if (whole)
		survey->probes[0].whole = true;
	else
		path_probe_send(&survey->plain, own, true);
}

enum survey_answer survey_answer(struct survey *survey, int64_t now)
{
	struct path_probe *probes[SURVEY_OWN_MAX + 1];
	unsigned int count = 0, oldest = 0;

	survey->now = now;
	for (unsigned int i = 0; i < survey->count; i++)
		probes[count++] = &survey->probes[i];
	probes[count++] = &survey->plain;
	for (unsigned int i = 0; i < count; i++) {
		if (path_probe_look(probes[i])) {
			paths_note_answer(&survey->own.id, probes[i]->ms, true);
			return SURVEY_ANSWERS;
		}
		if (probes[i]->refused)
			return SURVEY_SILENT;
		if (probes[i]->sent && age_of(survey, probes[i]) > oldest)
			oldest = age_of(survey, probes[i]);
	}
	return paths_is_overdue(oldest, survey->own.facts.rtt_ms) ? SURVEY_SILENT : SURVEY_PENDING;
}

/* --- trials --- */

bool survey_try(struct survey *survey, const struct path *path)
{
	survey->own = *path;
	survey->own.facts = paths_facts(&path->id);
	while (survey->count < TRIAL_PROBES && path_probe_send(&survey->probes[survey->count], &survey->own, false))
		survey->count++;
	return survey->count > 0;
}

bool survey_trial_ends(struct survey *survey, bool *works)
{
	const bool dataless = paths_facts(&survey->own.id).state == CACHE_PATH_DATALESS;
	unsigned int answered = 0, good = 0, age;

	survey->now = clock_ns();
	age = age_of(survey, &survey->probes[0]);
	for (unsigned int i = 0; i < survey->count; i++) {
		answered += path_probe_look(&survey->probes[i]);
		good += dataless ? survey->probes[i].taken : survey->probes[i].answered;
	}
	if (answered < survey->count && age < TRIAL_MS)
		return false;
	if (answered)
		paths_note_answer(&survey->own.id, survey->probes[0].ms ? survey->probes[0].ms : age, true);
	*works = paths_note_trial(&survey->own.id, survey->count && good == survey->count);
	survey_close(survey);
	return true;
}

/* --- trials in a process beside a program that is about to start --- */

/*
 * The library sends its trials from within the program, which may end before a long path can answer: its sockets close, and the answer is
 * lost. Programs of that kind, run again and again, would stay on the other network for ever. So the launcher leaves a process behind that
 * waits for the answer. The program itself then finds no trial due (paths_is_trial_due()).
 */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define PATHS_TRIED 4
#define LOOK_MS 20

/* Finds the paths whose trial is due, and returns their number. Asks the kernel only if a path has failed or the user has preferences. */
static int find_due(const struct settings *settings, struct path due[PATHS_TRIED])
{
	/* any server will do: it only matters for converters that have refused it */
	union sockaddr_ip server = { .in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201), .sin_port = htons(443) } };
	struct converters_query query = { .destination = &server, .family = AF_INET6, .any_family = true };
	enum policy_verdict verdict = POLICY_CONVERT;
	union sockaddr_ip addr;
	const char *reason;
	const int converter = converters_choose(settings, &query, &addr, &verdict, &reason);
	struct path_list list;
	int best, missed = 0, count = 0;

	if (converter < 0 || (path_is_sound(paths_facts_usual(converter).state) && !host_preferences(settings)->count))
		return 0;
	best = path_list_choose(&list, settings, &query);
	if (best < 0) /* all have failed: compare each with the last */
		best = (int)list.count - 1;
	while (best >= 0 && missed >= 0 && count < PATHS_TRIED) {
		missed = path_list_missed(&list, best);
		if (missed >= 0)
			due[count++] = list.paths[missed];
	}
	return count;
}

/* Closes the caller's descriptors: the reader of a pipe waits until its last writer ends. */
static void detach(void)
{
	setsid();
	syscall(SYS_close_range, 0, ~0u, 0);
	open("/dev/null", O_RDWR);
	(void)!dup(STDIN_FILENO);
	(void)!dup(STDIN_FILENO);
	(void)!chdir("/");
}

static _Noreturn void run(const struct path due[], int count)
{
	static struct survey surveys[PATHS_TRIED];
	bool goes_on[PATHS_TRIED], any = true, works;

	detach();
	for (int i = 0; i < count; i++) {
		survey_reset(&surveys[i]);
		goes_on[i] = survey_try(&surveys[i], &due[i]);
	}
	while (any) {
		any = false;
		poll(NULL, 0, LOOK_MS);
		for (int i = 0; i < count; i++) {
			goes_on[i] = goes_on[i] && !survey_trial_ends(&surveys[i], &works);
			any |= goes_on[i];
		}
	}
	_exit(0);
}

/* Would this process, which becomes the program, adopt the process left behind? The program must not see it. */
static bool takes_up_orphans(void)
{
	int subreaper = 0;

	return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &subreaper, 0, 0, 0) == 0 && subreaper);
}

void trials_start(const struct settings *settings)
{
	struct path due[PATHS_TRIED];
	int count, status;
	pid_t child;

	if (takes_up_orphans())
		return;
	user_cache_init(settings);
	converters_init(settings);
	user_cache_open(-1);
	count = find_due(settings, due);
	child = count ? fork() : -1;
	if (child < 0)
		return;
	if (child == 0) {
		/* fork twice: the program must not have a child that it doesn't know */
		if (fork() == 0)
			run(due, count);
		_exit(0);
	}
	waitpid(child, &status, 0);
}
