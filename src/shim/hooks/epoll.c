/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * epoll.c - epoll_ctl(), whose registrations watch.c keeps, and epoll_wait() with pending connections registered
 *
 * While a connection is pending, watch.c has replaced the application's registered events by our own. So an event of such a socket is meant
 * for us: we take the connection's next step and keep the event from the application. When a step settles the connection, watch.c restores
 * the application's registration, and the kernel then reports the socket anew, as writable. Each wait of the application becomes several of
 * ours, which end early when a converter's deadline is over; the application's time-out spans all of them.
 */
#include "config.h"

#include "common/clock.h"
#include "shim/connect/conversion.h"
#include "shim/hooks/hook.h"
#include "shim/socket/conn.h"
#include "shim/system/next.h"
#include "shim/system/usermem.h"
#include "shim/wait/watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>

/* One wait of the application. The three system calls differ only in the form of the time-out. */
struct epoll_call {
	int epfd, max;
	struct epoll_event *events;
	const sigset_t *mask;
	bool precise; /* epoll_pwait2() */
	int64_t deadline;
	struct quiet quiet;
};

/*
 * May another thread have caused this event, by disconnecting the socket to begin the connection anew? For the thread that disconnects, the
 * event is gone when that thread waits again.
 */
static bool came_of_disconnect(const struct conn *conn, uint32_t events)
{
	return conn->hung_up && (events & EPOLLHUP);
}

/* Reports the failure of a connection ourselves: the kernel says nothing about an MPTCP socket that was disconnected. */
static void event_tell_failure(struct epoll_event *event, const struct watch_found *found)
{
	event->events = EPOLLERR | EPOLLHUP |
			(found->events & (EPOLLIN | EPOLLOUT | EPOLLRDHUP));
}

/* Will the kernel itself report, and only once, the failure to a one-shot registration? Old kernels don't report a disconnected socket. */
static bool failure_follows(const struct watch_found *found)
{
	struct pollfd now = { .fd = found->fd };

	return (found->events & EPOLLONESHOT) && next_poll_now(&now, 1) == 1 && (now.revents & POLLHUP);
}

/* Tells the application that the connection has failed. Returns true if the kernel will do that, and this event is for nobody. */
static bool failure_event_is_ours(int epfd, struct epoll_event *event, const struct watch_found *found)
{
	if (failure_follows(found))
		return true;
	watch_tell(found->conn, epfd, found->fd);
	event_tell_failure(event, found);
	return false;
}

#define EPOLLINPUT (EPOLLIN | EPOLLRDNORM)

/*
 * event_is_ours() for a connection that the SYN+ACK has confirmed. Its registration is the application's, but the response isn't input for
 * the application: we take EPOLLIN out of the event, and the rest of it is the application's.
 */
static bool confirmed_event_is_ours(int epfd, struct epoll_event *event,
				    const struct watch_found *found)
{
	const bool fired = (found->events & EPOLLONESHOT) && !(event->events & ~EPOLLINPUT);
	struct pollfd now = { .fd = found->fd, .events = POLLIN };
	enum conn_phase phase;

	if (!(event->events & EPOLLINPUT))
		return false;
	if (fired)
		watch_fired(found->watch);
	phase = conversion_progress(found->conn, found->fd);
	if (phase_in(phase, PHASES_FAILED))
		return failure_event_is_ours(epfd, event, found);
	if (fired) /* once it is armed again, the kernel reports what there is besides */
		return watch_arm_fired(found);
	if (phase_in(phase, PHASES_CONFIRMED) || (next_poll_now(&now, 1) == 0 || !(now.revents & POLLIN)))
		event->events &= ~EPOLLINPUT;
	return !event->events;
}

/*
 * event_is_ours() for a one-shot registration of a connection that has failed before. An event with input dates from the time when it was
 * pending, and another thread had it as well.
 */
static bool failed_event_is_ours(int epfd, struct epoll_event *event, const struct watch_found *found)
{
	if (event->events & EPOLLINPUT)
		return true;
	watch_tell(found->conn, epfd, found->fd);
	/* The thread that has taken the step may not have set the phase yet. */
	if (phase_in(conn_phase_unclaimed(found->conn), PHASES_FAILED))
		event_tell_failure(event, found);
	return false;
}

/* event_is_ours() for an event with the data of a pending or confirmed socket. */
static bool found_event_is_ours(int epfd, struct epoll_event *event, const struct watch_found *found)
{
	const uint32_t before = conn_word(found->conn);
	enum conn_phase phase;
	bool can_step;

	if (phase_in(before & CONN_PHASE_MASK, PHASES_CONFIRMED))
		return found->owner == WATCH_OURS && confirmed_event_is_ours(epfd, event, found);
	can_step = conversion_can_step(found->conn, found->fd);
	phase = can_step ? conversion_progress(found->conn, found->fd) : conn_phase(found->conn);
	/* Another thread has restored the registration, and the kernel may have sent this event then. */
	if (phase_in(phase, PHASES_CONFIRMED) && (before & CONN_CLAIMED))
		return found->owner == WATCH_OURS && confirmed_event_is_ours(epfd, event, found);
	if (!can_step)
		return found->owner == WATCH_OURS &&
		       (!conn_is_pending(found->conn) || found->conn->follows ||
			came_of_disconnect(found->conn, event->events));
	if (!phase_in(phase, PHASES_FAILED))
		return found->owner == WATCH_OURS;
	if (found->owner != WATCH_OURS)
		return false;
	return failure_event_is_ours(epfd, event, found);
}

/*
 * Is this event one of our pending sockets', to keep from the application? If its connection turns out to have failed, we report an error.
 * If nothing has happened on our socket, the event belongs to another socket that the application has registered with the same data, and we
 * pass it on.
 */
static bool event_is_ours(int epfd, struct epoll_event *event)
{
	const struct watch_found found = watch_find(epfd, event->data);
	const epoll_data_t data = event->data;
	bool ours;

	if (found.owner == WATCH_NONE)
		return false;
	if (found.failed && found.owner == WATCH_OURS)
		return failed_event_is_ours(epfd, event, &found);
	ours = found_event_is_ours(epfd, event, &found);
	if (found.events & EPOLLONESHOT)
		watch_arm(found.conn, data);
	return ours;
}

#define TIMER_EVENT EPOLLEXCLUSIVE /* marks the event of a deadline timer; the kernel reports no such event */

/* Marks the events of deadline timers. They have the data of sockets: once a step has settled a connection, nothing tells them apart. */
static void timers_mark(int epfd, struct epoll_event *events, int count)
{
	for (int i = 0; i < count; i++) {
		const struct watch_found found =
			events[i].events == EPOLLIN ? watch_find(epfd, events[i].data) : (struct watch_found){ 0 };

		if (found.owner != WATCH_NONE && deadline_timer_reported(found.conn, found.watch))
			events[i].events = TIMER_EVENT;
	}
}

/* Takes the step of a connection whose timer went off. Only if that makes it fail is there an event for the application. */
static bool timer_event_is_ours(int epfd, struct epoll_event *event)
{
	event->events = EPOLLIN;
	return event_is_ours(epfd, event) || !(event->events & EPOLLERR);
}

static int events_sift(int epfd, struct epoll_event *events, int count)
{
	int left = 0;

	timers_mark(epfd, events, count);
	for (int i = 0; i < count; i++)
		if (events[i].events != TIMER_EVENT && event_is_ours(epfd, &events[i]))
			events[i].events = 0;
	/* The sockets' events come first: a timer's step would leave theirs without one, and the application would get them. */
	for (int i = 0; i < count; i++)
		if (events[i].events == TIMER_EVENT && timer_event_is_ours(epfd, &events[i]))
			events[i].events = 0;
	for (int i = 0; i < count; i++)
		if (events[i].events)
			events[left++] = events[i];
	return left;
}

/*
 * Takes the steps of pending sockets whose registrations were made past the hooks and weren't found. Skips a socket that a ring may use:
 * it may be in use by now, and can begin anew only in a call by which the application asks about it.
 */
static void unseen_progress(void)
{
	if (!atomic_load(&conn_unseen))
		return;
	EACH_CONN (conn, PHASES_PENDING)
		if (conn->unseen && conn_of(conn->fd) == conn && !conn_ring_may_use(conn)) {
			conn_note(conn, CONN_TOLD_WRITABLE);
			conversion_progress(conn, conn->fd);
		}
}

static int wait_until(const struct epoll_call *wait, int64_t deadline)
{
	const sigset_t *mask = wait->mask ? wait->mask : &wait->quiet.mask;
	struct timespec left;
	int count;

	quiet_listen(&wait->quiet);
	if (wait->precise)
		count = next.epoll_pwait2(wait->epfd, wait->events, wait->max,
					  deadline_left(deadline, &left), mask);
	else
		count = next.epoll_pwait(wait->epfd, wait->events, wait->max,
					 deadline_left_ms(deadline), mask);
	quiet_resume();
	return count;
}

#define STANDARD_SIGNALS 31 /* the highest number of a standard signal, signal(7) */

static bool is_ignored_by_default(int number)
{
	return number == SIGCHLD || number == SIGURG || number == SIGWINCH || number == SIGCONT;
}

static bool is_ignored(int number)
{
	struct sigaction action;

	if (sigaction(number, NULL, &action) != 0 || (action.sa_flags & SA_SIGINFO))
		return false;
	return action.sa_handler == SIG_IGN ||
	       (action.sa_handler == SIG_DFL && is_ignored_by_default(number));
}

/*
 * Unblocks the signals that the process ignores.
 * It comes before a wait that the kernel doesn't restart after a signal without a handler, such as epoll_wait(2). The kernel discards an
 * ignored signal when it arrives, but keeps a blocked one, which would interrupt the wait as soon as the wait admits it. Signals that the
 * application itself blocks stay blocked. Makes some 30 system calls: for a thread that is about to sleep.
 */
static void admit_ignored(const struct quiet *quiet)
{
	sigset_t ignored;

	sigemptyset(&ignored);
	for (int number = 1; number <= STANDARD_SIGNALS; number++)
		if (!sigismember(&quiet->mask, number) && is_ignored(number))
			sigaddset(&ignored, number);
	pthread_sigmask(SIG_UNBLOCK, &ignored, NULL);
}

/* Waits as the application does, but wakes up for the deadlines of pending connections. */
static int wait_once(const struct epoll_call *wait)
{
	int64_t deadline;
	int count;

	if (atomic_load(&conn_unseen))
		watch_adopt_unseen(wait->epfd);
	/* An application that never sleeps here, since it polls or is busy, has deadlines, too. */
	conversion_look();
	count = wait_until(wait, deadline_in_ms(0));
	/* An application that waits without sending early data expects the server to speak first: send the deferred SYNs. */
	if (count == 0 && atomic_load(&conn_deferred))
		conversion_send_all_deferred(wait->epfd);
	if (count != 0 || deadline_is_over(wait->deadline))
		return count;
	admit_ignored(&wait->quiet);
	while (count == 0) {
		deadline = deadline_earlier(wait->deadline, conn_first_deadline());
		count = wait_until(wait, deadline);
		if (count != 0 || deadline_is_over(wait->deadline))
			break;
		conversion_look();
	}
	return count;
}

/*
 * Takes the steps that are due after the kernel has said EFAULT about the application's array: if the kernel had only events of ours to
 * write, the application must not get the error. Returns whether there were any.
 */
static bool steps_taken(int epfd)
{
	bool any = false;

	EACH_CONN (conn, PHASES_UNFINISHED)
		if (conn_of(conn->fd) == conn && watch_may_be_in(conn, epfd) && conversion_can_step(conn, conn->fd)) {
			conversion_progress(conn, conn->fd);
			any = true;
		}
	return any;
}

#define STEPS_MAX 16 /* how often to repeat a wait with an unwritable array after a step */

/* Keeps those of @count events that are for the application, and waits again if there are none. Returns as epoll_wait(2). */
static int wait_sift(const struct epoll_call *wait, int count)
{
	for (int steps = 0;; steps++) {
		int saved_errno = errno;
		int left = count > 0 ? events_sift(wait->epfd, wait->events, count) : count;

		unseen_progress();
		if (left < 0 && saved_errno == EFAULT && steps < STEPS_MAX && steps_taken(wait->epfd))
			left = 0;
		errno = saved_errno;
		if (left != 0 || count == 0)
			return left;
		count = wait_once(wait);
	}
}

static void wait_end(void *arg)
{
	const struct epoll_call *wait = arg;

	quiet_end(&wait->quiet);
}

/* Waits with signals blocked in between. @count: the number of events that are already there; -1: the wait is still to come */
static int epoll_pending(struct epoll_call call, int count)
{
	int saved_errno = errno, left;

	quiet_all(&call.quiet);
	pthread_cleanup_push(wait_end, &call);
	left = wait_sift(&call, count < 0 ? wait_once(&call) : count);
	if (left >= 0)
		errno = saved_errno;
	pthread_cleanup_pop(1);
	return left;
}

HOOK(int, epoll_ctl, (int epfd, int op, int fd, struct epoll_event *event))
{
	struct conn *conn = conn_of_phase(fd, PHASE(IDLE) | PHASES_UNFINISHED);
	struct epoll_event copy, *asked = op == EPOLL_CTL_DEL ? NULL : &copy;
	int saved_errno = errno;

	if (!conn)
		conn = conn_handled(fd);
	/* The kernel refuses a pointer to an unreadable event. */
	if (!conn || (asked && !usermem_read(asked, event, sizeof(copy))))
		return next.epoll_ctl(epfd, op, fd, event);
	return hook_success_kept(watch_control(conn, epfd, op, fd, asked), saved_errno);
}

#define UNPACK(...) __VA_ARGS__

/*
 * The common case costs a load and a jump around the next function. If another thread begins a connection while we wait, we notice it
 * afterwards, and only in this case restart the time-out.
 *
 * SIFTED_HOOK(name, (parameters), (arguments)) starts the definition of the rest: @count is the result of the wait, or -1 if it is still to
 * come.
 */
#define SIFTED_HOOK(name, params, args)                                                            \
	HOOK_SLOW int sifted_##name(int count, UNPACK params);                                     \
	HOOK(int, name, params)                                                                    \
	{                                                                                          \
		int count = -1;                                                                    \
                                                                                                   \
		if (conn_none_handled()) {                                                         \
			count = next.name args;                                                    \
			if (count <= 0 || conn_none_handled())                                     \
				return count;                                                      \
		}                                                                                  \
		return sifted_##name(count, UNPACK args);                                          \
	}                                                                                          \
	HOOK_SLOW int sifted_##name(int count, UNPACK params)

SIFTED_HOOK(epoll_wait, (int epfd, struct epoll_event *events, int max, int timeout_ms),
	    (epfd, events, max, timeout_ms))
{
	return epoll_pending((struct epoll_call){ .epfd = epfd, .events = events, .max = max,
				   .deadline = deadline_in_ms(timeout_ms) },
		    count);
}

SIFTED_HOOK(epoll_pwait, (int epfd, struct epoll_event *events, int max, int timeout_ms,
			  const sigset_t *mask),
	    (epfd, events, max, timeout_ms, mask))
{
	return epoll_pending((struct epoll_call){ .epfd = epfd, .events = events, .max = max,
				   .deadline = deadline_in_ms(timeout_ms), .mask = mask },
		    count);
}

SIFTED_HOOK(epoll_pwait2, (int epfd, struct epoll_event *events, int max,
			   const struct timespec *timeout, const sigset_t *mask),
	    (epfd, events, max, timeout, mask))
{
	struct timespec copy;

	if (timeout && (!usermem_read(&copy, timeout, sizeof(copy)) || !timeout_is_valid(&copy)))
		return next.epoll_pwait2(epfd, events, max, timeout, mask);
	return epoll_pending((struct epoll_call){ .epfd = epfd, .events = events, .max = max, .precise = true,
				   .deadline = deadline_in(timeout ? &copy : NULL), .mask = mask },
		    count);
}
