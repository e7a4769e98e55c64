/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poll.c - poll() and ppoll()
 *
 * A descriptor of a connection that is held, pending, confirmed or failed makes the call one for loop/poll.c. All other calls are the
 * kernel's.
 */
#include "config.h"

#include "shim/hooks/hook.h"
#include "shim/loop/poll.h"
#include "shim/socket/conn.h"
#include "shim/system/deadline.h"
#include "shim/system/next.h"
#include "shim/system/usermem.h"

#include <stdlib.h>

static inline bool any_attentive(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++)
		if (fds[i].fd >= 0 && conn_attentive(fds[i].fd))
			return true;
	return false;
}

/*
 * Is the call the kernel's alone, since no descriptor is of a connection on its way? The kernel looks first, without waiting, so that
 * it refuses an array that can't be read or is too long. @ready: what it has returned, which may be all that there is to do
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
	return hook_result(poll_pending(fds, count, &deadline, NULL));
}

/* The next function refuses a time-out that can't be read or is no time, and a signal mask that can't be read. */
HOOK_TIMED_PASSING(int, ppoll, (struct pollfd *fds, nfds_t count, const struct timespec *timeout,
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
	return hook_result(poll_pending(fds, count, &deadline, mask));
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
