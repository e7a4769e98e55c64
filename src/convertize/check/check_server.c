/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_server.c - the whole way to a server: through each converter that serves, and directly
 *
 * The request is a program's, with a Connect TLV. The direct connection beside it tells whether a failure is the server's or the
 * converter's. verdicts[] has each combination.
 */
#include "config.h"

#include "convertize/check/check.h"

#include "common/tcp.h"

#include <netdb.h>
#include <string.h>

#define SERVER_ADDRESSES_MAX 4 /* of one server that the doctor tries */
#define SERVER_PORT 443
#define SERVER_SERVICE "443"
#define RULES_MS_MAX 1000
#define SERVER_TIMEOUT_MS 5000 /* a converter waits for a server longer than a client for a converter */

struct server {
	union sockaddr_ip addresses[SERVER_ADDRESSES_MAX];
	size_t count;
	char name[SETTINGS_NAME_MAX];
};

/* Adds the first addresses that the resolver returns, SERVER_ADDRESSES_MAX / 2 of each family. */
static void add_addresses(struct server *server, const struct addrinfo *found)
{
	size_t counts[2] = { 0 };

	for (; found; found = found->ai_next) {
		union sockaddr_ip address;
		size_t *count = &counts[found->ai_family == AF_INET6];

		if (!sockaddr_ip_from(&address, found->ai_addr, found->ai_addrlen) || *count == SERVER_ADDRESSES_MAX / 2)
			continue;
		server->addresses[server->count++] = address;
		++*count;
	}
}

/* Returns NULL, or why the word names no server. The port behind a colon is a number: command_line.c has checked that. */
static const char *find(struct server *server, const char *word)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	const char *colon = strrchr(word, ':');
	const int len = (int)(colon ? (size_t)(colon - word) : strlen(word));
	struct addrinfo *found;
	int error;

	if (sockaddr_ip_parse(&server->addresses[0], word, SERVER_PORT) == 0) {
		server->count = 1;
		return NULL;
	}
	if (snprintf(server->name, sizeof(server->name), "%.*s", len, word) >= SETTINGS_NAME_MAX)
		return "isn't a server: give HOST or HOST:PORT";
	error = getaddrinfo(server->name, colon ? colon + 1 : SERVER_SERVICE, &hints, &found);
	if (error)
		return gai_strerror(error);
	add_addresses(server, found);
	freeaddrinfo(found);
	return server->count ? NULL : "has no address";
}

/* How a connection to the server ended. */
enum way_end { WAY_REACHED, WAY_FAILED, WAY_SILENT, WAY_FORBIDDEN };

static enum way_end end_of(const struct probe_result *result)
{
	if (result->outcome == PROBE_ANSWERED && !result->response.has_error)
		return WAY_REACHED;
	/* convertd says so also if it has tried in vain, so that the client connects directly; its rules take no time */
	if (result->outcome == PROBE_ANSWERED && result->response.error_code == CONVERT_ERROR_NOT_AUTHORIZED &&
	    result->answer_ms < result->round_trip_ms + RULES_MS_MAX)
		return WAY_FORBIDDEN;
	return result->outcome == PROBE_NO_SYN_ACK || result->outcome == PROBE_SILENT ? WAY_SILENT : WAY_FAILED;
}

#define FORBIDDEN "is refused: the converter's rules forbid it, or the converter has no route there"
#define REMEDY_SERVER "see that the server's name and port are right, and that it runs"
#define REMEDY_EGRESS "on the converter, see that it has a route to the server, and that its firewall lets TCP out: ip route get ADDRESS"
#define REMEDY_RULES "on the converter, see allow-destination in convertd.conf, and ip route; or add the server to CONVERT_BYPASS"

/* The verdict for each combination of the two ways. */
static const struct {
	enum fact_status status;
	const char *text, *remedy;
} verdicts[][2] = { /* by the way through the converter; [1]: directly the server answers */
	[WAY_REACHED] = { { FACT_OK, "answers, though it doesn't answer directly", NULL }, { FACT_OK, "answers", NULL } },
	[WAY_FAILED] = { { FACT_WARN, "can't be reached, and not directly either", REMEDY_SERVER },
			 { FACT_FAIL, "can't be reached, though it answers directly", REMEDY_EGRESS } },
	[WAY_SILENT] = { { FACT_WARN, "says nothing, and not directly either", REMEDY_SERVER },
			 { FACT_FAIL, "says nothing, though it answers directly", REMEDY_EGRESS } },
	[WAY_FORBIDDEN] = { { FACT_WARN, FORBIDDEN, REMEDY_RULES }, { FACT_WARN, FORBIDDEN, REMEDY_RULES } },
};

static bool speaks_mptcp(const struct convert_response *response)
{
	struct convert_span options = response->tcp_header;
	struct convert_tcp_option option;

	while (response->has_tcp_header && convert_tcp_option_next(&options, &option) == CONVERT_STATUS_OK)
		if (option.kind == TCP_KIND_MPTCP)
			return true;
	return false;
}

static void report_ways(const struct check_converters *converters, const char *about, const struct check_candidate *candidate,
			const struct probe_result *through, const struct probe_result *direct)
{
	const bool answers = probe_is_connected(direct);
	const enum way_end end = end_of(through);
	char detail[160] = "";
	struct fact *fact;

	if (end == WAY_REACHED)
		snprintf(detail, sizeof(detail), ", after %.1f ms%s", through->answer_ms,
			 speaks_mptcp(&through->response) ? "; it speaks Multipath TCP itself" : "");
	else if (through->outcome == PROBE_ANSWERED)
		snprintf(detail, sizeof(detail), " (error %u, %s)", through->response.error_code,
			 convert_error_name(through->response.error_code));
	if (answers)
		snprintf(detail + strlen(detail), sizeof(detail) - strlen(detail), "; directly after %.1f ms", direct->round_trip_ms);
	fact = report_fact(converters->report, verdicts[end][answers].status, "server", about, "through %s it %s%s", candidate->about,
			  verdicts[end][answers].text, detail);
	if (verdicts[end][answers].remedy)
		fact_remedy(fact, "%s", verdicts[end][answers].remedy);
	fact_value_bool(fact, end == WAY_REACHED);
}

/* Tries one address: directly, and through each converter at once. */
static void try_address(const struct check_converters *converters, const union sockaddr_ip *address, const char *about)
{
	static struct probe_request requests[CHECK_ADDRESSES_MAX + 1];
	static struct probe_result results[CHECK_ADDRESSES_MAX + 1];
	const enum policy_verdict verdict = policy_decide(converters->settings, address);
	const struct check_candidate *asked[CHECK_ADDRESSES_MAX];
	const struct host_network *network;
	size_t count = 0;
	bool directly;

	for (size_t i = 0; i < converters->count; i++) {
		const struct check_candidate *candidate = &converters->candidates[i];

		if (!check_serves(candidate))
			continue;
		requests[count] = check_request(&candidate->first);
		requests[count].server = *address;
		requests[count].in_syn = candidate->first.syn_data == PROBE_SYN_DATA_TAKEN;
		requests[count].timeout_ms = SERVER_TIMEOUT_MS;
		asked[count++] = candidate;
	}
	requests[count] = (struct probe_request){ .converter = *address, .tcp = true, .connect_only = true, .timeout_ms = SERVER_TIMEOUT_MS };
	directly = check_keep_off(converters->networks, converters->settings, address, &network);
	if (network) {
		requests[count].from = network->address;
		requests[count].device = network->link.name;
	}
	results[count].outcome = PROBE_LOCAL;
	probe_run_all(requests, results, count + directly);
	if (verdict != POLICY_CONVERT)
		report_fact(converters->report, FACT_NOTE, "server.policy", about, "programs connect to it directly: %s",
			    policy_reason(verdict));
	for (size_t i = 0; i < count; i++)
		report_ways(converters, about, asked[i], &results[i], &results[count]);
}

void check_server(const struct check_converters *converters, const char *word)
{
	struct server server = { .count = 0 };
	const char *problem = find(&server, word);

	if (problem) {
		fact_remedy(report_fact(converters->report, FACT_WARN, "server", word, "%s", problem), REMEDY_NAME);
		return;
	}
	for (size_t i = 0; i < server.count; i++) {
		char text[SOCKADDR_STRLEN], about[SOCKADDR_STRLEN + SETTINGS_NAME_MAX + 4];

		snprintf(about, sizeof(about), server.name[0] ? "%s (%s)" : "%s", sockaddr_ip_format(&server.addresses[i], text), server.name);
		try_address(converters, &server.addresses[i], about);
	}
}
