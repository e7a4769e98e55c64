/* SPDX-License-Identifier: BSD-3-Clause */
/* patience.h - how long a converter's response is waited for (no I/O) */
#ifndef SUPERVISE_PATIENCE_H
#define SUPERVISE_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/* What is known of an attempt of which no response, or a part of one, has come. Times are CLOCK_MONOTONIC in nanoseconds. */
struct patience_view {
	int64_t started;       /* when the program called */
	int64_t ends;          /* when a converter that is silent counts as dead */
	bool closed;           /* the socket has been closed by the kernel: refused, reset, timed out */
	bool syn_sent;         /* no SYN+ACK has come */
	bool probing;          /* keepalive asks already whether the converter's host is there */
	bool proven;           /* the converter has answered others lately */
	unsigned int heard_ms; /* so long ago the host has acknowledged something */
};

enum patience {
	PATIENCE_WAIT,  /* look again at *@look_at */
	PATIENCE_PROBE, /* the same, and have keepalive ask from now on */
	PATIENCE_ALIVE, /* over: its host is there, and it says nothing */
	PATIENCE_DEAD,  /* over */
	PATIENCE_ERROR, /* over: the socket has an error */
};

/* patience_judge() - is the response waited for on? */
enum patience patience_judge(const struct patience_view *view, int64_t now, int64_t *look_at);

#endif
