/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * select.c - select() and pselect(), with pending connections in the application's sets
 *
 * The kernel handles calls without one. Otherwise we copy the sets, and make of them an array for the loop of poll.c. The caller doesn't
 * say how long its sets are: the kernel cuts the number of descriptors to the size of the process's descriptor table, and many programs
 * rely on that, as in select(getdtablesize(), ...) with sets of the usual size. The kernel neither reads nor writes behind that end, and we
 * must not either. We can't ask for the size of the table, but
 *
 * - the table has each open descriptor, and all descriptors before it: up to there the kernel reads the sets, too;
 * - for a closed descriptor in the sets the kernel says EBADF if the table has it, and ignores it otherwise. So once the kernel has
 *   accepted the sets, in a call that doesn't wait, the first closed descriptor in them marks the end.
 *
 * The kernel has then refused (EFAULT) unreadable memory before that end.
 */
#include "config.h"

#include "shim/hooks/hook.h"
#include "shim/socket/conn.h"
#include "shim/system/waiting.h"
#include "shim/system/next.h"
#include "shim/system/usermem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#define WORD_BITS ((int)(sizeof(unsigned long) * CHAR_BIT))
#define WORDS_ON_STACK (FD_SETSIZE / WORD_BITS)
#define FDS_ON_STACK 32
#define NFDS_MAX (1 << 20) /* the default of fs.nr_open: no process has more descriptors */

/* The three sets of select(2): in, out, except; each may be NULL. */
struct sets {
	int nfds;
	fd_set *theirs[3];
	unsigned long *words[3]; /* our copies */
	unsigned long local[3][WORDS_ON_STACK];
	size_t bytes;    /* of a set */
	size_t readable; /* the readable bytes of each set */
	void *mapped;    /* NULL if the copies are local */
};

/* The kernel's POLLIN_SET, POLLOUT_SET and POLLEX_SET (fs/select.c), and the events to ask for. */
static const struct {
	short ask, answer;
} set_events[3] = {
	{ POLLIN | POLLRDNORM | POLLRDBAND,
	  POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR },
	{ POLLOUT | POLLWRNORM | POLLWRBAND, POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR },
	{ POLLPRI, POLLPRI },
};

/* Copies the readable part of the sets. Returns false if there is no memory. */
static bool sets_copy(struct sets *sets, int nfds, fd_set *in, fd_set *out, fd_set *except)
{
	fd_set *const theirs[3] = { in, out, except };

	sets->nfds = nfds < NFDS_MAX ? nfds : NFDS_MAX;
	sets->readable = sets->bytes = (size_t)((sets->nfds + WORD_BITS - 1) / WORD_BITS) * sizeof(unsigned long);
	sets->mapped = sets->bytes > sizeof(sets->local[0]) ? next_map(3 * sets->bytes) : NULL;
	if (!sets->mapped && sets->bytes > sizeof(sets->local[0]))
		return false;
	for (int i = 0; i < 3; i++) {
		char *mapped = sets->mapped ? (char *)sets->mapped + (size_t)i * sets->bytes : NULL;
		size_t got;

		sets->theirs[i] = theirs[i];
		sets->words[i] = theirs[i] ? mapped ? (unsigned long *)(void *)mapped : sets->local[i] : NULL;
		if (!theirs[i])
			continue;
		got = usermem_read_part(sets->words[i], theirs[i], sets->bytes);
		memset((char *)sets->words[i] + got, 0, sets->bytes - got);
		sets->readable = got < sets->readable ? got : sets->readable;
	}
	return true;
}

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

/* Has any of the sets a bit in the word that @fd's bit is in? */
static bool sets_have_word(const struct sets *sets, int fd)
{
	for (int i = 0; i < 3; i++)
		if (sets->words[i] && sets->words[i][fd / WORD_BITS])
			return true;
	return false;
}

/* Returns the highest descriptor in the sets with a connection that hooks handle, or -1. */
static int sets_last_handled(const struct sets *sets)
{
	int last = -1;

	for (int fd = conn_next_fd(0); fd >= 0 && fd < sets->nfds; fd = conn_next_fd(fd + 1))
		if (sets_ask(sets, fd) && conn_handled(fd))
			last = fd;
	return last;
}

/* Returns the end of the sets, searching from descriptor @from on: the first closed descriptor in them, see above. */
static int sets_end(const struct sets *sets, int from)
{
	int end = from;

	for (int fd = from; fd < sets->nfds; fd++) {
		if (fd % WORD_BITS == 0 && !sets_have_word(sets, fd)) {
			fd += WORD_BITS - 1;
			continue;
		}
		if (!sets_ask(sets, fd))
			continue;
		if (next.fcntl(fd, F_GETFD) < 0)
			break;
		end = fd + 1;
	}
	return end;
}

static void sets_cut(struct sets *sets, int nfds)
{
	sets->nfds = nfds < sets->nfds ? nfds : sets->nfds;
	sets->bytes = (size_t)((sets->nfds + WORD_BITS - 1) / WORD_BITS) * sizeof(unsigned long);
}

/* Returns 0 or -EFAULT. */
static int sets_write(const struct sets *sets)
{
	for (int i = 0; i < 3; i++)
		if (sets->words[i] && !usermem_write(sets->theirs[i], sets->words[i], sets->bytes))
			return -EFAULT;
	return 0;
}

/*
 * Cuts the sets to the part that the kernel uses. @nfds: the application's; @last: a descriptor that is known to be open
 * Returns 0 or -errno.
 */
static int sets_fit(struct sets *sets, int nfds, int last)
{
	ERRNO_KEPT;
	int known = (last / WORD_BITS + 1) * WORD_BITS;
	struct timeval now = { 0, 0 };

	if (sets->nfds <= known && sets->readable == sets->bytes)
		return 0;
	if (next.select(nfds, sets->theirs[0], sets->theirs[1], sets->theirs[2], &now) < 0)
		return -errno;
	if (sets->readable < sets->bytes)
		sets_cut(sets, (int)sets->readable * CHAR_BIT);
	sets_cut(sets, sets_end(sets, known));
	return sets_write(sets); /* the call has overwritten them with results */
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

/* Writes the sets back. Returns the number of set bits, or -EBADF or -EFAULT as select(2). */
static int sets_from_fds(struct sets *sets, const struct pollfd *fds, nfds_t count)
{
	int bits = 0, ret;

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
	ret = sets_write(sets);
	return ret < 0 ? ret : bits;
}

static int sets_wait(struct sets *sets, int64_t deadline, const sigset_t *mask)
{
	nfds_t count = sets_to_fds(sets, NULL);
	struct pollfd local[FDS_ON_STACK], *fds = local;
	int ret;

	if (count > FDS_ON_STACK)
		fds = next_map(count * sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	sets_to_fds(sets, fds);
	ret = poll_pending(fds, count, deadline, mask);
	if (ret >= 0)
		ret = sets_from_fds(sets, fds, count);
	next_unmap(fds == local ? NULL : fds, count * sizeof(*fds));
	return ret;
}

static bool select_pending(int nfds, fd_set *in, fd_set *out, fd_set *except, int64_t deadline,
			   const sigset_t *mask, int *ret)
{
	struct sets sets;
	bool ours = false;
	int last;

	if (nfds <= 0)
		return false;
	if (!sets_copy(&sets, nfds, in, out, except)) {
		*ret = -ENOMEM;
		return true;
	}
	last = sets_last_handled(&sets);
	if (last >= 0) {
		ours = true;
		*ret = sets_fit(&sets, nfds, last);
		if (*ret == 0)
			*ret = sets_wait(&sets, deadline, mask);
	}
	next_unmap(sets.mapped, 3 * sets.bytes);
	return ours;
}

/* glibc writes back the remaining time, as Linux does. musl gives Linux a copy, and its programs may use the time again. */
static void tell_left(struct timeval *timeout, int64_t deadline)
{
#ifdef __GLIBC__
	struct timespec left;

	if (deadline_left(deadline, &left))
		*timeout = (struct timeval){ left.tv_sec, left.tv_nsec / 1000 };
#else
	(void)timeout;
	(void)deadline;
#endif
}

/* The next function refuses an unreadable or invalid time-out, and itself writes back the remaining time. */
HOOK_TIMED_PASSING(int, select, (int nfds, fd_set *in, fd_set *out, fd_set *except,
				 struct timeval *timeout),
		   (nfds, in, out, except, timeout))
{
	struct timeval time = { 0, 0 };
	struct timespec ts;
	int64_t deadline;
	int ret;

	if (timeout && !usermem_read(&time, timeout, sizeof(time)))
		return next.select(nfds, in, out, except, timeout);
	/* microseconds may be more than a second */
	ts = (struct timespec){ time.tv_sec + time.tv_usec / 1000000, time.tv_usec % 1000000 * 1000 };
	if (!timeout_is_valid(&ts))
		return next.select(nfds, in, out, except, timeout);
	deadline = deadline_in(timeout ? &ts : NULL);
	if (!select_pending(nfds, in, out, except, deadline, NULL, &ret))
		return next.select(nfds, in, out, except, timeout);
	if (timeout)
		tell_left(timeout, deadline);
	return hook_result(ret);
}

HOOK_TIMED_PASSING(int, pselect, (int nfds, fd_set *in, fd_set *out, fd_set *except,
				  const struct timespec *timeout, const sigset_t *mask),
		   (nfds, in, out, except, timeout, mask))
{
	struct timespec time = { 0, 0 };
	int64_t deadline;
	int ret;

	if ((timeout && !usermem_read(&time, timeout, sizeof(time))) || !timeout_is_valid(&time))
		return next.pselect(nfds, in, out, except, timeout, mask);
	deadline = deadline_in(timeout ? &time : NULL);
	if (!select_pending(nfds, in, out, except, deadline, mask, &ret))
		return next.pselect(nfds, in, out, except, timeout, mask);
	return hook_result(ret);
}
