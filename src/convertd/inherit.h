/* SPDX-License-Identifier: BSD-3-Clause */
/* inherit.h - listening sockets that the service manager has passed on: sd_listen_fds(3) */
#ifndef CONVERTD_INHERIT_H
#define CONVERTD_INHERIT_H

#include "convertd/problems.h"
#include "convertd/settings.h"

#include <stdbool.h>
#include <stddef.h>

/* They stay open as long as the process runs. */
struct inherited {
	struct listen_address where[SETTINGS_LISTEN_MAX];
	size_t count;
};

/*
 * inherit_sockets() - find those that LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES tell of
 * Returns false after telling @problems of one that can't be used.
 */
bool inherit_sockets(struct inherited *inherited, struct problems *problems);

/*
 * inherit_join() - listen on them, too
 * They take the place of the default and of a --listen for the same address; other --listen are as
 * ever. Returns false after telling @problems that they are too many together.
 */
bool inherit_join(const struct inherited *inherited, struct settings *settings,
		  struct problems *problems);

#endif
