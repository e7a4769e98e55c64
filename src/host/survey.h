/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * survey.h - the probes that are sent for one connection: does its path work, and which other one does?
 *
 * What decides is client/paths.c. Nothing here blocks, and nothing is allocated.
 */
#ifndef HOST_SURVEY_H
#define HOST_SURVEY_H

#include "host/path_list.h"
#include "host/path_probe.h"

#define SURVEY_OWN_MAX 10

struct survey {
	struct path own;
	unsigned int held;                        /* its converter withholds a SYN for so many milliseconds at most; 0: not known */
	struct path_list list;
	struct path_probe probes[SURVEY_OWN_MAX]; /* on the own path */
	struct path_probe plain;                  /* likewise, without data in its SYN */
	struct path_probe others[PATHS_MAX];      /* on each path of the list but the own one */
	struct path_probe others_plain[PATHS_MAX];
	unsigned int count;                       /* of probes */
	bool others_asked;
	bool answered;                            /* the own path has, to some probe */
	int64_t now;                              /* of the look: what has come by then is seen in it */
};

/* What the connection waits for: the answer to its SYN, in most cases. */
enum survey_syn {
	SURVEY_PLAIN,     /* carries no data */
	SURVEY_DATA,      /* carries some, which could as well follow the handshake */
	SURVEY_DATA_ONLY, /* or could not */
	SURVEY_BEHIND,    /* was answered: it is the request behind the handshake that isn't acknowledged */
};

/* Are these the same path? */
bool path_is_same(const struct path_id *a, const struct path_id *b);

/* survey_reset() - make it one without probes, whatever was in it */
void survey_reset(struct survey *survey);

/* survey_close() - end what is left of its probes */
void survey_close(struct survey *survey);

/*
 * survey_begin() - look after a connection on @own, after survey_reset()
 * @own: its facts are asked for here; @query: for the converters that may be asked instead. Returns false if there is nothing to be
 * found out: one path, known to work.
 */
bool survey_begin(struct survey *survey, const struct path *own, const struct settings *settings, const struct converters_query *query);

/*
 * survey_look() - look at the probes, and send those that are due
 * @waiting: milliseconds since what is unanswered was sent; @now: clock_ns() from before that was seen to be
 * Returns what is to be done. Before PATHS_MOVE and PATHS_BEHIND are done the connection is to be looked at once more: its SYN+ACK may
 * have come while the probes were looked at. If it hasn't, survey_leave() follows. @again is the time to the next look.
 */
enum paths_do survey_look(struct survey *survey, int64_t now, unsigned int waiting, enum survey_syn syn, unsigned int *again);

/*
 * survey_leave() - where to begin anew, after survey_look() has said @what, PATHS_MOVE or PATHS_BEHIND
 * Notes all that was found out. Returns PATHS_MOVE with @best, an index in the survey's list; or PATHS_BEHIND; or PATHS_WAIT.
 */
enum paths_do survey_leave(struct survey *survey, enum paths_do what, enum survey_syn syn, int *best);

/* survey_try() - ask a path that has failed whether it works again, after survey_reset(). Returns false if nothing could be sent. */
bool survey_try(struct survey *survey, const struct path *path);

/*
 * survey_trial_ends() - look at such a trial
 * Returns false if it goes on; else what it has shown is noted, and in @works whether the path counts as working now.
 */
bool survey_trial_ends(struct survey *survey, bool *works);

/*
 * trials_start() - ask paths that have failed whether they work again, if it is time to, in a process of their own (trials.c)
 * For a launcher, before it becomes the program. That process is nobody's child, has no descriptor of the caller's, and ends after a second
 * at most; what it finds out is in the user's cache. Converters whose names nobody has looked up yet are left out. Does nothing where
 * orphans are this process's own (PR_SET_CHILD_SUBREAPER).
 */
void trials_start(const struct settings *settings);

#endif
