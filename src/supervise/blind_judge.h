/* SPDX-License-Identifier: BSD-3-Clause */
/* blind_judge.h - what has become of a blind request, and which servers are not to be asked for by one */
#ifndef SUPERVISE_BLIND_JUDGE_H
#define SUPERVISE_BLIND_JUDGE_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Linux sends a SYN again after a second, without its data, and the converter resets what that leads to. So a request that
 * hasn't been answered by then is made again first, after so long at most. The converter lets a SYN go that has reached it within
 * 700 ms, or never: whoever is silent for longer has lost the SYN, or its answer was lost, or the server is slow.
 */
#define BLIND_REPEAT_MS 900
#define BLIND_REPEATS_MAX 3

/*
 * A converter that knows a request by its attempt (doc/private-tlvs.md) asks the server once, however often it is made, and lets
 * the last SYN go. So requests are made again for as long as a server may take: 11 s, which is three lost SYNs on its way to the
 * server, and a second more.
 */
#define BLIND_REPEATS_KNOWN_MAX 12

/* So long a converter has to answer when it is asked whether it is there. */
#define BLIND_PROBE_MS 1000

/* What the kernel says of the connection. */
struct blind_seen {
	bool there;    /* it knows it */
	bool syn_sent; /* no SYN+ACK has come */
	bool answered; /* one has, and its round trip was measured */
	bool taken;    /* it acknowledged the SYN's data */
	bool again;    /* the kernel has sent the SYN again, without its data */
};

struct blind_request {
	int64_t started, syn_at; /* when the first SYN was sent, and the last one: nanoseconds of CLOCK_MONOTONIC */
	int repeats;             /* SYNs that were sent again, with the request */
	int repeats_max;
	bool repeatable;         /* it can be made again */
	int64_t silent_at;       /* when BLIND_SILENT was told; 0: it wasn't */
	int64_t repeat_after;    /* its last SYN it is to be made again: blind_repeat_after() */
	int64_t withheld;        /* for how long the converter withholds a SYN at most, in nanoseconds */
	int64_t waiting_at;      /* when it was seen last that no SYN+ACK has come; 0: never */
};

enum blind_fate {
	BLIND_OPEN,    /* look again at *@look_at */
	BLIND_REPEAT,  /* make the request again, now */
	BLIND_TAKEN,   /* all is well */
	BLIND_UNTAKEN, /* the path has lost the SYN's data, and not the SYN: no further request is to be blind */
	BLIND_SILENT,  /* no SYN+ACK for @patience, told once: is the converter there? Look again at *@look_at */
	BLIND_LEFT,    /* nothing more can be done about it, and the converter has had BLIND_PROBE_MS: it is the kernel's */
	BLIND_SLOW,    /* it was reset once the converter had waited for the server as long as it may, which is as long as it is asked */
	BLIND_GONE,    /* the connection was refused or reset, or the program has closed it */
};

/*
 * blind_repeat_after() - how long to wait for the answer to a SYN that a converter withholds for @withheld at most, in nanoseconds
 * @rtt: the longest round trip to the converter that was seen, in nanoseconds; 0: none. What is left to the kernel's second is what a busy
 * machine may be late by.
 */
int64_t blind_repeat_after(int64_t withheld, int64_t rtt);

/* The first look at a request whose SYN was sent at @now. */
int64_t blind_first_look(int64_t now);

/*
 * blind_judge() - what has become of @request, of which @seen was seen @now
 * @patience: how long a converter may be silent, in nanoseconds.
 */
enum blind_fate blind_judge(struct blind_request *request, const struct blind_seen *seen, int64_t now, int64_t patience,
		     int64_t *look_at);

/* --- servers that have taken longer than a blind request can wait, or for which one has failed --- */

/* A blind request for this server was given up by the converter. */
void blind_memory_note_slow(const union sockaddr_ip *server);

/* Was it lately? Then the next request waits for its response, however long that takes. */
bool blind_memory_is_slow(const union sockaddr_ip *server);

/*
 * A blind request for a server that isn't known to be served (converters_admits()) has ended before its first look: the program may have
 * closed the socket, or the server, or else the converter has refused.
 */
void blind_memory_note_failed(const union sockaddr_ip *server);

/* Has one lately? Then the next request waits for its response, unless it has become known since that the converter serves it. */
bool blind_memory_has_failed(const union sockaddr_ip *server);

#endif
