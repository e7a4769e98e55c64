/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inherit.h - sockets that this process is started with, or is given by the convertd before it
 *
 * Three files bring sockets from one process to the next. notify asks the service manager to keep descriptors;
 * inherit finds those that it has passed on (sd_listen_fds(3)), and has the table of all that were inherited;
 * handover gets them from the convertd that still serves, without a service manager.
 */
#ifndef CONVERTD_INHERIT_H
#define CONVERTD_INHERIT_H

#include "convertd/base/listen_address.h"
#include "convertd/base/metrics_address.h"
#include "common/problems.h"

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
 * inherit_is_awaited() - does a convertd wait for this process to take over, as far as the environment tells?
 * For a process that can't start, before inherit_sockets(): tells the one that waits that a start was tried.
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

/* Closes what was handed over so far: the conversation has ended before all had been given. */
void inherit_take_nothing(struct inherited *inherited);

/* A duplicate of the socket that listens there for questions by HTTP, or -1. */
int inherit_find_metrics(const struct inherited *inherited, const struct metrics_address *where);

/* Closes what was kept and has found no use: clients in the queues of such sockets would never be accepted. */
void inherit_close_kept(struct inherited *inherited);

/* Closes all descriptors of the table, and frees it. */
void inherit_fini(struct inherited *inherited);

#endif
