/* SPDX-License-Identifier: BSD-3-Clause */
/* select.c - select() and pselect(): loop/select.c does those whose sets have a connection on its way, the kernel all others */
#include "config.h"

#include "shim/hooks/hook.h"
#include "shim/loop/select.h"
#include "shim/system/deadline.h"
#include "shim/system/next.h"
#include "shim/system/usermem.h"

/* glibc tells how much time is left, as Linux does. musl gives Linux a copy, and its programs may use the time again. */
static void tell_left(struct timeval *timeout, const struct deadline *deadline)
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

/* The next function refuses a time-out that can't be read or is no time, and itself writes back what is left of one. */
HOOK_TIMED_PASSING(int, select, (int nfds, fd_set *in, fd_set *out, fd_set *except,
				 struct timeval *timeout),
		   (nfds, in, out, except, timeout))
{
	struct timeval time = { 0, 0 };
	struct timespec ts;
	struct deadline deadline;
	int ret;

	if (timeout && !usermem_read(&time, timeout, sizeof(time)))
		return next.select(nfds, in, out, except, timeout);
	/* microseconds may be more than a second */
	ts = (struct timespec){ time.tv_sec + time.tv_usec / 1000000, time.tv_usec % 1000000 * 1000 };
	deadline = deadline_in(timeout ? &ts : NULL);
	if (!timeout_is_valid(&ts) || !select_pending(nfds, in, out, except, &deadline, NULL, &ret))
		return next.select(nfds, in, out, except, timeout);
	if (timeout)
		tell_left(timeout, &deadline);
	return hook_result(ret);
}

HOOK_TIMED_PASSING(int, pselect, (int nfds, fd_set *in, fd_set *out, fd_set *except,
				  const struct timespec *timeout, const sigset_t *mask),
		   (nfds, in, out, except, timeout, mask))
{
	struct timespec time = { 0, 0 };
	struct deadline deadline;
	int ret;

	if ((timeout && !usermem_read(&time, timeout, sizeof(time))) || !timeout_is_valid(&time))
		return next.pselect(nfds, in, out, except, timeout, mask);
	deadline = deadline_in(timeout ? &time : NULL);
	if (!select_pending(nfds, in, out, except, &deadline, mask, &ret))
		return next.pselect(nfds, in, out, except, timeout, mask);
	return hook_result(ret);
}
