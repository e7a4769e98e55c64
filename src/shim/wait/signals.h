/* SPDX-License-Identifier: BSD-3-Clause */
/* signals.h - a wait with a time-out that a signal handler interrupts as it would connect(2) */
#ifndef SHIM_SIGNALS_H
#define SHIM_SIGNALS_H

#include <poll.h>

/*
 * signals_poll() - poll(2) on one descriptor, restarted after handlers with SA_RESTART
 * poll(2) itself is never restarted, connect(2) without SO_SNDTIMEO is. @timeout_ms: milliseconds, -1 for ever;
 * it begins anew after a restart, so that callers have to look at the clock themselves.
 * Returns as poll(2), with EINTR only after a handler without SA_RESTART.
 */
int signals_poll(struct pollfd *fd, int timeout_ms);

#endif
