/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.h - an event loop as small as can be: edge-triggered, one system call a wait
 *
 * A socket is registered once for everything. What the kernel has said of it is remembered in its
 * handle, until a call takes it back (a short read, a short write, EAGAIN). A handle whose run ends
 * before that asks to be run again.
 */
#ifndef LOAD_LOOP_H
#define LOAD_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop_handle {
	int fd; /* -1: not in the loop */
	bool readable, writable;
	bool hung;   /* the end of the stream, or an error, can be read behind what is there */
	bool queued; /* loop_again() */
	void (*run)(struct loop_handle *handle);
	struct loop_handle *next;
};

void loop_init(void);

/* Adds handle->fd to the loop, which calls handle->run upon each event. */
void loop_add(struct loop_handle *handle);

/* Closes handle->fd. It is not run any more. */
void loop_close(struct loop_handle *handle);

/* Runs the handle again without an event, after others have had their turn. */
void loop_again(struct loop_handle *handle);

/* Waits for @timeout_ms at most and runs what there is. */
void loop_once(int timeout_ms);

/* CLOCK_MONOTONIC in ns. */
int64_t loop_now(void);

#endif
