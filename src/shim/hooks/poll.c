/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poll.c - poll() with pending connections among the descriptors
 *
 * Only then is anything done here: the application's array is copied, pending sockets are
 * waited for with events of our own, and each time one of them moves the kernel is asked
 * again, without waiting, what the application would have been told. Its time-out runs
 * on over all of that. select() is done by the same loop (hooks/select.c).
 */
#include "config.h"

#include "shim/socket/conn.h"
#include "shim/connect/conversion.h"
#include "shim/system/deadline.h"
#include "shim/wait/deadlines.h"
#include "shim/hooks/hook.h"
#include "shim/system/next.h"
#include "shim/hooks/poll_pending.h"
#include "shim/system/quiet.h"
#include "shim/system/usermem.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

/*
 * How long we wait at a stretch for a pending socket. Another thread may take the response off
 * the stream while this one sleeps in the kernel, which has nothing to wake it for then.
 */
#define STRETCH_NS (20 * 1000000L)

#define ON_STACK 32 /* descriptors; more are rare and go into a mapping: threads may have little stack */

/* What a wait needs for each descriptor, not from the application's allocator. */
struct scratch {
	struct quiet quiet;
	struct pollfd local_fds[ON_STACK];
	struct conn *local_conns[ON_STACK];
	struct pollfd *fds;  /* what we ask the kernel */
	struct conn **conns; /* the attentive conn of each, or NULL */
	size_t mapped;       /* bytes */
};

static bool scratch_init(struct scratch *scratch, nfds_t count)
{
	void *memory;

	scratch->mapped = 0;
	scratch->fds = scratch->local_fds;
	scratch->conns = scratch->local_conns;
	if (count <= ON_STACK)
		return true;
	scratch->mapped = count * (sizeof(*scratch->fds) + sizeof(*scratch->conns));
	memory = mmap(NULL, scratch->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	scratch->conns = memory;
	scratch->fds = (struct pollfd *)(scratch->conns + count);
	return memory != MAP_FAILED;
}

static void scratch_fini(struct scratch *scratch)
{
	int saved_errno = errno;

	if (scratch->mapped)
		munmap(scratch->conns, scratch->mapped);
	errno = saved_errno;
}

/* The end of a wait, or of the thread that waits. */
static void wait_end(void *arg)
{
	struct scratch *scratch = arg;

	scratch_fini(scratch);
	quiet_end(&scratch->quiet);
}

/*
 * What a socket whose connection failed shows, tcp_poll(): error, hang-up, and all that was asked; one
 * that was dissolved what the kernel says, and the error.
 */
static short failed_revents(const struct conn *conn, const struct pollfd *fd)
{
	short revents = POLLHUP |
			(fd->events & (POLLIN | POLLOUT | POLLRDHUP | POLLRDNORM | POLLWRNORM));

	if (conn_phase(conn) == CONN_DISSOLVED)
		revents = fd->revents;
	return (short)(atomic_load(&conn->error) ? revents | POLLERR : revents);
}

/* An application that has early data to send waits for output; else the server speaks first. */
static void conns_find(struct scratch *scratch, const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++) {
		struct conn *conn = fds[i].fd < 0 ? NULL : conn_attentive(fds[i].fd);

		if (conn && conn_phase(conn) == CONN_HELD &&
		    !(fds[i].events & (POLLOUT | POLLWRNORM)))
			conversion_send_held(conn, fds[i].fd);
		scratch->conns[i] = conn;
	}
}

#define POLLINPUT (POLLIN | POLLRDNORM)

/*
 * Puts our events in the place of the application's for each pending socket. Returns how
 * many there are; @failed: is there one to be reported without any wait?
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
		/* the response is no input to the application */
		pending += conn && conn_is_confirmed(conn) && (fds[i].events & POLLINPUT);
		*failed |= conn && conn_has_failed(conn);
	}
	return pending;
}

/* The steps that the kernel's answer makes possible, or another process. */
static void pending_progress(struct scratch *scratch, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++)
		if (scratch->conns[i] &&
		    (scratch->fds[i].revents || deadlines_is_over(scratch->conns[i]) ||
		     conn_is_shared(scratch->conns[i])))
			conversion_progress(scratch->conns[i], scratch->fds[i].fd);
}

/*
 * What the application is to be told at this moment: the kernel's word, except for
 * sockets of ours. Returns how many have something, or -1 as poll(2).
 */
static int readiness_report(const struct scratch *scratch, struct pollfd *fds, nfds_t count)
{
	int ready = next_poll_now(fds, count);

	if (ready < 0)
		return ready;
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

/* What is left, but no more than a stretch; nothing at all if a failure is to be reported. */
static struct timespec *stretch(const struct deadline *deadline, bool failed, struct timespec *left)
{
	static const struct timespec most = { 0, STRETCH_NS };

	if (failed)
		*left = (struct timespec){ 0, 0 };
	else if (!deadline_left(deadline, left) || left->tv_sec || left->tv_nsec > most.tv_nsec)
		*left = most;
	return left;
}

static int wait_once(struct scratch *scratch, struct pollfd *fds, nfds_t count,
		     const struct timespec *timeout, const sigset_t *mask)
{
	int ready;

	quiet_listen(&scratch->quiet);
	ready = next.ppoll(fds, count, timeout, mask ? mask : &scratch->quiet.mask);
	quiet_resume();
	return ready;
}

static int wait_for_all(struct scratch *scratch, struct pollfd *fds, nfds_t count,
			const struct deadline *deadline, const sigset_t *mask)
{
	struct timespec left;
	bool failed;
	int ready;

	conns_find(scratch, fds, count);
	do {
		nfds_t pending = interest_set(scratch, fds, count, &failed);

		if (!pending && !failed) /* all are settled: the application's own wait */
			return wait_once(scratch, fds, count, deadline_left(deadline, &left), mask);
		ready = wait_once(scratch, scratch->fds, count, stretch(deadline, failed, &left),
				  mask);
		if (ready < 0)
			return ready;
		pending_progress(scratch, count);
		ready = readiness_report(scratch, fds, count);
	} while (ready == 0 && !deadline_is_over(deadline));
	return ready;
}

int poll_pending(struct pollfd *fds, nfds_t count, const struct deadline *deadline, const sigset_t *mask)
{
	int saved_errno = errno, ready;
	struct scratch scratch;

	if (!scratch_init(&scratch, count))
		return hook_result(-ENOMEM);
	quiet_all(&scratch.quiet);
	pthread_cleanup_push(wait_end, &scratch);
	ready = wait_for_all(&scratch, fds, count, deadline, mask);
	if (ready >= 0)
		errno = saved_errno;
	pthread_cleanup_pop(1);
	return ready;
}

static inline bool any_attentive(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++)
		if (fds[i].fd >= 0 && conn_attentive(fds[i].fd))
			return true;
	return false;
}

/*
 * Are the descriptors none of ours? The kernel looks first, without waiting: it refuses an array that isn't there
 * or is too long, and if there is something to report the call is over. @ready: what it says
 */
static inline bool is_kernels(struct pollfd *fds, nfds_t count, int *ready)
{
	*ready = next.poll(fds, count, 0); /* a point of cancellation, as the call is */
	return *ready < 0 || !any_attentive(fds, count);
}

HOOK_PASSING(int, poll, (struct pollfd *fds, nfds_t count, int timeout_ms),
	     (fds, count, timeout_ms))
{
	struct deadline deadline;
	int ready;

	count = (unsigned int)count; /* as the kernel takes it */
	if (is_kernels(fds, count, &ready))
		return ready || !timeout_ms ? ready : next.poll(fds, count, timeout_ms);
	deadline = deadline_in_ms(timeout_ms);
	return poll_pending(fds, count, &deadline, NULL);
}

/* A time-out that isn't there, or none at all, is the next function's to refuse, and so is a mask. */
HOOK_PASSING(int, ppoll, (struct pollfd *fds, nfds_t count, const struct timespec *timeout,
			  const sigset_t *mask),
	     (fds, count, timeout, mask))
{
	struct timespec copy;
	struct deadline deadline;
	int ready;

	count = (unsigned int)count;
	if ((timeout && !usermem_read(&copy, timeout, sizeof(copy))) ||
	    !timeout_is_valid(timeout ? &copy : NULL) || is_kernels(fds, count, &ready))
		return next.ppoll(fds, count, timeout, mask);
	deadline = deadline_in(timeout ? &copy : NULL);
	return poll_pending(fds, count, &deadline, mask);
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
