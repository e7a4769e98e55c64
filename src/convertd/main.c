/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - convertd: the 0-RTT TCP converter of RFC 8803 */
#include "config.h"

#include "convertd/ask.h"
#include "convertd/cookies.h"
#include "convertd/log.h"
#include "convertd/monitor.h"
#include "convertd/options.h"
#include "convertd/service.h"
#include "convertd/settings.h"

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
	struct monitor *monitor;
	struct service *service;
};

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

static struct event_base *make_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	if (config && event_config_require_features(config, EV_FEATURE_ET) == 0 &&
	    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK) == 0)
		base = event_base_new_with_config(config);
	if (config)
		event_config_free(config);
	return base;
}

/* Reads the same command line and what its files say now. */
static void reload(struct convertd *convertd)
{
	struct problems problems = { 0 };
	struct settings *settings = settings_create(convertd->argc, convertd->argv, &problems);

	if (settings && service_apply(convertd->service, settings, &problems)) {
		monitor_count_reload(convertd->monitor, true);
		return;
	}
	monitor_count_reload(convertd->monitor, false);
	settings_destroy(settings);
	log_error("not reloaded, the old configuration stays in force: %s%s", problems.first,
		  problems.count > 1 ? "; and more, which --check-config shows" : "");
}

static void on_signal(evutil_socket_t signum, short what, void *arg)
{
	struct convertd *convertd = arg;

	(void)what;
	if (signum == SIGHUP) {
		reload(convertd);
		return;
	}
	log_info("%s: stopping", strsignal((int)signum));
	event_base_loopbreak(convertd->base);
}

static bool start_loop(struct convertd *convertd)
{
	convertd->base = make_base();
	if (!convertd->base) {
		log_error("no event loop: libevent finds no edge-triggered method; it needs epoll, "
			  "and EVENT_NOEPOLL must not be set");
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
	convertd->monitor = monitor_create(convertd->base);
	if (!convertd->monitor) {
		log_error("out of memory");
		return false;
	}
	convertd->service = service_create(convertd->base, convertd->monitor);
	return convertd->service != NULL;
}

static void stop(struct convertd *convertd)
{
	service_destroy(convertd->service);
	monitor_destroy(convertd->monitor);
	for (size_t i = 0; i < SIGNALS; i++)
		if (convertd->signals[i])
			event_free(convertd->signals[i]);
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

/* Takes over the settings. Returns the status of the process. */
static int run(struct convertd *convertd, struct settings *settings)
{
	struct problems problems = { .print = log_problem };
	bool started;

	log_start();
	log_set_level((enum log_level)settings->log_level);
	log_set_format((enum log_format)settings->log_format);
	signal(SIGPIPE, SIG_IGN);
	raise_open_files();
	started = start_loop(convertd) && service_apply(convertd->service, settings, &problems);
	if (started)
		event_base_dispatch(convertd->base);
	else
		settings_destroy(settings);
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
	if (settings->metrics_count)
		return ask_status(&settings->metrics[0]);
	fprintf(stderr, "convertd: status: where is it told? Give the --metrics that convertd has, or "
			"its --config\n");
	return EXIT_USAGE;
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
