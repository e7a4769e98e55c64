/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - convertd: the 0-RTT TCP converter of RFC 8803; its main thread has signals and workers */
#include "config.h"

#include "convertd/ask.h"
#include "convertd/cookies.h"
#include "convertd/drain.h"
#include "convertd/inherit.h"
#include "convertd/log.h"
#include "convertd/memory.h"
#include "convertd/monitor.h"
#include "convertd/notify.h"
#include "convertd/options.h"
#include "convertd/privileges.h"
#include "convertd/service.h"
#include "convertd/settings.h"
#include "convertd/syscall_filter.h"

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

/* All that has to be undone at the end, in the order of its making. */
struct convertd {
	int argc;
	char **argv;
	struct event_base *base;
	struct event *signals[SIGNALS];
	struct event *watchdog; /* NULL: nobody watches */
	struct inherited inherited;
	struct monitor *monitor;
	struct service *service;
	struct drain *drain; /* NULL until it is to stop */
};

/* Where they are closed, what is opened next would take their places, and get the log. */
static void fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Two descriptors a session: as many as the administrator allows. */
static void raise_open_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		log_warning("the limit of open files can't be raised: %s", strerror(errno));
}

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

/* Reads the same command line and what its files say now. */
static void reload(struct convertd *convertd)
{
	struct problems problems = { 0 };
	struct settings *settings = settings_create(convertd->argc, convertd->argv, &problems);

	notify_reloading();
	if (settings)
		warn_of_user(service_settings(convertd->service), settings);
	if (settings && apply(convertd, settings, &problems)) {
		monitor_count_reload(convertd->monitor, true);
		notify_send("READY=1");
		return;
	}
	monitor_count_reload(convertd->monitor, false);
	settings_destroy(settings);
	log_error("not reloaded, the old configuration stays in force: %s%s", problems.first,
		  problems.count > 1 ? "; and more, which --check-config shows" : "");
	notify_send("READY=1\nSTATUS=Not reloaded: %s", problems.first);
}

static void drain(struct convertd *convertd, const char *reason)
{
	monitor_set_draining(convertd->monitor, true);
	convertd->drain = drain_start(convertd->base, convertd->service, reason);
}

static void on_signal(evutil_socket_t signum, short what, void *arg)
{
	struct convertd *convertd = arg;

	(void)what;
	if (signum == SIGHUP && convertd->drain)
		log_warning("not reloaded: convertd is stopping");
	else if (signum == SIGHUP)
		reload(convertd);
	else if (convertd->drain)
		drain_cut(convertd->drain, strsignal((int)signum));
	else
		drain(convertd, strsignal((int)signum));
}

static bool start(struct convertd *convertd, size_t workers)
{
	convertd->base = event_base_new();
	if (!convertd->base) {
		log_error("no event loop: out of memory or descriptors");
		return false;
	}
	for (size_t i = 0; i < SIGNALS; i++) {
		convertd->signals[i] =
			evsignal_new(convertd->base, signals[i], on_signal, convertd);
		if (!convertd->signals[i] || evsignal_add(convertd->signals[i], NULL) < 0) {
			log_error("out of memory");
			return false;
		}
	}
	convertd->watchdog = notify_watchdog(convertd->base);
	convertd->monitor = monitor_create(convertd->base);
	if (!convertd->monitor) {
		log_error("out of memory");
		return false;
	}
	convertd->service = service_create(workers, &convertd->inherited, convertd->monitor);
	return convertd->service != NULL;
}

static void stop(struct convertd *convertd)
{
	drain_destroy(convertd->drain);
	service_destroy(convertd->service);
	monitor_destroy(convertd->monitor);
	for (size_t i = 0; i < SIGNALS; i++)
		if (convertd->signals[i])
			event_free(convertd->signals[i]);
	if (convertd->watchdog)
		event_free(convertd->watchdog);
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

/* Whoever takes over this process finds little; before there are threads. */
static bool confine(const struct settings *settings, struct problems *problems)
{
	int error;

	if (!privileges_drop(settings, problems))
		return false;
	error = settings->no_syscall_filter ? 0 : syscall_filter_install();
	if (error)
		log_debug("no filter for system calls: %s", strerror(-error));
	return true;
}

/* Takes over the settings. Returns the status of the process. */
static int run(struct convertd *convertd, struct settings *settings)
{
	struct problems problems = { .print = log_problem };
	bool started;

	fill_standard_descriptors();
	memory_init();
	log_start();
	log_set_level((enum log_level)settings->log_level);
	log_set_format((enum log_format)settings->log_format);
	signal(SIGPIPE, SIG_IGN);
	raise_open_files();
	notify_init();
	started = inherit_sockets(&convertd->inherited, &problems) &&
		  confine(settings, &problems) && start(convertd, settings->workers) &&
		  apply(convertd, settings, &problems);
	if (started) {
		inherit_close_kept(&convertd->inherited);
		notify_send("READY=1");
		event_base_dispatch(convertd->base);
	} else {
		settings_destroy(settings);
	}
	stop(convertd);
	return started ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Makes a file that nobody else can read; one that is there isn't touched. */
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

/* Asks the converter that these settings are for. Returns the status of the process. */
static int ask(const struct settings *settings)
{
	static const struct metrics_address usual = { .path = SETTINGS_STATUS_DEFAULT };

	return ask_status(settings->metrics_count ? &settings->metrics[0] : &usual);
}

/* What was asked for instead of running. Returns the status of the process. */
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
	struct settings *settings = settings_create(argc, argv, &problems);
	int status;

	convertd.argc = argc;
	convertd.argv = argv;
	if (!settings)
		return EXIT_USAGE;
	if (settings->action == SETTINGS_RUN)
		return run(&convertd, settings);
	status = answer(settings);
	settings_destroy(settings);
	return status;
}
