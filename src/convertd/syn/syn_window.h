/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_window.h - correct the window of MPTCP SYNs before the kernel misreads it */
#ifndef CONVERTD_SYN_WINDOW_H
#define CONVERTD_SYN_WINDOW_H

#include "convertd/config/settings.h"

#include <stddef.h>

struct syn_window;

/* Bytes of a reason, with its NUL. */
#define SYN_WINDOW_WHY_MAX 256

/*
 * syn_window_install() - correct SYNs to these addresses from now on
 * @window: what an earlier call has set, whose addresses these replace in one step; or at NULL
 * Returns 0, or -errno with @window at NULL again: then it is done for none of them. @why is the reason where
 * the error says little, or "". Nothing is done if these are its addresses already.
 */
int syn_window_install(struct syn_window **window, const struct listen_address *listen,
		       size_t count, char why[static SYN_WINDOW_WHY_MAX]);

/* Removes it again, as the end of the process would. NULL is fine. */
void syn_window_remove(struct syn_window *window);

#endif
