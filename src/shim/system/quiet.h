/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quiet.h - signals and cancellation while a hook does in several system calls what the application asked for in one
 *
 * A signal that arrives in the kernel's poll() interrupts it (EINTR). One that arrives while we are between two waits of the same
 * call would run its handler, and the call would go on waiting. So signals are blocked except in our waits, which are given the
 * thread's own mask; and a thread can be cancelled only in such a wait, when nothing is half done.
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
 * quiet_admit_ignored() - unblocks the signals that the process ignores
 * To be called before a wait that isn't restarted after a signal without a handler, as epoll_wait(2) isn't. The kernel discards an
 * ignored signal when it arrives, but keeps one that is blocked, which would then interrupt the wait as soon as that
 * admits it. Signals that the application itself blocks stay blocked. It makes some 30 system calls: for a thread that is about to sleep.
 */
void quiet_admit_ignored(const struct quiet *quiet);

/* quiet_listen(), quiet_resume() - allow cancellation around a wait, which is given quiet.mask to admit signals */
static inline void quiet_listen(const struct quiet *quiet)
{
	pthread_setcancelstate(quiet->cancel_state, NULL);
}

static inline void quiet_resume(void)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

#endif
