/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.h - a thread with an event loop and sessions of its own
 *
 * Workers touch nothing of each other, and the supervising thread nothing of theirs: it has them
 * carry out orders.
 */
#ifndef CONVERTD_WORKER_H
#define CONVERTD_WORKER_H

#include "convertd/session/session.h"

#include <stddef.h>

struct workers;

/* Of one worker, for orders: used by its own thread alone. */
struct worker_context {
	size_t number; /* from 0 */
	struct event_base *base;
	struct session_pool *pool;
};

/*
 * workers_create() - @count threads that wait for orders
 * @shared: must outlive them; its list of pools is theirs
 * Signals are left to the calling thread. Returns NULL after saying why on the log.
 */
struct workers *workers_create(size_t count, struct session_shared *shared);

/* Ends all sessions and the threads. No client may be accepted any more. NULL is fine. */
void workers_destroy(struct workers *workers);

size_t workers_count(const struct workers *workers);

/* What a worker has, for what is prepared while it can't run yet: see acceptor_create(). */
const struct worker_context *workers_context(const struct workers *workers, size_t number);

/*
 * workers_order() - have each worker call @order with @arg, between two rounds of its loop
 * All of them at the same time; returns when the last one has. From one thread only, not a worker.
 */
void workers_order(struct workers *workers,
		   void (*order)(const struct worker_context *worker, void *arg), void *arg);

/*
 * workers_turn() - has the loop of each worker turned since the call before?
 * It asks them to show it by the next call. From the thread that gives orders. Returns the number of
 * a worker that has not, or workers_count().
 */
size_t workers_turn(struct workers *workers);

/* Descriptors of each worker, sessions and listeners aside. */
#define WORKER_FILES 18

/* One worker for each CPU that this process may run on, SETTINGS_WORKERS_MAX at most. */
size_t workers_default(void);

#endif
