/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quiet.h - one wait of the application's that is several of ours
 *
 * A signal handler that runs while we are between two waits would not interrupt the call, as it does if it
 * runs in the kernel's poll(). So signals are blocked except in our own waits, which let them in as the
 * application's would; and a thread is cancelled in one of these only, when nothing is half done.
 *
 *   quiet_all(&quiet);
 *   pthread_cleanup_push(...quiet_end(&quiet)...);
 *   ... quiet_listen(&quiet); ret = next.ppoll(..., mask ? mask : &quiet.mask); quiet_resume(); ...
 *   pthread_cleanup_pop(1);
 */
#ifndef SHIM_QUIET_H
#define SHIM_QUIET_H

#include "common/quiet.h"

/*
 * quiet_admit_ignored() - before a wait that isn't restarted after a signal without a handler
 * As epoll_wait(2) isn't. The kernel throws an ignored signal away where it arrives, unless it is blocked:
 * then it is kept, and would interrupt the wait as soon as that lets it in. What the application blocks
 * itself stays blocked, and is kept for it. Some 30 system calls: for who is about to sleep.
 */
void quiet_admit_ignored(const struct quiet *quiet);

/* For a wait that is given quiet.mask, and afterwards. */
static inline void quiet_listen(const struct quiet *quiet)
{
	pthread_setcancelstate(quiet->cancel_state, NULL);
}

static inline void quiet_resume(void)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

#endif
