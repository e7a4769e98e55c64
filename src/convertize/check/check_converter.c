/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_converter.c - "convertize check": reports each address of each converter
 *
 * One address that answers is enough for conversions: faults of the others are then only warnings. We report a fault that
 * explains others alone: for example, a converter that refuses this client doesn't show how it treats SYNs with data. A fault
 * over only one path is the path's.
 */
#include "config.h"

#include "common/tcp.h"
#include "convertize/check/check.h"

#include <string.h>

/* --- its answer -------------------------------------------------------------------- */

enum fact_status check_failure(const struct check_candidate *candidate)
{
	return candidate->converters->any_serves ? FACT_WARN : FACT_FAIL;
}

static const struct {
	enum convert_error_code code;
	const char *text, *remedy;
} errors[] = {
	{ CONVERT_ERROR_UNSUPPORTED_VERSION, "speaks no version of the protocol that libconvert speaks",
	  "use a converter that speaks version 1" },
	{ CONVERT_ERROR_UNSUPPORTED_MESSAGE, "doesn't say what it supports", "use a converter that answers Info TLVs" },
	{ CONVERT_ERROR_MALFORMED_MESSAGE, "doesn't say what it supports", "use a converter that answers Info TLVs" },
	{ CONVERT_ERROR_MISSING_COOKIE, "wants a cookie", "ask its operator for one, and set CONVERT_COOKIE" },
	{ CONVERT_ERROR_RESOURCE_EXCEEDED, "has no resources left", "try again later" },
	{ CONVERT_ERROR_NETWORK_FAILURE, "has trouble with its own network", "try again later" },
};

/* The message and the remedy for each reason of a refusal. */
static const char *const refusals[][2] = {
	[CHECK_COOKIE_UNKNOWN] = { "refuses this client, or its cookie",
				   "ask its operator to admit this client, or for the right CONVERT_COOKIE" },
	[CHECK_COOKIE_CLIENT] = { "refuses this client", NULL },
	[CHECK_COOKIE_WRONG] = { "refuses the cookie", "ask its operator for the right cookie, and set CONVERT_COOKIE" },
	[CHECK_COOKIE_NOT_NEEDED] = { "refuses the cookie, and needs none to be set", "leave out --cookie, and unset CONVERT_COOKIE" },
};

static void report_refusal(const struct check_candidate *candidate)
{
	union sockaddr_ip local = candidate->first.probe.local;
	const char *remedy = refusals[candidate->refused][1];
	char text[SOCKADDR_STRLEN];
	struct fact *fact;

	fact = check_fact(candidate, check_failure(candidate), "converter", "%s (error %u, %s)", refusals[candidate->refused][0],
			  candidate->first.probe.response.error_code, convert_error_name(candidate->first.probe.response.error_code));
	if (remedy)
		fact_remedy(fact, "%s", remedy);
	else
		fact_remedy(fact,
			    "on the converter, start convertd with --allow-client %s, or with the address that it sees this client by; or "
			    "ask its operator for a cookie, and set CONVERT_COOKIE", host_format_address(&local, text));
	fact_value_text(fact, convert_error_name(candidate->first.probe.response.error_code));
}

static void report_error(const struct check_candidate *candidate)
{
	uint8_t code = candidate->first.probe.response.error_code;
	const char *text = "answers with an error", *remedy = "see the log of the converter";
	struct fact *fact;

	if (code == CONVERT_ERROR_NOT_AUTHORIZED) {
		report_refusal(candidate);
		return;
	}
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].code == code) {
			text = errors[i].text;
			remedy = errors[i].remedy;
		}
	fact = check_fact(candidate, check_serves(candidate) ? FACT_NOTE : check_failure(candidate), "converter", "%s (error %u, %s)",
			  text, code, convert_error_name(code));
	fact_remedy(fact, "%s", remedy);
	fact_value_text(fact, convert_error_name(code));
}

static void report_answer(const struct check_candidate *candidate)
{
	const struct probe_result *probe = &candidate->first.probe;

	if (candidate->cookie_learned)
		check_fact(candidate, FACT_NOTE, "converter.cookie",
			   "asks for a cookie and gives it: a program's first connection takes longer");
	if (probe->response.has_error)
		report_error(candidate);
	else
		fact_value_text(check_fact(candidate, FACT_OK, "converter", "answers after %.1f ms", probe->answer_ms), "answered");
	fact_value_number(check_fact(candidate, FACT_OK, "converter.round_trip_ms", "the round trip takes %.1f ms", probe->round_trip_ms),
			  probe->round_trip_ms);
}

/* --- SYN data and MPTCP -------------------------------------------------------------- */

/* Returns another path over which SYN data (or Multipath TCP) gets through: the first path is then the cause. NULL: there is none. */
static const struct check_path *elsewhere(const struct check_candidate *candidate, bool syn_data)
{
	for (size_t i = 0; i < candidate->path_count; i++) {
		const struct check_path *path = &candidate->paths[i];

		if (path->connected && (syn_data ? path->syn_data == PROBE_SYN_DATA_TAKEN :
						   path->mptcp == PROBE_MPTCP_KEPT))
			return path;
	}
	return NULL;
}

/*
 * Does something in front of the converter take its connections, so that neither data in SYNs nor Multipath TCP gets there over any path?
 * Only a converter whose host takes data in SYNs offers silence.
 */
static bool is_proxied(const struct check_candidate *candidate)
{
	const struct check_path *first = &candidate->first;

	return first->probe.response.withholding.silent && first->syn_data == PROBE_SYN_DATA_REFUSED && first->mptcp == PROBE_MPTCP_LOST &&
	       !first->mptcp_dropped && !elsewhere(candidate, true) && !elsewhere(candidate, false);
}

static struct fact *report_refused_data(const struct check_candidate *candidate)
{
	const struct check_path *other = elsewhere(candidate, true);
	struct fact *fact;

	fact = check_fact(candidate, FACT_WARN, "converter.syn_data",
			  "did not take the data in the SYN%s%s: connections take one more round trip",
			  other ? ", though it does over " : "", other ? check_path_name(other) : "");
	if (other) {
		fact_remedy(fact, "ask the operator of %s to let data in SYNs through, " OTHER_PORT, check_path_name(&candidate->first));
		return fact;
	}
	fact_command(fact, COMMAND_CONVERTER, "sysctl", "-w", "net.ipv4.tcp_fastopen=3");
	fact_remedy(fact,
		    "on the converter, sysctl -w net.ipv4.tcp_fastopen=3; if it is 3 already, upgrade that machine to Linux 6.2 or newer, "
		    "or ask the operator of the network to let data in SYNs through");
	return fact;
}

static struct fact *report_lost_data(const struct check_candidate *candidate)
{
	const struct check_path *first = &candidate->first, *other = elsewhere(candidate, true);
	const char *over = other ? check_path_name(first) : "", *word = other ? " over " : "";
	struct fact *fact;

	if (first->syn_passed)
		fact = check_fact(candidate, FACT_WARN, "converter.syn_data",
				  "answers to SYNs with %zu bytes of data%s%s, not to those with %zu, as a request has: connections begin "
				  "a second late", first->syn_passed, word, over, first->syn_lost);
	else
		fact = check_fact(candidate, FACT_WARN, "converter.syn_data",
				  "answers to SYNs without data%s%s, not to those with a request: connections begin a second late", word,
				  over);
	fact_remedy(fact, REMEDY_SYN_DATA);
	return fact;
}

static void report_syn_data(const struct check_candidate *candidate)
{
	const struct check_path *first = &candidate->first;
	struct fact *fact = NULL;

	switch (first->syn_data) {
	case PROBE_SYN_DATA_UNUSED:
		fact = check_fact(candidate, FACT_NOTE, "converter.syn_data",
				  "the request followed the handshake: this kernel puts no data into SYNs");
		break;
	case PROBE_SYN_DATA_TAKEN:
		fact = check_fact(candidate, FACT_OK, "converter.syn_data", "took the data in the SYN");
		break;
	case PROBE_SYN_DATA_REFUSED:
		fact = is_proxied(candidate) ? check_fact(candidate, FACT_NOTE, "converter.syn_data", "did not take the data in the SYN") :
					       report_refused_data(candidate);
		break;
	case PROBE_SYN_DATA_LOST:
		fact = report_lost_data(candidate);
		break;
	}
	fact_value_bool(fact, first->syn_data == PROBE_SYN_DATA_TAKEN);
}

/* Reports whether SYNs full of early data get through, if SYNs with only a request do. */
static void report_syn_bytes(const struct check_candidate *candidate)
{
	const struct check_path *first = &candidate->first;
	bool early_data = candidate->converters->settings->early_data;
	struct fact *fact;

	/* a path that loses large packets loses large SYNs, too */
	if (first->syn_data != PROBE_SYN_DATA_TAKEN || !first->syn_passed ||
	    first->size != CHECK_SIZE_CARRIED)
		return;
	if (!first->syn_lost) {
		fact = check_fact(candidate, FACT_OK, "converter.syn_bytes", "takes SYNs with %zu bytes of data", first->syn_passed);
	} else {
		fact = check_fact(candidate, FACT_WARN, "converter.syn_bytes",
				  "answers to SYNs with %zu bytes of data, not to those with %zu: requests get through, but connections "
				  "with early data begin a second late", first->syn_passed, first->syn_lost);
		fact_remedy(fact, REMEDY_SYN_BYTES, early_data ? "; or leave out --early-data, and unset CONVERT_EARLY_DATA" : "");
	}
	fact_value_number(fact, (double)first->syn_passed);
}

static bool offers_mptcp(const struct convert_response *response)
{
	return response->supported.len &&
	       memchr(response->supported.data, TCP_KIND_MPTCP, response->supported.len);
}

/* Returns another address of the same name to which Multipath TCP gets through over the first path; NULL: there is none. */
static const struct check_candidate *twin(const struct check_candidate *candidate)
{
	for (size_t i = 0; i < candidate->converters->count && *candidate->name; i++) {
		const struct check_candidate *other = &candidate->converters->candidates[i];

		if (strcmp(other->name, candidate->name) == 0 && other->first.mptcp == PROBE_MPTCP_KEPT &&
		    sockaddr_ip_is_v4(&other->address) == sockaddr_ip_is_v4(&candidate->address))
			return other;
	}
	return NULL;
}

static struct fact *report_lost_mptcp(const struct check_candidate *candidate)
{
	const struct check_path *first = &candidate->first, *other = elsewhere(candidate, false);
	struct fact *fact;

	if (first->mptcp_lost_here) {
		fact = check_fact(candidate, FACT_WARN, "converter.mptcp",
				  "this machine's own firewall removes Multipath TCP, or drops SYNs with it");
		fact_remedy(fact, "have this machine's firewall let TCP option 30 (mptcp) through: nft list ruleset");
		return fact;
	}
	if (is_proxied(candidate)) {
		fact = check_fact(candidate, FACT_WARN, "converter.mptcp",
				  "something in front of the converter takes its connections: neither Multipath TCP nor data in SYNs gets "
				  "there");
		fact_remedy(fact, "see the load balancer or SYN proxy in front of it, " OTHER_PORT);
		return fact;
	}
	if (twin(candidate)) {
		fact = check_fact(candidate, FACT_WARN, "converter.mptcp",
				  "Multipath TCP does not get through to this address, though it does to %s", twin(candidate)->about);
		fact_remedy(fact, "see the load balancer or firewall in front of this address, or leave the address out of the name");
		return fact;
	}
	if (first->mptcp_dropped) {
		fact = check_fact(candidate, FACT_WARN, "converter.mptcp",
				  "SYNs with Multipath TCP get no answer%s%s, those without do: something on the way drops them",
				  other ? " over " : "", other ? check_path_name(first) : "");
	} else if (other || offers_mptcp(&first->probe.response)) {
		fact = check_fact(candidate, FACT_WARN, "converter.mptcp",
				  "Multipath TCP does not get through%s%s, though the converter has it: something on the way removes it",
				  other ? " over " : "", other ? check_path_name(first) : "");
	} else {
		fact = check_fact(candidate, FACT_WARN, "converter.mptcp",
				  "Multipath TCP does not get through, or is off at the converter, which doesn't announce it");
		fact_command(fact, COMMAND_CONVERTER, "sysctl", "-w", "net.mptcp.enabled=1");
		fact_command(fact, COMMAND_CONVERTER, "systemctl", "restart", "convertd");
		return fact;
	}
	fact_remedy(fact, REMEDY_OPTION_30, other || first->mptcp_dropped ? "" : "; see also that net.mptcp.enabled is still 1 there");
	return fact;
}

static void report_mptcp(const struct check_candidate *candidate)
{
	struct fact *fact = NULL;

	switch (candidate->first.mptcp) {
	case PROBE_MPTCP_KEPT:
		fact = check_fact(candidate, FACT_OK, "converter.mptcp", "Multipath TCP gets through%s",
				  candidate->first.syn_data == PROBE_SYN_DATA_TAKEN ? "" : ", if there is no data in the SYN");
		break;
	case PROBE_MPTCP_LOST:
		fact = report_lost_mptcp(candidate);
		break;
	case PROBE_MPTCP_WITHHELD:
		/* check_kernel() has reported it, with the remedy */
		fact = check_fact(candidate, FACT_NOTE, "converter.mptcp",
				  "this kernel did not offer Multipath TCP, because SYNs with it were lost before");
		break;
	case PROBE_MPTCP_UNUSED:
		fact = check_fact(candidate, FACT_NOTE, "converter.mptcp",
				  "was asked over plain TCP, since this kernel makes no other connections");
		break;
	}
	fact_value_bool(fact, candidate->first.mptcp == PROBE_MPTCP_KEPT);
}

/* --- all of one address --------------------------------------------------------------- */

/* Reports that the converter rests: a program of this user noted its failure. */
static void report_rest(const struct check_candidate *candidate)
{
	struct cache_converter known;
	int64_t now = cache_now();
	struct fact *fact;

	if (!check_serves(candidate) || !cache_converter_get(&candidate->converters->cache, &candidate->address, 0, CACHE_REST, now,
							     &known))
		return;
	fact = check_fact(candidate, FACT_WARN, "converter.rest_s",
			  "programs of this user leave it alone for %.0f s more, since it failed before",
			  (double)(known.rest.until - now) / 1e3);
	fact_remedy(fact, "wait, or run rm %s/" CACHE_FILE, candidate->converters->place.path);
	fact_value_number(fact, (double)(known.rest.until - now) / 1e3);
}

/* Does the converter serve, and reach servers as far as it says? */
static bool reaches_servers(const struct check_candidate *candidate)
{
	return check_serves(candidate) && !candidate->first.probe.response.withholding.no_way;
}

static void report_reach(const struct check_candidate *candidate)
{
	bool others = false;

	for (size_t i = 0; i < candidate->converters->count; i++)
		others = others || reaches_servers(&candidate->converters->candidates[i]);
	if (!reaches_servers(candidate))
		fact_remedy(check_fact(candidate, others ? FACT_WARN : FACT_FAIL, "converter.reach",
				       "has no route to servers, or none answers it: it refuses requests"),
			    "on the converter, see convertd status, ip route, and that its firewall lets TCP out");
}

static void report_candidate(struct check_candidate *candidate)
{
	if (candidate->first.probe.outcome != PROBE_ANSWERED) {
		check_report_unanswered(candidate);
		return;
	}
	report_answer(candidate);
	/* A converter that refuses removes Multipath TCP from the SYN: then we know nothing more. */
	if (!check_serves(candidate))
		return;
	report_reach(candidate);
	report_rest(candidate);
	report_syn_data(candidate);
	report_syn_bytes(candidate);
	report_mptcp(candidate);
	check_supported(candidate);
	check_paths_report_size(&candidate->first);
}

/* Asks a candidate over the path that connections take. */
static void look_at_first(struct check_candidate *candidate)
{
	const struct check_networks *networks = candidate->converters->networks;
	const struct host_network *network;

	candidate->forbidden = !check_keep_off(networks, candidate->converters->settings, &candidate->address, &network);
	if (candidate->forbidden) {
		candidate->first.probe.outcome = PROBE_LOCAL;
		return;
	}
	if (network) {
		candidate->first.from = network->address;
		candidate->first.device = network->link.name;
		candidate->first.home = host_link_of(&networks->host, network->link.index);
	}
	check_ask_first(candidate);
}

/* Asks and measures all candidates. The reports follow later. */
static void look_at_candidates(struct check_converters *converters)
{
	bool families[2] = { false };

	for (size_t i = 0; i < converters->count; i++) {
		struct check_candidate *candidate = &converters->candidates[i];

		look_at_first(candidate);
		converters->any_serves = converters->any_serves || check_serves(candidate);
	}
	for (size_t i = 0; i < converters->count; i++) {
		struct check_candidate *candidate = &converters->candidates[i];
		bool *seen = &families[sockaddr_ip_is_v4(&candidate->address)];

		if (!check_serves(candidate))
			continue;
		candidate->first.home = check_home_of(candidate, &candidate->first.probe.local);
		check_measure(&candidate->first);
		/* the same networks lead to other addresses of the family */
		if (!*seen && candidate->first.mptcp != PROBE_MPTCP_UNUSED &&
		    candidate->first.mptcp != PROBE_MPTCP_WITHHELD)
			check_paths_look(candidate);
		*seen = true;
	}
}

/* --- all of it ----------------------------------------------------------------------- */

static void add_candidate(struct check_converters *converters, const union sockaddr_ip *address, const char *name)
{
	struct check_candidate *candidate = &converters->candidates[converters->count++];
	char text[SOCKADDR_STRLEN];

	candidate->converters = converters;
	candidate->first.candidate = candidate;
	candidate->address = *address;
	candidate->name = name;
	snprintf(candidate->about, sizeof(candidate->about), "%s%s%s%s",
		 sockaddr_ip_format(address, text), *name ? " (" : "", name, *name ? ")" : "");
}

/* Reports the networks that can't reach an address that serves, and the way to a server. */
static void report_served(const struct check_converters *converters, const char *server)
{
	size_t first = 0;

	while (first < converters->count && !reaches_servers(&converters->candidates[first]))
		first++;
	if (first == converters->count)
		return;
	check_families(converters->report, converters->networks, sockaddr_ip_is_v4(&converters->candidates[first].address));
	if (server)
		check_server(converters, server);
	else
		fact_remedy(report_plain(converters->report, FACT_NOTE, "server", "not tried: whether the converter reaches servers"),
			    "name one to try: convertize check SERVER[:PORT]");
}

void check_converters(struct report *report, const struct settings *settings, const struct check_networks *networks,
		      const struct check_addresses *addresses, const char *server)
{
	static struct check_converters converters;

	memset(&converters, 0, sizeof(converters));
	converters.report = report;
	converters.settings = settings;
	converters.networks = networks;
	if (!settings->enabled) {
		fact_remedy(report_plain(report, FACT_FAIL, "converter", "no converter is named"),
			    "name one with --converter ADDR, or with CONVERT_ADDR in the environment");
		return;
	}
	for (size_t i = 0; i < addresses->unresolved_count; i++)
		fact_remedy(report_fact(report, FACT_WARN, "converter.name", addresses->unresolved[i].name, "can't be resolved: %s",
					addresses->unresolved[i].reason), REMEDY_NAME);
	for (size_t i = 0; i < addresses->count; i++)
		add_candidate(&converters, &addresses->list[i], addresses->names[i]);
	report_flush(report);
	look_at_candidates(&converters);
	check_cache_open(&converters.cache, settings, &converters.place);
	for (size_t i = 0; i < converters.count; i++)
		report_candidate(&converters.candidates[i]);
	if (!converters.count)
		report_plain(report, FACT_FAIL, "converter", "no converter has an address");
	report_flush(report);
	for (size_t i = 0; i < converters.count; i++)
		if (check_serves(&converters.candidates[i]))
			check_paths_report(&converters.candidates[i]);
	report_served(&converters, server);
	cache_close(&converters.cache);
}
