/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - convertd, the 0-RTT TCP converter of RFC 8803: starts the process, obeys signals, and stops it
 *
 * The events of a convertd's life, in order:
 *
 *   1. prepare(): adopt inherited sockets (inherit.h), give up root's rights, and ask an older convertd for its sockets
 *      (handover.h).
 *   2. Where there are rights to keep, or a service manager to satisfy, fork: the main process (warden.h) keeps them,
 *      and the other process (ward.h) serves.
 *   3. confine(): drop capabilities, start the survivor (survivor.h), enter the sandbox.
 *   4. serve(): start the workers (service.h), and obey signals until the event loop ends.
 *   5. A first SIGTERM or SIGINT drains (drain.h): no client is accepted, and open connections may end. A second one cuts
 *      them. SIGHUP reloads.
 */
#include "config.h"

#include "convertd/observe/ask.h"
#include "convertd/privilege/capabilities.h"
#include "convertd/policy/cookies.h"
#include "convertd/process/drain.h"
#include "convertd/process/handover.h"
#include "convertd/process/inherit.h"
#include "convertd/base/log.h"
#include "convertd/observe/monitor.h"
#include "convertd/process/notify.h"
#include "convertd/config/options.h"
#include "convertd/privilege/privileges.h"
#include "convertd/privilege/sandbox.h"
#include "convertd/process/service.h"
#include "convertd/config/settings.h"
#include "convertd/config/settings_read.h"
#include "convertd/privilege/survivor.h"
#include "convertd/process/ward.h"
#include "convertd/process/warden.h"
#include "convertd/process/warden_calls.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define EXIT_USAGE 2

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

/* What the process has made, in this order, and undoes at its end. */
struct convertd {
	int argc;
	char **argv;
	struct event_base *base;
	struct ward ward; /* the connection to the main process; WARD_NONE: this process is the only one, and gets the signals itself */
	struct event *signals[SIGNALS];
	struct event *watchdog; /* pings the service manager's watchdog; NULL: it has none */
	struct event *survivor; /* warns at the survivor's end; NULL: there is no survivor */
	int survivor_fd;        /* what survivor_start() has returned, a pidfd or -errno */
	struct inherited inherited;
	struct monitor *monitor;
	struct service *service;
	struct handover *handover;
	int conversation; /* a socket to the convertd before this one, until this one serves; -1: none */
	struct drain *drain; /* NULL until convertd is to stop */
};

/* Opens /dev/null at those of descriptors 0 to 2 that are closed: the next socket would get such a number, and the log's lines. */
static void fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Raises the limit of open files to the hard limit, since each session takes two descriptors. */
static void raise_open_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		log_warning("the limit of open files can't be raised: %s", strerror(errno));
}

/* Puts new settings in force, and takes them over if it returns true. Otherwise it adds the error to @problems. */
static bool apply(struct convertd *convertd, struct settings *settings, struct problems *problems)
{
	return inherit_join(&convertd->inherited, settings, problems) &&
	       service_apply(convertd->service, settings, problems);
}

static void warn_of_user(const struct settings *old, const struct settings *next)
{
	if (strcmp(old->user.name, next->user.name) != 0 ||
	    strcmp(old->user.group, next->user.group) != 0)
		log_warning("--user has changed, which takes a restart");
}

/* Reads the command line and its files again, and puts the new settings in force if they are right. */
static void reload(struct convertd *convertd)
{
	struct problems problems = { 0 };
	struct settings *settings = settings_read(convertd->argc, convertd->argv, &problems);

	notify_reloading();
	if (settings)
		warn_of_user(service_settings(convertd->service), settings);
	if (settings && apply(convertd, settings, &problems)) {
		monitor_count_reload(convertd->monitor, true);
		handover_offer(convertd->handover, settings);
		service_announce(convertd->service, "reloaded");
		notify_send("READY=1");
		return;
	}
	monitor_count_reload(convertd->monitor, false);
	settings_destroy(settings);
	log_error("not reloaded, the old configuration stays in force: %s%s", problems.first,
		  problems.count > 1 ? "; and more, which --check-config shows" : "");
	if (sandbox_denies_files() && strstr(problems.first, strerror(EACCES)))
		log_info("files and Unix sockets in directories that weren't named at the start are out of "
			 "reach; start convertd anew, or with --no-landlock");
	notify_send("READY=1\nSTATUS=Not reloaded: %s", problems.first);
}

static void drain(struct convertd *convertd, bool replaced, const char *reason)
{
	monitor_set_draining(convertd->monitor, true);
	handover_set_draining(convertd->handover);
	convertd->drain = drain_start(convertd->base, convertd->service, replaced, reason);
}

/* Ends the main process, upon which the service manager starts another convertd; this process serves until that takes over. */
static void leave(struct convertd *convertd, const char *reason)
{
	log_info("%s: the next convertd is to take over; this one serves until then", reason);
	notify_send("STOPPING=1\nSTATUS=The next convertd is to take over");
	ward_leave(&convertd->ward);
	handover_await(convertd->handover);
}

/* ----- another convertd that takes over: handover.h ----- */

static void on_pause(void *arg)
{
	struct convertd *convertd = arg;

	service_pause(convertd->service);
}

static void on_resume(void *arg)
{
	struct convertd *convertd = arg;

	service_resume(convertd->service);
}

static void on_give(void *arg, struct handover *handover, bool listeners)
{
	struct convertd *convertd = arg;
	int asked[METRICS_ADDRESSES_MAX];
	size_t count = monitor_sockets(convertd->monitor, asked);

	service_give(convertd->service, handover, listeners);
	for (size_t i = 0; i < count; i++)
		handover_give(handover, HANDOVER_METRICS, asked[i]);
}

static void on_end(void *arg, bool replaced, const char *reason)
{
	struct convertd *convertd = arg;

	if (replaced)
		monitor_leave(convertd->monitor);
	if (!convertd->drain)
		drain(convertd, replaced, reason);
}

static const struct handover_duties duties = {
	.pause = on_pause,
	.resume = on_resume,
	.give = on_give,
	.end = on_end,
};

static void take(void *arg, enum handover_kind kind, int fd)
{
	struct convertd *convertd = arg;

	switch (kind) {
	case HANDOVER_LISTENER:
		inherit_listener(&convertd->inherited, fd);
		return;
	case HANDOVER_METRICS:
		inherit_metrics(&convertd->inherited, fd);
		return;
	case HANDOVER_RULES:
		inherit_rules(&convertd->inherited, fd);
		return;
	case HANDOVER_KIND_COUNT:
		break;
	}
	close(fd);
}

/* Asks the convertd before this one, if there is any, for its sockets. */
static void take_over(struct convertd *convertd, const struct settings *settings)
{
	bool awaited = handover_touch(convertd->inherited.lifeline);

	convertd->conversation =
		handover_ask(settings, awaited || settings->take_over, take, convertd);
	if (convertd->conversation >= 0)
		return;
	inherit_take_nothing(&convertd->inherited);
	if (!awaited)
		return;
	/* It doesn't answer. When the service manager drops the lifeline, it ends, before this one serves. */
	log_warning("the convertd before this one serves and doesn't answer");
	notify_send("FDSTOREREMOVE=1\nFDNAME=" NOTIFY_LIFELINE_NAME);
}

static void end_conversation(struct convertd *convertd)
{
	if (convertd->conversation >= 0)
		close(convertd->conversation);
	convertd->conversation = -1;
}

/* ----- signals ----- */

static void obey(int signum, void *arg)
{
	struct convertd *convertd = arg;

	if (signum == SIGHUP && convertd->drain)
		log_warning("not reloaded: convertd is stopping");
	else if (signum == SIGHUP)
		reload(convertd);
	else if (convertd->drain)
		drain_cut(convertd->drain, strsignal(signum));
	else if (ward_may_leave(&convertd->ward) && handover_is_expected(convertd->handover))
		leave(convertd, strsignal(signum));
	else
		drain(convertd, false, strsignal(signum));
}

static void on_signal(evutil_socket_t signum, short what, void *arg)
{
	(void)what;
	obey((int)signum, arg);
}

/* Waits for signals, which come to this process or are passed on by the main process. Returns false without memory. */
static bool await_signals(struct convertd *convertd)
{
	if (ward_has_warden(&convertd->ward))
		return ward_listen(&convertd->ward, convertd->base, obey, convertd);
	for (size_t i = 0; i < SIGNALS; i++) {
		convertd->signals[i] =
			evsignal_new(convertd->base, signals[i], on_signal, convertd);
		if (!convertd->signals[i] || evsignal_add(convertd->signals[i], NULL) < 0)
			return false;
	}
	return true;
}

static bool is_well(void *service)
{
	return service_is_well(service);
}

static bool start(struct convertd *convertd, size_t workers)
{
	convertd->base = event_base_new();
	if (!convertd->base) {
		log_error("no event loop: out of memory or descriptors");
		return false;
	}
	if (!await_signals(convertd)) {
		log_error("out of memory");
		return false;
	}
	if (convertd->survivor_fd >= 0)
		convertd->survivor = survivor_watch(convertd->base, convertd->survivor_fd);
	convertd->monitor = monitor_create(convertd->base);
	convertd->handover = handover_create(convertd->base, &duties, convertd);
	if (!convertd->monitor || !convertd->handover) {
		log_error("out of memory");
		return false;
	}
	convertd->service = service_create(convertd->base, workers, &convertd->inherited, convertd->monitor);
	if (!convertd->service)
		return false;
	convertd->watchdog = notify_watchdog(convertd->base, is_well, convertd->service);
	return true;
}

static void stop(struct convertd *convertd)
{
	handover_destroy(convertd->handover);
	drain_destroy(convertd->drain);
	if (convertd->watchdog)
		event_free(convertd->watchdog);
	service_destroy(convertd->service);
	monitor_destroy(convertd->monitor);
	for (size_t i = 0; i < SIGNALS; i++)
		if (convertd->signals[i])
			event_free(convertd->signals[i]);
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
static int serve(struct convertd *convertd, struct settings *settings)
{
	struct problems problems = { .print = log_problem };
	bool started;

	started = start(convertd, settings->workers) &&
		  service_apply(convertd->service, settings, &problems);
	if (started) {
		inherit_close_kept(&convertd->inherited);
		handover_confirm(convertd->conversation);
		handover_offer(convertd->handover, settings);
		handover_keep_lifeline(convertd->handover);
		service_announce(convertd->service, "ready");
		notify_send("READY=1");
		event_base_dispatch(convertd->base);
	} else {
		settings_destroy(settings);
		end_conversation(convertd);
	}
	stop(convertd);
	return started ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Does what has to be done first, before there are threads: see the top of this file. Returns false after logging why. */
static bool prepare(struct convertd *convertd, struct settings *settings)
{
	struct problems problems = { .print = log_problem };

	fill_standard_descriptors();
	log_start();
	log_set_level((enum log_level)settings->log_level);
	log_set_format((enum log_format)settings->log_format);
	signal(SIGPIPE, SIG_IGN);
	raise_open_files();
	notify_init();
	if (!inherit_sockets(&convertd->inherited, &problems))
		return false;
	sandbox_leave_surroundings(inherit_end(&convertd->inherited));
	if (!privileges_drop(settings, &problems) ||
	    !inherit_join(&convertd->inherited, settings, &problems))
		return false;
	/* After the change of user: the other convertd accepts its own user only. */
	take_over(convertd, settings);
	return true;
}

static void start_survivor(struct convertd *convertd, const struct settings *settings)
{
	convertd->survivor_fd = survivor_start(settings);
	if (convertd->survivor_fd < 0)
		log_warning("no process outlives convertd (%s): if it is killed, clients and servers may "
			    "take a part of a stream for the whole",
			    strerror(-convertd->survivor_fd));
}

/*
 * Leaves an attacker who takes over this process little: drops capabilities and enters the sandbox, before there are
 * threads. Returns false after logging why.
 */
static bool confine(struct convertd *convertd, const struct settings *settings, enum syscall_filter_role role)
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
static int run(struct convertd *convertd, struct settings *settings)
{
	enum syscall_filter_role role = SYSCALL_FILTER_ALONE;
	struct warden *warden = NULL;
	bool ready;

	convertd->ward = WARD_NONE;
	convertd->conversation = -1;
	ready = prepare(convertd, settings);
	/* Even without rights there are two processes under a service manager, as the main one may have to end first: leave(). */
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
	end_conversation(convertd);
	inherit_fini(&convertd->inherited);
	settings_destroy(settings);
	return ready ? warden_run(warden) : EXIT_FAILURE;
}

/* Makes a key file that nobody else can read (--make-key), unless the file exists. Returns the exit status. */
static int make_key(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), error;
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (!file) {
		error = errno;
		fprintf(stderr, "convertd: --make-key: \"%s\" can't be made: %s%s\n", path,
			strerror(error),
			error == EEXIST ? "; convertd(8) says how to add a key to it" : "");
		return EXIT_FAILURE;
	}
	error = cookies_write_key(file);
	if (fclose(file) != 0 && !error)
		error = -errno;
	if (!error)
		return EXIT_SUCCESS;
	fprintf(stderr, "convertd: --make-key: \"%s\": %s\n", path, strerror(-error));
	unlink(path);
	return EXIT_FAILURE;
}

/* Prints the status of the converter that runs with these settings. Returns the exit status. */
static int ask(const struct settings *settings)
{
	static const struct metrics_address usual = { .path = SETTINGS_STATUS_DEFAULT };

	return ask_status(settings->metrics_count ? &settings->metrics[0] : &usual);
}

/* Does what the command line asks for instead of running. Returns the exit status. */
static int answer(const struct settings *settings)
{
	switch (settings->action) {
	case SETTINGS_HELP:
		options_print_help();
		break;
	case SETTINGS_VERSION:
		printf("convertd (%s) %s\n", PACKAGE_NAME, PACKAGE_VERSION);
		break;
	case SETTINGS_MAKE_KEY:
		return make_key(settings->make_key.name);
	case SETTINGS_STATUS:
		return ask(settings);
	case SETTINGS_CHECK:
	case SETTINGS_RUN:
		printf("convertd: the configuration is right\n");
		break;
	}
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char *argv[])
{
	static struct convertd convertd;
	struct problems problems = { .print = print_problem };
	struct settings *settings = settings_read(argc, argv, &problems);
	int status;

	convertd.argc = argc;
	convertd.argv = argv;
	/* If an older convertd waits for this one, it goes on serving, and the exit status lets the service manager try again. */
	if (!settings)
		return inherit_is_awaited() ? EXIT_FAILURE : EXIT_USAGE;
	if (settings->action == SETTINGS_RUN)
		return run(&convertd, settings);
	status = answer(settings);
	settings_destroy(settings);
	return status;
}
