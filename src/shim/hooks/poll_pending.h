/* SPDX-License-Identifier: BSD-3-Clause */
/* poll_pending.h - waiting for descriptors with pending connections among them */
#ifndef SHIM_POLL_PENDING_H
#define SHIM_POLL_PENDING_H

#include "shim/system/deadline.h"

#include <poll.h>
#include <signal.h>

/*
 * poll_pending() - ppoll(2) until @deadline, without looking whether any of @fds is of a pending connection
 * @fds: as the application has them, there to be read and written; their revents are set
 */
int poll_pending(struct pollfd *fds, nfds_t count, const struct deadline *deadline, const sigset_t *mask);

#endif
