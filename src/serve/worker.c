/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.c - threads, each with an event loop and sessions of its own
 *
 * The main thread has to change objects that all workers use (settings, listeners). But sessions and libevent's bases have no locks: while
 * a worker's thread runs, no other thread may touch its base. So the main thread gives orders.
 *
 * There is one order at a time, and the main thread waits until all workers have carried it out. So an order is just a function and its
 * argument, which may be on the main thread's stack. An eventfd wakes each worker, and a semaphore tells the main thread when one is done;
 * these also order the memory accesses of both sides.
 *
 * The same eventfd asks a worker whether its loop still turns (workers_turn()), which the main thread doesn't wait for.
 */
#include "config.h"

#include "serve/worker.h"

#include "daemon/log.h"
#include "serve/syn_judge.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Room for "worker-255". */
#define NAME_MAX_LEN 16

struct worker {
	struct workers *workers;
	struct worker_context context;
	struct session_pool pool;
	bool pool_ready;
	int orders_fd; /* an eventfd that wakes up the loop for an order, or for workers_turn() */
	struct event *orders;
	atomic_bool ordered; /* there is an order that this worker hasn't carried out */
	atomic_bool asked;   /* workers_turn() has asked, and the loop hasn't turned since */
	pthread_t thread;
	bool running; /* the thread was started */
};

struct workers {
	void (*order)(const struct worker_context *worker, void *arg);
	void *order_arg;
	sem_t carried_out;
	size_t count;
	struct worker worker[];
};

size_t workers_default(void)
{
	cpu_set_t set;

	/* With more than 1024 CPUs the call fails. */
	if (sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) > WORKERS_MAX)
		return WORKERS_MAX;
	return (size_t)CPU_COUNT(&set);
}

size_t workers_count(const struct workers *workers)
{
	return workers->count;
}

const struct worker_context *workers_context(const struct workers *workers, size_t number)
{
	return &workers->worker[number].context;
}

static void on_order(evutil_socket_t fd, short what, void *arg)
{
	struct worker *worker = arg;
	struct workers *workers = worker->workers;
	eventfd_t count;

	(void)what;
	if (eventfd_read(fd, &count) < 0)
		return;
	atomic_store(&worker->asked, false);
	if (!atomic_exchange(&worker->ordered, false))
		return;
	workers->order(&worker->context, workers->order_arg);
	sem_post(&workers->carried_out);
}

static void wake(struct worker *worker)
{
	int written = eventfd_write(worker->orders_fd, 1);

	assert(written == 0);
	(void)written;
}

size_t workers_turn(struct workers *workers)
{
	size_t standing = workers->count;

	for (size_t i = 0; i < workers->count; i++) {
		if (atomic_exchange(&workers->worker[i].asked, true))
			standing = i;
		else
			wake(&workers->worker[i]);
	}
	return standing;
}

void workers_order(struct workers *workers,
		   void (*order)(const struct worker_context *worker, void *arg), void *arg)
{
	workers->order = order;
	workers->order_arg = arg;
	for (size_t i = 0; i < workers->count; i++) {
		atomic_store(&workers->worker[i].ordered, true);
		wake(&workers->worker[i]);
	}
	for (size_t i = 0; i < workers->count; i++)
		while (sem_wait(&workers->carried_out) < 0 && errno == EINTR)
			;
}

static struct event_base *make_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	if (config && event_config_require_features(config, EV_FEATURE_ET | EV_FEATURE_EARLY_CLOSE) == 0 &&
	    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK) == 0)
		base = event_base_new_with_config(config);
	if (config)
		event_config_free(config);
	if (!base)
		log_error("no event loop: libevent finds no edge-triggered method; it needs epoll, "
			  "and EVENT_NOEPOLL must not be set");
	return base;
}

/* Makes everything of a worker except its thread. Returns false after logging why. */
static bool worker_init(struct worker *worker, struct session_shared *shared)
{
	int error;

	worker->context.pool = &worker->pool;
	worker->context.base = make_base();
	if (!worker->context.base)
		return false;
	error = session_pool_init(&worker->pool, worker->context.base, shared);
	worker->pool_ready = !error;
	if (!error) {
		worker->context.judge = syn_judge_create(&worker->pool.context);
		error = worker->context.judge ? 0 : -ENOMEM;
	}
	if (!error) {
		worker->orders_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		error = worker->orders_fd < 0 ? -errno : 0;
	}
	if (!error) {
		worker->orders = event_new(worker->context.base, worker->orders_fd,
					   EV_READ | EV_PERSIST, on_order, worker);
		if (!worker->orders || event_add(worker->orders, NULL) < 0)
			error = -ENOMEM;
	}
	if (error)
		log_error("worker %zu: %s; it needs AF_NETLINK (RestrictAddressFamilies=) and a few "
			  "descriptors",
			  worker->context.number, strerror(-error));
	return !error;
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	char name[NAME_MAX_LEN];

	/* Each thread sets its own name: for another thread libc would write to /proc, which the sandbox forbids. */
	snprintf(name, sizeof(name), "worker-%zu", worker->context.number);
	pthread_setname_np(pthread_self(), name);
	event_base_dispatch(worker->context.base);
	return NULL;
}

/* Starts the thread with all signals blocked, since the main thread handles them. Returns false after logging why. */
static bool worker_start(struct worker *worker)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&worker->thread, NULL, worker_main, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	worker->running = !error;
	if (error) {
		log_error("worker %zu: no thread: %s; raise TasksMax= or lower --workers",
			  worker->context.number, strerror(error));
		return false;
	}
	return true;
}

struct workers *workers_create(size_t count, struct session_shared *shared)
{
	struct workers *workers = calloc(1, sizeof(*workers) + count * sizeof(struct worker));
	bool ready = true;

	if (!workers) {
		log_error("out of memory");
		return NULL;
	}
	sem_init(&workers->carried_out, 0, 0);
	for (size_t i = 0; i < count && ready; i++) {
		struct worker *worker = &workers->worker[workers->count++];

		worker->workers = workers;
		worker->context.number = i;
		worker->orders_fd = -1;
		ready = worker_init(worker, shared);
	}
	shared->pool_count = workers->count;
	for (size_t i = 0; i < count && ready; i++)
		ready = worker_start(&workers->worker[i]);
	if (ready)
		return workers;
	workers_destroy(workers);
	return NULL;
}

/* Frees a worker's SYNs and sessions; to be called in its thread, or if it has none. */
static void worker_fini(struct worker *worker)
{
	syn_judge_destroy(worker->context.judge);
	if (worker->pool_ready)
		session_pool_fini(&worker->pool);
	if (worker->orders)
		event_free(worker->orders);
}

static void on_end(const struct worker_context *context, void *arg)
{
	struct workers *workers = arg;

	worker_fini(&workers->worker[context->number]);
	event_base_loopbreak(context->base);
}

/* Ends the threads that were started, which are fewer than the workers if workers_create() has failed. */
static void end_threads(struct workers *workers)
{
	size_t made = workers->count, running = 0;

	while (running < made && workers->worker[running].running)
		running++;
	workers->count = running;
	workers_order(workers, on_end, workers);
	workers->count = made;
	for (size_t i = 0; i < running; i++)
		pthread_join(workers->worker[i].thread, NULL);
}

void workers_destroy(struct workers *workers)
{
	if (!workers)
		return;
	end_threads(workers);
	for (size_t i = 0; i < workers->count; i++) {
		struct worker *worker = &workers->worker[i];

		if (!worker->running)
			worker_fini(worker);
		if (worker->orders_fd >= 0)
			close(worker->orders_fd);
		if (worker->context.base)
			event_base_free(worker->context.base);
	}
	sem_destroy(&workers->carried_out);
	free(workers);
}
