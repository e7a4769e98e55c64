/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pause.c - stops those threads of a program that wait for a socket in poll(2) or select(2)
 *
 * A thread in poll() wakes when we disconnect the socket, and looks at it a moment later, on another CPU: it would see the socket hung up,
 * before we connect it again. PTRACE_INTERRUPT takes the thread out of the call. When it continues, the kernel restarts the call, which
 * then sees the new state. We stop only threads in such calls. A restarted poll() with a time-out shows as restart_syscall(2) from then on,
 * as do a few other calls, which continue just as well.
 *
 * A thread that runs, or waits for a CPU, may be about to wait for a socket: it may just have continued after the last pause. On a busy
 * machine that takes some milliseconds. So we first wait until all such threads sleep, and don't stop them while they run.
 *
 * Other calls, epoll_wait(2) for example, end with EINTR when their thread is stopped, and programs needn't expect that. A thread may enter
 * such a call after we saw it in poll() and before it stops. Then we restart that call (call_anew()).
 *
 * The tracer is a thread that ends soon. With it all traced threads continue, whatever their state, the kernel delivers pending signals,
 * and we have nothing to undo. A thread stops as soon as it has a CPU, unless it has left its call meanwhile and waits for the supervisor's
 * own answer: it won't stop then, and we don't wait for it.
 */
#include "config.h"

#include "supervise/tracee.h"

#include "common/clock.h"
#include "supervise/listener.h"

#include <errno.h>
#include <linux/audit.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#define SETTLE_NS (40 * CLOCK_NS_PER_MS) /* for all threads together, since some may compute for as long as they like */
#define LOOK_NS 100000
#define LOOKS_LEAST 250 /* the machine itself may have stood still until the time was over */

/* How long to wait for all threads of a process. */
struct patience {
	int64_t until; /* nanoseconds of CLOCK_MONOTONIC */
	int looks;
};

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
	 * i386's poll, _newselect, ppoll, pselect6, and the last two with 64-bit times; amd64's calls of these numbers restart, too. i386's
	 * restart_syscall is missing, since its number is read() on amd64, which a stop may end with EINTR.
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

static bool is_over(const struct patience *patience)
{
	return patience->looks >= LOOKS_LEAST && clock_ns() >= patience->until;
}

/* Sleeps for a moment, unless the time is over. Returns whether to look again. */
static bool wait_to_look(struct patience *patience)
{
	static const struct timespec look = { .tv_nsec = LOOK_NS };

	if (is_over(patience))
		return false;
	patience->looks++;
	nanosleep(&look, NULL);
	return true;
}

/* Waits until the thread sleeps in a call. */
static bool come_to_rest(void *patience, pid_t tid)
{
	while (tracee_call(tid) < 0 && wait_to_look(patience))
		continue;
	return true;
}

/* Tells the thread to stop if it waits for a socket, and counts it in @count, unless it was told before. */
static bool interrupt(void *count, pid_t tid)
{
	if (is_wait(tracee_call(tid)) && ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0 && ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0)
		++*(int *)count;
	return true;
}

/* Returns true unless the thread was told to stop and still runs. Doesn't reap an ended thread; our children belong to another thread. */
static bool has_stopped(pid_t tid)
{
	siginfo_t stopped = { .si_pid = 0 };

	return waitid(P_PID, (id_t)tid, &stopped, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD) != 0 || stopped.si_pid;
}

static bool await_stop(void *patience, pid_t tid)
{
	while (!has_stopped(tid) && tracee_may_stop(tid) && wait_to_look(patience))
		continue;
	return true;
}

#ifdef __x86_64__
#define ERESTARTNOHAND 514 /* of the kernel: restart the call, or end it with EINTR if a signal's handler is to run */

/* Returns whether the supervisor answers this call, and so may have returned EINTR itself. */
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
 * Restarts the call of a stopped thread, with its full time-out, if the stop would end it with EINTR. On x86 the kernel looks at the result
 * after the stop (arch_do_signal_or_restart()). A call that a signal has ended is restarted, too, and ends with EINTR by that signal's
 * handler. Elsewhere a tracer can't do that: on arm64 the kernel looks before the stop, and hides the call's first argument.
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

void pause_process(pid_t tid, int64_t until)
{
	const int64_t settled = clock_ns() + SETTLE_NS;
	struct patience settle = { .until = settled < until ? settled : until }, stop = { .until = until };
	int count;

	tracee_each_thread(tid, come_to_rest, &settle);
	/* More threads may have begun to wait for a socket meanwhile. */
	do {
		count = 0;
		tracee_each_thread(tid, interrupt, &count);
		tracee_each_thread(tid, await_stop, &stop);
	} while (count && !is_over(&stop));
	tracee_each_thread(tid, call_anew, NULL);
}
