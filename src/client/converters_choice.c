/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * converters_choice.c - chooses the converter for a connection
 *
 * The user sets the order: the parts of CONVERT_ADDR one after the other, the addresses of a name in the resolver's order. The choice makes
 * up to four passes, for addresses that suit the socket less and less, and with CONVERT_FALLBACK=none another one, for converters that
 * rest. Before it considers a converter, it takes over from the cache the facts that the user's other processes have learned about it.
 */
#include "config.h"

#include "client/converters.h"

#include "client/converters_destinations.h"
#include "client/converters_facts.h"
#include "client/paths_facts.h"
#include "client/resolve.h"
#include "common/clock.h"

/* The addresses that a socket can be connected to, beside those of its own family. */
enum fit {
	FIT_NATIVE, /* none */
	FIT_SOCKET, /* an IPv6 socket to v4-mapped ones */
	FIT_ANY,    /* all: another socket takes its place */
};

/* One pass through the list. */
struct pass {
	const struct settings *settings;
	const struct converters_query *query;
	union sockaddr_ip *out;
	const char **reason;
	enum fit fit;
	int64_t now; /* clock_seconds(); INT64_MAX: also choose converters that rest */
};

static bool address_for(const struct pass *pass, const union sockaddr_ip *addr)
{
	const struct converters_query *query = pass->query;
	struct in6_addr in6 = sockaddr_ip_in6(addr);

	*pass->out = *addr;
	if (addr->sa.sa_family == query->family)
		return true;
	if (pass->fit == FIT_NATIVE)
		return false;
	if (addr->sa.sa_family != AF_INET || query->v6only)
		return pass->fit == FIT_ANY;
	return sockaddr_ip_set(pass->out, query->family, &in6, sockaddr_ip_port(addr));
}

/* Returns why we must not ask converter @i, or NULL with its address in *out. */
static const char *obstacle(const struct pass *pass, int i)
{
	if (converters_rests(i, pass->now))
		return "the converter is left alone for a while";
	if (converters_has_refused(i, pass->query->destination, pass->now))
		return "the converter has refused this destination";
	if (converters_has_refused_family(i, pass->query->destination, pass->now))
		return "the converter has refused several destinations of this address family";
	if (!address_for(pass, converters_address(i)))
		return "the converter has no address of the socket's family";
	return NULL;
}

/* Takes over the facts about converter @i that the user's other processes have learned. */
static void renew(int i)
{
	int64_t now = clock_seconds();
	struct cache_converter found;

	converters_noted(i, CACHE_FACTS_ALL, &found);
	converters_renew_facts(i, &found, now);
	converters_renew_refusals(i, &found, now);
	converters_renew_cookie(i, &found);
	converters_renew_path(i, &found);
}

/* Returns the first usable converter of a part of CONVERT_ADDR. */
static int choose_of(const struct pass *pass, size_t setting)
{
	int count = converters_count();

	for (int i = 0; i < count; i++) {
		const char *why;

		if (!converters_is_of(i, setting) || pass->query->tried >> i & 1)
			continue;
		renew(i);
		why = obstacle(pass, i);
		if (!why)
			return i;
		if (!*pass->reason) /* the first one is the most informative */
			*pass->reason = why;
	}
	return CONVERTERS_NONE;
}

static int choose(const struct pass *pass)
{
	for (size_t i = 0; i < pass->settings->converter_count; i++) {
		int index = choose_of(pass, i);

		if (index == CONVERTERS_NONE && converters_may_resolve(pass->settings, i)) {
			if (!pass->query->may_resolve)
				return CONVERTERS_UNRESOLVED;
			converters_resolve(pass->settings, i, pass->reason);
			index = choose_of(pass, i);
		}
		if (index != CONVERTERS_NONE)
			return index;
	}
	return CONVERTERS_NONE;
}

static int choose_best(struct pass *pass)
{
	const struct converters_query *query = pass->query;
	int index = CONVERTERS_NONE;

	/*
	 * In Linux 6.18 an IPv6 socket that was once connected to a v4-mapped address can't be connected to an IPv6 address any more (the
	 * SYN is lost). So native addresses come first for an IPv6 destination.
	 */
	pass->fit = FIT_NATIVE;
	if (query->family == AF_INET6 && !sockaddr_ip_is_v4(query->destination))
		index = choose(pass);
	pass->fit = FIT_SOCKET;
	if (index == CONVERTERS_NONE)
		index = choose(pass);
	if (query->any)
		pass->fit = FIT_ANY;
	if (index == CONVERTERS_NONE && query->any)
		index = choose(pass);
	pass->now = INT64_MAX;
	if (index == CONVERTERS_NONE && pass->settings->fail_closed)
		index = choose(pass);
	return index;
}

int converters_choose(const struct settings *settings, const struct converters_query *query,
		      union sockaddr_ip *out, enum policy_verdict *verdict, const char **reason)
{
	struct pass pass = { .settings = settings, .query = query, .out = out, .reason = reason };
	int index;

	*reason = NULL;
	if (resolve_is_running()) {
		*verdict = POLICY_DIRECT_RESOLVER;
		*reason = policy_reason(*verdict);
		return CONVERTERS_NONE;
	}
	pass.now = clock_seconds();
	index = choose_best(&pass);
	if (!*reason)
		*reason = "the converter's name has no address";
	if (!converters_include(query->destination))
		return index;
	*verdict = POLICY_DIRECT_CONVERTER;
	*reason = policy_reason(*verdict);
	return CONVERTERS_NONE;
}

void converters_forget(void)
{
	converters_facts_forget();
	converters_destinations_forget();
	paths_facts_forget();
}
