/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poll.c - poll() and ppoll(), with descriptors of pending connections among the application's
 *
 * The kernel handles a call without a descriptor of a connection that is deferred, pending, confirmed or failed. Else we copy the program's
 * array, with our own events for the pending sockets, and the loop of wait_for_all() waits on the copy. Each time one of these sockets can
 * take a step, we take it. Then we ask the kernel, without waiting, what to tell the application about its own array, and remove events
 * that belong to the response. The loop ends when there is something to tell, or when the application's time-out, which spans all of the
 * loop's waits, is over. Once no connection is pending any more the loop becomes the application's own wait. We keep nothing between two
 * calls. select() uses the same loop (select.c).
 */
#include "config.h"

#include "shim/hooks/hook.h"

#include "shim/connect/conversion.h"
#include "shim/socket/conn.h"
#include "shim/system/waiting.h"
#include "shim/system/next.h"
#include "shim/system/usermem.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/*
 * How long we wait at a stretch for a pending socket. Another thread may take the response off the stream while this one sleeps in the
 * kernel, and then nothing wakes this one.
 */
#define STRETCH_NS (20 * 1000000L)

#define ON_STACK 32 /* More are rare and go into a mapping, since threads may have little stack. */

/* The memory of a wait for each descriptor. It doesn't come from the application's allocator, which a signal handler may interrupt. */
struct scratch {
	struct quiet quiet;
	struct pollfd local_fds[ON_STACK];
	struct conn *local_conns[ON_STACK];
	struct pollfd *fds;  /* our question to the kernel */
	struct conn **conns; /* conn_handled() of each */
	size_t mapped;       /* bytes */
};

static bool scratch_init(struct scratch *scratch, nfds_t count)
{
	scratch->mapped = 0;
	scratch->fds = scratch->local_fds;
	scratch->conns = scratch->local_conns;
	if (count <= ON_STACK)
		return true;
	scratch->mapped = count * (sizeof(*scratch->fds) + sizeof(*scratch->conns));
	scratch->conns = next_map(scratch->mapped);
	scratch->fds = (struct pollfd *)(scratch->conns + count);
	return scratch->conns;
}

/* Cleans up at the end of a wait, or when the thread is cancelled in it. */
static void wait_end(void *arg)
{
	struct scratch *scratch = arg;

	next_unmap(scratch->mapped ? scratch->conns : NULL, scratch->mapped);
	quiet_end(&scratch->quiet);
}

/*
 * Returns the events of a socket whose connection has failed, like tcp_poll(): an error, a hang-up, and all that was asked for. For a
 * dissolved connection returns the kernel's events, and the error.
 */
static short failed_revents(const struct conn *conn, const struct pollfd *fd)
{
	short revents = POLLHUP |
			(fd->events & (POLLIN | POLLOUT | POLLRDHUP | POLLRDNORM | POLLWRNORM));

	if (conn_phase(conn) == CONN_DISSOLVED)
		revents = fd->revents;
	return (short)(atomic_load(&conn->error) ? revents | POLLERR : revents);
}

/*
 * Finds the connection of each descriptor. Sends a deferred SYN if the application doesn't wait for output: it has no early data to send
 * then, and expects the server to speak first.
 */
static void conns_find(struct scratch *scratch, const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++) {
		struct conn *conn = fds[i].fd < 0 ? NULL : conn_handled(fds[i].fd);

		if (conn && conn_phase(conn) == CONN_DEFERRED &&
		    !(fds[i].events & (POLLOUT | POLLWRNORM)))
			conversion_send_deferred(conn, fds[i].fd);
		scratch->conns[i] = conn;
	}
}

#define POLLINPUT (POLLIN | POLLRDNORM)

/*
 * Replaces the application's events by ours for each pending socket. Returns the number of these; @failed: is there one to report without
 * any wait?
 */
static nfds_t interest_set(struct scratch *scratch, const struct pollfd *fds, nfds_t count,
			   bool *failed)
{
	nfds_t pending = 0;

	*failed = false;
	for (nfds_t i = 0; i < count; i++) {
		struct conn *conn = scratch->conns[i];

		scratch->fds[i] = fds[i];
		if (conn && conn_is_pending(conn)) {
			scratch->fds[i].events = conversion_poll_events(conn);
			pending++;
		}
		/* the response isn't input for the application, so the kernel can't do this wait */
		pending += conn && conn_is_confirmed(conn) && (fds[i].events & POLLINPUT);
		*failed |= conn && conn_has_failed(conn);
	}
	return pending;
}

/* Takes the steps that the kernel's report or a deadline has made possible. */
static void pending_progress(struct scratch *scratch, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++)
		if (scratch->conns[i] &&
		    (scratch->fds[i].revents || conn_look_is_due(scratch->conns[i])))
			conversion_progress(scratch->conns[i], scratch->fds[i].fd);
}

/*
 * Writes the events for the application at this moment: the kernel's, corrected for our sockets. Returns how many sockets have some, or
 * -errno; doesn't wait.
 */
static int readiness_report(const struct scratch *scratch, struct pollfd *fds, nfds_t count)
{
	int ready = next_poll_now(fds, count);

	if (ready < 0)
		return -errno;
	ready = 0;
	for (nfds_t i = 0; i < count; i++) {
		const struct conn *conn = scratch->conns[i];

		if (conn && conn_is_pending(conn))
			fds[i].revents = 0;
		else if (conn && conn_is_confirmed(conn))
			fds[i].revents &= ~POLLINPUT;
		else if (conn && conn_has_failed(conn))
			fds[i].revents = failed_revents(conn, &fds[i]);
		ready += fds[i].revents != 0;
	}
	return ready;
}

/* Returns how long to wait next: until @deadline, at most a stretch, and no time at all if there is a failure to report. */
static struct timespec stretch(int64_t deadline, bool failed)
{
	int64_t left = deadline_left_ns(deadline);

	return (struct timespec){ .tv_nsec = failed ? 0 : left < STRETCH_NS ? (long)left : STRETCH_NS };
}

/* Returns how many descriptors are ready, or -errno. */
static int wait_once(struct scratch *scratch, struct pollfd *fds, nfds_t count,
		     const struct timespec *timeout, const sigset_t *mask)
{
	int ready;

	quiet_listen(&scratch->quiet);
	ready = next.ppoll(fds, count, timeout, mask ? mask : &scratch->quiet.mask);
	quiet_resume();
	return ready < 0 ? -errno : ready;
}

static int wait_for_all(struct scratch *scratch, struct pollfd *fds, nfds_t count,
			int64_t deadline, const sigset_t *mask)
{
	struct timespec left;
	bool failed;
	int ready;

	conns_find(scratch, fds, count);
	do {
		nfds_t pending = interest_set(scratch, fds, count, &failed);

		if (!pending && !failed) /* all are settled: the application's own wait */
			return wait_once(scratch, fds, count, deadline_left(deadline, &left), mask);
		left = stretch(deadline, failed);
		ready = wait_once(scratch, scratch->fds, count, &left, mask);
		if (ready < 0)
			return ready;
		pending_progress(scratch, count);
		ready = readiness_report(scratch, fds, count);
	} while (ready == 0 && !deadline_is_over(deadline));
	return ready;
}

int poll_pending(struct pollfd *fds, nfds_t count, int64_t deadline, const sigset_t *mask)
{
	ERRNO_KEPT;
	struct scratch scratch;
	int ready;

	if (!scratch_init(&scratch, count))
		return -ENOMEM;
	quiet_all(&scratch.quiet);
	pthread_cleanup_push(wait_end, &scratch);
	ready = wait_for_all(&scratch, fds, count, deadline, mask);
	pthread_cleanup_pop(1);
	return ready;
}

static inline bool any_handled(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++)
		if (fds[i].fd >= 0 && conn_handled(fds[i].fd))
			return true;
	return false;
}

/*
 * Can the kernel handle the call alone, since no descriptor belongs to a pending connection? The kernel checks first, without waiting, so
 * that it refuses an array that is unreadable or too long. @ready: its result, which may be final
 */
static inline bool is_kernels(struct pollfd *fds, nfds_t count, int *ready)
{
	*ready = next.poll(fds, count, 0); /* a cancellation point, as the call is */
	return *ready < 0 || !any_handled(fds, count);
}

HOOK_PASSING(int, poll, (struct pollfd *fds, nfds_t count, int timeout_ms),
	     (fds, count, timeout_ms))
{
	int64_t deadline;
	int ready;

	count = (unsigned int)count; /* as in the kernel */
	if (is_kernels(fds, count, &ready))
		return ready || !timeout_ms ? ready : next.poll(fds, count, timeout_ms);
	deadline = deadline_in_ms(timeout_ms);
	return hook_result(poll_pending(fds, count, deadline, NULL));
}

/* The next function refuses an unreadable or invalid time-out, and an unreadable signal mask. */
HOOK_TIMED_PASSING(int, ppoll, (struct pollfd *fds, nfds_t count, const struct timespec *timeout,
				const sigset_t *mask),
		   (fds, count, timeout, mask))
{
	struct timespec copy;
	int64_t deadline;
	int ready;

	count = (unsigned int)count;
	if ((timeout && !usermem_read(&copy, timeout, sizeof(copy))) ||
	    !timeout_is_valid(timeout ? &copy : NULL) || is_kernels(fds, count, &ready))
		return next.ppoll(fds, count, timeout, mask);
	deadline = deadline_in(timeout ? &copy : NULL);
	return hook_result(poll_pending(fds, count, deadline, mask));
}

HOOK(int, __poll_chk, (struct pollfd *fds, nfds_t count, int timeout_ms, size_t bytes))
{
	if (bytes / sizeof(*fds) < count)
		abort();
	return hook_poll(fds, count, timeout_ms);
}

HOOK(int, __ppoll_chk, (struct pollfd *fds, nfds_t count, const struct timespec *timeout,
			const sigset_t *mask, size_t bytes))
{
	if (bytes / sizeof(*fds) < count)
		abort();
	return hook_ppoll(fds, count, timeout, mask);
}
