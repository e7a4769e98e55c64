/* SPDX-License-Identifier: BSD-3-Clause */
/* warden.h - the main process (the warden): keeps the rights, starts the serving process, and ends as that does */
#ifndef CONVERTD_WARDEN_H
#define CONVERTD_WARDEN_H

#include "daemon/listen_address.h"
#include "daemon/warden_message.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct event;
struct event_base;
struct inherited;
struct convertd_settings;

/* ----- the serving process's (the ward's) connection to the main process, which has the rights ----- */

/* Sockets to the main process. They are -1 if there is none, and this process does everything itself. */
struct ward {
	int signals; /* brings the numbers of signals that the main process gets */
	int calls;   /* takes calls that the main process carries out (warden_ask.c) */
	struct event *signalled;
	struct event *direct[3]; /* signals to this process: all if there is no main process; SIGTERM and SIGINT after ward_leave() */
	void (*on_signal)(int signum, void *arg);
	void *arg;
	bool left; /* ward_leave() was called */
};

#define WARD_NONE ((struct ward){ .signals = -1, .calls = -1 })

/* Tells whether there is a main process besides this one. */
bool ward_has_warden(const struct ward *ward);

/*
 * ward_listen() - call @on_signal, in @base's loop, for each SIGTERM, SIGINT and SIGHUP
 * They come from the main process, if there is one. The serving process itself ignores them then: a service manager sends SIGTERM to all
 * processes of a unit, a terminal SIGINT to all of a group, and each must count once.
 * Returns false without memory.
 */
bool ward_listen(struct ward *ward, struct event_base *base,
		 void (*on_signal)(int signum, void *arg), void *arg);

/*
 * ward_leave() - make the main process end at once, with status 0, while this one goes on
 * The service manager starts another convertd then. From then on this process has no rights: it refuses later requests
 * that need them. The service manager gets no messages, and this process obeys SIGTERM and SIGINT that are sent to it.
 */
void ward_leave(struct ward *ward);

/* Closes the sockets to the main process. */
void ward_fini(struct ward *ward);

/* ----- the main process ----- */

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

/* ----- the calls that the main process carries out: warden_calls.c ----- */

/*
 * warden_calls_create() - allow calls that @settings need
 * @argc, @argv: main()'s arguments, from which a reload reads the settings again
 * @inherited: calls may listen at its addresses, too, and take over its rules
 * Returns NULL without memory. Only warden_calls_destroy() accepts NULL.
 */
struct warden_calls *warden_calls_create(int argc, char **argv, const struct convertd_settings *settings,
					 const struct inherited *inherited);

/* Removes the rules and gives up the queues. NULL is fine. */
void warden_calls_destroy(struct warden_calls *calls);

/* Reads the settings again, and allows the calls that they need, too. Ignores errors, as the serving process reports them. */
void warden_calls_reload(struct warden_calls *calls);

/*
 * warden_calls_answer() - read one call from the socket @fd, carry it out, and answer it
 * A call that no settings need is refused. Returns false, after logging it, for a message that isn't a call: then the
 * serving process isn't convertd any more. At the end of the connection, @fd is closed and set to -1.
 * @left: set to whether the serving process goes on by itself
 */
bool warden_calls_answer(struct warden_calls *calls, int *fd, bool *left);

/* Fills @fds with the descriptors on which poll() waits for verdicts about withheld SYNs. Returns their number. */
size_t warden_calls_poll(const struct warden_calls *calls, struct pollfd fds[WARDEN_QUEUES_MAX]);

/* Carries out the verdicts after poll(). Returns false for a message that doesn't consist of verdicts. */
bool warden_calls_serve(struct warden_calls *calls, const struct pollfd fds[WARDEN_QUEUES_MAX]);

/* ----- which calls the main process carries out: warden_policy.c (no I/O) ----- */

/* The calls that the serving process may make under some settings. */
struct warden_grant {
	struct listen_address listen[2 * LISTEN_ADDRESSES_MAX]; /* the places of --listen and of socket units */
	size_t listen_count;
	union sockaddr_ip metrics[METRICS_ADDRESSES_MAX]; /* the IP addresses of --metrics */
	size_t metrics_count;
	char congestion[2][CONGESTION_NAME_MAX]; /* of connections to clients and to servers */
	bool withhold, transparent; /* queues of SYNs; IP_TRANSPARENT */
};

/*
 * The grants of the settings in force, and of those read last, which a reload puts in force or drops. The main process
 * has read both by itself, from files that no client writes.
 */
struct warden_policy {
	struct warden_grant in_force, latest;
};

/* Sets @grant to what @settings need, and to @units_count places @units of inherited sockets. */
void warden_grant_init(struct warden_grant *grant, const struct convertd_settings *settings,
		       const struct listen_address *units, size_t units_count);

/* Tells whether @call, which warden_call_is_right() has found well formed, may be made. */
bool warden_policy_allows(const struct warden_policy *policy, const struct warden_call *call);

/*
 * warden_policy_allows_syn() - tell whether a withheld SYN may be released to this address and port (host byte order)
 * It may only if convertd listens there: the kernel treats a packet that a queue releases as one that has just
 * arrived, whatever addresses the serving process has written into it.
 */
bool warden_policy_allows_syn(const struct warden_policy *policy, const struct in6_addr *destination,
			      uint16_t port);

#endif
