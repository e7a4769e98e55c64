/* SPDX-License-Identifier: BSD-3-Clause */
/* fate.h - what has become of a blind request, by what the kernel knows of its connection (no I/O) */
#ifndef SUPERVISE_FATE_H
#define SUPERVISE_FATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Linux sends a SYN again after a second, without its data, and the converter resets what that leads to. So a request that
 * hasn't been answered by then is made again first, after so long at most. The converter lets a SYN go that has reached it within
 * 700 ms, or never: whoever is silent for longer has lost the SYN, or its answer was lost, or the server is slow.
 */
#define FATE_REPEAT_MS 900
#define FATE_REPEATS_MAX 3

/*
 * A converter that knows a request by its attempt (doc/private-tlvs.md) asks the server once, however often it is made, and lets
 * the last SYN go. So requests are made again for as long as a server may take: 11 s, which is three lost SYNs on its way to the
 * server, and a second more.
 */
#define FATE_REPEATS_KNOWN_MAX 12

/* So long a converter has to answer when it is asked whether it is there. */
#define FATE_PROBE_MS 1000

/* What the kernel says of the connection. */
struct fate_seen {
	bool there;    /* it knows it */
	bool syn_sent; /* no SYN+ACK has come */
	bool answered; /* one has, and its round trip was measured */
	bool taken;    /* it acknowledged the SYN's data */
	bool again;    /* the kernel has sent the SYN again, without its data */
};

struct fate_request {
	int64_t started, syn_at; /* when the first SYN was sent, and the last one: nanoseconds of CLOCK_MONOTONIC */
	int repeats;             /* SYNs that were sent again, with the request */
	int repeats_max;
	bool repeatable;         /* it can be made again */
	int64_t silent_at;       /* when FATE_SILENT was told; 0: it wasn't */
	int64_t repeat_after;    /* its last SYN it is to be made again: fate_repeat_after() */
	int64_t withheld;        /* for how long the converter withholds a SYN at most, in nanoseconds */
	int64_t waiting_at;      /* when it was seen last that no SYN+ACK has come; 0: never */
};

enum fate {
	FATE_OPEN,    /* look again at *@look_at */
	FATE_REPEAT,  /* make the request again, now */
	FATE_TAKEN,   /* all is well */
	FATE_UNTAKEN, /* the path has lost the SYN's data, and not the SYN: no further request is to be blind */
	FATE_SILENT,  /* no SYN+ACK for @patience, told once: is the converter there? Look again at *@look_at */
	FATE_LEFT,    /* nothing more can be done about it, and the converter has had FATE_PROBE_MS: it is the kernel's */
	FATE_SLOW,    /* it was reset once the converter had waited for the server as long as it may, which is as long as it is asked */
	FATE_GONE,    /* the connection was refused or reset, or the program has closed it */
};

/*
 * fate_repeat_after() - how long to wait for the answer to a SYN that a converter withholds for @withheld at most, in nanoseconds
 * @rtt: the longest round trip to the converter that was seen, in nanoseconds; 0: none. What is left to the kernel's second is what a busy
 * machine may be late by.
 */
int64_t fate_repeat_after(int64_t withheld, int64_t rtt);

/* The first look at a request whose SYN was sent at @now. */
int64_t fate_first_look(int64_t now);

/*
 * fate_judge() - what has become of @request, of which @seen was seen @now
 * @patience: how long a converter may be silent, in nanoseconds.
 */
enum fate fate_judge(struct fate_request *request, const struct fate_seen *seen, int64_t now, int64_t patience,
		     int64_t *look_at);

#endif
