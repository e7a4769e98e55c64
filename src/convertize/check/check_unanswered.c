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
#include <string.h>

#define QUOTED_MAX 24 /* bytes of another protocol's message */

static const struct {
	const char *name, *text, *remedy;
} outcomes[] = {
	[PROBE_ANSWERED] = { "answered", NULL, NULL },
	[PROBE_LOCAL] = { "local", "can't be asked from here", NULL },
	[PROBE_UNREACHABLE] = { "unreachable", "can't be reached", NULL },
	[PROBE_NO_SYN_ACK] = { "no-syn-ack", "nothing comes back",
		"see that the address and the port are right, that its machine runs, and that no firewall drops TCP to this port" },
	[PROBE_SILENT] = { "silent", "takes connections and then says nothing", REMEDY_NO_CONVERTER "; " RESTART },
	[PROBE_CLOSED] = { "closed", "closes the connection without an answer", REMEDY_NO_CONVERTER },
	[PROBE_RESET] = { "reset", "resets the connection without an answer", REMEDY_NO_CONVERTER },
	[PROBE_NOT_CONVERT] = { "not-convert", "answers with something other than the Convert Protocol", REMEDY_NO_CONVERTER },
};
static_assert(sizeof(outcomes) / sizeof(outcomes[0]) == PROBE_OUTCOME_COUNT, "one for each");

/* The fact that this address doesn't serve, in words that complete "192.0.2.1:1234: ". */
#define unanswered(candidate, ...) check_fact(candidate, check_failure(candidate), "converter", __VA_ARGS__)

/* --- faults of this machine ------------------------------------------------------------ */

/* Reports that no network is left for the address. If there is none for any address, that is reported already. */
static struct fact *report_forbidden(const struct check_candidate *candidate)
{
	const struct check_networks *networks = candidate->converters->networks;
	const bool any = networks->error || networks->any_usable[false] || networks->any_usable[true];
	struct fact *fact = check_fact(candidate, any ? check_failure(candidate) : FACT_NOTE, "converter",
				       "isn't asked: CONVERT_PATHS or a quota allows no network that leads there");

	if (any)
		fact_remedy(fact, REMEDY_ALLOW);
	return fact;
}

/* Reports that this machine has no route to the address, or one that forbids it. */
static struct fact *report_no_route(const struct check_candidate *candidate, int error)
{
	const bool is_v4 = sockaddr_ip_is_v4(&candidate->address);
	const struct check_networks *networks = candidate->converters->networks;
	struct fact *fact;

	if (error != ENETUNREACH) {
		fact = unanswered(candidate, "a route of this machine forbids it: %s", strerror(error));
		fact_remedy(fact, "delete that route: ip %sroute show table all", is_v4 ? "" : "-6 ");
	} else if (networks->any_carrier[is_v4]) {
		fact = unanswered(candidate, "this machine has no route to it");
		fact_remedy(fact, "add one, such as ip %sroute add default via ROUTER", is_v4 ? "" : "-6 ");
	} else {
		fact = unanswered(candidate, "this machine has no %s network", is_v4 ? "IPv4" : "IPv6");
		fact_remedy(fact, "%s", networks->any_usable[!is_v4] ?
			    "name the converter by an address of the family that this machine has" : REMEDY_FIRST_NETWORK);
	}
	return fact;
}

/* Reports a fault of this machine itself. @way: its route to the address. Returns NULL if there is none. */
static struct fact *report_own_fault(const struct check_candidate *candidate, const struct host_way *way)
{
	struct fact *fact;

	/* connect() has the same error, unless the question itself failed, as without netlink sockets */
	if (way->error && candidate->first.probe.outcome == PROBE_UNREACHABLE && candidate->first.probe.error == way->error)
		return report_no_route(candidate, way->error);
	if (candidate->first.refused_here) {
		fact = unanswered(candidate, "this machine's own firewall lets no SYN to it out");
		fact_remedy(fact, REMEDY_OWN_FIREWALL, sockaddr_ip_port(&candidate->address));
		return fact;
	}
	if (way->type != RTN_LOCAL)
		return NULL;
	fact = unanswered(candidate, "is this machine's own address, and no converter answers there");
	if (*candidate->name)
		fact_remedy(fact, "see that DNS is right: getent ahosts %s", candidate->name);
	else
		fact_remedy(fact, "systemctl start convertd here, or name the address of the converter's machine");
	return fact;
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
 * Returns NULL if there is none.
 */
static struct fact *report_elsewhere(struct check_candidate *candidate)
{
	const struct check_path *first = &candidate->first, *other = NULL;
	const bool portal = check_path_has_portal(first);
	const int error = first->probe.error;
	struct fact *fact;

	if (!candidate->converters->any_serves && first->probe.outcome != PROBE_LOCAL)
		other = check_paths_elsewhere(candidate);
	if (!other)
		return NULL;
	fact = unanswered(candidate, "%s over %s, which connections take, though it answers over %s: %s",
			  error ? strerror(error) : portal ? "a web server answers" : outcomes[first->probe.outcome].text,
			  check_path_name(first), check_path_name(other),
			  portal			     ? "a captive portal" :
			  probe_is_connected(&first->probe)  ? "something on the way takes its place" :
			  error || first->host_answers	     ? "a firewall on the way lets no TCP to this port through" :
			  !first->home->carrier		     ? "that network has no carrier" :
							       "that network is down, or a firewall drops packets");
	if (!check_paths_prefer(other, fact))
		fact_remedy(fact, "find the fault of %s, or route the converter over %s", check_path_name(first), check_path_name(other));
	return fact;
}

/*
 * Does another address of the same name serve? Then the name answers, by its other family, which is worth a warning at most, or
 * only a note if this machine has no network of the family that fails.
 */
static struct fact *report_other_family(const struct check_candidate *candidate)
{
	const bool is_v4 = sockaddr_ip_is_v4(&candidate->address);
	const bool lacking = !candidate->converters->networks->any_usable[is_v4];
	const char *names[] = { "IPv6", "IPv4" };
	struct fact *fact;
	bool found = false;

	for (size_t i = 0; i < candidate->converters->count && *candidate->name; i++) {
		const struct check_candidate *other = &candidate->converters->candidates[i];

		found = found || (strcmp(other->name, candidate->name) == 0 && sockaddr_ip_is_v4(&other->address) != is_v4 &&
				  check_serves(other));
	}
	if (!found)
		return NULL;
	fact = check_fact(candidate, lacking ? FACT_NOTE : FACT_WARN, "converter", "%s%s, and the same name answers by %s",
			  lacking ? "this machine has no " : "doesn't answer by ", names[is_v4], names[!is_v4]);
	if (!lacking)
		fact_remedy(fact, "mend %s here, or name the converter by the address that answers", names[is_v4]);
	return fact;
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

/* Reports that the first hop of the converter's route doesn't work, or the refusal of a host on the way; returns NULL without either. */
static struct fact *report_on_the_way(const struct check_candidate *candidate, const struct host_way *way)
{
	const struct check_path *first = &candidate->first;
	const struct host_link *link = way->error ? NULL : host_link_of(&candidate->converters->networks->host, way->index);
	const char *error = strerror(first->icmp_error);
	union sockaddr_ip neighbour = candidate->address;
	char from[SOCKADDR_STRLEN];
	struct fact *fact = NULL;

	sockaddr_ip_set_port(&neighbour, 0);
	if (first->icmp_from.sa.sa_family != AF_UNSPEC && first->icmp_forbids) {
		host_format_address(&first->icmp_from, from);
		fact = unanswered(candidate, "a firewall at %s rejects connections to it: %s", from, error);
		fact_remedy(fact, "have the firewall of %s let TCP to port %u through, " OTHER_PORT, from,
			    sockaddr_ip_port(&candidate->address));
	} else if (first->icmp_from.sa.sa_family != AF_UNSPEC) {
		host_format_address(&first->icmp_from, from);
		fact = unanswered(candidate, "the router %s has no route to it: %s", from, error);
		fact_remedy(fact, REMEDY_ADDRESS);
	} else if (link && !link->carrier && !probe_is_connected(&first->probe)) {
		fact = unanswered(candidate, "%s, which connections take, has no carrier", link->name);
		fact_remedy(fact, "connect %s: see its cable, or join its wireless network", link->name);
	} else if (link && !probe_is_connected(&first->probe) && host_neighbour_is_silent(&way->gateway, way->index)) {
		fact = unanswered(candidate, "the router of its route, %s, does not answer on %s", host_format_address(&way->gateway, from),
				  link->name);
		fact_remedy(fact, REMEDY_ROUTER, link->name);
	} else if (link && !probe_is_connected(&first->probe) && host_neighbour_is_silent(&neighbour, way->index)) {
		fact = unanswered(candidate, "no host on %s has this address", link->name);
		fact_remedy(fact, "see that the address is right, and that its machine is on and connected to %s", link->name);
	}
	return fact;
}

static struct fact *report_outcome(const struct check_candidate *candidate)
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
			remedy = probe->error == ECONNREFUSED ? "on the converter, systemctl start convertd; or see that the port is right"
				: REMEDY_ADDRESS;
		break;
	case PROBE_NO_SYN_ACK:
		if (candidate->first.host_answers) {
			snprintf(detail, sizeof(detail), " for %g s, though its host answers at another port",
				 candidate->converters->settings->timeout_ms / 1e3);
			remedy = "have the firewall on the way let TCP to this port through, " OTHER_PORT "; without one, " RESTART;
			break;
		}
		__attribute__((fallthrough));
	case PROBE_SILENT:
		snprintf(detail, sizeof(detail), " for %g s", candidate->converters->settings->timeout_ms / 1e3);
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
	fact = unanswered(candidate, "%s%s", outcomes[probe->outcome].text, detail);
	if (remedy)
		fact_remedy(fact, "%s", remedy);
	return fact;
}

void check_report_unanswered(struct check_candidate *candidate)
{
	struct fact *fact = candidate->forbidden ? report_forbidden(candidate) : report_other_family(candidate);
	struct host_way way;

	check_path_way(&candidate->first, &way);
	if (!fact)
		fact = report_own_fault(candidate, &way);
	if (!fact)
		fact = report_elsewhere(candidate);
	if (!fact)
		fact = report_on_the_way(candidate, &way);
	if (!fact)
		fact = report_outcome(candidate);
	fact_value_text(fact, outcomes[candidate->first.probe.outcome].name);
}
