/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_threads.c - threads that take turns by a test's schedule
 *
 * One thread runs at a time. At each point, that is before each call of the fake kernel and where a thread blocks or lets in
 * signals (it does around each claim of a conn), the turn goes to the other one if the test's schedule has this point; and always when
 * the running one has to wait, or spins in sched_yield() for the other's claim. So a run repeats exactly, and a test can try all orders
 * up to a number of unforced changes.
 */
#include "config.h"

#include "fake_private.h"

#include "common/rawcall.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define SPINS_MAX 1000

static struct {
	bool running;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int turn;
	bool ended[FAKE_THREADS_MAX];
	bool waits[FAKE_THREADS_MAX];
	int points;
	const int *schedule;
	size_t left; /* of the schedule */
} threads = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static _Thread_local int self;
static _Thread_local sigset_t blocked;
static unsigned int spins;

static void turn_pass(void)
{
	threads.turn = !self;
	pthread_cond_broadcast(&threads.changed);
	while (threads.turn != self)
		pthread_cond_wait(&threads.changed, &threads.lock);
}

void fake_turn(void)
{
	spins = 0;
	if (!threads.running)
		return;
	pthread_mutex_lock(&threads.lock);
	threads.waits[self] = false;
	if (threads.left && threads.points == *threads.schedule) {
		threads.schedule++;
		threads.left--;
		threads.points++;
		if (!threads.ended[!self])
			turn_pass();
	} else {
		threads.points++;
	}
	pthread_mutex_unlock(&threads.lock);
}

bool fake_turn_waiting(void)
{
	bool others = false;

	if (!threads.running)
		return false;
	pthread_mutex_lock(&threads.lock);
	others = !threads.ended[!self] && !threads.waits[!self];
	threads.waits[self] = true;
	if (others)
		turn_pass();
	else
		threads.waits[!self] = false; /* time passes: it looks again */
	pthread_mutex_unlock(&threads.lock);
	return others;
}

/* Takes the place of the C library's: the shim calls it to wait for a thread that has claimed a conn. */
int sched_yield(void)
{
	if (!fake_observer) /* no run: the leak sanitizer calls it, too */
		return (int)RAWCALL(SYS_sched_yield);
	if (++spins > SPINS_MAX || !threads.running || threads.ended[!self])
		fake_die("waits for a claim that nobody has");
	pthread_mutex_lock(&threads.lock);
	turn_pass();
	pthread_mutex_unlock(&threads.lock);
	return 0;
}

/* Takes the place of the C library's: no signals are sent here. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
	sigset_t old = blocked;

	fake_turn();
	if (fake_observer)
		fake_observer();
	if (set && how == SIG_SETMASK)
		blocked = *set;
	else if (set && how == SIG_BLOCK)
		sigorset(&blocked, &blocked, set);
	else if (set)
		for (int number = 1; number < _NSIG; number++)
			if (sigismember(set, number) == 1)
				sigdelset(&blocked, number);
	if (before)
		*before = old;
	return 0;
}

bool fake_signals_are_blocked(void)
{
	return sigismember(&blocked, SIGINT) == 1;
}

struct thread {
	int self;
	fake_thread *body;
	void *arg;
};

static void *thread_main(void *data)
{
	const struct thread *thread = data;

	self = thread->self;
	pthread_mutex_lock(&threads.lock);
	while (threads.turn != self)
		pthread_cond_wait(&threads.changed, &threads.lock);
	pthread_mutex_unlock(&threads.lock);
	thread->body(thread->arg);
	if (fake_signals_are_blocked())
		fake_die("a thread ends with signals blocked");
	pthread_mutex_lock(&threads.lock);
	threads.ended[self] = true;
	threads.turn = !self;
	pthread_cond_broadcast(&threads.changed);
	pthread_mutex_unlock(&threads.lock);
	return NULL;
}

int fake_threads_run(fake_thread *const bodies[FAKE_THREADS_MAX], void *arg, const int *schedule, size_t count, int first)
{
	struct thread started[FAKE_THREADS_MAX];
	pthread_t ids[FAKE_THREADS_MAX];

	threads.turn = first;
	threads.points = 0;
	threads.schedule = schedule;
	threads.left = count;
	memset(threads.ended, 0, sizeof(threads.ended));
	memset(threads.waits, 0, sizeof(threads.waits));
	threads.running = true;
	for (int i = 0; i < FAKE_THREADS_MAX; i++) {
		started[i] = (struct thread){ i, bodies[i], arg };
		if (pthread_create(&ids[i], NULL, thread_main, &started[i]) != 0)
			fake_die("no thread can be made");
	}
	for (int i = 0; i < FAKE_THREADS_MAX; i++)
		pthread_join(ids[i], NULL);
	threads.running = false;
	return threads.points;
}
