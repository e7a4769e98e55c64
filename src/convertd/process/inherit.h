/* SPDX-License-Identifier: BSD-3-Clause */
/* inherit.h - sockets that the service manager has passed on: sd_listen_fds(3) */
#ifndef CONVERTD_INHERIT_H
#define CONVERTD_INHERIT_H

#include "convertd/base/listen_address.h"
#include "convertd/base/metrics_address.h"
#include "convertd/base/problems.h"

#include <stdbool.h>
#include <stddef.h>

struct settings;

#define INHERIT_METRICS_MAX (2 * METRICS_ADDRESSES_MAX)

struct inherited_socket {
	struct listen_address where;
	int fd;
	bool kept; /* a convertd before this one has made it, for a --listen of its own */
};

struct inherited {
	struct inherited_socket *sockets;
	size_t count;
	int rules; /* withholding_rules_fd() of the process before this one, or -1 */
	int lifeline; /* of the process before this one, which may still serve; or -1 */
	int metrics[INHERIT_METRICS_MAX]; /* sockets for HTTP, which it has handed over */
	size_t metrics_count;
	bool handed_over; /* the kept sockets are by the process before, not by the service manager */
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

/*
 * inherit_is_awaited() - does the convertd before this one wait for it, as far as the environment tells?
 * Before inherit_sockets(), by a process that can't start: it is told that somebody has tried.
 */
bool inherit_is_awaited(void);

/*
 * inherit_listener(), inherit_metrics(), inherit_rules() - take over what the convertd before this one hands over itself
 * It listens for clients, in the place of all that was kept by the service manager; or for questions by HTTP; or
 * it is withholding_rules_fd(), which the service manager may have kept as well.
 * What can't be used is closed.
 */
void inherit_listener(struct inherited *inherited, int fd);
void inherit_metrics(struct inherited *inherited, int fd);
void inherit_rules(struct inherited *inherited, int fd);

/* Forgets what was handed over: it was not all. */
void inherit_take_nothing(struct inherited *inherited);

/* A duplicate of the socket that listens there for questions by HTTP, or -1. */
int inherit_find_metrics(const struct inherited *inherited, const struct metrics_address *where);

/* Closes what was kept: sockets that nobody has asked for would never be looked at. */
void inherit_close_kept(struct inherited *inherited);

/* Closes all. */
void inherit_fini(struct inherited *inherited);

#endif
