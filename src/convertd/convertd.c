/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * convertd.c - convertd, the 0-RTT TCP converter of RFC 8803: starts the process, obeys signals, and stops it
 *
 * The events of a convertd's life, in order:
 *
 *   1. prepare(): adopt inherited sockets (systemd.h), and give up root's rights.
 *   2. If there are rights to keep, or a service manager, fork: the main process (warden.h) keeps the rights, and the
 *      other process serves.
 *   3. confine(): drop capabilities, start the survivor (survivor.c), enter the sandbox.
 *   4. serve(): start the workers (service.h), and obey signals until the event loop ends.
 *   5. A first SIGTERM or SIGINT drains: convertd accepts no client, and open connections may end. A second one cuts
 *      them. SIGHUP reloads.
 */
#include "config.h"

#include "common/clock.h"
#include "common/os.h"
#include "observe/monitor.h"
#include "convertd/privilege/privilege.h"
#include "convertd/policy/cookies.h"
#include "convertd/process/converter.h"
#include "convertd/process/systemd.h"
#include "daemon/log.h"
#include "convertd/config/convertd_settings.h"
#include "convertd/process/service.h"
#include "convertd/process/warden.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_USAGE 2

/*
 * How often the watchdog is pinged within its time. sd_watchdog_enabled(3) advises twice. Workers answer the question
 * of one look by the next look, and one more look allows for a late answer.
 */
#define WATCHDOG_LOOKS 4

/* The objects that the process makes, and frees at its end. */
struct convertd {
	int argc;
	char **argv;
	struct event_base *base;
	struct ward ward; /* the connection to the main process; WARD_NONE: this process is the only one, and gets the signals itself */
	struct event *watchdog; /* pings the service manager's watchdog; NULL: it has none */
	struct event *survivor; /* warns at the survivor's end; NULL: there is no survivor */
	int survivor_fd;        /* as survivor_start() has returned it, a pidfd or -errno */
	struct inherited inherited;
	struct demand *demand;
	struct monitor *monitor;
	struct service *service;
	struct event *drain;         /* looks at the sessions that are left; NULL until convertd is to stop */
	uint64_t drain_end_ms, drain_report_ms; /* when the drain ends, and when the log tells of it next */
	size_t reported; /* the number of sessions left in the last message to the service manager */
};

/* Puts new settings in force; if it returns true, it owns them. Otherwise it adds the error to @problems. */
static bool apply(struct convertd *convertd, struct convertd_settings *settings, struct problems *problems)
{
	return inherit_join(&convertd->inherited, settings, problems) &&
	       service_apply(convertd->service, settings, problems);
}

static void warn_of_user(const struct convertd_settings *old, const struct convertd_settings *next)
{
	if (strcmp(old->user.name, next->user.name) != 0 ||
	    strcmp(old->user.group, next->user.group) != 0)
		log_warning("--user has changed, which takes a restart");
}

/* Reads the command line and its files again, and puts the new settings in force if they are right. */
static void reload(struct convertd *convertd)
{
	struct problems problems = { 0 };
	struct convertd_settings *settings = convertd_settings_read(convertd->argc, convertd->argv, &problems);

	notify_reloading();
	if (settings)
		warn_of_user(service_settings(convertd->service), settings);
	if (settings && apply(convertd, settings, &problems)) {
		monitor_count_reload(convertd->monitor, true);
		service_announce(convertd->service, "reloaded");
		notify_send("READY=1");
		return;
	}
	monitor_count_reload(convertd->monitor, false);
	convertd_settings_destroy(settings);
	log_error("not reloaded, the old configuration stays in force: %s%s", problems.first,
		  problems.count > 1 ? "; and more, which --config FILE --check-config shows" : "");
	if (sandbox_denies_files() && strstr(problems.first, strerror(EACCES)))
		log_info("files and Unix sockets in directories that weren't named at the start are out of "
			 "reach; start convertd anew, or with --no-landlock");
	notify_send("READY=1\nSTATUS=Not reloaded: %s", problems.first);
}

/*
 * ----- the drain: no new clients, and some time for those that are served -----
 *
 * The problem. A connection through the converter breaks when the converter ends, so a stop gives sessions time to
 * end by themselves. A restart is a stop and a start: the next convertd is to serve at once, beside the sessions of
 * this one, and no client may be refused in between.
 *
 * States: serving, draining, and the end of the main loop. drain() accepts the clients that
 * are in the listeners' queues, and closes the listeners; clients that had connected before are served as ever, in
 * whatever state their sessions are. The drain ends when no session is left, when --drain-timeout is over, or by a
 * second signal (end_drain()); service_destroy() then resets the sessions that are left. Sessions don't know that the
 * process drains: we look at their number ten times a second, which works the same for any number of workers and
 * costs nothing at other times.
 *
 * A service manager that keeps descriptors (notify_keep()) has the listening sockets as well. It starts the next
 * convertd with them once the main process has ended, so the main process ends at once (ward_leave()), and this
 * process drains behind its back. Clients that come in between wait in the sockets' queues, and their SYNs aren't
 * withheld; because of the rules that the manager keeps, no SYN+ACK confirms anything. If the service is stopped for
 * good, the manager closes the sockets. Any other manager knows only by the main process that convertd runs: so the
 * main process stays until the drain is over.
 */

/* How often we look at the number of sessions that are left. */
#define LOOK_MS 100

/* We ask the service manager for this much time on top of --drain-timeout, to reset and free the remaining sessions. */
#define END_SECONDS 10

/* How often the log says how many sessions are left. */
#define REPORT_MS 10000

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

/* Ends the main loop. @reason: for the log */
static void end_drain(struct convertd *convertd, const char *reason)
{
	const size_t left = service_sessions(convertd->service);

	if (left)
		log_warning("%s: stopping; %zu session%s cut", reason, left, left == 1 ? " is" : "s are");
	else
		log_info("%s: stopping", reason);
	event_base_loopbreak(convertd->base);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	struct convertd *convertd = arg;
	size_t left = service_sessions(convertd->service);
	uint64_t now = clock_now_ms();

	(void)fd;
	(void)what;
	if (left != convertd->reported)
		notify_send("STATUS=Stopping: %zu session%s left", left, plural(left));
	convertd->reported = left;
	if (!left || now >= convertd->drain_end_ms) {
		end_drain(convertd, left ? "the time to drain is over" : "all sessions have ended");
	} else if (now >= convertd->drain_report_ms) {
		log_info("stopping: %zu session%s left, %llu s", left, plural(left),
			 (unsigned long long)(convertd->drain_end_ms - now + 999) / 1000);
		convertd->drain_report_ms += REPORT_MS;
	}
}

/*
 * Stops accepting clients, and ends the loop once no session is left, or after --drain-timeout; service_destroy()
 * resets sessions that are left then. @reason: why convertd stops, for the log
 */
static void drain(struct convertd *convertd, const char *reason)
{
	static const struct timeval interval = { .tv_usec = LOOK_MS * 1000 };
	unsigned seconds = service_settings(convertd->service)->drain_timeout;
	size_t left;

	monitor_set_draining(convertd->monitor);
	/* The service manager may have a shorter time-out of its own (TimeoutStopSec=). */
	notify_send("STOPPING=1\nEXTEND_TIMEOUT_USEC=%llu", (seconds + END_SECONDS) * 1000000ULL);
	service_stop_accepting(convertd->service);
	/* Clients of a socket unit that is stopped, too, must be refused rather than wait for us. */
	inherit_fini(&convertd->inherited);
	left = service_sessions(convertd->service);
	convertd->drain = event_new(convertd->base, -1, EV_PERSIST, on_look, convertd);
	if (!left || !seconds || !convertd->drain || event_add(convertd->drain, &interval) < 0) {
		end_drain(convertd, reason);
		return;
	}
	convertd->drain_report_ms = clock_now_ms() + REPORT_MS;
	convertd->drain_end_ms = clock_now_ms() + seconds * 1000ULL;
	log_info("%s: stopping; no new clients, %zu session%s may go on for %u s; a second signal cuts "
		 "%s at once",
		 reason, left, plural(left), seconds, left == 1 ? "it" : "them");
	/* The service manager starts the next convertd once the main process has ended (see above). */
	if (notify_keeps_descriptors() && ward_has_warden(&convertd->ward)) {
		monitor_close(convertd->monitor);
		ward_leave(&convertd->ward);
	}
}

/* ----- signals ----- */

static void handle_signal(int signum, void *arg)
{
	struct convertd *convertd = arg;

	if (signum == SIGHUP && convertd->drain)
		log_warning("not reloaded: convertd is stopping");
	else if (signum == SIGHUP)
		reload(convertd);
	else if (convertd->drain)
		end_drain(convertd, strsignal(signum));
	else
		drain(convertd, strsignal(signum));
}

static void on_watchdog(evutil_socket_t fd, short what, void *arg)
{
	const struct convertd *convertd = arg;

	(void)fd;
	(void)what;
	if (service_is_well(convertd->service))
		notify_send("WATCHDOG=1");
}

/* Pings the service manager's watchdog from now on, if it has one, as long as all threads respond. Returns false without memory. */
static bool ping_watchdog(struct convertd *convertd)
{
	uint64_t interval_us = notify_watchdog_us() / WATCHDOG_LOOKS;
	struct timeval interval = { .tv_sec = (time_t)(interval_us / 1000000),
				    .tv_usec = (suseconds_t)(interval_us % 1000000) };

	if (!interval_us)
		return true;
	convertd->watchdog = event_new(convertd->base, -1, EV_PERSIST, on_watchdog, convertd);
	return convertd->watchdog && event_add(convertd->watchdog, &interval) == 0;
}

static bool start(struct convertd *convertd, size_t workers)
{
	convertd->base = event_base_new();
	if (!convertd->base) {
		log_error("no event loop: out of memory or descriptors");
		return false;
	}
	if (!ward_listen(&convertd->ward, convertd->base, handle_signal, convertd)) {
		log_error("out of memory");
		return false;
	}
	if (convertd->survivor_fd >= 0)
		convertd->survivor = survivor_watch(convertd->base, convertd->survivor_fd);
	convertd->demand = demand_create();
	if (convertd->demand)
		convertd->monitor = monitor_create(convertd->base, &converter_status, convertd->demand);
	if (!convertd->monitor) {
		log_error("out of memory, or no source of random numbers");
		return false;
	}
	convertd->service = service_create(convertd->base, workers, &convertd->inherited, convertd->monitor, convertd->demand);
	if (!convertd->service)
		return false;
	return ping_watchdog(convertd);
}

static void stop(struct convertd *convertd)
{
	if (convertd->drain)
		event_free(convertd->drain);
	if (convertd->watchdog)
		event_free(convertd->watchdog);
	service_destroy(convertd->service);
	monitor_destroy(convertd->monitor);
	demand_destroy(convertd->demand);
	ward_fini(&convertd->ward);
	if (convertd->survivor)
		event_free(convertd->survivor);
	inherit_fini(&convertd->inherited);
	if (convertd->base)
		event_base_free(convertd->base);
	libevent_global_shutdown();
}

static void print_problem(const char *line)
{
	fprintf(stderr, "convertd: %s\n", line);
}

static void log_problem(const char *line)
{
	log_error("%s", line);
}

/* Serves until the end, in the process without rights. It takes over @settings. Returns the exit status. */
static int serve(struct convertd *convertd, struct convertd_settings *settings)
{
	struct problems problems = { .print = log_problem };
	bool started;

	started = start(convertd, settings->workers) &&
		  service_apply(convertd->service, settings, &problems);
	if (started) {
		inherit_close_kept(&convertd->inherited);
		service_announce(convertd->service, "ready");
		notify_send("READY=1");
		event_base_dispatch(convertd->base);
	} else {
		convertd_settings_destroy(settings);
	}
	stop(convertd);
	return started ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Takes the first steps, before there are threads: see the top of this file. Returns false after logging why. */
static bool prepare(struct convertd *convertd, struct convertd_settings *settings)
{
	struct problems problems = { .print = log_problem };

	standard_descriptors_fill();
	log_start("convertd");
	log_set_level((enum log_level)settings->log_level);
	log_set_format((enum log_format)settings->log_format);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* if the caller ignores it, the main process wouldn't learn of the serving one's end */
	if (!open_files_raise())
		log_warning("the limit of open files can't be raised: %s", strerror(errno));
	notify_init();
	if (!inherit_sockets(&convertd->inherited, &problems))
		return false;
	sandbox_shed_inherited(inherit_end(&convertd->inherited));
	return privileges_drop(settings, &problems) &&
	       inherit_join(&convertd->inherited, settings, &problems);
}

static void start_survivor(struct convertd *convertd, const struct convertd_settings *settings)
{
	convertd->survivor_fd = survivor_start(settings);
	if (convertd->survivor_fd < 0)
		log_warning("no process outlives convertd (%s): if it is killed, clients and servers may "
			    "take a part of a stream for the whole",
			    strerror(-convertd->survivor_fd));
}

/*
 * Limits the damage by an attacker who takes over this process: drops capabilities and enters the sandbox, before
 * there are threads. Returns false after logging why.
 */
static bool confine(struct convertd *convertd, const struct convertd_settings *settings, enum syscall_filter_role role)
{
	int error = capabilities_keep(role == SYSCALL_FILTER_WARDEN ? CAPABILITIES_OF_WARDEN : 0);

	if (error) {
		log_error("capabilities can't be given up: %s; a filter around convertd must permit "
			  "capset() (SystemCallFilter=)",
			  strerror(-error));
		return false;
	}
	/* The survivor can be started only before the filter is in force, and after the capabilities are gone. */
	if (role != SYSCALL_FILTER_WARDEN)
		start_survivor(convertd, settings);
	sandbox_enter(settings, role);
	return true;
}

/* Runs convertd, in one process or two; returns the exit status in each of them. It takes over @settings. */
static int run(struct convertd *convertd, struct convertd_settings *settings)
{
	enum syscall_filter_role role = SYSCALL_FILTER_ALONE;
	struct warden *warden = NULL;
	bool ready;

	convertd->ward = WARD_NONE;
	ready = prepare(convertd, settings);
	/* Even without rights there are two processes under a service manager, as the main one may have to end first: drain(). */
	if (ready && (warden_is_needed() || notify_is_wanted()))
		ready = warden_split(&warden, &convertd->ward,
				     warden_calls_create(convertd->argc, convertd->argv, settings,
							 &convertd->inherited));
	if (warden)
		role = SYSCALL_FILTER_WARDEN;
	else if (ward_has_warden(&convertd->ward))
		role = SYSCALL_FILTER_WARD;
	ready = ready && confine(convertd, settings, role);
	if (ready && !warden)
		return serve(convertd, settings);
	inherit_fini(&convertd->inherited);
	convertd_settings_destroy(settings);
	return ready ? warden_run(warden) : EXIT_FAILURE;
}

/* Makes a key file that only its owner and convertd can read (--make-key), unless the file exists. Returns the exit status. */
static int make_key(const struct convertd_settings *settings)
{
	const char *path = settings->make_key.name;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), error;
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (!file) {
		error = errno;
		fprintf(stderr, "convertd: --make-key: \"%s\" can't be made: %s%s\n", path,
			strerror(error),
			error == EEXIST ? "; convertd(8) says how to add a key to it" : "");
		return EXIT_FAILURE;
	}
	error = user_set_rights(&settings->user, fd) < 0 ? -errno : cookies_write_key(file);
	if (fclose(file) != 0 && !error)
		error = -errno;
	if (!error)
		return EXIT_SUCCESS;
	fprintf(stderr, "convertd: --make-key: \"%s\": %s\n", path, strerror(-error));
	unlink(path);
	return EXIT_FAILURE;
}

/* Prints the status of the converter that runs with these settings. Returns the exit status. */
static int ask(const struct convertd_settings *settings)
{
	static const struct metrics_address usual = { .path = SETTINGS_STATUS_DEFAULT };

	return endpoint_ask("convertd", settings->metrics_count ? &settings->metrics[0] : &usual);
}

/* Carries out another action of the command line than to run. Returns the exit status. */
static int answer(const struct convertd_settings *settings)
{
	switch (settings->action) {
	case SETTINGS_HELP:
		options_print_help(&convertd_options);
		break;
	case SETTINGS_VERSION:
		printf("convertd (%s) %s\n", PACKAGE_NAME, PACKAGE_VERSION);
		break;
	case SETTINGS_MAKE_KEY:
		return make_key(settings);
	case SETTINGS_STATUS:
		return ask(settings);
	case SETTINGS_NEW_CLIENT:
	case SETTINGS_REMOVE_CLIENT:
		return clients_change(settings);
	case SETTINGS_CHECK:
	case SETTINGS_RUN:
		puts(settings->config.name[0] ?
			     "convertd: the configuration is right" :
			     "convertd: the command line is right; no configuration file was read, name it with --config FILE");
		break;
	}
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char *argv[])
{
	static struct convertd convertd;
	struct problems problems = { .print = print_problem };
	struct convertd_settings *settings = convertd_settings_read(argc, argv, &problems);
	int status;

	/* No library replaces the C library's clock_gettime() in this process, which needs no system call. */
	clock_use_library();
	convertd.argc = argc;
	convertd.argv = argv;
	if (!settings)
		return EXIT_USAGE;
	if (settings->action == SETTINGS_RUN)
		return run(&convertd, settings);
	status = answer(settings);
	convertd_settings_destroy(settings);
	return status;
}
