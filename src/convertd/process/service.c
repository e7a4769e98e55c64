/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.c - runs workers, listeners and the rules for SYNs as the settings say
 *
 * All functions run in the main thread, which serves no client itself: the workers do.
 *
 * Settings come into force in two steps (service_apply()). The first does everything that can fail, and leaves the
 * old settings in force: new sockets are bound and listen, but no client is accepted from them yet. The second step
 * (take_force()) can't fail, and each worker takes it for itself: its sessions get the new settings, acceptors of new
 * listeners start, and acceptors of listeners that are no longer wanted accept the clients in their queues and end.
 * When all workers have done so, the settings are in force. Listeners that old and new settings share are kept.
 *
 * service_stop_accepting() lets sessions go on until service_destroy() ends them.
 */
#include "config.h"

#include "convertd/process/service.h"

#include "common/tcp.h"
#include "common/sysctl.h"
#include "serve/listening.h"
#include "convertd/policy/cookies.h"
#include "daemon/far_clients.h"
#include "convertd/observe/endpoint.h"
#include "convertd/process/withholding.h"
#include "hold/hold_table.h"
#include "convertd/process/systemd.h"
#include "daemon/log.h"
#include "convertd/observe/monitor.h"
#include "daemon/rights.h"
#include "convertd/config/settings.h"
#include "convertd/net/sources.h"
#include "convertd/process/host_checks.h"
#include "convertd/config/effective_settings.h"
#include "convertd/process/converter.h"
#include "serve/plugs.h"
#include "serve/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The descriptors of the process besides those of workers: for netlink, nftables, the log and the like. */
#define FILES_OWN 20

/* Cookies are never demanded below this many pending clients, whatever --cookie-demand and --max-pending say. */
#define DEMAND_LEAST 16

/* A listener and its acceptors, one for each worker. */
struct site {
	struct listener *listener;
	struct acceptor *acceptors[];
};

struct service {
	struct effective_settings *effective;             /* the settings in force; NULL: none yet */
	const struct settings *settings; /* the settings of these settings */
	struct session_shared shared;
	struct converter_shared converter;
	struct serve_plugs plugs;
	struct workers *workers;
	const struct inherited *inherited;
	struct site *sites[LISTEN_ADDRESSES_MAX]; /* in the order of settings->listen */
	bool stopped;                            /* service_stop_accepting() was called: there are no sites any more */
	bool told_standing;                      /* it was logged that a worker stands still */
	struct withholding *withholding;
	bool windows_corrected; /* the rules of syn_window.c are in force */
	struct family_routes *family_routes;
};

/* The order that each worker carries out when settings come into force. */
struct change {
	struct effective_settings *effective;
	struct site *const *started, *const *stopped;
	size_t started_count, stopped_count;
	bool drain;
};

struct service *service_create(struct event_base *base, size_t workers,
			       const struct inherited *inherited, struct monitor *monitor)
{
	struct service *service = calloc(1, sizeof(*service));

	if (service) {
		service->shared.limits = limits_create();
		service->shared.withheld = hold_table_create();
		service->converter.demand = demand_create();
		service->shared.far_clients = far_clients_create();
	}
	if (!service || !service->shared.limits || !service->shared.withheld ||
	    !service->converter.demand || !service->shared.far_clients) {
		log_error("out of memory, or no source of random numbers");
		service_destroy(service);
		return NULL;
	}
	service->inherited = inherited;
	service->converter.monitor = monitor;
	service->plugs = converter_plugs(&service->converter);
	service->shared.plugs = &service->plugs;
	monitor_watch_demand(monitor, service->converter.demand);
	service->workers = workers_create(workers ? workers : workers_default(), &service->shared);
	if (service->workers) {
		service->withholding = withholding_create(service->workers, inherited->rules);
		service->family_routes = family_routes_create(base);
		if (service->withholding && service->family_routes)
			return service;
		log_error("out of memory");
	}
	service_destroy(service);
	return NULL;
}

static size_t site_count(const struct service *service)
{
	return service->settings && !service->stopped ? service->settings->listen_count : 0;
}

static bool contains(struct site *const *sites, size_t count, const struct site *site)
{
	for (size_t i = 0; i < count; i++)
		if (sites[i] == site)
			return true;
	return false;
}

/* Puts those of @sites that are not among @others into @out. Returns their number. */
static size_t without(struct site *const *sites, size_t count, struct site *const *others,
		      size_t others_count, struct site *out[LISTEN_ADDRESSES_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (!contains(others, others_count, sites[i]))
			out[n++] = sites[i];
	return n;
}

/* Frees a site whose acceptors have gone, or have never been started. */
static void site_destroy(struct service *service, struct site *site)
{
	for (size_t i = 0; i < workers_count(service->workers); i++)
		acceptor_destroy(site->acceptors[i], false);
	listener_destroy(site->listener);
	free(site);
}

static void destroy_sites(struct service *service, struct site *const *sites, size_t count)
{
	for (size_t i = 0; i < count; i++)
		site_destroy(service, sites[i]);
}

/* Makes a site whose acceptors aren't started yet. Returns NULL after adding the error to @problems. */
static struct site *site_create(struct service *service, const struct listen_address *where,
				struct problems *problems)
{
	static const struct place nowhere;
	size_t workers = workers_count(service->workers);
	struct site *site = calloc(1, sizeof(*site) + workers * sizeof(struct acceptor *));
	int inherited[SETTINGS_WORKERS_MAX];
	size_t inherited_count = inherit_find(service->inherited, where, inherited, workers);
	bool complete = site != NULL;

	if (site)
		site->listener = listener_create(where, workers, inherited, inherited_count, problems);
	if (site && !site->listener) {
		free(site);
		return NULL;
	}
	for (size_t i = 0; i < workers && complete; i++) {
		site->acceptors[i] =
			acceptor_create(site->listener, workers_context(service->workers, i));
		complete = site->acceptors[i] != NULL;
	}
	if (complete)
		return site;
	problems_add(problems, &nowhere, "out of memory");
	if (site)
		site_destroy(service, site);
	return NULL;
}

/* Returns the site in use at that address, or NULL. */
static struct site *find_site(const struct service *service, const struct listen_address *where)
{
	for (size_t i = 0; i < site_count(service); i++)
		if (listener_is_at(service->sites[i]->listener, where))
			return service->sites[i];
	return NULL;
}

/* Fills @next with a site for each address of the settings, existing or new. Returns false after adding the error to @problems. */
static bool make_sites(struct service *service, const struct settings *settings,
		       struct site *next[LISTEN_ADDRESSES_MAX], struct problems *problems)
{
	struct site *new[LISTEN_ADDRESSES_MAX];
	size_t count = 0;

	for (; count < settings->listen_count; count++) {
		const struct listen_address *where = &settings->listen[count];

		next[count] = find_site(service, where);
		/* For an address that is given twice a second site is made, which fails with "Address already in use". */
		if (!next[count] || contains(next, count, next[count]))
			next[count] = site_create(service, where, problems);
		if (!next[count])
			break;
	}
	if (count == settings->listen_count)
		return true;
	count = without(next, count, service->sites, site_count(service), new);
	destroy_sites(service, new, count);
	return false;
}

/* Installs nftables rules that correct the windows of SYNs, unless SYNs are withheld: these are corrected before they are released. */
static void set_syn_window(struct service *service, const struct settings *settings)
{
	bool wanted = !settings->no_syn_window_fix && !withholding_is_on(service->withholding);

	if (wanted || service->windows_corrected)
		service->windows_corrected = windows_correct(settings, wanted);
}

/*
 * Tells whether this converter corrects the windows of SYNs. If so, clients learn it and send data in their SYNs
 * (doc/private-tlvs.md), so it must be certain: with --no-syn-window-fix it depends on the operator, so the answer is
 * no.
 */
static bool corrects_windows(const struct service *service, const struct settings *settings)
{
	return !settings->no_syn_window_fix &&
	       (withholding_is_on(service->withholding) || service->windows_corrected);
}

/* Installs the rules for SYNs, before new listeners answer the first one. Returns false after adding the error to @problems. */
static bool set_syns(struct service *service, const struct settings *settings,
		     struct problems *problems)
{
	if (!withholding_apply(service->withholding, settings, problems))
		return false;
	set_syn_window(service, settings);
	return true;
}

static bool listen_all(struct site *const *sites, size_t count, struct problems *problems)
{
	for (size_t i = 0; i < count; i++)
		if (!listener_listen(sites[i]->listener, problems))
			return false;
	return true;
}

/* Carries out a change, in the thread of one worker. */
static void carry_out(const struct worker_context *worker, void *arg)
{
	const struct change *change = arg;

	if (change->effective)
		session_pool_configure(worker->pool, &change->effective->serve);
	for (size_t i = 0; i < change->started_count; i++)
		acceptor_start(change->started[i]->acceptors[worker->number]);
	for (size_t i = 0; i < change->stopped_count; i++) {
		acceptor_destroy(change->stopped[i]->acceptors[worker->number], change->drain);
		change->stopped[i]->acceptors[worker->number] = NULL;
	}
}

static void judge_again(const struct worker_context *worker, void *arg)
{
	withholding_judge_again(arg, worker);
}

void service_announce(const struct service *service, const char *how)
{
	const struct limits_settings *limits = &service->effective->limits;
	char text[LISTEN_ADDRESSES_MAX * LISTENER_DESCRIPTION_MAX], *end = text;
	size_t workers = workers_count(service->workers);

	text[0] = '\0';
	for (size_t i = 0; i < site_count(service); i++) {
		char description[LISTENER_DESCRIPTION_MAX];

		end += sprintf(end, "%s%s", i ? ", " : "",
			       listener_describe(service->sites[i]->listener, description));
	}
	log_info("%s: %s; %zu worker%s", how, text, workers, workers == 1 ? "" : "s");
	notify_send("STATUS=Listening on %s", text);
	monitor_commit(service->converter.monitor, text, workers, limits);
}

/* Warns of sysctls that are not as convertd wants them. One that can't be read doesn't exist in this kernel. */
static void check_sysctls(void)
{
	for (const struct sysctl_wish *wish = sysctl_wishes; wish->name; wish++) {
		int value = sysctl_read(wish->name);

		if (value >= 0 && !sysctl_wish_met(wish, value))
			log_warning("%s is %d: %s; set it with: sysctl -w %s=%d", wish->name, value,
				    wish->otherwise, wish->name, sysctl_wish_remedy(wish, value));
	}
}

/* Warns if any client may use the converter. This is the default, but the operator should know it. */
static void check_open(const struct settings *settings)
{
	/* Any client is given a computed cookie when it asks, so only fixed cookies keep clients out. */
	bool fixed_cookies = settings->cookie_list.name[0] && !settings->cookie_key.name[0];

	if (!settings->access.clients.count && !fixed_cookies)
		log_warning("any client that reaches it may use this converter; say who may with "
			    "--allow-client PREFIX, or --allow-client ::/0 if that is meant");
}

/* Warns of each valid setting, and each property of this host, that makes the converter worse than it could be. */
static void warn(const struct service *service, const struct settings *settings)
{
	size_t workers = workers_count(service->workers);

	check_sysctls();
	check_open(settings);
	family_routes_check(service->family_routes, settings);
	if (settings->workers && settings->workers != workers)
		log_warning("--workers %u: there are %zu until convertd is started anew",
			    settings->workers, workers);
}

/* Sets the number of unproven clients from which on cookies are demanded: a share of --max-pending; never without that limit. */
static void set_demand(const struct service *service, const struct effective_settings *effective)
{
	const struct settings *settings = effective->settings;
	uint64_t share = (uint64_t)effective->limits.pending.total * settings->cookie_demand / 100;
	struct demand_settings demand = {
		.most = (unsigned)share,
		.errors = (settings->limits.errors.total + 1) / 2,
		.lifetime = settings->cookie_lifetime,
		.shared = settings->shared_address,
	};

	if (settings->cookie_demand && effective->limits.pending.total && share < DEMAND_LEAST)
		demand.most = DEMAND_LEAST;
	demand_configure(service->converter.demand, &demand);
}

/* Puts settings in force, whose sites are @next, and takes over the caller's reference to them. It can't fail. */
static void take_force(struct service *service, struct effective_settings *effective, struct site *const *next)
{
	struct site *started[LISTEN_ADDRESSES_MAX], *stopped[LISTEN_ADDRESSES_MAX];
	const struct settings *settings = effective->settings;
	struct change change = {
		.effective = effective,
		.started = started,
		.started_count = without(next, settings->listen_count, service->sites,
					 site_count(service), started),
		.stopped = stopped,
		.stopped_count = without(service->sites, site_count(service), next,
					 settings->listen_count, stopped),
		.drain = true,
	};

	log_set_level((enum log_level)settings->log_level);
	log_set_format((enum log_format)settings->log_format);
	limits_configure(service->shared.limits, &effective->limits);
	set_demand(service, effective);
	for (size_t i = 0; i < settings->listen_count; i++) {
		listener_set_pending(next[i]->listener, effective->limits.pending.total);
		listener_set_congestion(next[i]->listener, settings->congestion_client);
	}
	workers_order(service->workers, carry_out, &change);
	/* This comes after the first order, so that each worker that accepts a released SYN has the new settings already. */
	workers_order(service->workers, judge_again, service->withholding);
	destroy_sites(service, stopped, change.stopped_count);
	memcpy(service->sites, next, settings->listen_count * sizeof(next[0]));
	effective_settings_unref(service->effective);
	service->effective = effective;
	service->settings = settings;
}

/* Asks the service manager to keep the sockets and rules for the next process, except sockets of units, which it has anyway. */
static void keep_sockets(const struct service *service)
{
	int rules = withholding_rules_fd(service->withholding);

	notify_send("FDSTOREREMOVE=1\nFDNAME=" NOTIFY_RULES_NAME);
	if (rules >= 0)
		notify_keep(rules, NOTIFY_RULES_NAME);
	notify_send("FDSTOREREMOVE=1\nFDNAME=" NOTIFY_KEPT_NAME);
	for (size_t i = 0; i < site_count(service); i++) {
		struct listener *listener = service->sites[i]->listener;

		if (inherit_is_unit(service->inherited, &service->settings->listen[i]))
			continue;
		for (size_t n = 0; n < listener_sockets(listener); n++)
			notify_keep(listener_socket(listener, n)->fd, NOTIFY_KEPT_NAME);
	}
}

static bool take_syn_data(struct site *const *sites, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!listener_takes_syn_data(sites[i]->listener))
			return false;
	return true;
}

bool service_apply(struct service *service, struct settings *settings, struct problems *problems)
{
	static const struct place nowhere;
	struct site *next[LISTEN_ADDRESSES_MAX], *new[LISTEN_ADDRESSES_MAX];
	size_t new_count, workers = workers_count(service->workers);
	size_t files = FILES_OWN + workers * (WORKER_FILES + settings->listen_count) +
		       settings->metrics_count * ENDPOINT_FILES_MAX;
	struct effective_settings *effective = NULL;

	notices_forget();
	if (!source_check(&settings->sources, problems) ||
	    !make_sites(service, settings, next, problems))
		return false;
	new_count = without(next, settings->listen_count, service->sites, site_count(service), new);
	if (monitor_open(service->converter.monitor, settings->metrics, settings->metrics_count, problems) &&
	    set_syns(service, settings, problems) && listen_all(new, new_count, problems)) {
		const struct effective_syns syns = {
			.withheld = withholding_is_on(service->withholding),
			.taken = take_syn_data(next, settings->listen_count),
			.refused = withholding_refuses(service->withholding),
			.corrected = corrects_windows(service, settings),
		};

		effective = effective_settings_create(settings, files, &syns);
	}
	if (!effective) {
		monitor_abandon(service->converter.monitor);
		destroy_sites(service, new, new_count);
		if (service->settings)
			set_syns(service, service->settings, problems);
		/* All other failures have added an error to @problems. */
		if (!problems->count)
			problems_add(problems, &nowhere, "out of memory");
		return false;
	}
	warn(service, settings);
	take_force(service, effective, next);
	rights_settings_in_force();
	keep_sockets(service);
	return true;
}

const struct settings *service_settings(const struct service *service)
{
	return service->settings;
}

void service_stop_accepting(struct service *service)
{
	struct change change = {
		.stopped = service->sites,
		.stopped_count = site_count(service),
		.drain = true,
	};

	/* SYNs come first: clients of withheld SYNs are accepted here, where connections to their servers are prepared. */
	withholding_stop(service->withholding);
	/* The next convertd has a table of its own, and two tables would correct windows twice. */
	if (service->windows_corrected)
		service->windows_corrected = windows_correct(service->settings, false);
	workers_order(service->workers, carry_out, &change);
	destroy_sites(service, service->sites, change.stopped_count);
	service->stopped = true;
}

bool service_is_well(struct service *service)
{
	size_t standing = workers_turn(service->workers);
	bool well = standing == workers_count(service->workers);

	if (!well && !service->told_standing)
		log_warning("worker-%zu stands still: the service manager's watchdog is not told that "
			    "all is well",
			    standing);
	service->told_standing = !well;
	return well;
}

size_t service_sessions(const struct service *service)
{
	return limits_members(service->shared.limits);
}

void service_destroy(struct service *service)
{
	struct change change = {
		.stopped = service ? service->sites : NULL,
		.stopped_count = service ? site_count(service) : 0,
	};

	if (!service)
		return;
	family_routes_destroy(service->family_routes);
	/* Accepting ends first, since to accept a client a worker may ask another one for room. */
	if (change.stopped_count)
		workers_order(service->workers, carry_out, &change);
	destroy_sites(service, service->sites, site_count(service));
	withholding_destroy(service->withholding);
	workers_destroy(service->workers);
	hold_table_destroy(service->shared.withheld);
	limits_destroy(service->shared.limits);
	monitor_watch_demand(service->converter.monitor, NULL);
	demand_destroy(service->converter.demand);
	far_clients_destroy(service->shared.far_clients);
	effective_settings_unref(service->effective);
	free(service);
}
