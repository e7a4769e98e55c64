/* SPDX-License-Identifier: BSD-3-Clause */
/* blind_judge.h - judges how a blind request fares, and remembers servers that blind requests don't suit */
#ifndef SUPERVISE_BLIND_JUDGE_H
#define SUPERVISE_BLIND_JUDGE_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Linux repeats a SYN after a second, without its data, and the converter resets the connection that results. So we make an unanswered
 * request again before that, after this time at most. The converter releases a withheld SYN within 700 ms, or never: after a longer
 * silence the SYN or its answer was lost, or the server is slow.
 */
#define BLIND_REPEAT_MS 900
#define BLIND_REPEATS_MAX 3

/*
 * A converter that recognises a request by its Attempt (doc/private-tlvs.md) asks the server once, however often we make the request,
 * and releases the last SYN. So we repeat requests for as long as a server may take: 11 s, which is three lost SYNs on the way to the
 * server, and a second more.
 */
#define BLIND_REPEATS_KNOWN_MAX 12

/* How long a converter has to answer a probe. */
#define BLIND_PROBE_MS 1000

/* The kernel's view of the connection. */
struct blind_seen {
	bool there;    /* the connection exists */
	bool syn_sent; /* no SYN+ACK has come */
	bool answered; /* a SYN+ACK has come, and the kernel measured its round trip */
	bool taken;    /* the SYN+ACK acknowledged the SYN's data */
	bool again;    /* the kernel has sent the SYN again, without its data */
};

struct blind_request {
	int64_t started, syn_at; /* when the first SYN was sent, and the last one: nanoseconds of CLOCK_MONOTONIC */
	int repeats;             /* SYNs that we sent again, with the request */
	int repeats_max;
	bool repeatable;         /* we can make the request again */
	int64_t silent_at;       /* when blind_judge() returned BLIND_SILENT; 0: never */
	int64_t repeat_after;    /* nanoseconds from the last SYN to the next one: blind_repeat_after() */
	int64_t withheld;        /* for how long the converter withholds a SYN at most, in nanoseconds */
	int64_t waiting_at;      /* when we last saw that no SYN+ACK had come; 0: never */
};

enum blind_fate {
	BLIND_OPEN,    /* look again at *@look_at */
	BLIND_REPEAT,  /* make the request again, now */
	BLIND_TAKEN,   /* the converter has the request */
	BLIND_UNTAKEN, /* the path has lost the SYN's data, but not the SYN: make no further request blindly */
	BLIND_SILENT,  /* no SYN+ACK for @patience, returned once: probe the converter, and look again at *@look_at */
	BLIND_LEFT,    /* no repeats are left, and the converter has had BLIND_PROBE_MS: leave the connection to the kernel */
	BLIND_SLOW,    /* the converter reset the connection after it had waited for the server as long as it may */
	BLIND_GONE,    /* the connection was refused or reset, or the program has closed it */
};

/*
 * blind_repeat_after() - how long to wait for the answer to a SYN that a converter withholds for @withheld at most, in nanoseconds
 * @rtt: the longest round trip to the converter seen so far, in nanoseconds; 0: none. The result leaves a busy machine some time before the
 * kernel repeats the SYN itself, after a second.
 */
int64_t blind_repeat_after(int64_t withheld, int64_t rtt);

/* Returns when to look first at a request whose SYN was sent at @now. */
int64_t blind_first_look(int64_t now);

/*
 * blind_judge() - decide how to proceed with @request, whose connection looks like @seen at the time @now
 * @patience: how long a converter may be silent, in nanoseconds.
 */
enum blind_fate blind_judge(struct blind_request *request, const struct blind_seen *seen, int64_t now, int64_t patience,
		     int64_t *look_at);

/* --- servers that were too slow for a blind request, or for which one has failed --- */

/* Notes that the converter gave up a blind request for this server. */
void blind_memory_note_slow(const union sockaddr_ip *server);

/* Returns whether that happened lately. Then the next request waits for its response, however long that takes. */
bool blind_memory_is_slow(const union sockaddr_ip *server);

/*
 * Notes that a blind request ended before our first look, for a server that the converter isn't known to serve (converters_admits()). The
 * program may have closed the socket, or the server or the converter has refused.
 */
void blind_memory_note_failed(const union sockaddr_ip *server);

/* Returns whether that happened lately. Then the next request waits for its response, unless the converter is known to serve it by now. */
bool blind_memory_has_failed(const union sockaddr_ip *server);

#endif
