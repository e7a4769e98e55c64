/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths_facts.h - facts about each path to a converter, learned by this process and by the user's others
 *
 * A path is a converter, by its index, and the local address of connections to it: :: for the usual path, which the kernel chooses. Callers
 * that send SYNs on a path report their outcome.
 */
#ifndef CLIENT_PATHS_FACTS_H
#define CLIENT_PATHS_FACTS_H

#include "client/cache.h"

#include <netinet/in.h>

struct path_id {
	int converter;
	struct in6_addr source; /* IPv4 as v4-mapped; :: the usual path */
};

struct path_facts {
	enum cache_path state;
	unsigned int rtt_ms; /* longest time to an answer seen so far; 0: not known */
	bool heard;          /* it has answered this process within PATHS_HEARD_MS */
};

#define PATHS_HEARD_MS 1000

/* Returns the fingerprint that distinguishes this path in the user's cache from others to its converter; 0: the usual path. */
uint64_t path_fingerprint(const struct in6_addr *source);

/* Is it the path that the kernel chooses? */
static inline bool path_is_usual(const struct path_id *id)
{
	return IN6_IS_ADDR_UNSPECIFIED(&id->source);
}

/* Was the path found to be silent, or to lose SYNs? */
static inline bool path_has_failed(enum cache_path state)
{
	return state == CACHE_PATH_SILENT || state == CACHE_PATH_LOSES;
}

/* Is the path good, as far as we know? */
static inline bool path_is_sound(enum cache_path state)
{
	return state == CACHE_PATH_UNKNOWN || state == CACHE_PATH_WORKS;
}

/* Is the path known to answer SYNs, at least those without data? */
static inline bool path_works(enum cache_path state)
{
	return state == CACHE_PATH_WORKS || state == CACHE_PATH_DATALESS;
}

/* Returns the facts about the path. First takes over those that the user's other processes have learned, which costs two system calls. */
struct path_facts paths_facts(const struct path_id *id);

/* Returns the facts that this process already has, without a system call and with little stack. */
struct path_facts paths_facts_kept(const struct path_id *id);

/*
 * Returns the facts about the usual path to @converter, without a system call; call after converters_renew_path(), which choosing a
 * converter calls.
 */
struct path_facts paths_facts_usual(int converter);

/* Takes over the facts about the usual path in @found, from converters_noted(). */
void converters_renew_path(int converter, const struct cache_converter *found);

/*
 * paths_note_answer() - note that a SYN on the path was answered after @ms
 * @alone: the answer waited for nothing else, such as a server, so it tells the path's round trip. One answer doesn't restore a path that
 * was silent or lost SYNs: paths_note_trial().
 */
void paths_note_answer(const struct path_id *id, unsigned int ms, bool alone);

/* Notes that several SYNs have shown the path to fail: CACHE_PATH_SILENT, CACHE_PATH_LOSES, CACHE_PATH_DATALESS. */
void paths_note_failure(const struct path_id *id, enum cache_path state);

/*
 * paths_note_syn_data() - note whether the other end took the data in a SYN on the path
 * Data that isn't taken costs a connection its MPTCP (it falls back). So after PATHS_SYN_DATA_MISSES in a row the request follows the
 * handshake on this path, at the cost of one round trip. One cause may lose several SYNs that are under way together: a miss counts only if
 * its SYN was sent after the previous miss was noted. @syn_at: CLOCK_MONOTONIC in ns, when the SYN was sent
 */
#define PATHS_SYN_DATA_MISSES 2
void paths_note_syn_data(const struct path_id *id, bool taken, int64_t syn_at);

/* May a SYN on the path carry data? As paths_facts_kept(). */
bool paths_take_syn_data(const struct path_id *id);

/* Was the data of the last SYN that carried some lost? Then don't risk a request that depends on its SYN alone. */
bool paths_doubt_syn_data(const struct path_id *id);

/*
 * paths_is_trial_due() - shall this process ask a failed path now whether it works again?
 * If so, notes the trial: the user's processes that share a cache make one in PATHS_TRIAL_MS between them.
 */
#define PATHS_TRIAL_MS 2000
bool paths_is_trial_due(const struct path_id *id);

/*
 * paths_note_trial() - note whether a failed path took all the SYNs of a trial, and their data (@answered)
 * One success restores a path that was silent or took no data; a path that loses SYNs needs several in a row. Returns whether the path
 * counts as working.
 */
bool paths_note_trial(const struct path_id *id, bool answered);

/* Forgets the facts that this process has learned about all paths: converters_forget(). */
void paths_facts_forget(void);

#endif
