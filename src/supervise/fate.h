/* SPDX-License-Identifier: BSD-3-Clause */
/* fate.h - what has become of a blind request, by what the kernel knows of its connection (no I/O) */
#ifndef SUPERVISE_FATE_H
#define SUPERVISE_FATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Linux sends a SYN again after a second, without its data, and the converter resets what that leads to. So a request that
 * hasn't been answered by then is made again first. The converter answers a SYN that has reached it within 700 ms, or never:
 * whoever is silent for longer has lost the SYN, or its answer was lost, or nobody answers.
 */
#define FATE_REPEAT_MS 900
#define FATE_REPEATS_MAX 3

/* What the kernel says of the connection. */
struct fate_seen {
	bool there;    /* it knows it */
	bool syn_sent; /* no SYN+ACK has come */
	bool answered; /* one has, and its round trip was measured */
	bool taken;    /* it acknowledged the SYN's data */
};

struct fate_request {
	int64_t started, syn_at; /* when the first SYN was sent, and the last one: nanoseconds of CLOCK_MONOTONIC */
	int repeats;             /* SYNs that were sent again, with the request */
	bool repeatable;         /* it can be made again */
	int64_t withheld;        /* for how long the converter withholds a SYN at most, in nanoseconds */
	int64_t waiting_at;      /* when it was seen last that no SYN+ACK has come; 0: never */
};

enum fate {
	FATE_OPEN,    /* look again at *@look_at */
	FATE_REPEAT,  /* make the request again, now */
	FATE_TAKEN,   /* all is well */
	FATE_UNTAKEN, /* the path has lost the SYN's data, and not the SYN: no further request is to be blind */
	FATE_SILENT,  /* no SYN+ACK for @patience: the converter has to prove itself */
	FATE_SLOW,    /* it was reset once the converter had waited for the server as long as it may: to be asked otherwise */
	FATE_GONE,    /* the connection was refused or reset, or the program has closed it */
};

/* The first look at a request whose SYN was sent at @now. */
int64_t fate_first_look(int64_t now);

/*
 * fate_judge() - what has become of @request, of which @seen was seen @now
 * @patience: how long a converter may be silent, in nanoseconds.
 */
enum fate fate_judge(struct fate_request *request, const struct fate_seen *seen, int64_t now, int64_t patience,
		     int64_t *look_at);

#endif
