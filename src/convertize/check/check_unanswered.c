/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_unanswered.c - an address of a converter where no converter answers, and the reason
 *
 * We look for a fault near this machine first: its own routes and firewall, then the network that connections take, if the converter
 * answers over another one. Only the rest is a fault of the converter or of its address.
 */
#include "config.h"

#include "convertize/check/check.h"

#include "host/lookup.h"

#include <assert.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdarg.h>
#include <string.h>

#define QUOTED_MAX 24 /* bytes of another protocol's message */

static const struct {
	const char *name, *text, *remedy;
} outcomes[] = {
	[PROBE_ANSWERED] = { "answered", NULL, NULL },
	[PROBE_LOCAL] = { "local", "can't be asked from here", NULL },
	[PROBE_UNREACHABLE] = { "unreachable", "can't be reached", NULL },
	[PROBE_NO_SYN_ACK] = { "no-syn-ack", "nothing comes back",
			       REMEDY_NO_SYN_ACK },
	[PROBE_SILENT] = { "silent", "takes connections and then says nothing",
			   REMEDY_SILENT },
	[PROBE_CLOSED] = { "closed", "closes the connection without an answer",
			   REMEDY_NO_CONVERTER },
	[PROBE_RESET] = { "reset", "resets the connection without an answer",
			  REMEDY_NO_CONVERTER },
	[PROBE_NOT_CONVERT] = { "not-convert",
				"answers by something else than the Convert Protocol",
				REMEDY_NO_CONVERTER },
};
static_assert(sizeof(outcomes) / sizeof(outcomes[0]) == PROBE_OUTCOME_COUNT, "one for each");

/* Adds the fact that this address doesn't serve. */
static struct fact *report_unanswered(const struct check_converters *converters, const struct check_candidate *candidate,
				      const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static struct fact *report_unanswered(const struct check_converters *converters, const struct check_candidate *candidate,
				      const char *format, ...)
{
	char text[256];
	struct fact *fact;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fact = report_fact(converters->report, converters->any ? FACT_WARN : FACT_FAIL, "converter", candidate->about, "%s", text);
	fact_value_text(fact, outcomes[candidate->first.probe.outcome].name);
	return fact;
}

/* --- faults of this machine ------------------------------------------------------------ */

static bool has_address(const struct check_networks *networks, bool is_v4)
{
	for (size_t i = 0; i < networks->count; i++)
		if (sockaddr_ip_is_v4(&networks->list[i].address) == is_v4 && networks->list[i].link.carrier)
			return true;
	return false;
}

/* Reports that this machine has no route to the address, or one that forbids it. */
static void report_no_route(const struct check_converters *converters, const struct check_candidate *candidate, int error)
{
	const bool is_v4 = sockaddr_ip_is_v4(&candidate->address);
	const struct check_networks *networks = converters->networks;
	struct fact *fact;

	if (error != ENETUNREACH) {
		fact = report_unanswered(converters, candidate, "a route of this machine forbids it: %s", strerror(error));
		fact_remedy(fact, REMEDY_OWN_ROUTE, is_v4 ? "" : "-6 ");
	} else if (has_address(networks, is_v4)) {
		fact = report_unanswered(converters, candidate, "this machine has no route to it");
		fact_remedy(fact, REMEDY_ADD_ROUTE, is_v4 ? "" : "-6 ");
	} else {
		fact = report_unanswered(converters, candidate, "this machine has no %s network", is_v4 ? "IPv4" : "IPv6");
		fact_remedy(fact, check_networks_have(networks, !is_v4) ? REMEDY_OWN_FAMILY : REMEDY_FIRST_NETWORK);
	}
}

/* Reports a fault of this machine itself; returns false if there is none. */
static bool report_own_fault(const struct check_converters *converters, const struct check_candidate *candidate)
{
	struct host_way way;
	struct fact *fact;

	host_way_ask(-1, &candidate->address, NULL, 0, &way);
	/* connect() has the same error, unless the question itself failed, as without netlink sockets */
	if (way.error && candidate->first.probe.outcome == PROBE_UNREACHABLE && candidate->first.probe.error == way.error) {
		report_no_route(converters, candidate, way.error);
	} else if (candidate->first.refused_here) {
		fact = report_unanswered(converters, candidate, "this machine's own firewall lets no SYN to it out");
		fact_remedy(fact, REMEDY_OWN_FIREWALL, sockaddr_ip_port(&candidate->address));
	} else if (way.type == RTN_LOCAL) {
		fact = report_unanswered(converters, candidate, "is this machine's own address, and no converter answers there");
		if (*candidate->name)
			fact_remedy(fact, REMEDY_NAME_OWN, candidate->name);
		else
			fact_remedy(fact, REMEDY_START_HERE);
	} else {
		return false;
	}
	return true;
}

bool check_path_has_portal(const struct check_path *path)
{
	static const struct {
		const char *bytes;
		size_t len;
	} beginnings[] = { { "HTTP/", 5 }, { "<", 1 }, { "\x15\x03", 2 }, { "\x16\x03", 2 } }; /* TLS: alert, handshake */
	const struct probe_result *probe = &path->probe;

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]) && probe->outcome == PROBE_NOT_CONVERT; i++)
		if (probe->message_len >= beginnings[i].len && memcmp(probe->message, beginnings[i].bytes, beginnings[i].len) == 0)
			return true;
	return false;
}

/* --- the networks ------------------------------------------------------------------------- */

/*
 * If the converter doesn't answer over the network that connections take, reports another network over which it does.
 * Returns false, with nothing reported, if there is none.
 */
static bool report_elsewhere(const struct check_converters *converters,
			     struct check_candidate *candidate)
{
	const struct check_path *other = NULL;
	struct fact *fact;
	int error;

	if (!converters->any && candidate->first.probe.outcome != PROBE_LOCAL)
		other = check_paths_elsewhere(converters, candidate);
	if (!other)
		return false;
	error = candidate->first.probe.error;
	fact = report_unanswered(converters, candidate, "%s over %s, which connections take, though it answers over %s: %s",
			   error ? strerror(error) : check_path_has_portal(&candidate->first) ? "a web server answers" :
						     outcomes[candidate->first.probe.outcome].text,
			   check_path_name(&candidate->first), check_path_name(other),
			   check_path_has_portal(&candidate->first) ? "a captive portal" :
			   probe_is_connected(&candidate->first.probe) ? "something on the way takes its place" :
			   error || candidate->first.host_answers ?
				   "a firewall on the way lets no TCP to this port through" :
			   !candidate->first.home->carrier ? "that network has no carrier" :
				   "that network is down, or a firewall drops packets");
	if (!check_paths_prefer(candidate, other, fact))
		fact_remedy(fact, REMEDY_OTHER_NETWORK, check_path_name(&candidate->first), check_path_name(other));
	return true;
}

/*
 * Does another address of the same name serve? Then the name answers, by its other family, which is worth a warning at most, or
 * only a note if this machine has no network of the family that fails.
 */
static bool report_other_family(const struct check_converters *converters, const struct check_candidate *candidate)
{
	const bool is_v4 = sockaddr_ip_is_v4(&candidate->address);
	const bool lacking = !check_networks_have(converters->networks, is_v4);
	const struct check_candidate *other = NULL;
	const char *names[] = { "IPv6", "IPv4" };
	struct fact *fact;

	for (size_t i = 0; i < converters->count && !other; i++)
		if (strcmp(converters->candidates[i].name, candidate->name) == 0 && check_serves(&converters->candidates[i]) &&
		    sockaddr_ip_is_v4(&converters->candidates[i].address) != is_v4)
			other = &converters->candidates[i];
	if (!*candidate->name || !other || candidate->first.probe.outcome == PROBE_ANSWERED)
		return false;
	fact = report_fact(converters->report, lacking ? FACT_NOTE : FACT_WARN, "converter", candidate->about,
			   "%s%s, and the same name answers by %s", lacking ? "this machine has no " : "doesn't answer by ",
			   names[is_v4], names[!is_v4]);
	if (!lacking)
		fact_remedy(fact, REMEDY_BROKEN_FAMILY, names[is_v4]);
	fact_value_text(fact, outcomes[candidate->first.probe.outcome].name);
	return true;
}

/* --- the rest -------------------------------------------------------------------------- */

/* Quotes the first bytes of a peer's message, with dots for those that aren't printable. */
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

/* Reports that the first hop of the converter's route doesn't work, or what a host on the way says; returns false without either. */
static bool report_on_the_way(const struct check_converters *converters, const struct check_candidate *candidate)
{
	const struct check_path *first = &candidate->first;
	const char *error = strerror(first->probe.error);
	const struct host_link *link;
	char from[SOCKADDR_STRLEN];
	struct host_way way;

	host_way_ask(-1, &candidate->address, NULL, 0, &way);
	link = way.error ? NULL : host_link_of(&converters->networks->host, way.index);
	if (first->icmp_from.sa.sa_family != AF_UNSPEC) {
		host_format_address(&first->icmp_from, from);
		if (first->icmp_forbids)
			fact_remedy(report_unanswered(converters, candidate, "a firewall at %s rejects connections to it: %s", from, error),
				    REMEDY_LET_PORT_AT, from, sockaddr_ip_port(&candidate->address));
		else
			fact_remedy(report_unanswered(converters, candidate, "the router %s has no way to it: %s", from, error), REMEDY_ADDRESS);
	} else if (link && !link->carrier && !probe_is_connected(&first->probe)) {
		fact_remedy(report_unanswered(converters, candidate, "%s, which connections take, has no carrier", link->name), REMEDY_CARRIER,
			    link->name);
	} else if (link && !probe_is_connected(&first->probe) && host_router_is_silent(&way.gateway, way.index)) {
		fact_remedy(report_unanswered(converters, candidate, "the router of its route, %s, does not answer on %s",
					      host_format_address(&way.gateway, from), link->name), REMEDY_ROUTER, link->name);
	} else {
		return false;
	}
	return true;
}

static void report_outcome(const struct check_converters *converters, const struct check_candidate *candidate)
{
	const struct probe_result *probe = &candidate->first.probe;
	char quoted[QUOTED_MAX + 3], detail[128] = "";
	const char *remedy = outcomes[probe->outcome].remedy;
	struct fact *fact;

	switch (probe->outcome) {
	case PROBE_LOCAL:
	case PROBE_UNREACHABLE:
		snprintf(detail, sizeof(detail), ": %s%s", strerror(probe->error),
			 probe->error == ENETUNREACH || probe->error == EHOSTUNREACH ? ", says a host on the way" : "");
		if (probe->outcome == PROBE_UNREACHABLE)
			remedy = probe->error == ECONNREFUSED ? REMEDY_START_CONVERTD : REMEDY_ADDRESS;
		break;
	case PROBE_NO_SYN_ACK:
		if (candidate->first.host_answers) {
			snprintf(detail, sizeof(detail), " for %g s, though its host answers at another port",
				 converters->settings->timeout_ms / 1e3);
			remedy = REMEDY_LET_PORT;
			break;
		}
		__attribute__((fallthrough));
	case PROBE_SILENT:
		snprintf(detail, sizeof(detail), " for %g s", converters->settings->timeout_ms / 1e3);
		break;
	case PROBE_NOT_CONVERT:
		if (check_path_has_portal(&candidate->first))
			remedy = REMEDY_PORTAL;
		quote(probe, quoted);
		snprintf(detail, sizeof(detail), " (%s: %s)", convert_status_name(probe->status), quoted);
		break;
	default:
		break;
	}
	fact = report_unanswered(converters, candidate, "%s%s", outcomes[probe->outcome].text, detail);
	if (remedy)
		fact_remedy(fact, "%s", remedy);
}

void check_report_unanswered(const struct check_converters *converters, struct check_candidate *candidate)
{
	if (!report_other_family(converters, candidate) && !report_own_fault(converters, candidate) && !report_elsewhere(converters, candidate) &&
	    !report_on_the_way(converters, candidate))
		report_outcome(converters, candidate);
}
