/* SPDX-License-Identifier: BSD-3-Clause */
/* ward.h - the serving process's way to the main process, which has the rights (warden.h) */
#ifndef CONVERTD_WARD_H
#define CONVERTD_WARD_H

#include <stdbool.h>

struct event;
struct event_base;

/* Sockets to the main process; all -1: there is none, and this process does all itself. */
struct ward {
	int orders;  /* signals that the main process was sent */
	int notices; /* messages for the service manager */
	int calls;   /* what takes rights: rights.h */
	struct event *order;
	struct event *direct[2]; /* SIGTERM and SIGINT, once it has left */
	void (*on_signal)(int signum, void *arg);
	void *arg;
	bool left; /* by ward_leave() */
};

#define WARD_NONE ((struct ward){ .orders = -1, .notices = -1, .calls = -1 })

/* Is there a main process besides this one? */
bool ward_has_warden(const struct ward *ward);

/* Is there a main process that ward_leave() would have end? */
bool ward_may_leave(const struct ward *ward);

/*
 * ward_listen() - call @on_signal, in @base's loop, for each signal that the main process gets
 * The serving process itself ignores these signals: a service manager sends SIGTERM to all processes of
 * a unit, a terminal SIGINT to all of a group, and each must count once.
 * Returns false without memory.
 */
bool ward_listen(struct ward *ward, struct event_base *base,
		 void (*on_signal)(int signum, void *arg), void *arg);

/*
 * ward_leave() - have the main process end at once, with status 0; this one goes on
 * For a service manager that starts another convertd then. A copy of the main process stays, which does what
 * takes rights; the service manager hears no more, and signals that are sent to this process count
 * again.
 */
void ward_leave(struct ward *ward);

/* Closes the sockets to the main process. */
void ward_fini(struct ward *ward);

#endif
