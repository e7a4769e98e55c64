/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * survey.h - the probes for one connection: does its path work, and which other one does?
 *
 * client/paths.c decides. Nothing here blocks or allocates memory.
 */
#ifndef HOST_SURVEY_H
#define HOST_SURVEY_H

#include "host/path_list.h"
#include "host/path_probe.h"

#define SURVEY_OWN_MAX 10

struct survey {
	struct path own;
	unsigned int held;                        /* milliseconds for which its converter withholds a SYN at most; 0: unknown */
	struct path_list list;
	struct path_probe probes[SURVEY_OWN_MAX]; /* on the connection's own path */
	struct path_probe plain;                  /* on the own path, without data in the SYN */
	struct path_probe others[PATHS_MAX];      /* on each other path of the list */
	struct path_probe others_plain[PATHS_MAX];
	unsigned int count;                       /* of probes */
	bool others_asked;
	bool answered;                            /* the own path has answered a probe */
	int64_t now;                              /* time of the look, which sees all that came before */
};

/* The kind of the connection's SYN, and for BEHIND the request after it. The connection waits for the answer. */
enum survey_syn {
	SURVEY_PLAIN,     /* carries no data */
	SURVEY_DATA,      /* carries data that could also follow the handshake */
	SURVEY_DATA_ONLY, /* carries data that couldn't */
	SURVEY_BEHIND,    /* has its answer; the request after the handshake isn't acknowledged */
};

/* Are these the same path? */
bool path_is_same(const struct path_id *a, const struct path_id *b);

/* survey_reset() - initialize it without probes, and ignore its old contents */
void survey_reset(struct survey *survey);

/* survey_close() - end its remaining probes */
void survey_close(struct survey *survey);

/*
 * survey_begin() - begin the survey of a connection on @own, after survey_reset()
 * @own: this finds its facts; @query: for the alternative converters. Returns false if there is only one path, known to work: then there
 * is nothing to find out.
 */
bool survey_begin(struct survey *survey, const struct path *own, const struct settings *settings, const struct converters_query *query);

/*
 * survey_look() - look at the probes, and send those that are due
 * @waiting: milliseconds since the unanswered SYN or request; @now: clock_ns() from before the caller saw that it is unanswered
 * Returns the action. Before PATHS_MOVE and PATHS_BEHIND the caller looks at the connection once more: its SYN+ACK may have come
 * meanwhile. If it hasn't, the caller calls survey_leave(). @again: set to the milliseconds until the next look.
 */
enum paths_do survey_look(struct survey *survey, int64_t now, unsigned int waiting, enum survey_syn syn, unsigned int *again);

/*
 * survey_leave() - choose the path for a new beginning, after survey_look() has returned @what, PATHS_MOVE or PATHS_BEHIND
 * Notes all findings. Returns PATHS_MOVE with @best, an index in the survey's list; or PATHS_BEHIND; or PATHS_WAIT.
 */
enum paths_do survey_leave(struct survey *survey, enum paths_do what, enum survey_syn syn, int *best);

/*
 * survey_ask() - send probes on the path @own, whose connection is silent, after survey_reset() or survey_begin()
 * @whole: the connection got its SYN+ACK and nothing since, so that only a response shows that others get through
 * survey.count stays 0 if the kernel refuses.
 */
void survey_ask(struct survey *survey, const struct path *own, bool whole);

/* The answer to the probes on a connection's own path. */
enum survey_answer {
	SURVEY_PENDING, /* no answer is due yet */
	SURVEY_SILENT,  /* none came, or a reset */
	SURVEY_ANSWERS,
};

/* survey_answer() - look at these probes. Notes an answer. */
enum survey_answer survey_answer(struct survey *survey, int64_t now);

/* survey_try() - begin a trial: test whether a failed path works again, after survey_reset(). Returns false if it can't send a probe. */
bool survey_try(struct survey *survey, const struct path *path);

/*
 * survey_trial_ends() - look at a trial
 * Returns false if it continues. Otherwise notes the result, and sets @works if the path counts as working now.
 */
bool survey_trial_ends(struct survey *survey, bool *works);

/*
 * trials_start() - start the trials of failed paths that are due, in a separate process
 * A launcher calls it before it executes the program. The process is nobody's child, has no descriptors of the caller, and ends after a
 * second at most; its results are in the user's cache. It leaves out converters whose names nobody has resolved yet. Does nothing if the
 * caller would adopt the orphan (PR_SET_CHILD_SUBREAPER).
 */
void trials_start(const struct settings *settings);

#endif
