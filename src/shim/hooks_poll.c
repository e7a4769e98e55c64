/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hooks_poll.c - poll() and select() with pending connections among the descriptors
 *
 * Only then is anything done here: the application's array is copied, pending sockets are
 * waited for with events of our own, and each time one of them moves the kernel is asked
 * again, without waiting, what the application would have been told. Its time-out runs
 * on over all of that. select() is done by the same loop on an array made of its sets.
 */
#include "config.h"

#include "shim/conn.h"
#include "shim/conversion.h"
#include "shim/deadline.h"
#include "shim/deadlines.h"
#include "shim/hook.h"
#include "shim/next.h"
#include "shim/quiet.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
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

	if (conn->unconnected)
		revents = fd->revents;
	return (short)(atomic_load(&conn->error) ? revents | POLLERR : revents);
}

/* An application that has early data to send waits for output; else the server speaks first. */
static void conns_find(struct scratch *scratch, const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++) {
		struct conn *conn = fds[i].fd < 0 ? NULL : conn_attentive(fds[i].fd);

		if (conn && conn_state(conn) == CONN_HELD &&
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
		*failed |= conn && conn_state(conn) == CONN_FAILED;
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
		else if (conn && conn_state(conn) == CONN_FAILED)
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

/* ppoll() until @deadline; @fds as the application has them, its revents are set. */
static int poll_pending(struct pollfd *fds, nfds_t count, const struct deadline *deadline,
			const sigset_t *mask)
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

static bool any_attentive(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++)
		if (fds[i].fd >= 0 && conn_attentive(fds[i].fd))
			return true;
	return false;
}

HOOK_PASSING(int, poll, (struct pollfd *fds, nfds_t count, int timeout_ms),
	     (fds, count, timeout_ms))
{
	struct deadline deadline;

	if (!any_attentive(fds, count))
		return next.poll(fds, count, timeout_ms);
	deadline = deadline_in_ms(timeout_ms);
	return poll_pending(fds, count, &deadline, NULL);
}

HOOK_PASSING(int, ppoll, (struct pollfd *fds, nfds_t count, const struct timespec *timeout,
			  const sigset_t *mask),
	     (fds, count, timeout, mask))
{
	struct deadline deadline;

	if (!any_attentive(fds, count) || !timeout_is_valid(timeout))
		return next.ppoll(fds, count, timeout, mask);
	deadline = deadline_in(timeout);
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

/* The three sets of select(2), which may be larger than an fd_set. */
struct sets {
	int nfds;
	unsigned long *words[3]; /* in, out, except; each may be NULL */
};

#define WORD_BITS ((int)(sizeof(unsigned long) * CHAR_BIT))

/* The kernel's POLLIN_SET, POLLOUT_SET and POLLEX_SET (fs/select.c), and what to ask for. */
static const struct {
	short ask, answer;
} set_events[3] = {
	{ POLLIN | POLLRDNORM | POLLRDBAND,
	  POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR },
	{ POLLOUT | POLLWRNORM | POLLWRBAND, POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR },
	{ POLLPRI, POLLPRI },
};

static bool set_has(const unsigned long *words, int fd)
{
	return words && (words[fd / WORD_BITS] >> (fd % WORD_BITS) & 1);
}

static short sets_ask(const struct sets *sets, int fd)
{
	short ask = 0;

	for (int i = 0; i < 3; i++)
		if (set_has(sets->words[i], fd))
			ask |= set_events[i].ask;
	return ask;
}

/* Fills @fds (NULL: only counts) with the descriptors in the sets. */
static nfds_t sets_to_fds(const struct sets *sets, struct pollfd *fds)
{
	nfds_t count = 0;

	for (int fd = 0; fd < sets->nfds; fd++) {
		short ask = sets_ask(sets, fd);

		if (ask && fds)
			fds[count] = (struct pollfd){ .fd = fd, .events = ask };
		count += ask != 0;
	}
	return count;
}

/* Writes the sets back. Returns how many bits are set, or -EBADF as select(2). */
static int sets_from_fds(struct sets *sets, const struct pollfd *fds, nfds_t count)
{
	int bits = 0;

	for (nfds_t n = 0; n < count; n++)
		if (fds[n].revents & POLLNVAL)
			return -EBADF;
	for (nfds_t n = 0; n < count; n++) {
		int fd = fds[n].fd;

		for (int i = 0; i < 3; i++) {
			if (!set_has(sets->words[i], fd))
				continue;
			if (fds[n].revents & set_events[i].answer)
				bits++;
			else
				sets->words[i][fd / WORD_BITS] &= ~(1ul << (fd % WORD_BITS));
		}
	}
	return bits;
}

static struct sets sets_of(int nfds, fd_set *in, fd_set *out, fd_set *except)
{
	return (struct sets){ .nfds = nfds, .words = { (unsigned long *)in, (unsigned long *)out,
						       (unsigned long *)except } };
}

static bool sets_any_attentive(const struct sets *sets)
{
	for (int fd = 0; fd < sets->nfds; fd++)
		if (sets_ask(sets, fd) && conn_attentive(fd))
			return true;
	return false;
}

static int select_pending(struct sets *sets, const struct deadline *deadline, const sigset_t *mask)
{
	nfds_t count = sets_to_fds(sets, NULL);
	struct scratch scratch;
	int ret;

	if (!scratch_init(&scratch, count))
		return hook_result(-ENOMEM);
	sets_to_fds(sets, scratch.fds);
	ret = poll_pending(scratch.fds, count, deadline, mask);
	if (ret >= 0)
		ret = hook_result(sets_from_fds(sets, scratch.fds, count));
	scratch_fini(&scratch);
	return ret;
}

HOOK_PASSING(int, select, (int nfds, fd_set *in, fd_set *out, fd_set *except,
			   struct timeval *timeout),
	     (nfds, in, out, except, timeout))
{
	struct sets sets = sets_of(nfds, in, out, except);
	struct timespec ts, left;
	struct deadline deadline;
	int ret;

	if (timeout) /* microseconds may be more than a second */
		ts = (struct timespec){ timeout->tv_sec + timeout->tv_usec / 1000000,
					timeout->tv_usec % 1000000 * 1000 };
	if (!sets_any_attentive(&sets) || (timeout && !timeout_is_valid(&ts)))
		return next.select(nfds, in, out, except, timeout);
	deadline = deadline_in(timeout ? &ts : NULL);
	ret = select_pending(&sets, &deadline, NULL);
	if (timeout && deadline_left(&deadline, &left)) /* as Linux does */
		*timeout = (struct timeval){ left.tv_sec, left.tv_nsec / 1000 };
	return ret;
}

HOOK_PASSING(int, pselect, (int nfds, fd_set *in, fd_set *out, fd_set *except,
			    const struct timespec *timeout, const sigset_t *mask),
	     (nfds, in, out, except, timeout, mask))
{
	struct sets sets = sets_of(nfds, in, out, except);
	struct deadline deadline;

	if (!sets_any_attentive(&sets) || !timeout_is_valid(timeout))
		return next.pselect(nfds, in, out, except, timeout, mask);
	deadline = deadline_in(timeout);
	return select_pending(&sets, &deadline, mask);
}
