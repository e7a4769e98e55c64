/* SPDX-License-Identifier: BSD-3-Clause */
/* inherit.h - sockets that this process is started with: sd_listen_fds(3) */
#ifndef CONVERTD_INHERIT_H
#define CONVERTD_INHERIT_H

#include "convertd/base/listen_address.h"
#include "common/problems.h"

#include <stdbool.h>
#include <stddef.h>

struct settings;

struct inherited_socket {
	struct listen_address where;
	int fd;
	bool kept; /* a convertd before this one has made it, for a --listen of its own */
};

struct inherited {
	struct inherited_socket *sockets;
	size_t count;
	int rules; /* withholding_rules_fd() of the process before this one, or -1 */
};

/*
 * inherit_sockets() - find those that LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES tell of
 * Returns false after telling @problems of one that can't be used.
 */
bool inherit_sockets(struct inherited *inherited, struct problems *problems);

/*
 * inherit_join() - listen on those of socket units, too
 * They take the place of the default; other --listen are as ever. Kept ones make no difference.
 * Returns false after telling @problems that they are too many together.
 */
bool inherit_join(const struct inherited *inherited, struct settings *settings,
		  struct problems *problems);

/*
 * inherit_find() - the sockets that listen there, @max at most
 * They stay the table's: duplicate them. Returns how many are at @fds; of a socket unit's there is
 * one.
 */
size_t inherit_find(const struct inherited *inherited, const struct listen_address *where,
		    int *fds, size_t max);

/* The first descriptor behind all of them, and behind standard error. */
int inherit_end(const struct inherited *inherited);

/* Are clients at this place the business of a socket unit? */
bool inherit_is_unit(const struct inherited *inherited, const struct listen_address *where);

/* Closes what was kept and has found no use: clients in the queues of such sockets would never be accepted. */
void inherit_close_kept(struct inherited *inherited);

/* Closes all descriptors of the table, and frees it. */
void inherit_fini(struct inherited *inherited);

#endif
