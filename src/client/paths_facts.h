/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths_facts.h - what was learned of each path to a converter, by this process and by the user's others
 *
 * A path is a converter, by its index, and the address of this machine that a connection to it comes from: :: for the usual path,
 * whichever the kernel chooses. Whoever sends SYNs on it tells what became of them.
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
	unsigned int rtt_ms; /* how long it takes to answer at most, as far as was seen; 0: not known */
	bool heard;          /* it has answered this process within PATHS_HEARD_MS */
};

#define PATHS_HEARD_MS 1000

/* The fingerprint by which the user's cache tells this path from the others to its converter; 0: the usual one. */
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

/* Does nothing that was found speak against it? */
static inline bool path_is_sound(enum cache_path state)
{
	return state == CACHE_PATH_UNKNOWN || state == CACHE_PATH_WORKS;
}

/* Is it known to answer SYNs, be it only those without data? */
static inline bool path_works(enum cache_path state)
{
	return state == CACHE_PATH_WORKS || state == CACHE_PATH_DATALESS;
}

/* What is known of the path. Takes over what the user's other processes have learned, which are two system calls. */
struct path_facts paths_facts(const struct path_id *id);

/* What this process knows already, without a system call and with little stack. */
struct path_facts paths_facts_kept(const struct path_id *id);

/* What is known of the usual path to @converter without a system call: after converters_renew_path(), which choosing it calls. */
struct path_facts paths_facts_usual(int converter);

/* Takes over what @found, of converters_noted(), says of the usual path. */
void converters_renew_path(int converter, const struct cache_converter *found);

/*
 * paths_note_answer() - a SYN on the path was answered after @ms
 * @alone: the answer waited for nothing else, as a server, so that it tells the path's round trip. A path that was silent, or lost
 * SYNs, isn't restored by one answer: paths_note_trial().
 */
void paths_note_answer(const struct path_id *id, unsigned int ms, bool alone);

/* Several SYNs have shown that the path has failed: CACHE_PATH_SILENT, CACHE_PATH_LOSES, CACHE_PATH_DATALESS. */
void paths_note_failure(const struct path_id *id, enum cache_path state);

/*
 * paths_note_syn_data() - was the data in a SYN on the path taken?
 * Data that isn't costs a connection its MPTCP (it falls back), so that after PATHS_SYN_DATA_MISSES in a row the request follows the
 * handshake on this path instead, for one round trip more. SYNs that were on the way at the same time are lost by one cause: a miss
 * counts if its SYN was sent after the miss before it was noted. @syn_at: CLOCK_MONOTONIC in ns, when the SYN was sent
 */
#define PATHS_SYN_DATA_MISSES 2
void paths_note_syn_data(const struct path_id *id, bool taken, int64_t syn_at);

/* May a SYN on the path carry data? As paths_facts_kept(). */
bool paths_take_syn_data(const struct path_id *id);

/* Was the data of the last SYN with some not taken? Then a request that has nothing but its SYN isn't to be risked. */
bool paths_doubt_syn_data(const struct path_id *id);

/*
 * paths_is_trial_due() - is it this process that asks a failed path whether it works again?
 * Notes that it does: once in PATHS_TRIAL_MS all over the user's processes, as far as they share a cache.
 */
#define PATHS_TRIAL_MS 2000
bool paths_is_trial_due(const struct path_id *id);

/*
 * paths_note_trial() - a failed path was asked by several SYNs: were all of them, and their data, taken?
 * One such trial restores a path that was silent or took no data, several in a row one that loses SYNs. Returns whether the path
 * counts as working.
 */
bool paths_note_trial(const struct path_id *id, bool answered);

/* Forgets what this process has learned of all paths: converters_forget(). */
void paths_facts_forget(void);

#endif
