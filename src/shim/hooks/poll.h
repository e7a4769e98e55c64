/* SPDX-License-Identifier: BSD-3-Clause */
/* poll.h - waiting for descriptors with pending connections among them */
#ifndef SHIM_HOOKS_POLL_H
#define SHIM_HOOKS_POLL_H

#include "shim/system/waiting.h"

#include <poll.h>
#include <signal.h>

/*
 * poll_pending() - ppoll(2) with descriptors of pending connections among @fds, which are waited for until @deadline
 * @fds: the application's, which the caller knows to be readable and writable; their revents are set
 * @mask: as ppoll(2) has it, or NULL
 * Returns as ppoll(2) does, but -errno if it fails. errno stays as it was. It is a cancellation point.
 */
int poll_pending(struct pollfd *fds, nfds_t count, const struct deadline *deadline, const sigset_t *mask);

#endif
