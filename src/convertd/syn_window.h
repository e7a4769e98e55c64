/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_window.h - correct the window of MPTCP SYNs before the kernel misreads it */
#ifndef CONVERTD_SYN_WINDOW_H
#define CONVERTD_SYN_WINDOW_H

#include "convertd/settings.h"

#include <stddef.h>

struct syn_window;

/*
 * syn_window_install() - correct SYNs to these addresses from now on
 * @window: what it returned before, whose addresses these replace in one step; or NULL
 * Returns NULL where that can't be done: convertd works without, and the log says what it costs.
 */
struct syn_window *syn_window_install(struct syn_window *window,
				      const struct listen_address *listen, size_t count);

/* Removes it again, as the end of the process would. NULL is fine. */
void syn_window_remove(struct syn_window *window);

#endif
