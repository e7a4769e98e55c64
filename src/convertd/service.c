/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.c - what convertd runs: listeners, sessions, and the rules for SYNs
 *
 * Settings come into force in two steps. What can fail is done first and leaves the old ones in
 * force: new sockets are bound and listen, their queues not looked at yet. The second step can't
 * fail: sessions get the new settings, listeners that are no longer wanted accept whom they have in
 * their queue and are closed.
 */
#include "config.h"

#include "convertd/service.h"

#include "common/sysctl.h"
#include "convertd/hold.h"
#include "convertd/listener.h"
#include "convertd/log.h"
#include "convertd/session.h"
#include "convertd/settings.h"
#include "convertd/syn_window.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Descriptors for netlink, nftables, the log and the like, besides those of listeners. */
#define FILES_OWN 32

struct service {
	struct event_base *base;
	struct settings *settings;
	struct session_pool pool;
	struct listener *listeners[SETTINGS_LISTEN_MAX]; /* as settings->listen */
	struct hold *hold;
	struct syn_window *syn_window;
};

struct service *service_create(struct event_base *base)
{
	struct service *service = calloc(1, sizeof(*service));
	int error = service ? session_pool_init(&service->pool, base) : -ENOMEM;

	if (!error) {
		service->hold = hold_create(base, service->pool.limits);
		error = service->hold ? 0 : -errno;
	}
	if (error == -ENOMEM)
		log_error("out of memory");
	else if (error)
		/* Without it, our own addresses can't be told from others. */
		log_error("no rtnetlink socket: %s; allow AF_NETLINK (RestrictAddressFamilies=)",
			  strerror(-error));
	if (error) {
		if (service && service->pool.limits)
			session_pool_fini(&service->pool);
		free(service);
		return NULL;
	}
	service->pool.held = hold_get_table(service->hold);
	service->base = base;
	return service;
}

static size_t listener_count(const struct service *service)
{
	return service->settings ? service->settings->listen_count : 0;
}

/* The listener at that place, or NULL. */
static struct listener *find_listener(const struct service *service,
				      const struct listen_address *where)
{
	for (size_t i = 0; i < listener_count(service); i++)
		if (listener_is_at(service->listeners[i], where))
			return service->listeners[i];
	return NULL;
}

static bool contains(struct listener *const *listeners, size_t count,
		     const struct listener *listener)
{
	for (size_t i = 0; i < count; i++)
		if (listeners[i] == listener)
			return true;
	return false;
}

/* Those that are in @listeners and not among the @kept. */
static void destroy_listeners(struct listener *const *listeners, size_t count,
			      struct listener *const *kept, size_t kept_count, bool drain)
{
	for (size_t i = 0; i < count; i++) {
		if (contains(kept, kept_count, listeners[i]))
			continue;
		if (drain)
			listener_drain(listeners[i]);
		listener_destroy(listeners[i]);
	}
}

/* Fills @next with a listener for each place. */
static bool make_listeners(struct service *service, const struct settings *settings,
			   struct listener *next[SETTINGS_LISTEN_MAX], struct problems *problems)
{
	size_t count = 0;

	for (; count < settings->listen_count; count++) {
		const struct listen_address *where = &settings->listen[count];

		next[count] = find_listener(service, where);
		/* Given twice, it is the second that fails, as any other that is taken. */
		if (!next[count] || contains(next, count, next[count]))
			next[count] = listener_create(where, problems);
		if (!next[count])
			break;
	}
	if (count == settings->listen_count)
		return true;
	destroy_listeners(next, count, service->listeners, listener_count(service), false);
	return false;
}

/* Whoever withholds SYNs corrects their windows. */
static void set_syn_window(struct service *service, const struct settings *settings)
{
	const struct settings *old = service->settings;

	if (settings->no_syn_window_fix || hold_is_on(service->hold)) {
		syn_window_remove(service->syn_window);
		service->syn_window = NULL;
		return;
	}
	if (old && service->syn_window && old->listen_count == settings->listen_count &&
	    memcmp(old->listen, settings->listen, sizeof(old->listen)) == 0)
		return;
	service->syn_window = syn_window_install(service->syn_window, settings->listen,
						 settings->listen_count);
}

/* What becomes of SYNs, before the first can be answered. */
static bool set_syns(struct service *service, const struct settings *settings,
		     struct problems *problems)
{
	if (!hold_apply(service->hold, settings, problems))
		return false;
	set_syn_window(service, settings);
	return true;
}

static bool start_listeners(struct service *service, const struct settings *settings,
			    struct listener *const *next, struct problems *problems)
{
	for (size_t i = 0; i < settings->listen_count; i++)
		if (!contains(service->listeners, listener_count(service), next[i]) &&
		    !listener_start(next[i], service->base, &service->pool, problems))
			return false;
	return true;
}

/* Bits of the SYNs that this host sends; a sysctl that can't be read counts as its default. */
static struct request_features read_features(const struct service *service,
					      const struct settings *settings)
{
	struct request_features features = {
		.sack = sysctl_read("net.ipv4.tcp_sack") != 0,
		.timestamps = sysctl_read("net.ipv4.tcp_timestamps") != 0,
		.mptcp = sysctl_read("net.mptcp.enabled") > 0,
		.withholding = { .withheld = hold_is_on(service->hold),
				 .limit_ms = (uint16_t)settings->hold_time },
	};

	return features;
}

static void log_ready(const struct service *service, const char *how)
{
	char text[SETTINGS_LISTEN_MAX * LISTENER_DESCRIPTION_MAX], *end = text;

	text[0] = '\0';
	for (size_t i = 0; i < listener_count(service); i++) {
		char description[LISTENER_DESCRIPTION_MAX];

		end += sprintf(end, "%s%s", i ? ", " : "",
			       listener_describe(service->listeners[i], description));
	}
	log_info("%s: %s", how, text);
}

/* An open relay is for whoever finds it: not by default and unnoticed. */
static void check_open(const struct settings *settings)
{
	/* Whoever asks is given a computed cookie; fixed ones alone keep others out. */
	bool fixed_cookies = settings->cookie_list.name[0] && !settings->cookie_key.name[0];

	if (!settings->access.clients.count && !fixed_cookies)
		log_warning("any client that reaches it may use this converter; say who may with "
			    "--allow-client PREFIX, or --allow-client ::/0 if that is meant");
}

/*
 * The limits as they can be kept with the descriptors that there are: two for a connection, one for
 * each that is refused (session_pool_configure()), and some of our own.
 */
static struct limits_settings fit_limits(const struct settings *settings)
{
	struct limits_settings limits = settings->limits;
	rlim_t own = FILES_OWN + settings->listen_count, connections = 1;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur > INT_MAX)
		return limits;
	if (files.rlim_cur > own + 2)
		connections = (files.rlim_cur - own) * 64 / 129;
	if (!limits.connections.total)
		limits.connections.total = (unsigned)connections;
	else if (limits.connections.total > connections)
		log_warning("--max-connections %u needs %llu open files, and the limit is %llu; raise it "
			    "(LimitNOFILE=, ulimit -Hn), or clients will have to wait",
			    limits.connections.total,
			    limits.connections.total * 129ULL / 64 + own,
			    (unsigned long long)files.rlim_cur);
	return limits;
}

bool service_apply(struct service *service, struct settings *settings, struct problems *problems)
{
	struct listener *next[SETTINGS_LISTEN_MAX];
	struct request_features features;
	struct limits_settings limits;
	size_t old_count = listener_count(service);
	const char *how;

	if (!make_listeners(service, settings, next, problems))
		return false;
	if (!set_syns(service, settings, problems) ||
	    !start_listeners(service, settings, next, problems)) {
		destroy_listeners(next, settings->listen_count, service->listeners, old_count,
				  false);
		if (service->settings)
			set_syns(service, service->settings, problems);
		return false;
	}
	listener_check_sysctls();
	check_open(settings);
	log_set_level((enum log_level)settings->log_level);
	features = read_features(service, settings);
	limits = fit_limits(settings);
	session_pool_configure(&service->pool, settings, &limits, &features);
	hold_configure(service->hold, settings, &features);
	for (size_t i = 0; i < settings->listen_count; i++)
		listener_set_pending(next[i], limits.pending.total);
	destroy_listeners(service->listeners, old_count, next, settings->listen_count, true);
	memcpy(service->listeners, next, sizeof(next));
	how = service->settings ? "reloaded" : "ready";
	settings_destroy(service->settings);
	service->settings = settings;
	log_ready(service, how);
	return true;
}

void service_destroy(struct service *service)
{
	if (!service)
		return;
	destroy_listeners(service->listeners, listener_count(service), NULL, 0, false);
	syn_window_remove(service->syn_window);
	hold_destroy(service->hold);
	service->pool.held = NULL;
	session_pool_fini(&service->pool);
	settings_destroy(service->settings);
	free(service);
}
