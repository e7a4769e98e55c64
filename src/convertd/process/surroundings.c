/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * surroundings.c - warns when this host's addresses, endpoints or routes aren't as a converter needs them
 *
 * Connections are served whatever is missing. The checks are made when settings come into force, and
 * when routes or addresses have changed; after a change, only warnings that the check before didn't have are logged.
 */
#include "config.h"

#include "convertd/process/surroundings.h"

#include "convertd/base/clock.h"
#include "common/endpoints.h"
#include "common/sysctl.h"
#include "convertd/policy/families.h"
#include "convertd/base/log.h"
#include "convertd/net/route.h"
#include "convertd/config/settings.h"
#include "convertd/config/anycast.h"
#include "convertd/net/uplink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The room for the warnings of one check in bytes; further ones are left out. */
#define TOLD_MAX 4096

struct surroundings {
	const struct settings *settings; /* the settings in force; NULL: none yet */
	struct uplink *uplink;           /* NULL: changes aren't seen */
	struct route *route;             /* NULL: all addresses are taken for this host's */
	char told[TOLD_MAX];             /* the warnings of the last check: lines, each with a NUL, and an empty one */
};

/* The warnings of the present check, which only the main thread makes. */
static struct {
	char text[TOLD_MAX];
	size_t len;
} look;

static void note_warning(const char *line)
{
	size_t len = strlen(line) + 1;

	if (look.len + len >= TOLD_MAX)
		return;
	memcpy(look.text + look.len, line, len);
	look.len += len;
	look.text[look.len] = '\0';
}

/* Tells whether the last check had this warning. */
static bool was_told(const struct surroundings *surroundings, const char *line)
{
	for (const char *told = surroundings->told; *told; told += strlen(told) + 1)
		if (strcmp(told, line) == 0)
			return true;
	return false;
}

/* Logs the warnings of this check, with @again also those that the last one had. */
static void tell(struct surroundings *surroundings, bool again)
{
	for (const char *line = look.text; *line; line += strlen(line) + 1)
		if (again || !was_told(surroundings, line))
			log_warning("%s", line);
	memcpy(surroundings->told, look.text, TOLD_MAX);
}

static bool is_local(void *route, const struct in6_addr *address)
{
	return !route || route_find(route, address) == ROUTE_OWN;
}

static void check_shared(struct surroundings *surroundings)
{
	const struct settings *settings = surroundings->settings;
	struct problems warnings = { .print = note_warning };
	struct anycast_facts facts = {
		.allow_join_initial = sysctl_read("net.mptcp.allow_join_initial_addr_port"),
		.listen = settings->listen,
		.listen_count = settings->listen_count,
		.own = &settings->own,
		.is_local = is_local,
		.is_local_arg = surroundings->route,
	};
	struct {
		struct netlink netlink;
		struct endpoints endpoints;
	} *kernel = malloc(sizeof(*kernel));
	int error = kernel ? endpoints_read(&kernel->endpoints, &kernel->netlink) : -ENOMEM;

	if (!error)
		facts.endpoints = &kernel->endpoints;
	else if (settings->anycast.count)
		log_warning("--shared-address: MPTCP endpoints are not known: %s", strerror(-error));
	anycast_check(&settings->anycast, &facts, &warnings);
	free(kernel);
}

/* Tells whether the rules allow clients to reach the Internet by this family. */
static bool is_wanted(const struct settings *settings, enum family family)
{
	/* Examples of public addresses; nothing is sent there. */
	static const struct in6_addr public[] = {
		[FAMILY_V4] = { { { [10] = 0xff, 0xff, 8, 8, 8, 8 } } },
		[FAMILY_V6] = { { { 0x20, 0x01, 0x48, 0x60 } } },
	};

	return access_rules_allow(&settings->access.destinations, &public[family], 443);
}

static void check_routes(struct surroundings *surroundings, bool again)
{
	static const int families[] = { [FAMILY_V4] = AF_INET, [FAMILY_V6] = AF_INET6 };

	for (int i = 0; surroundings->uplink && i < FAMILY_COUNT; i++) {
		enum family family = (enum family)i;
		bool routed = uplink_has_route(surroundings->uplink, families[i]);
		bool tell = is_wanted(surroundings->settings, family) &&
			    (again || families_is_routed(family));

		families_set_routed(family, routed, tell, clock_now_ms());
	}
}

/* Makes all checks. @again: log warnings that were logged before as well */
static void check(struct surroundings *surroundings, bool again)
{
	look.len = 0;
	look.text[0] = '\0';
	check_shared(surroundings);
	tell(surroundings, again);
	check_routes(surroundings, again);
}

static void on_changed(void *arg)
{
	struct surroundings *surroundings = arg;

	if (!surroundings->settings)
		return;
	families_routes_changed(clock_now_ms());
	check(surroundings, false);
}

struct surroundings *surroundings_create(struct event_base *base)
{
	struct surroundings *surroundings = calloc(1, sizeof(*surroundings));

	if (!surroundings)
		return NULL;
	surroundings->uplink = uplink_create(base, on_changed, surroundings);
	surroundings->route = route_create();
	if (!surroundings->uplink || !surroundings->route)
		log_warning("routes can't be watched: %s", strerror(errno));
	return surroundings;
}

void surroundings_destroy(struct surroundings *surroundings)
{
	if (!surroundings)
		return;
	uplink_destroy(surroundings->uplink);
	route_destroy(surroundings->route);
	free(surroundings);
}

void surroundings_check(struct surroundings *surroundings, const struct settings *settings)
{
	surroundings->settings = settings;
	check(surroundings, true);
}
