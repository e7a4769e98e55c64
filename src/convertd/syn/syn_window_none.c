/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_window_none.c - in place of syn_window.c without libnftnl: no window is corrected */
#include "config.h"

#include "convertd/syn/syn_window.h"

#include <errno.h>

int syn_window_install(struct syn_window **window, const struct listen_address *listen, size_t count)
{
	(void)window;
	(void)listen;
	(void)count;
	return -ENOSYS;
}

void syn_window_remove(struct syn_window *window)
{
	(void)window;
}
