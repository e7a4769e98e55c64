/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pause.c - stop those threads of a program that wait in poll(2) or select(2)
 *
 * A thread that waits for a socket by poll() is woken when the socket is disconnected, and looks at it a moment later, on another
 * CPU: it would see it hung up, before it is connected again. Stopped by PTRACE_INTERRUPT it is out of the call, and when it goes on
 * the kernel makes the call anew, which finds what is there then. Only threads that are in such a call are stopped, for others, such
 * as epoll_wait(2), would return EINTR. A poll() with a time-out that goes on so is a restart_syscall(2) from then on, as are a few
 * others that go on just as well.
 *
 * The tracer is a thread that ends soon: with it all that it traces goes on, in whatever state, a signal that was on its way is
 * delivered, and nothing has to be undone. A thread stops as soon as it has a CPU, unless it has left its call meanwhile and waits
 * for the supervisor's own answer: that one won't stop, and isn't waited for.
 */
#include "config.h"

#include "supervise/pause.h"

#include "common/clock.h"
#include "supervise/tracee.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define STOP_NS (100 * CLOCK_NS_PER_MS) /* on a machine that has no CPU for it */
#define LOOK_NS 100000

static const long waiting_calls[] = {
#ifdef SYS_poll
	SYS_poll,
#endif
#ifdef SYS_select
	SYS_select,
#endif
#ifdef SYS_ppoll_time64
	SYS_ppoll_time64, SYS_pselect6_time64,
#endif
	SYS_ppoll, SYS_pselect6, SYS_restart_syscall,
#ifdef __x86_64__
	/*
	 * i386's poll, _newselect, ppoll, pselect6, and the last two with times of 64 bits; others of these numbers begin anew, too. Not its
	 * restart_syscall, whose number is read's here, which a stop may end with EINTR.
	 */
	168, 142, 309, 308, 414, 413,
#endif
};

static bool is_wait(long number)
{
	for (size_t i = 0; i < sizeof(waiting_calls) / sizeof(waiting_calls[0]); i++)
		if (number == waiting_calls[i])
			return true;
	return false;
}

/* May the thread still come to a stop? It runs, or waits for a CPU, or is in the call that it was found in. */
static bool may_stop(pid_t tid)
{
	const long number = tracee_call(tid);

	return number < 0 || is_wait(number);
}

static bool stop(void *context, pid_t tid)
{
	static const struct timespec look = { .tv_nsec = LOOK_NS };
	const int64_t until = clock_ns() + STOP_NS;
	siginfo_t stopped = { .si_pid = 0 };

	(void)context;
	if (!is_wait(tracee_call(tid)) || ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0 || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0)
		return true;
	/* Its end, if that comes first, is for whoever waits for the program. */
	while (waitid(P_PID, (id_t)tid, &stopped, WSTOPPED | WNOHANG | __WALL) == 0 && !stopped.si_pid && may_stop(tid) &&
	       clock_ns() < until)
		nanosleep(&look, NULL);
	return true;
}

void pause_process(pid_t tid)
{
	tracee_each_thread(tid, stop, NULL);
}
