/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pause.c - stop those threads of a program that wait for a socket in poll(2), select(2) or connect(2)
 *
 * A thread that waits for a socket by poll() is woken when the socket is disconnected, and looks at it a moment later, on another
 * CPU: it would see it hung up, before it is connected again. Stopped by PTRACE_INTERRUPT it is out of the call, and when it goes on
 * the kernel makes the call anew, which finds what is there then. A connect() that waits for a connection in the kernel, because it blocks
 * where another one hasn't, would fail (ECONNABORTED). Only threads that are in such a call are stopped. A poll() with a time-out that
 * goes on so is a restart_syscall(2) from then on, as are a few others that go on just as well.
 *
 * A thread that runs, or waits for a CPU, may be about to wait for a socket: it has just been let go on after the last pause, say. On a
 * busy machine that takes it some milliseconds, for which all such threads are waited for, and they aren't stopped while they run.
 *
 * Other calls, such as epoll_wait(2), end with EINTR when their thread is stopped, and programs needn't expect that. One that has left its
 * poll() or connect() between the look at it and the stop may be in such a call by then. It is had to make it anew (call_anew()).
 *
 * The tracer is a thread that ends soon: with it all that it traces goes on, in whatever state, a signal that was on its way is
 * delivered, and nothing has to be undone. A thread stops as soon as it has a CPU, unless it has left its call meanwhile and waits
 * for the supervisor's own answer: that one won't stop, and isn't waited for.
 */
#include "config.h"

#include "supervise/pause.h"

#include "common/clock.h"
#include "supervise/filter.h"
#include "supervise/tracee.h"

#include <errno.h>
#include <linux/audit.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#define STOP_NS (100 * CLOCK_NS_PER_MS)  /* for all threads together, on a machine that has no CPU for them */
#define SETTLE_NS (40 * CLOCK_NS_PER_MS) /* as well: some may compute for as long as they like */
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

static bool is_connect(long number)
{
#ifdef __x86_64__
	if (number == 362 || number == 102) /* i386's, and its socketcall; amd64 has these for what never waits */
		return true;
#endif
	return number == SYS_connect;
}

/* Does the thread wait in the kernel for a socket? In connect() it may wait for the supervisor as well. */
static bool waits(pid_t tid, long number)
{
	return is_wait(number) || (is_connect(number) && tracee_is_interruptible(tid));
}

/* May the thread still come to a stop? It runs, or waits for a CPU, or for anything but the supervisor's answer. */
static bool may_stop(pid_t tid)
{
	return tracee_call(tid) < 0 || tracee_is_interruptible(tid);
}

static void look_later(void)
{
	static const struct timespec look = { .tv_nsec = LOOK_NS };

	nanosleep(&look, NULL);
}

/* Waits until the thread has come to wait for something, until the time @until at most. */
static bool come_to_rest(void *until, pid_t tid)
{
	while (tracee_call(tid) < 0 && clock_ns() < *(const int64_t *)until)
		look_later();
	return true;
}

/* Has the thread come to a stop if it waits for a socket, unless it was told to before; counts it in @count then. */
static bool interrupt(void *count, pid_t tid)
{
	if (waits(tid, tracee_call(tid)) && ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0 && ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0)
		++*(int *)count;
	return true;
}

/* Has the thread stopped, or ended, if it was told to? Its end is left to whoever waits for it; a child of ours is another thread's. */
static bool has_stopped(pid_t tid)
{
	siginfo_t stopped = { .si_pid = 0 };

	return waitid(P_PID, (id_t)tid, &stopped, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD) != 0 || stopped.si_pid;
}

static bool await_stop(void *until, pid_t tid)
{
	while (!has_stopped(tid) && may_stop(tid) && clock_ns() < *(const int64_t *)until)
		look_later();
	return true;
}

#ifdef __x86_64__
#define ERESTARTNOHAND 514 /* of the kernel: the call begins anew, unless a signal's handler is to run (then it ends with EINTR) */

/* Does the supervisor answer this call, and may have said EINTR itself? */
static bool is_answered(long number)
{
	bool narrow;

	return filter_call_of(AUDIT_ARCH_X86_64, (int)number, &narrow) != FILTER_CALL_COUNT ||
	       filter_call_of(AUDIT_ARCH_I386, (int)number, &narrow) != FILTER_CALL_COUNT;
}

static bool register_read(pid_t tid, size_t offset, long *value)
{
	errno = 0;
	*value = ptrace(PTRACE_PEEKUSER, tid, (void *)offset, NULL);
	return errno == 0;
}

/*
 * Has a thread that has stopped make its call anew, with all of its time-out, if the stop is to end it with EINTR. On x86 the kernel
 * looks at the result after the stop (arch_do_signal_or_restart()). A call that a signal has ended goes on so as well, and ends with EINTR by
 * that signal's handler. Elsewhere a tracer can't do that: on arm64 the kernel looks before, and shows nobody the call's first argument.
 */
static bool call_anew(void *nothing, pid_t tid)
{
	long number, result;

	(void)nothing;
	if (register_read(tid, offsetof(struct user, regs.orig_rax), &number) && number >= 0 && !is_answered(number) &&
	    register_read(tid, offsetof(struct user, regs.rax), &result) && (int)result == -EINTR)
		ptrace(PTRACE_POKEUSER, tid, (void *)offsetof(struct user, regs.rax), (void *)-(long)ERESTARTNOHAND);
	return true;
}
#else
static bool call_anew(void *nothing, pid_t tid)
{
	(void)nothing;
	(void)tid;
	return true;
}
#endif

void pause_process(pid_t tid)
{
	int64_t until = clock_ns() + SETTLE_NS;
	int count;

	tracee_each_thread(tid, come_to_rest, &until);
	until = clock_ns() + STOP_NS;
	/* Others may have come to wait for a socket while these were waited for. */
	do {
		count = 0;
		tracee_each_thread(tid, interrupt, &count);
		tracee_each_thread(tid, await_stop, &until);
	} while (count && clock_ns() < until);
	tracee_each_thread(tid, call_anew, NULL);
}
