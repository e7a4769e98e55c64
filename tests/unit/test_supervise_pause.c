/* SPDX-License-Identifier: BSD-3-Clause */
/* test_supervise_pause.c - threads that are stopped while they wait, and go on as if nothing had happened */
#include "config.h"

#include "run.h"
#include "supervise/tracee.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
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
	pause_process(*(pid_t *)pid);
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

int main(void)
{
	Suite *suite = suite_create("supervise_pause");
	TCase *tcase = tcase_create("supervise_pause");

	tcase_add_test(tcase, waits_of_all_kinds_go_on);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
