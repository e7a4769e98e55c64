/* SPDX-License-Identifier: BSD-3-Clause */
/* warden.h - the main process (the warden): keeps the rights, starts the serving process, and ends as that does */
#ifndef CONVERTD_WARDEN_H
#define CONVERTD_WARDEN_H

#include <stdbool.h>

/* ----- the serving process's (the ward's) connection to the main process, which has the rights ----- */

struct event;
struct event_base;

/* Sockets to the main process. They are -1 if there is none, and this process does everything itself. */
struct ward {
	int orders;  /* brings the signals that the main process gets */
	int notices; /* takes messages for the service manager */
	int calls;   /* takes calls that need rights (rights.h) */
	struct event *order;
	struct event *direct[2]; /* SIGTERM and SIGINT to this process, after ward_leave() */
	void (*on_signal)(int signum, void *arg);
	void *arg;
	bool left; /* ward_leave() was called */
};

#define WARD_NONE ((struct ward){ .orders = -1, .notices = -1, .calls = -1 })

/* Tells whether there is a main process besides this one. */
bool ward_has_warden(const struct ward *ward);

/*
 * ward_listen() - call @on_signal, in @base's loop, for each signal that the main process gets
 * The serving process itself ignores these signals: a service manager sends SIGTERM to all processes of
 * a unit, a terminal SIGINT to all of a group, and each must count once.
 * Returns false without memory.
 */
bool ward_listen(struct ward *ward, struct event_base *base,
		 void (*on_signal)(int signum, void *arg), void *arg);

/*
 * ward_leave() - make the main process end at once, with status 0, while this one goes on
 * The service manager starts another convertd then. A copy of the main process stays and carries out calls that need
 * rights. From then on the service manager gets no messages, and this process obeys signals that are sent to it.
 */
void ward_leave(struct ward *ward);

/* Closes the sockets to the main process. */
void ward_fini(struct ward *ward);

struct ward;
struct warden;
struct warden_calls;

/* Tells whether this process has a capability that only the main process should have. */
bool warden_is_needed(void);

/*
 * warden_split() - make two processes of this one, which must have one thread
 * In the new process, which is to serve, it sets @warden to NULL and connects @ward. In the old process it sets
 * @warden to the argument of warden_run().
 * @rights: carries out calls in the main process; freed in the new process, and on failure; NULL: no memory
 * Returns true in both processes, or false after logging why there can be no second one.
 */
bool warden_split(struct warden **warden, struct ward *ward, struct warden_calls *rights);

/*
 * warden_run() - do the work that needs rights, until the serving process has ended or left (ward_leave())
 * It frees @warden. Before this call, the caller closes its copies of the sockets that the serving process has: a
 * listening socket stays open as long as any process has it. Returns the exit status; if a signal has ended the
 * serving process, the same signal ends this process.
 */
int warden_run(struct warden *warden);

#endif
