/* SPDX-License-Identifier: BSD-3-Clause */
/* test_supervise_pause.c - threads that are stopped while they wait, and go on as if nothing had happened */
#include "config.h"

#include "common/clock.h"
#include "run.h"
#include "supervise/tracee.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAUSES 20000   /* at most */
#define PAUSES_LEAST 500
#define ENOUGH_S 10    /* a sanitizer on a busy machine makes fewer of them */
#define SHORT_NS 100000
#define TRIES_MAX 20
#define BUSY_SHORTLY_NS (10 * CLOCK_NS_PER_MS)
#define BUSY_NS (300 * CLOCK_NS_PER_MS)
#define LONG_NS (60 * CLOCK_NS_PER_S)

/* What a program sees that waits by poll(2) and by epoll_wait(2) in turn, all the time, and for nothing. */
struct seen {
	_Atomic long rounds, interrupted;
	_Atomic bool over;
};

static int count_failure(struct seen *seen, int result)
{
	if (result < 0 && errno == EINTR)
		atomic_fetch_add(&seen->interrupted, 1);
	return result;
}

static void wait_in_turn(struct seen *seen)
{
	static const struct timespec moment = { .tv_nsec = SHORT_NS };
	struct epoll_event event = { .events = EPOLLIN };
	int nothing[2], epoll = epoll_create1(0);
	struct pollfd poll_nothing;

	if (epoll < 0 || pipe(nothing) < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, nothing[0], &event) < 0)
		_exit(1);
	poll_nothing = (struct pollfd){ .fd = nothing[0], .events = POLLIN };
	while (!atomic_load(&seen->over)) {
		if (count_failure(seen, ppoll(&poll_nothing, 1, &moment, NULL)) > 0 ||
		    count_failure(seen, epoll_wait(epoll, &event, 1, 1)) > 0)
			_exit(1);
		atomic_fetch_add(&seen->rounds, 1);
	}
	_exit(0);
}

static void *stop_and_end(void *pid)
{
	pause_process(*(pid_t *)pid, clock_ns() + LONG_NS);
	return NULL;
}

/* A thread that leaves poll() just when it is stopped, and goes on to epoll_wait(), isn't interrupted there. */
START_TEST(waits_of_all_kinds_go_on)
{
	struct seen *seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct timespec begin, now;
	int status = -1;
	pthread_t thread;
	pid_t child;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	now = begin;
	ck_assert_ptr_ne(seen, MAP_FAILED);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		wait_in_turn(seen);
	}
	ck_assert_int_gt(child, 0);
	for (int i = 0; i < PAUSES_LEAST || (i < PAUSES && now.tv_sec - begin.tv_sec < ENOUGH_S); i++) {
		ck_assert_int_eq(pthread_create(&thread, NULL, stop_and_end, &child), 0);
		pthread_join(thread, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	}
	atomic_store(&seen->over, true);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_int_gt(atomic_load(&seen->rounds), 0);
#ifdef __x86_64__ /* tracee.h: elsewhere a stop may end a call */
	ck_assert_int_eq(atomic_load(&seen->interrupted), 0);
#endif
}
END_TEST

/* Reads the state of a process: 'S' while it sleeps, 't' while a tracer has stopped it (proc_pid_stat(5)). */
static char state_of(pid_t pid)
{
	char path[64], line[512];
	FILE *file;
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
	fclose(file);
	end = strrchr(line, ')');
	ck_assert_ptr_nonnull(end);
	return end[2];
}

struct stopped {
	pid_t pid;
	int64_t until;
	char state; /* the result */
};

/* Stops a process and reads its state before it continues. */
static void *stop_and_look(void *stopped)
{
	struct stopped *it = stopped;

	pause_process(it->pid, it->until);
	it->state = state_of(it->pid);
	return NULL;
}

static void stay_on(int cpu)
{
	cpu_set_t cpus;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0)
		_exit(1);
}

/* Starts a process on @cpu that waits in poll(2). */
static pid_t start_waiting(int cpu)
{
	pid_t child = fork();

	if (child == 0) {
		stay_on(cpu);
		for (;;)
			poll(NULL, 0, -1);
	}
	ck_assert_int_gt(child, 0);
	return child;
}

/* Starts a process that computes on @cpu for @ns nanoseconds. If root has started it, it leaves the CPU to no other process. */
static pid_t start_computing(int cpu, int64_t ns)
{
	static const struct sched_param first = { .sched_priority = 1 };
	const int64_t until = clock_ns() + ns;
	pid_t child = fork();

	if (child == 0) {
		stay_on(cpu);
		sched_setscheduler(0, SCHED_FIFO, &first); /* only root may do that */
		while (clock_ns() < until)
			continue;
		_exit(0);
	}
	ck_assert_int_gt(child, 0);
	return child;
}

static void await_sleep(pid_t pid)
{
	char state;

	while ((state = state_of(pid)) != 'S') {
		ck_assert_int_ne(state, 'Z');
		sched_yield();
	}
}

/* Returns whether a thread that has no CPU for @busy_ns stops within the time for which pause_process() waits. */
static bool stops(int64_t busy_ns, int64_t wait_ns)
{
	const int cpu = sched_getcpu();
	struct stopped stopped = { .pid = start_waiting(cpu) };
	pthread_t thread;
	pid_t busy;

	await_sleep(stopped.pid);
	busy = start_computing(cpu, busy_ns);
	stopped.until = clock_ns() + wait_ns;
	ck_assert_int_eq(pthread_create(&thread, NULL, stop_and_look, &stopped), 0);
	pthread_join(thread, NULL);
	kill(stopped.pid, SIGKILL);
	ck_assert_int_eq(waitpid(stopped.pid, NULL, 0), stopped.pid);
	ck_assert_int_eq(waitpid(busy, NULL, 0), busy);
	return stopped.state == 't';
}

START_TEST(thread_without_a_cpu_stops)
{
	ck_assert(stops(BUSY_NS, LONG_NS));
}
END_TEST

/* The machine itself may have stood still until the time was over. A busy one has no CPU for the thread now and then. */
START_TEST(thread_stops_after_the_time)
{
	int tries = 1;

	while (!stops(BUSY_SHORTLY_NS, 0))
		ck_assert_int_lt(tries++, TRIES_MAX);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("supervise_pause");
	TCase *tcase = tcase_create("supervise_pause");

	tcase_add_test(tcase, waits_of_all_kinds_go_on);
	tcase_add_test(tcase, thread_without_a_cpu_stops);
	tcase_add_test(tcase, thread_stops_after_the_time);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
