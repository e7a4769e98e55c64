/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - convertd: the 0-RTT TCP converter of RFC 8803 */
#include "config.h"

#include "convertd/listener.h"
#include "convertd/log.h"
#include "convertd/options.h"
#include "convertd/session.h"
#include "convertd/syn_window.h"
#include "convertd/sysctl.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define EXIT_USAGE 2

/* All that has to be undone at the end, in the order of its making. */
struct convertd {
	struct event_base *base;
	struct event *sigint, *sigterm;
	struct session_pool pool;
	struct listener *listeners[OPTIONS_LISTEN_MAX];
	size_t listener_count;
	struct syn_window *syn_window;
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

static void on_signal(evutil_socket_t signum, short what, void *arg)
{
	struct convertd *convertd = arg;

	(void)what;
	log_info("%s: stopping", strsignal((int)signum));
	event_base_loopbreak(convertd->base);
}

/* Bits of the SYNs that this host sends; a sysctl that can't be read counts as its default. */
static struct request_features read_features(void)
{
	struct request_features features = {
		.sack = sysctl_read("net.ipv4.tcp_sack") != 0,
		.timestamps = sysctl_read("net.ipv4.tcp_timestamps") != 0,
		.mptcp = sysctl_read("net.mptcp.enabled") > 0,
	};

	return features;
}

static bool start_loop(struct convertd *convertd, const struct options *options)
{
	struct request_features features = read_features();

	convertd->base = make_base();
	if (!convertd->base) {
		log_error("no event loop: libevent finds no edge-triggered method; it needs epoll, "
			  "and EVENT_NOEPOLL must not be set");
		return false;
	}
	convertd->sigint = evsignal_new(convertd->base, SIGINT, on_signal, convertd);
	convertd->sigterm = evsignal_new(convertd->base, SIGTERM, on_signal, convertd);
	if (!convertd->sigint || !convertd->sigterm || evsignal_add(convertd->sigint, NULL) < 0 ||
	    evsignal_add(convertd->sigterm, NULL) < 0 ||
	    session_pool_init(&convertd->pool, convertd->base, &features, options->request_timeout,
			      options->connect_timeout) < 0) {
		log_error("out of memory");
		return false;
	}
	return true;
}

static bool start_listeners(struct convertd *convertd, const struct options *options)
{
	listener_check_sysctls();
	for (size_t i = 0; i < options->listen_count; i++) {
		struct listener *listener = listener_create(&options->listen[i]);

		if (!listener)
			return false;
		convertd->listeners[convertd->listener_count++] = listener;
	}
	/* Before the first SYN can be answered. */
	if (options->syn_window_fix)
		convertd->syn_window = syn_window_install(options->listen, options->listen_count);
	for (size_t i = 0; i < convertd->listener_count; i++)
		if (!listener_start(convertd->listeners[i], convertd->base, &convertd->pool))
			return false;
	return true;
}

static void log_ready(const struct convertd *convertd)
{
	char text[OPTIONS_LISTEN_MAX * LISTENER_DESCRIPTION_MAX], *end = text;

	text[0] = '\0';
	for (size_t i = 0; i < convertd->listener_count; i++) {
		char description[LISTENER_DESCRIPTION_MAX];

		end += sprintf(end, "%s%s", i ? ", " : "",
			       listener_describe(convertd->listeners[i], description));
	}
	log_info("ready: %s", text);
}

static void stop(struct convertd *convertd)
{
	for (size_t i = 0; i < convertd->listener_count; i++)
		listener_destroy(convertd->listeners[i]);
	syn_window_remove(convertd->syn_window);
	session_pool_fini(&convertd->pool);
	if (convertd->sigint)
		event_free(convertd->sigint);
	if (convertd->sigterm)
		event_free(convertd->sigterm);
	if (convertd->base)
		event_base_free(convertd->base);
	libevent_global_shutdown();
}

int main(int argc, char *argv[])
{
	static struct convertd convertd;
	static struct options options;
	bool started;

	switch (options_parse(&options, argc, argv)) {
	case OPTIONS_RUN:
		break;
	case OPTIONS_EXIT:
		return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	case OPTIONS_USAGE:
		return EXIT_USAGE;
	}
	log_set_level(options.log_level);
	signal(SIGPIPE, SIG_IGN);
	raise_open_files();
	started = start_loop(&convertd, &options) && start_listeners(&convertd, &options);
	if (started) {
		log_ready(&convertd);
		event_base_dispatch(convertd.base);
	}
	stop(&convertd);
	return started ? EXIT_SUCCESS : EXIT_FAILURE;
}
