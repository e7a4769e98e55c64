/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_converter.c - what "convertize check" learns from each converter, and on each path to it
 *
 * Every address is asked once with the request in the SYN. Data in the SYN that is not taken
 * costs that connection its MPTCP (see DESIGN.md), so that another one, without data, then has to
 * tell whether MPTCP is. One address that answers is enough for conversions: what is wrong with
 * the others only counts as a warning then.
 */
#include "config.h"

#include "client/cache.h"
#include "client/resolve.h"
#include "convertize/check.h"
#include "convertize/probe.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define ADDRESSES_MAX 32 /* as many as libconvert.so knows */
#define KIND_MPTCP 30
#define QUOTED_MAX 24 /* bytes of what isn't a Convert message */

/* One address of a converter. */
struct candidate {
	union sockaddr_ip address;
	char about[SOCKADDR_STRLEN + SETTINGS_NAME_MAX + 4]; /* "192.0.2.1:1234 (name)" */
	struct probe_result probe;
	enum probe_mptcp mptcp; /* of a connection without data in the SYN, if need be */
	bool cookie_learned;    /* it asked for a cookie, and gave it */
};

struct converters {
	struct report *report;
	const struct settings *settings;
	struct cache cache; /* what programs have learned */
	struct candidate candidates[ADDRESSES_MAX];
	size_t count;
	bool any; /* some address serves */
};

static bool serves(const struct candidate *candidate)
{
	const struct probe_result *probe = &candidate->probe;

	/* A converter that doesn't know the Info TLV may convert all the same. */
	return probe->outcome == PROBE_ANSWERED &&
	       (!probe->response.has_error ||
		probe->response.error_code == CONVERT_ERROR_UNSUPPORTED_MESSAGE ||
		probe->response.error_code == CONVERT_ERROR_MALFORMED_MESSAGE);
}

/* --- asking -------------------------------------------------------------------------- */

static struct convert_span configured_cookie(const struct converters *converters)
{
	const struct settings *settings = converters->settings;

	return (struct convert_span){ settings->cookie, settings->cookie_len };
}

/* The cookie of a Missing Cookie error, behind a byte of zero (Section 6.2.8); empty: none. */
static struct convert_span given_cookie(const struct probe_result *probe)
{
	struct convert_span value = probe->response.error_value;

	if (probe->outcome != PROBE_ANSWERED || !probe->response.has_error ||
	    probe->response.error_code != CONVERT_ERROR_MISSING_COOKIE || value.len < 2)
		return (struct convert_span){ 0 };
	return (struct convert_span){ value.data + 1, value.len - 1 };
}

static void ask(const struct converters *converters, struct candidate *candidate)
{
	struct probe_request request = { .converter = candidate->address,
					 .in_syn = true,
					 .cookie = configured_cookie(converters),
					 .timeout_ms = converters->settings->timeout_ms };
	static struct probe_result without_data;
	uint8_t bytes[CONVERT_TLV_VALUE_MAX];
	struct convert_span cookie;

	probe_run(&request, &candidate->probe);
	cookie = given_cookie(&candidate->probe);
	if (cookie.len) {
		memcpy(bytes, cookie.data, cookie.len);
		request.cookie = (struct convert_span){ bytes, cookie.len };
		candidate->cookie_learned = true;
		probe_run(&request, &candidate->probe);
	}
	candidate->mptcp = candidate->probe.mptcp;
	if (candidate->probe.syn_data != PROBE_SYN_DATA_REFUSED &&
	    candidate->probe.syn_data != PROBE_SYN_DATA_LOST)
		return;
	request.in_syn = false;
	probe_run(&request, &without_data);
	candidate->mptcp = without_data.mptcp;
}

/* --- what it says -------------------------------------------------------------------- */

static enum fact_status failure(const struct converters *converters)
{
	return converters->any ? FACT_WARN : FACT_FAIL;
}

static const struct {
	const char *name, *text, *remedy;
} outcomes[] = {
	[PROBE_ANSWERED] = { "answered", NULL, NULL },
	[PROBE_LOCAL] = { "local", "can't be asked from here", NULL },
	[PROBE_UNREACHABLE] = { "unreachable", "can't be reached", NULL },
	[PROBE_NO_SYN_ACK] = { "no-syn-ack", "nothing comes back",
			       "see that the address is right, that convertd runs there, and that "
			       "no firewall drops TCP to this port" },
	[PROBE_SILENT] = { "silent", "takes connections and then says nothing",
			   "see that the address and the port are those of a converter" },
	[PROBE_CLOSED] = { "closed", "closes the connection without an answer",
			   "see that the address and the port are those of a converter" },
	[PROBE_RESET] = { "reset", "resets the connection without an answer",
			  "see that the address and the port are those of a converter" },
	[PROBE_NOT_CONVERT] = { "not-convert",
				"answers by something else than the Convert Protocol",
				"see that the address and the port are those of a converter" },
};
static_assert(sizeof(outcomes) / sizeof(outcomes[0]) == PROBE_OUTCOME_COUNT, "one for each");

/* The beginning of what a peer sent, in quotes, with dots for what isn't plain text. */
static void quote(const struct probe_result *probe, char out[static QUOTED_MAX + 3])
{
	size_t len = probe->message_len < QUOTED_MAX ? probe->message_len : QUOTED_MAX;
	char *at = out;

	*at++ = '"';
	for (size_t i = 0; i < len; i++)
		*at++ = (char)(probe->message[i] >= ' ' && probe->message[i] < 0x7f ?
				       probe->message[i] : '.');
	*at++ = '"';
	*at = '\0';
}

static void report_outcome(const struct converters *converters, const struct candidate *candidate)
{
	const struct probe_result *probe = &candidate->probe;
	char quoted[QUOTED_MAX + 3], detail[128] = "";
	const char *remedy = outcomes[probe->outcome].remedy;
	struct fact *fact;

	switch (probe->outcome) {
	case PROBE_LOCAL:
	case PROBE_UNREACHABLE:
		snprintf(detail, sizeof(detail), ": %s", strerror(probe->error));
		break;
	case PROBE_NO_SYN_ACK:
	case PROBE_SILENT:
		snprintf(detail, sizeof(detail), " for %g s",
			 converters->settings->timeout_ms / 1e3);
		break;
	case PROBE_NOT_CONVERT:
		quote(probe, quoted);
		snprintf(detail, sizeof(detail), " (%s: %s)", convert_status_name(probe->status),
			 quoted);
		break;
	default:
		break;
	}
	fact = report_fact(converters->report, failure(converters), "converter", candidate->about,
			   "%s%s", outcomes[probe->outcome].text, detail);
	fact_value_text(fact, outcomes[probe->outcome].name);
	if (probe->outcome == PROBE_UNREACHABLE && probe->error == ECONNREFUSED)
		remedy = "see that convertd runs there, and that the port is right";
	if (remedy)
		fact_remedy(fact, "%s", remedy);
}

static const struct {
	enum convert_error_code code;
	const char *text, *remedy;
} errors[] = {
	{ CONVERT_ERROR_UNSUPPORTED_VERSION,
	  "speaks no version of the protocol that libconvert does",
	  "a converter that speaks version 1" },
	{ CONVERT_ERROR_UNSUPPORTED_MESSAGE, "doesn't say what it supports",
	  "a converter that answers to Info TLVs" },
	{ CONVERT_ERROR_MALFORMED_MESSAGE, "doesn't say what it supports",
	  "a converter that answers to Info TLVs" },
	{ CONVERT_ERROR_MISSING_COOKIE, "wants a cookie",
	  "ask its operator for one, and set CONVERT_COOKIE" },
	{ CONVERT_ERROR_NOT_AUTHORIZED, "refuses this client, or its cookie",
	  "ask its operator to admit this client, or for the right CONVERT_COOKIE" },
	{ CONVERT_ERROR_RESOURCE_EXCEEDED, "has no resources left", "try again later" },
	{ CONVERT_ERROR_NETWORK_FAILURE, "has trouble with its own network", "try again later" },
};

static void report_error(const struct converters *converters, const struct candidate *candidate)
{
	uint8_t code = candidate->probe.response.error_code;
	const char *text = "answers by an error", *remedy = "see the log of the converter";
	struct fact *fact;

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].code == code) {
			text = errors[i].text;
			remedy = errors[i].remedy;
		}
	fact = report_fact(converters->report,
			   serves(candidate) ? FACT_NOTE : failure(converters), "converter",
			   candidate->about, "%s (error %u, %s)", text, code,
			   convert_error_name(code));
	fact_remedy(fact, "%s", remedy);
	fact_value_text(fact, convert_error_name(code));
}

static void report_answer(const struct converters *converters, const struct candidate *candidate)
{
	struct report *report = converters->report;
	const struct probe_result *probe = &candidate->probe;
	struct fact *fact;

	if (candidate->cookie_learned)
		report_fact(report, FACT_NOTE, "converter.cookie", candidate->about,
			    "asks for a cookie and gives it: a program's first connection takes "
			    "longer");
	if (probe->response.has_error) {
		report_error(converters, candidate);
	} else {
		fact = report_fact(report, FACT_OK, "converter", candidate->about,
				   "answers after %.1f ms", probe->answer_ms);
		fact_value_text(fact, outcomes[PROBE_ANSWERED].name);
	}
	fact = report_fact(report, FACT_OK, "converter.round_trip_ms", candidate->about,
			   "the round trip takes %.1f ms", probe->round_trip_ms);
	fact_value_number(fact, probe->round_trip_ms);
}

/* --- SYN data and MPTCP -------------------------------------------------------------- */

static void report_syn_data(const struct converters *converters, const struct candidate *candidate)
{
	static const struct {
		enum fact_status status;
		const char *text, *remedy;
	} texts[] = {
		[PROBE_SYN_DATA_UNUSED] = {
			FACT_NOTE,
			"the request went behind the SYN, which this kernel puts no data into",
			NULL },
		[PROBE_SYN_DATA_TAKEN] = { FACT_OK, "took the data in the SYN", NULL },
		[PROBE_SYN_DATA_REFUSED] = {
			FACT_WARN,
			"did not take the data in the SYN: connections take a round trip more",
			"on the converter, sysctl -w net.ipv4.tcp_fastopen=3; if it is so already, "
			"something on the way removes data from SYNs" },
		[PROBE_SYN_DATA_LOST] = {
			FACT_WARN,
			"answered to a SYN without data, not to the one with data before it",
			"try again, since packets are lost at times; if it stays so, something on "
			"the way drops SYNs with data" },
	};
	enum probe_syn_data syn_data = candidate->probe.syn_data;
	struct fact *fact = report_fact(converters->report, texts[syn_data].status,
					"converter.syn_data", candidate->about, "%s",
					texts[syn_data].text);

	if (texts[syn_data].remedy)
		fact_remedy(fact, "%s", texts[syn_data].remedy);
	fact_value_bool(fact, syn_data == PROBE_SYN_DATA_TAKEN);
}

static bool offers_mptcp(const struct convert_response *response)
{
	return response->supported.len &&
	       memchr(response->supported.data, KIND_MPTCP, response->supported.len);
}

static void report_mptcp(const struct converters *converters, const struct candidate *candidate)
{
	bool offered = offers_mptcp(&candidate->probe.response);
	enum fact_status status = FACT_WARN;
	const char *text = "", *remedy = NULL;
	struct fact *fact;

	switch (candidate->mptcp) {
	case PROBE_MPTCP_KEPT:
		status = FACT_OK;
		text = candidate->probe.mptcp == PROBE_MPTCP_KEPT ?
			       "Multipath TCP gets through" :
			       "Multipath TCP gets through, if there is no data in the SYN";
		break;
	case PROBE_MPTCP_LOST:
		text = offered ? "Multipath TCP does not get through, though the converter has it: "
				 "something on the way removes it" :
				 "Multipath TCP does not get through, or the converter has it off";
		remedy = offered ? "another network, or another port of the converter" :
				   "on the converter, sysctl -w net.mptcp.enabled=1; if it is so "
				   "already, something on the way removes it";
		break;
	case PROBE_MPTCP_WITHHELD:
		text = "this kernel did not offer Multipath TCP, because SYNs with it were lost "
		       "before";
		remedy = "sysctl -w net.mptcp.blackhole_timeout=0";
		break;
	case PROBE_MPTCP_UNUSED:
		status = FACT_NOTE;
		text = "was asked over plain TCP, since this kernel makes no other connections";
		break;
	}
	fact = report_fact(converters->report, status, "converter.mptcp", candidate->about, "%s",
			   text);
	if (remedy)
		fact_remedy(fact, "%s", remedy);
	fact_value_bool(fact, candidate->mptcp == PROBE_MPTCP_KEPT);
}

/* --- all of one address --------------------------------------------------------------- */

/* Programs of this user may have given it up a moment ago. */
static void report_rest(const struct converters *converters, const struct candidate *candidate)
{
	struct cache_converter known;
	int64_t now = cache_now();
	struct fact *fact;

	if (!serves(candidate) || !cache_converter_get(&converters->cache, &candidate->address, 0,
						       CACHE_REST, now, &known))
		return;
	fact = report_fact(converters->report, FACT_WARN, "converter.rest_s", candidate->about,
			   "programs of this user leave it alone for %.0f s more, since it failed "
			   "before",
			   (double)(known.rest.until - now) / 1e3);
	fact_remedy(fact, "wait, or rm %s/" CACHE_FILE, converters->settings->runtime_dir);
	fact_value_number(fact, (double)(known.rest.until - now) / 1e3);
}

static void report_candidate(const struct converters *converters, const struct candidate *candidate)
{
	if (candidate->probe.outcome != PROBE_ANSWERED) {
		report_outcome(converters, candidate);
		return;
	}
	report_answer(converters, candidate);
	report_rest(converters, candidate);
	report_syn_data(converters, candidate);
	report_mptcp(converters, candidate);
	check_supported(converters->report, candidate->about, &candidate->probe);
}

/* --- the other paths ----------------------------------------------------------------- */

/* The first address that serves, of the same family. */
static const struct candidate *candidate_for(const struct converters *converters,
					     const union sockaddr_ip *from)
{
	for (size_t i = 0; i < converters->count; i++)
		if (serves(&converters->candidates[i]) &&
		    network_family(&converters->candidates[i].address) == network_family(from))
			return &converters->candidates[i];
	return NULL;
}

/* Does a subflow from this endpoint arrive? A connection tells, bound as the kernel binds those. */
static void check_path(const struct converters *converters, const struct network_endpoint *endpoint,
		       const struct network_interface *home)
{
	const struct candidate *candidate = candidate_for(converters, &endpoint->address);
	struct probe_request request = { .from = endpoint->address,
					 .device = endpoint->bound ? home->name : NULL,
					 .cookie = configured_cookie(converters),
					 .timeout_ms = converters->settings->timeout_ms };
	static struct probe_result probe;
	union sockaddr_ip first;
	struct fact *fact;

	if (!candidate)
		return;
	first = candidate->probe.local;
	sockaddr_ip_set_port(&first, 0);
	if (sockaddr_ip_equal(&first, &endpoint->address))
		return; /* the path of the connection that has been reported */
	request.converter = candidate->address;
	probe_run(&request, &probe);
	if (probe.outcome == PROBE_ANSWERED && probe.mptcp == PROBE_MPTCP_KEPT) {
		fact = report_fact(converters->report, FACT_OK, "path", candidate->about,
				   "Multipath TCP gets through over %s too, in %.1f ms", home->name,
				   probe.round_trip_ms);
	} else if (probe.outcome == PROBE_ANSWERED) {
		fact = report_fact(converters->report, FACT_WARN, "path", candidate->about,
				   "Multipath TCP does not get through over %s", home->name);
	} else {
		char detail[64] = "", from[SOCKADDR_STRLEN];

		if (probe.error)
			snprintf(detail, sizeof(detail), " (%.60s)", strerror(probe.error));
		fact = report_fact(converters->report, FACT_WARN, "path", candidate->about,
				   "no answer over %s%s", home->name, detail);
		fact_remedy(fact, "a default route for what is sent from there: ip route add "
				  "default via GATEWAY dev %s table N, ip rule add from %s table N",
			    home->name, network_format_address(&endpoint->address, from));
	}
	fact_value_bool(fact, probe.outcome == PROBE_ANSWERED && probe.mptcp == PROBE_MPTCP_KEPT);
}

static void check_paths(const struct converters *converters, const struct network *network)
{
	for (size_t i = 0; i < network->endpoint_count; i++) {
		const struct network_endpoint *endpoint = &network->endpoints[i];
		const struct network_interface *home = network_interface(network, endpoint->home);

		if (endpoint->subflow && home)
			check_path(converters, endpoint, home);
	}
}

/* --- all of it ----------------------------------------------------------------------- */

/* What programs have learned; it isn't for a check to make the file. */
static void open_cache(struct converters *converters)
{
	char path[SETTINGS_PATH_MAX + sizeof("/" CACHE_FILE)];

	snprintf(path, sizeof(path), "%s/" CACHE_FILE, converters->settings->runtime_dir);
	if (converters->settings->runtime_dir[0] && access(path, F_OK) == 0)
		cache_open(&converters->cache, converters->settings->runtime_dir);
}

static void add_candidate(struct converters *converters, const union sockaddr_ip *address,
			  const char *name)
{
	struct candidate *candidate = &converters->candidates[converters->count];
	char text[SOCKADDR_STRLEN];

	if (converters->count == ADDRESSES_MAX)
		return;
	converters->count++;
	candidate->address = *address;
	snprintf(candidate->about, sizeof(candidate->about), "%s%s%s%s",
		 sockaddr_ip_format(address, text), *name ? " (" : "", name, *name ? ")" : "");
}

/* Adds the addresses of a configured converter. */
static void add_candidates(struct converters *converters, const struct settings_converter *setting)
{
	union sockaddr_ip addresses[ADDRESSES_MAX] = { setting->addr };
	const char *reason = NULL;
	size_t count = 1;

	if (setting->name[0])
		count = resolve_converter(setting->name, setting->port,
					  converters->settings->timeout_ms, addresses,
					  ADDRESSES_MAX, &reason);
	for (size_t i = 0; i < count; i++)
		add_candidate(converters, &addresses[i], setting->name);
	if (!count) {
		struct fact *fact = report_fact(converters->report, FACT_WARN, "converter.name",
						setting->name, "can't be resolved: %s", reason);

		fact_remedy(fact, "see that the name is right, and that DNS works here");
	}
}

void check_converters(struct report *report, const struct settings *settings,
		      const struct network *network)
{
	static struct converters converters;
	struct fact *fact;

	converters.report = report;
	converters.settings = settings;
	if (!settings->enabled) {
		fact = report_fact(report, FACT_FAIL, "converter", NULL, "no converter is named");
		fact_remedy(fact,
			    "--converter ADDR, or CONVERT_ADDR in the environment");
		return;
	}
	for (size_t i = 0; i < settings->converter_count; i++)
		add_candidates(&converters, &settings->converters[i]);
	report_flush(report);
	for (size_t i = 0; i < converters.count; i++) {
		ask(&converters, &converters.candidates[i]);
		converters.any = converters.any || serves(&converters.candidates[i]);
	}
	open_cache(&converters);
	for (size_t i = 0; i < converters.count; i++)
		report_candidate(&converters, &converters.candidates[i]);
	if (!converters.count)
		report_fact(report, FACT_FAIL, "converter", NULL, "no converter has an address");
	report_flush(report);
	check_paths(&converters, network);
	cache_close(&converters.cache);
}
