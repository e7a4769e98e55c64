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
 * When all workers have done so, the settings are in force. Listeners that old and new settings share are kept: each
 * site knows whether it runs, under the old settings, and whether the new ones want it.
 *
 * service_stop_accepting() lets sessions go on until service_destroy() ends them.
 */
#include "config.h"

#include "convertd/process/service.h"

#include "common/os.h"
#include "convertd/config/convertd_settings.h"
#include "convertd/config/effective_settings.h"
#include "convertd/net/downstream.h"
#include "observe/monitor.h"
#include "convertd/policy/cookies.h"
#include "convertd/process/converter.h"
#include "convertd/process/systemd.h"
#include "daemon/log.h"
#include "daemon/warden_message.h"
#include "hold/hold_table.h"
#include "serve/listening.h"
#include "serve/plugs.h"
#include "serve/syn_judge.h"
#include "serve/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

/* The descriptors of the process besides those of workers: for netlink, nftables, the log and the like. */
#define FILES_OWN 20

/* Cookies are never demanded below this many pending clients, whatever --cookie-demand and --max-pending say. */
#define DEMAND_LEAST 16

struct site {
	struct site *prev, *next;
	struct listen_address where;
	struct listener *listener;
	bool wanted;  /* the settings that come into force, or are in force, have it */
	bool running; /* workers accept its clients */
};

struct service {
	struct effective_settings *effective; /* the settings in force; NULL: none yet */
	struct session_shared shared;
	struct converter_shared converter;
	struct serve_plugs plugs;
	struct workers *workers;
	const struct inherited *inherited;
	struct site *sites; /* in the order of the settings; NULL after service_stop_accepting() */
	bool warned; /* it was logged that a worker stands still */
	struct withholding *withholding;
	struct family_routes *family_routes;
};

/* The order that each worker carries out when settings come into force. */
struct change {
	struct effective_settings *effective; /* NULL: they stay */
	struct site *sites;
	bool drain; /* sites that aren't wanted accept the clients in their queues */
};

struct service *service_create(struct event_base *base, size_t workers,
			       const struct inherited *inherited, struct monitor *monitor, struct demand *demand)
{
	struct service *service = calloc(1, sizeof(*service));

	if (service) {
		service->shared.limits = limits_create();
		service->shared.withheld = hold_table_create();
	}
	if (!service || !service->shared.limits || !service->shared.withheld) {
		log_error("out of memory, or no source of random numbers");
		service_destroy(service);
		return NULL;
	}
	service->inherited = inherited;
	service->converter.monitor = monitor;
	service->converter.demand = demand;
	service->plugs = converter_plugs(&service->converter);
	service->shared.plugs = &service->plugs;
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

/* Removes the sites that have never run (@new), or else those that aren't wanted. */
static void remove_sites(struct service *service, bool new)
{
	struct site *site, *next;

	DL_FOREACH_SAFE(service->sites, site, next)
		if (new ? !site->running : !site->wanted) {
			DL_DELETE(service->sites, site);
			listener_destroy(site->listener);
			free(site);
		}
}

/* Makes a site whose clients aren't accepted yet. Returns NULL after adding the error to @problems. */
static struct site *site_create(struct service *service, const struct listen_address *where,
				struct problems *problems)
{
	static const struct place nowhere;
	struct site *site = calloc(1, sizeof(*site));
	int inherited[SETTINGS_WORKERS_MAX];
	size_t inherited_count = inherit_find(service->inherited, where, inherited, SETTINGS_WORKERS_MAX);

	if (!site) {
		problems_add(problems, &nowhere, "out of memory");
		return NULL;
	}
	site->where = *where;
	site->listener = listener_create(where, true, service->workers, inherited, inherited_count, problems);
	if (site->listener)
		return site;
	free(site);
	return NULL;
}

static struct site *find_site(const struct service *service, const struct listen_address *where)
{
	struct site *site;

	DL_FOREACH(service->sites, site)
		if (listen_address_equal(&site->where, where))
			break;
	return site;
}

/* Makes sure that there is a site for each address of the settings. Returns false after adding the error to @problems. */
static bool make_sites(struct service *service, const struct convertd_settings *settings, struct problems *problems)
{
	struct site *site;

	DL_FOREACH(service->sites, site)
		site->wanted = false;
	for (size_t i = 0; i < settings->listen_count; i++) {
		const struct listen_address *where = &settings->listen[i];

		site = find_site(service, where);
		/* For an address that is given twice a second site is made, which fails with "Address already in use". */
		if (site && !site->wanted)
			DL_DELETE(service->sites, site);
		else
			site = site_create(service, where, problems);
		if (!site) {
			remove_sites(service, true);
			return false;
		}
		site->wanted = true;
		DL_APPEND(service->sites, site);
	}
	return true;
}

/* Makes the new sites listen. Returns false after adding the error to @problems. */
static bool listen_all(const struct service *service, struct problems *problems)
{
	const struct site *site;

	DL_FOREACH(service->sites, site)
		if (!site->running && !listener_listen(site->listener, problems))
			return false;
	return true;
}

/* Carries out a change, in the thread of one worker. */
static void carry_out(const struct worker_context *worker, void *arg)
{
	const struct change *change = arg;
	struct site *site;

	if (change->effective)
		session_pool_configure(worker->pool, &change->effective->serve);
	DL_FOREACH(change->sites, site) {
		if (site->wanted && !site->running)
			listener_accept(site->listener, worker);
		else if (!site->wanted)
			listener_stop(site->listener, worker, change->drain);
	}
}

static void judge_again(const struct worker_context *worker, void *arg)
{
	(void)arg;
	syn_judge_again(worker->judge);
}

void service_announce(const struct service *service, const char *how)
{
	const struct limits_settings *limits = &service->effective->limits;
	char text[LISTEN_ADDRESSES_MAX * LISTENER_DESCRIPTION_MAX], *end = text;
	size_t workers = workers_count(service->workers);
	const struct site *site;

	text[0] = '\0';
	DL_FOREACH(service->sites, site) {
		char description[LISTENER_DESCRIPTION_MAX];

		end += sprintf(end, "%s%s", end > text ? ", " : "",
			       listener_describe(site->listener, description));
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
static void check_open(const struct convertd_settings *settings)
{
	/* Any client is given a computed cookie when it asks, so only fixed cookies keep clients out. */
	bool fixed_cookies = settings->cookie_list.name[0] && !settings->cookie_key.name[0];

	if (!settings->access.clients.count && !fixed_cookies)
		log_warning("everybody may use this converter; name its clients with --allow-client PREFIX, "
			    "or write --allow-client ::/0 if that is meant");
}

/* Warns of each valid setting, and each property of this host, that makes the converter worse than it could be. */
static void warn(const struct service *service, const struct convertd_settings *settings)
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
	const struct convertd_settings *settings = effective->settings;
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

/* Puts settings in force, and takes over the caller's reference to them. It can't fail. */
static void take_force(struct service *service, struct effective_settings *effective)
{
	const struct convertd_settings *settings = effective->settings;
	struct change change = { .effective = effective, .sites = service->sites, .drain = true };
	struct site *site;

	log_set_level((enum log_level)settings->log_level);
	log_set_format((enum log_format)settings->log_format);
	limits_configure(service->shared.limits, &effective->limits);
	set_demand(service, effective);
	DL_FOREACH(service->sites, site)
		if (site->wanted) {
			listener_limit_syn_data(site->listener, effective->limits.pending.total);
			listener_set_congestion(site->listener, settings->congestion_client);
		}
	workers_order(service->workers, carry_out, &change);
	/* This comes after the first order, so that each worker that accepts a released SYN has the new settings already. */
	workers_order(service->workers, judge_again, NULL);
	remove_sites(service, false);
	DL_FOREACH(service->sites, site)
		site->running = true;
	effective_settings_destroy(service->effective);
	service->effective = effective;
}

/* Asks the service manager to keep the sockets and rules for the next process, except sockets of units, which it has anyway. */
static void keep_sockets(const struct service *service)
{
	int rules = withholding_rules_fd(service->withholding);
	const struct site *site;

	notify_send("FDSTOREREMOVE=1\nFDNAME=" NOTIFY_RULES_NAME);
	if (rules >= 0)
		notify_keep(rules, NOTIFY_RULES_NAME);
	notify_send("FDSTOREREMOVE=1\nFDNAME=" NOTIFY_KEPT_NAME);
	DL_FOREACH(service->sites, site)
		for (size_t i = 0; i < listener_sockets(site->listener); i++)
			if (!inherit_is_unit(service->inherited, &site->where))
				notify_keep(listener_socket(site->listener, i), NOTIFY_KEPT_NAME);
}

static bool takes_syn_data(const struct service *service)
{
	const struct site *site;

	DL_FOREACH(service->sites, site)
		if (site->wanted && !listener_takes_syn_data(site->listener))
			return false;
	return true;
}

bool service_apply(struct service *service, struct convertd_settings *settings, struct problems *problems)
{
	static const struct place nowhere;
	size_t workers = workers_count(service->workers);
	size_t files = FILES_OWN + workers * (WORKER_FILES + settings->listen_count) +
		       settings->metrics_count * ENDPOINT_FILES_MAX;
	const struct convertd_settings *in_force = service->effective ? service->effective->settings : NULL;
	struct effective_settings *effective = NULL;

	notices_forget();
	if (!source_check(&settings->sources, problems) ||
	    !make_sites(service, settings, problems))
		return false;
	if (monitor_open(service->converter.monitor, settings->metrics, settings->metrics_count, problems) &&
	    withholding_apply(service->withholding, settings, in_force, problems) && listen_all(service, problems)) {
		const struct effective_syns syns = {
			.withheld = withholding_is_on(service->withholding),
			.taken = takes_syn_data(service),
			.refused = withholding_refuses(service->withholding),
		};

		effective = effective_settings_create(settings, files, &syns);
	}
	if (!effective) {
		monitor_abandon(service->converter.monitor);
		remove_sites(service, true);
		if (in_force)
			withholding_apply(service->withholding, in_force, NULL, problems);
		/* All other failures have added an error to @problems. */
		if (!problems->count)
			problems_add(problems, &nowhere, "out of memory");
		return false;
	}
	warn(service, settings);
	take_force(service, effective);
	withholding_settle(service->withholding, settings);
	rights_settings_in_force();
	keep_sockets(service);
	return true;
}

const struct convertd_settings *service_settings(const struct service *service)
{
	return service->effective->settings;
}

/* Ends all sites. @drain: they accept the clients in their queues first */
static void end_sites(struct service *service, bool drain)
{
	struct change change = { .sites = service->sites, .drain = drain };
	struct site *site;

	DL_FOREACH(service->sites, site)
		site->wanted = false;
	workers_order(service->workers, carry_out, &change);
	remove_sites(service, false);
}

void service_stop_accepting(struct service *service)
{
	/* SYNs come first: clients of withheld SYNs are accepted here, where connections to their servers are prepared. */
	withholding_stop(service->withholding);
	end_sites(service, true);
}

bool service_is_well(struct service *service)
{
	size_t standing = workers_turn(service->workers);
	bool well = standing == workers_count(service->workers);

	if (!well && !service->warned)
		log_warning("worker-%zu stands still: convertd no longer notifies the service manager's watchdog", standing);
	service->warned = !well;
	return well;
}

size_t service_sessions(const struct service *service)
{
	return limits_members(service->shared.limits);
}

void service_destroy(struct service *service)
{
	if (!service)
		return;
	family_routes_destroy(service->family_routes);
	/* Accepting ends first, since to accept a client a worker may ask another one for room. */
	if (service->sites)
		end_sites(service, false);
	withholding_destroy(service->withholding);
	workers_destroy(service->workers);
	hold_table_destroy(service->shared.withheld);
	limits_destroy(service->shared.limits);
	effective_settings_destroy(service->effective);
	free(service);
}
