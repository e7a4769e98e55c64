/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.h - runs workers, listeners and the rules for SYNs as the settings say; for the main thread
 *
 * Behind the service itself come the parts of which it consists.
 */
#ifndef CONVERTD_SERVICE_H
#define CONVERTD_SERVICE_H

#include <stdbool.h>
#include <stddef.h>

struct demand;
struct event_base;
struct inherited;
struct monitor;
struct problems;
struct service;
struct convertd_settings;
struct workers;

/*
 * service_create() - start workers, which serve no client yet
 * @base: the event loop of the calling thread
 * @workers: the number of threads; 0: one for each CPU
 * @inherited: sockets to use for addresses that settings name; must outlive the service
 * @monitor: gets the metrics and the status; must outlive the service
 * @demand: says whether cookies are demanded; must outlive the service
 * Returns NULL after logging why.
 */
struct service *service_create(struct event_base *base, size_t workers,
			       const struct inherited *inherited, struct monitor *monitor, struct demand *demand);

/* Ends all sessions and frees everything. NULL is fine. */
void service_destroy(struct service *service);

/*
 * service_apply() - put @settings in force
 * Listeners that both the old and the new settings have are kept, and so are all sessions.
 * @settings: belong to the service on success, and it frees the old ones
 * Returns false after adding the error to @problems, with the old settings in force. After true, the caller calls
 * service_announce().
 */
bool service_apply(struct service *service, struct convertd_settings *settings, struct problems *problems);

/* Tells the log, the service manager and the monitor of the settings in force. @how: "ready" or "reloaded" */
void service_announce(const struct service *service, const char *how);

/* Returns the settings in force, after service_apply(). */
const struct convertd_settings *service_settings(const struct service *service);

/* Accepts the clients that are in the listeners' queues, and none that come later; sessions go on. service_apply() must not follow. */
void service_stop_accepting(struct service *service);

/*
 * service_is_well() - tell whether each worker's loop has turned since the call before
 * The first time that one has not, it is logged, and then not again until all have.
 */
bool service_is_well(struct service *service);

/* Returns the number of sessions. */
size_t service_sessions(const struct service *service);

/* ----- withholds SYNs until their servers have answered (RFC 8803 4.2): withholding.c ----- */

struct withholding;

/*
 * withholding_create() - prepare to withhold SYNs; none is withheld yet
 * @workers: each judges its share of the SYNs; must outlive the result
 * @kept: withholding_rules_fd() of the process before this one, or -1; it stays the caller's
 * Returns NULL without memory.
 */
struct withholding *withholding_create(struct workers *workers, int kept);

/* Releases all withheld SYNs, to any socket that listens then, and frees @w. NULL is fine. */
void withholding_destroy(struct withholding *w);

/*
 * withholding_apply() - start or stop withholding SYNs to the addresses of @settings, as these say
 * @in_force: settings whose listeners accept until withholding_settle(): the rules are for their addresses, too; NULL: there are none
 * If it isn't possible, the log says why and what it costs; with "on" @problems gets the error instead. Returns false
 * only with "on", and leaves everything as it was.
 */
bool withholding_apply(struct withholding *w, const struct convertd_settings *settings, const struct convertd_settings *in_force,
		       struct problems *problems);

/*
 * withholding_settle() - install rules for the addresses of @settings alone
 * Call after withholding_apply() for @settings, once all other listeners have stopped.
 * If that fails, rules for addresses where nobody listens any more stay, and harm nobody.
 */
void withholding_settle(struct withholding *w, const struct convertd_settings *settings);

/*
 * withholding_stop() - stop withholding, and release all SYNs
 * Their connections still find the results of their judgement. Until withholding_destroy(), SYN+ACKs show that they
 * confirm nothing (doc/private-tlvs.md): clients remember for an hour that they may confirm.
 */
void withholding_stop(struct withholding *w);

/* Tells whether SYNs are withheld. */
bool withholding_is_on(const struct withholding *w);

/* Tells whether SYNs are withheld, and the rules refuse those that are marked for refusal. */
bool withholding_refuses(const struct withholding *w);

/* Returns the descriptor with which the rules end; they make SYN+ACKs show that they confirm nothing. -1 without rules. */
int withholding_rules_fd(const struct withholding *w);

/* ----- which address families have a route out of this host, and the sysctls that convertd wants: host_checks.c ----- */

struct family_routes;

/* Watches routes and addresses in the thread of @base; logs a warning if that fails. Returns NULL without memory. */
struct family_routes *family_routes_create(struct event_base *base);

/* NULL is fine. */
void family_routes_destroy(struct family_routes *routes);

/*
 * family_routes_check() - look at the routes when @settings come into force, and again after each change of routes
 * Warns if destinations of a family are allowed but no route of that family leads out of this host. @settings must
 * stay valid until the next call or family_routes_destroy().
 */
void family_routes_check(struct family_routes *routes, const struct convertd_settings *settings);

enum sysctl_rule {
	SYSCTL_IS,    /* it should be this value */
	SYSCTL_LEAST, /* it should be this value or more */
	SYSCTL_MOST,  /* it should be this value or less */
	SYSCTL_BITS,  /* it should have these bits, and may have others */
};

struct sysctl_wish {
	const char *name; /* as sysctl(8) writes it */
	enum sysctl_rule rule;
	int value;
	const char *otherwise; /* the consequence of another value, for the log */
};

/* The list, whose last entry has no name. contrib/sysctl.d/50-convertd.conf has the same sysctls. */
extern const struct sysctl_wish sysctl_wishes[];

/* Tells whether @value is as wished. */
bool sysctl_wish_met(const struct sysctl_wish *wish, int value);

/* Returns the value that the sysctl should have instead of @value, which isn't as wished. */
int sysctl_wish_remedy(const struct sysctl_wish *wish, int value);

#endif
