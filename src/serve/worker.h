/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.h - threads, each with an event loop and sessions of its own
 *
 * Workers don't touch each other's sessions, and the main thread touches none: it gives the workers orders.
 */
#ifndef SERVE_WORKER_H
#define SERVE_WORKER_H

#include "serve/session.h"

#include <stddef.h>

struct syn_judge;
struct workers;

/* The parts of a worker that an order gets. Only the worker's own thread may use them while that runs. */
struct worker_context {
	size_t number; /* from 0 */
	struct event_base *base;
	struct session_pool *pool;
	struct syn_judge *judge; /* has no queue of SYNs before hold_open() */
};

/*
 * workers_create() - start @count threads that wait for orders
 * @shared: must outlive them; this function sets its pool_count
 * Signals are left to the calling thread. Returns NULL after logging why.
 */
struct workers *workers_create(size_t count, struct session_shared *shared);

/* Ends all sessions and the threads. No listener may be left that accepts clients. NULL is fine. */
void workers_destroy(struct workers *workers);

/* Returns the number of workers. */
size_t workers_count(const struct workers *workers);

/* Returns the context of a worker, to prepare objects that the worker uses later. */
const struct worker_context *workers_context(const struct workers *workers, size_t number);

/*
 * workers_order() - have each worker call @order with @arg, between two rounds of its loop
 * All workers do so at the same time; the function returns when the last one is done. Only the main thread may call it.
 */
void workers_order(struct workers *workers,
		   void (*order)(const struct worker_context *worker, void *arg), void *arg);

/*
 * workers_turn() - check that each worker's loop has turned since the previous call, and ask each to turn again
 * Only the main thread may call it. Returns the number of a worker whose loop has not, or workers_count().
 */
size_t workers_turn(struct workers *workers);

/* The most workers. */
#define WORKERS_MAX 256

/* The most descriptors of a worker, besides those of sessions and listeners. */
#define WORKER_FILES 18

/* Returns the default number of workers: the number of CPUs that this process may run on, WORKERS_MAX at most. */
size_t workers_default(void);

#endif
