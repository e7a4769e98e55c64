/* SPDX-License-Identifier: BSD-3-Clause */
/* select.h - select() with pending connections in its sets */
#ifndef SHIM_LOOP_SELECT_H
#define SHIM_LOOP_SELECT_H

#include "shim/system/deadline.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/select.h>

/*
 * select_pending() - pselect(2) until @deadline, if there are connections on their way in the sets
 * @nfds, @in, @out, @except, @mask: the application's, as it has passed them
 * @ret: how many bits are set, or -errno
 * Returns false, with nothing done, if there are none: the call is the kernel's then. errno stays as it was, unless @ret is an error.
 */
bool select_pending(int nfds, fd_set *in, fd_set *out, fd_set *except, const struct deadline *deadline, const sigset_t *mask, int *ret);

#endif
