/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_window.h - corrects the window of MPTCP SYNs before the kernel misreads it */
#ifndef HOLD_SYN_WINDOW_H
#define HOLD_SYN_WINDOW_H

#include "convertd/base/listen_address.h"

#include <stddef.h>

struct syn_window;

/*
 * syn_window_install() - correct the windows of SYNs to these addresses from now on
 * @window: set by an earlier call, whose addresses these replace in one step; points to NULL the first time
 * Returns 0, or -errno with *@window set to NULL: then no windows are corrected; -ENOSYS: convertd was built without
 * nftables. Does nothing if the addresses are the same as before.
 */
int syn_window_install(struct syn_window **window, const struct listen_address *listen, size_t count);

/* Removes the rules; the kernel also does so when the process ends. NULL is fine. */
void syn_window_remove(struct syn_window *window);

#endif
