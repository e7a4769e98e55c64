/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths.h - on which path a connection begins, and when another one is tried
 *
 * paths.c decides, without I/O: a front end lists the available paths, sends the probes that paths.c orders, and reports their outcome. A
 * probe is a connection of its own that carries an Info TLV (Section 6.2.3) in its SYN. A converter answers it within one round trip,
 * whatever server it is waiting for, so a probe distinguishes a dead path from a slow server.
 */
#ifndef CLIENT_PATHS_H
#define CLIENT_PATHS_H

#include "client/cache.h"
#include "client/settings.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

/* --- facts about each path to a converter, learned by this process and by the user's others: paths_facts.c --- */

struct path_id {
	int converter;
	struct in6_addr source; /* IPv4 as v4-mapped; :: the usual path */
};

struct path_facts {
	enum cache_path state;
	unsigned int rtt_ms; /* round trip: falls to each shorter one at once, rises slowly; 0: not known */
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

/* Does nothing on the path reach the converter, as far as we know? */
static inline bool path_is_dead(enum cache_path state)
{
	return state == CACHE_PATH_SILENT || state == CACHE_PATH_REFUSES;
}

/* Was the path found to be dead, or to lose SYNs? */
static inline bool path_has_failed(enum cache_path state)
{
	return path_is_dead(state) || state == CACHE_PATH_LOSES;
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

/* Notes that the path has failed: CACHE_PATH_SILENT, CACHE_PATH_LOSES, CACHE_PATH_DATALESS (several SYNs show that), CACHE_PATH_REFUSES. */
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
bool paths_syn_data_is_doubted(const struct path_id *id);

/*
 * paths_is_trial_due() - shall this process ask a failed path now whether it works again?
 * If so, notes the trial: the user's processes that share a cache make one in PATHS_TRIAL_MS between them.
 */
#define PATHS_TRIAL_MS 2000
bool paths_is_trial_due(const struct path_id *id);

/*
 * paths_note_trial() - note whether a failed path took all the SYNs of a trial, and their data (@answered)
 * On a path in the state CACHE_PATH_REFUSES only a Convert response is an answer: something else may accept connections. One success
 * restores a path that was dead or took no data; a path that loses SYNs needs several in a row. Returns whether the path
 * counts as working.
 */
bool paths_note_trial(const struct path_id *id, bool answered);

/*
 * paths_mptcp() - does Multipath TCP get through on the path?
 * LOST: it failed at the SYN+ACK or right behind the handshake. Connections use plain TCP for a while, since a socket that falls back loses
 * bytes. HOLDS: it worked lately, and a connection need not wait for the converter's first bytes to be sure. DOUBTED: the next connection
 * tries it again, and waits for these bytes. A path of which nothing is known is taken to be as good as the usual one, but not as bad.
 */
enum cache_mptcp paths_mptcp(const struct path_id *id);

/* Notes that a connection kept its Multipath TCP. */
void paths_note_mptcp(const struct path_id *id);

/*
 * paths_note_fallback() - note that a connection fell back to TCP
 * Where Multipath TCP held before, a lost packet may be the cause. We consider it lost when a connection that began later falls back as
 * well, before another connection has kept it. @syn_at: CLOCK_MONOTONIC in ns, when the SYN was sent
 */
void paths_note_fallback(const struct path_id *id, int64_t syn_at);

/* Forgets that Multipath TCP gets through, if that was known. */
void paths_forget_mptcp(const struct path_id *id);

/* Forgets the facts that this process has learned about all paths: converters_forget(). */
void paths_facts_forget(void);

/* --- on which path a connection begins: paths.c --- */

#define PATHS_MAX 12
#define PATHS_MOVES_MAX 4 /* of one connection; later failures are left to CONVERT_TIMEOUT */

/* A way to begin a connection. */
struct path {
	struct path_id id;
	int device;           /* index of the interface that id.source is on; 0 for the usual path */
	bool bind_device;     /* the source address alone doesn't select the network */
	bool backup;          /* only for connections that would fail otherwise */
	uint8_t preference;   /* the user's: lower is better */
	struct path_facts facts;
};

/*
 * paths_best() - choose the path to begin on, of @count
 * Sound paths are best, then those that lose SYNs, those for backup, silent and refusing ones. Among equals, in order:
 * the user's preference; known to work; less than half the round trip (any less, if the other path takes no data in SYNs); the order of the
 * list. @skip: a bit for each path to leave out. Returns its index, or -1 if there is none.
 */
int paths_best(const struct path *paths, size_t count, uint32_t skip);

#define PATHS_LOST_PROBES 3 /* a path that answers other probes loses SYNs if this many are lost, and half of all; fewer may be chance */

/* The state of an attempt whose SYN, or whose request behind the handshake, is unanswered. Times are in milliseconds. */
struct paths_seen {
	unsigned int waiting;  /* since the SYN */
	unsigned int rtt;      /* the path's, struct path_facts; 0: not known */
	bool heard;            /* likewise */
	unsigned int held;     /* the converter withholds a SYN for at most so long; 0: not known */
	bool others_far;       /* the round trip of another path, not for backup, is above PATHS_FAR_MS or unknown */
	unsigned int probes;   /* sent on the attempt's own path */
	unsigned int answered; /* and answered */
	unsigned int slowest;  /* the longest that an answer took */
	unsigned int last;     /* since the last one was sent */
	unsigned int missing[PATHS_LOST_PROBES]; /* since each unanswered probe was sent, in order; 0: none */
	bool others_asked;     /* the front end has sent probes, and SYNs without data, on all paths */
	bool plain_answered;   /* the attempt's own path has answered the SYN without data */
	bool other_answered;   /* one of the other paths has answered */
	bool other_likely;     /* no other path has answered, but there is one other network, whose answer may still be on its way */
	bool syn_data;         /* the attempt's SYN carries data */
	bool behind;           /* the SYN was answered, but not the request behind the handshake: times count from that request */
	unsigned int late;     /* answers exceeded the path's known round trip by this much: the converter or this machine is busy */
	unsigned int answer_lag; /* this path's answer may follow another path's by this much, if the converter sent both at once */
};

enum paths_do {
	PATHS_WAIT,       /* nothing for now */
	PATHS_PROBE,      /* send a probe on the attempt's own path */
	PATHS_PROBE_ALL,  /* and one on each other path that isn't for backup */
	PATHS_ASK_OTHERS, /* probe each other path without a probe under way, up to PATHS_DATA_PROBES here; a SYN without data on all */
	PATHS_MOVE,       /* begin anew on the best path that has answered, else on the one that is likely to */
	PATHS_BEHIND,     /* it loses SYNs with data: begin anew with the request behind the handshake, or on a path that is better then */
	PATHS_STAY,       /* the path works, so we wait for the server's answer and send no more probes */
};

struct paths_step {
	enum paths_do what;
	unsigned int again; /* when to call again, in milliseconds; not after BEHIND or STAY, nor after MOVE with a path to move to */
};

#define PATHS_DATA_PROBES 5 /* if so many probes with data are all lost, the path loses such SYNs; one may be chance */

#define PATHS_FAR_MS 100    /* the answer of a path this far away comes too late unless we ask it before the attempt's fails */

/* Returns how long to wait for the answer to a SYN before probing its path, in milliseconds. @rtt, @heard: as in struct paths_seen */
unsigned int paths_patience(unsigned int rtt, bool heard);

struct paths_step paths_decide(const struct paths_seen *view);

/* Has an answer been missing for longer than a round trip of @rtt explains? Both in milliseconds. */
bool paths_is_overdue(unsigned int age, unsigned int rtt);

/* Reports an unanswered probe, in the order of sending; @age: milliseconds since its SYN. */
void paths_seen_add_missing(struct paths_seen *view, unsigned int age);

/*
 * paths_seen_add_answer() - report that another path has answered; call after this path's round trip is set
 * @rtt: the path's known round trip; 0: none; @ms: the time until the answer; @age: since its SYN. All in milliseconds.
 */
void paths_seen_add_answer(struct paths_seen *view, unsigned int rtt, unsigned int ms, unsigned int age);

/* Reports that this path has answered a SYN without data after @ms milliseconds; call after all others. */
void paths_seen_add_plain(struct paths_seen *view, unsigned int ms);

#endif
