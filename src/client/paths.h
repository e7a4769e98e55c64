/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths.h - on which path a connection begins, and when another one is tried
 *
 * What decides is here, without I/O: a front end lists the paths that there are, sends the probes that it is told to send, and tells
 * what has become of them. A probe is a connection of its own that carries an Info TLV (Section 6.2.3) in its SYN: a converter answers
 * it in one round trip whatever server it is waiting for, so that it tells a path that is dead from a server that is slow.
 */
#ifndef CLIENT_PATHS_H
#define CLIENT_PATHS_H

#include "client/paths_facts.h"
#include "client/settings.h"

#include <stdbool.h>
#include <stddef.h>

#define PATHS_MAX 12
#define PATHS_MOVES_MAX 4 /* of one connection, from path to path: what comes behind is left to CONVERT_TIMEOUT */

/* A way to begin a connection. */
struct path {
	struct path_id id;
	int device;           /* index of the interface that id.source is on; 0 for the usual path */
	bool bind_device;     /* the address alone doesn't lead there */
	bool backup;          /* it is only for what would fail otherwise */
	uint8_t preference;   /* the user's: lower is better */
	struct path_facts facts;
};

/*
 * paths_best() - the path on which to begin, of @count
 * One that has failed comes last, then those for backup, those that lose SYNs; then the user's order, what is known to work, what
 * takes less than half as long (less at all, where the other one takes no data in SYNs), and the order of the list. @skip: a bit for
 * each that is out of the question. Returns its index, or -1 if there is none.
 */
int paths_best(const struct path *paths, size_t count, uint32_t skip);

#define PATHS_LOST_PROBES 3 /* tell that a path which answers others loses SYNs, if most are lost: one or two may be where nothing is wrong */

/* What a front end knows of an attempt whose SYN, or whose request behind the handshake, is unanswered. Times are in milliseconds. */
struct paths_view {
	unsigned int waiting;  /* since the SYN */
	unsigned int rtt;      /* the path's, struct path_facts; 0: not known */
	bool heard;            /* the same */
	unsigned int held;     /* the converter withholds a SYN for so long at most; 0: not known */
	bool others_far;       /* the round trip of another path, which isn't for backup, is above PATHS_FAR_MS, or not known */
	unsigned int probes;   /* sent on the attempt's own path */
	unsigned int answered; /* and answered */
	unsigned int slowest;  /* the longest that an answer took */
	unsigned int last;     /* since the last one was sent */
	unsigned int missing[PATHS_LOST_PROBES]; /* since the first, second … of those that aren't answered was sent; 0: there is none */
	bool others_asked;     /* all paths were sent probes, and SYNs without data */
	bool plain_answered;   /* the attempt's own has answered that */
	bool other_answered;   /* one of the other paths was */
	bool other_likely;     /* none has, but there is one network that leads elsewhere, and whose answer may still be on its way */
	bool syn_data;         /* the attempt's SYN carries data */
	bool behind;           /* its SYN was answered, and the request behind the handshake isn't: times are since that was sent */
	unsigned int late;     /* what was answered took so much longer than is known of its path: the converter or this machine is busy */
	unsigned int owed;     /* for so long the own path's answers may be behind another one's, if the converter sent all of them at once */
};

enum paths_do {
	PATHS_WAIT,       /* nothing for now */
	PATHS_PROBE,      /* send a probe on the attempt's own path */
	PATHS_PROBE_ALL,  /* and one on each other path that isn't for backup */
	PATHS_ASK_OTHERS, /* send a probe on each other path, unless one is on its way, up to PATHS_DATA_PROBES on the own one, on all a SYN without data */
	PATHS_MOVE,       /* begin anew on the best path that has answered; if none has, on the one that is likely to */
	PATHS_BEHIND,     /* it loses SYNs with data: begin anew with the request behind the handshake, or on a path that is better then */
	PATHS_STAY,       /* the path works, and the answer is the server's to give: there is nothing more to be asked */
};

struct paths_step {
	enum paths_do what;
	unsigned int again; /* when to look again, in milliseconds; not after BEHIND, STAY, nor after MOVE where there is a path to move to */
};

#define PATHS_DATA_PROBES 5 /* with data, all of which are lost, tell that such SYNs are: one may be chance */

#define PATHS_FAR_MS 100    /* a path whose answer comes too late if it isn't asked before the own one has failed to answer */

/* How long a SYN may be unanswered before its path is asked, in milliseconds. @rtt, @heard: as in struct paths_view */
unsigned int paths_patience(unsigned int rtt, bool heard);

struct paths_step paths_decide(const struct paths_view *view);

/* Has an answer been out for longer than a round trip of @rtt explains? Both in milliseconds. */
bool paths_is_overdue(unsigned int age, unsigned int rtt);

/* Tells of a probe that isn't answered, in the order in which they were sent; @age: milliseconds since its SYN. */
void paths_view_add_missing(struct paths_view *view, unsigned int age);

/*
 * paths_view_add_answer() - tells of another path that has answered; after the own one's round trip was set
 * @rtt: what was known of it; 0: nothing; @ms: that the answer took; @age: since its SYN. All in milliseconds.
 */
void paths_view_add_answer(struct paths_view *view, unsigned int rtt, unsigned int ms, unsigned int age);

/* Tells that the own path has answered a SYN without data after @ms milliseconds; after all others. */
void paths_view_add_plain(struct paths_view *view, unsigned int ms);

#endif
