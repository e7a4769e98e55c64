/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drain.c - the end of the process: no new clients, and some time for those that are served
 *
 * The problem. A connection through the converter breaks when the converter ends, so a stop gives sessions time to end by
 * themselves. A restart is a stop and a start: the next convertd is to serve at once, beside the sessions of this one, and
 * no client is to be refused in between.
 *
 * States: serving (no struct drain), draining, and the end of the main loop. drain_start() accepts the clients that are in
 * the listeners' queues, and closes the listeners; clients who had connected before are served as ever, in whatever state
 * their sessions are. The drain ends when no session is left, when --drain-timeout is over, or by a second signal
 * (drain_cut()); sessions that are left then are reset by service_destroy(). Sessions aren't told that the process drains:
 * their number is looked at ten times a second, which works the same for any number of workers and costs nothing while
 * nobody drains.
 *
 * A service manager that keeps descriptors (notify_keep()) has the listening sockets as well. It starts the next convertd
 * with them once the main process has ended, so that ends at once (ward_leave()), and this process drains behind its back.
 * Clients that come in between wait in the sockets' queues, and their SYNs aren't withheld; the rules that the manager
 * keeps see to it that no SYN+ACK confirms anything. Where the service is stopped for good, the manager closes the sockets.
 * Any other manager has nothing but the main process to know that convertd runs: that stays until the drain is over.
 */
#include "config.h"

#include "convertd/process/drain.h"

#include "convertd/base/clock.h"
#include "convertd/base/log.h"
#include "convertd/process/systemd.h"
#include "convertd/process/service.h"
#include "convertd/config/settings.h"

#include <event2/event.h>
#include <stdlib.h>

/* How often the number of sessions that are left is looked at. */
#define LOOK_MS 100

/* The service manager is asked for this much time on top of --drain-timeout, to reset and free what is left. */
#define END_SECONDS 10

/* How often the log says how many sessions are left. */
#define REPORT_MS 10000

struct drain {
	struct event_base *base;
	struct service *service;
	struct event *look;
	uint64_t end_ms, report_ms;
	size_t told; /* the number of sessions left that the service manager was told last */
};

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

static void drain_end(struct event_base *base, size_t left, const char *reason)
{
	if (left)
		log_warning("%s: stopping; %zu session%s cut", reason, left,
			    left == 1 ? " is" : "s are");
	else
		log_info("%s: stopping", reason);
	event_base_loopbreak(base);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	struct drain *drain = arg;
	size_t left = service_sessions(drain->service);
	uint64_t now = clock_now_ms();

	(void)fd;
	(void)what;
	if (left != drain->told)
		notify_send("STATUS=Stopping: %zu session%s left", left, plural(left));
	drain->told = left;
	if (!left || now >= drain->end_ms) {
		drain_end(drain->base, left,
			  left ? "the time to drain is over" : "all sessions have ended");
	} else if (now >= drain->report_ms) {
		log_info("stopping: %zu session%s left, %llu s", left, plural(left),
			 (unsigned long long)(drain->end_ms - now + 999) / 1000);
		drain->report_ms += REPORT_MS;
	}
}

struct drain *drain_start(struct event_base *base, struct service *service, const char *reason)
{
	static const struct timeval interval = { .tv_usec = LOOK_MS * 1000 };
	unsigned seconds = service_settings(service)->drain_timeout;
	struct drain *drain = seconds ? calloc(1, sizeof(*drain)) : NULL;
	size_t left;

	/* The service manager may have a shorter time-out of its own (TimeoutStopSec=). */
	notify_send("STOPPING=1\nEXTEND_TIMEOUT_USEC=%llu", (seconds + END_SECONDS) * 1000000ULL);
	service_stop_accepting(service);
	left = service_sessions(service);
	if (drain)
		drain->look = event_new(base, -1, EV_PERSIST, on_look, drain);
	if (!left || !drain || !drain->look || event_add(drain->look, &interval) < 0) {
		drain_destroy(drain);
		drain_end(base, left, reason);
		return NULL;
	}
	drain->base = base;
	drain->service = service;
	drain->report_ms = clock_now_ms() + REPORT_MS;
	drain->end_ms = clock_now_ms() + seconds * 1000ULL;
	log_info("%s: stopping; no new clients, %zu session%s may go on for %u s; a second signal cuts "
		 "%s at once",
		 reason, left, plural(left), seconds, left == 1 ? "it" : "them");
	return drain;
}

void drain_cut(struct drain *drain, const char *reason)
{
	drain_end(drain->base, service_sessions(drain->service), reason);
}

void drain_destroy(struct drain *drain)
{
	if (!drain)
		return;
	if (drain->look)
		event_free(drain->look);
	free(drain);
}
