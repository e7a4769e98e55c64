/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_ask.c - asks a converter over one path, and determines the part of a request that doesn't get through
 *
 * A program sends its request in the SYN of a Multipath TCP connection. We send an Info TLV in the same way, padded to the
 * length of such a request. If it doesn't get through as it should, we send it three times more, since packets get lost at
 * times, and we send less: fewer bytes, no data in the SYN, no Multipath TCP. We try all these "rungs" at once, so that they take
 * no longer than one. The difference between the rungs that get through and the others is the cause.
 */
#include "config.h"

#include "convertize/check/check.h"

#include "host/networks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The length of a Connect TLV with the option for Multipath TCP, in bytes: a program's request has one, and a probe has none. */
#define REQUEST_PADDING 24

/* The time for a rung: the answer to the first SYN comes before Linux sends the second or, on a long path, soon after. */
#define AGAIN_MS 1500

#define HERE_MS 500 /* for the handshake of two sockets of this machine */

bool check_serves(const struct check_candidate *candidate)
{
	const struct probe_result *probe = &candidate->first.probe;

	/* A converter that doesn't know the Info TLV may still convert. */
	return probe->outcome == PROBE_ANSWERED &&
	       (!probe->response.has_error ||
		probe->response.error_code == CONVERT_ERROR_UNSUPPORTED_MESSAGE ||
		probe->response.error_code == CONVERT_ERROR_MALFORMED_MESSAGE);
}

struct probe_request check_request(const struct check_path *path)
{
	const struct check_candidate *candidate = path->candidate;

	return (struct probe_request){
		.converter = candidate->address,
		.from = path->from,
		.device = path->device,
		.cookie = { candidate->cookie, candidate->cookie_len },
		.timeout_ms = candidate->converters->settings->timeout_ms,
	};
}

/* --- with less and less ------------------------------------------------------------------ */

enum rung {
	RUNG_AGAIN,
	RUNG_AGAIN_LAST = RUNG_AGAIN + 2,
	RUNG_SMALL,
	RUNG_BARE,
	RUNG_TCP,
	RUNG_TCP_BARE,
	RUNG_COUNT
};

/* Did the first SYN get an answer? */
static bool at_once(const struct probe_result *result)
{
	return probe_is_connected(result) && !result->syn_again;
}

/* Returns the best rung that repeats the first request: one with an answer at once, preferably with its data taken. */
static const struct probe_result *best_again(const struct probe_result rungs[])
{
	const struct probe_result *best = &rungs[RUNG_AGAIN];

	for (int i = RUNG_AGAIN; i <= RUNG_AGAIN_LAST; i++)
		if (at_once(&rungs[i]) &&
		    (!at_once(best) || rungs[i].syn_data == PROBE_SYN_DATA_TAKEN))
			best = &rungs[i];
	return best;
}

static bool refuses(const struct probe_result *result)
{
	return result->outcome == PROBE_ANSWERED && result->response.has_error &&
	       result->response.error_code == CONVERT_ERROR_NOT_AUTHORIZED;
}

/* Does the result show a fault whose cause the rungs may find? */
static bool is_doubtful(const struct probe_result *result)
{
	/* A converter removes Multipath TCP from SYNs that it refuses: that is no fault. */
	if (result->outcome == PROBE_LOCAL ||
	    (result->outcome == PROBE_ANSWERED && result->response.has_error &&
	     result->response.error_code != CONVERT_ERROR_UNSUPPORTED_MESSAGE &&
	     result->response.error_code != CONVERT_ERROR_MALFORMED_MESSAGE))
		return false;
	return result->outcome != PROBE_ANSWERED || result->syn_again ||
	       result->mptcp == PROBE_MPTCP_LOST || result->syn_data == PROBE_SYN_DATA_LOST ||
	       result->syn_data == PROBE_SYN_DATA_REFUSED;
}

static void settle_mptcp(struct check_path *path, const struct probe_result rungs[])
{
	for (int i = RUNG_AGAIN; i <= RUNG_BARE; i++)
		if (probe_is_connected(&rungs[i]) && rungs[i].mptcp == PROBE_MPTCP_KEPT)
			path->mptcp = PROBE_MPTCP_KEPT;
	if (path->mptcp == PROBE_MPTCP_KEPT)
		return;
	path->mptcp_dropped = !at_once(&rungs[RUNG_BARE]) && !at_once(best_again(rungs)) &&
			      (at_once(&rungs[RUNG_TCP_BARE]) || at_once(&rungs[RUNG_TCP]));
	if (path->mptcp_dropped)
		path->mptcp = PROBE_MPTCP_LOST;
	else if (probe_is_connected(&rungs[RUNG_BARE]))
		path->mptcp = rungs[RUNG_BARE].mptcp;
}

/*
 * Does Multipath TCP get lost even between two sockets of this machine, at the converter's port? Then this machine's own firewall removes
 * it, or drops SYNs with it.
 */
static bool loses_mptcp_here(const struct probe_request *request)
{
	const bool is_v4 = sockaddr_ip_is_v4(&request->converter);
	struct probe_request own = { .connect_only = true, .timeout_ms = HERE_MS };
	struct in6_addr loopback = { .s6_addr = { [15] = 1 } };
	struct probe_result result = { .outcome = PROBE_LOCAL };
	int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_MPTCP);

	if (is_v4)
		loopback = (struct in6_addr){ .s6_addr = { [10] = 0xff, 0xff, 127, 0, 0, 1 } };
	sockaddr_ip_set(&own.converter, request->converter.sa.sa_family, &loopback, sockaddr_ip_port(&request->converter));
	if (fd >= 0 && bind(fd, &own.converter.sa, sockaddr_ip_len(&own.converter)) == 0 && listen(fd, 1) == 0)
		probe_run(&own, &result);
	if (fd >= 0)
		close(fd);
	return result.outcome == PROBE_NO_SYN_ACK || (probe_is_connected(&result) && result.mptcp == PROBE_MPTCP_LOST);
}

static void settle_syn_data(struct check_path *path, const struct probe_result rungs[])
{
	const struct probe_result *full = path->mptcp_dropped ? &rungs[RUNG_TCP] :
								best_again(rungs);
	size_t asked = path->probe.syn_bytes;

	if (probe_is_connected(full) && full->syn_data == PROBE_SYN_DATA_TAKEN) {
		path->syn_data = PROBE_SYN_DATA_TAKEN;
	} else if (at_once(&rungs[RUNG_SMALL]) &&
		   rungs[RUNG_SMALL].syn_data == PROBE_SYN_DATA_TAKEN) {
		path->syn_data = PROBE_SYN_DATA_LOST;
		path->syn_passed = rungs[RUNG_SMALL].syn_bytes;
		path->syn_lost = asked;
	} else if (at_once(full) && full->syn_data == PROBE_SYN_DATA_REFUSED) {
		path->syn_data = PROBE_SYN_DATA_REFUSED;
	} else if (asked && (at_once(&rungs[RUNG_BARE]) || at_once(&rungs[RUNG_TCP_BARE]))) {
		path->syn_data = PROBE_SYN_DATA_LOST;
		path->syn_lost = asked;
	}
}

/* Keeps the most informative result: the first, or a rung's if only that has an answer or a connection. */
static void settle_answer(struct check_path *path, const struct probe_result rungs[])
{
	const struct probe_result *best = &path->probe;

	for (int i = 0; i < RUNG_COUNT && best->outcome != PROBE_ANSWERED; i++)
		if (rungs[i].outcome == PROBE_ANSWERED ||
		    (!probe_is_connected(best) && probe_is_connected(&rungs[i])))
			best = &rungs[i];
	/* prefer a result without a repeated SYN, which would distort the times */
	for (int i = 0; i < RUNG_COUNT && best->syn_again; i++)
		if (at_once(&rungs[i]) && rungs[i].outcome == best->outcome)
			best = &rungs[i];
	if (best != &path->probe)
		probe_copy(&path->probe, best);
}

static void climb_down(struct probe_request request, struct check_path *path)
{
	struct probe_request requests[RUNG_COUNT];
	struct probe_result rungs[RUNG_COUNT];

	if (request.timeout_ms > AGAIN_MS)
		request.timeout_ms = AGAIN_MS;
	for (int i = 0; i < RUNG_COUNT; i++) {
		requests[i] = request;
		requests[i].tcp = i >= RUNG_TCP;
		requests[i].in_syn = i != RUNG_BARE && i != RUNG_TCP_BARE;
		if (i > RUNG_AGAIN_LAST && i != RUNG_TCP)
			requests[i].padding = 0;
	}
	probe_run_all(requests, rungs, RUNG_COUNT);
	for (int i = 0; i < RUNG_COUNT; i++)
		path->connected = path->connected || probe_is_connected(&rungs[i]);
	/* by TCP, since before Linux 6.2 Multipath TCP has no data in SYNs, which would show it */
	path->refused_here = rungs[RUNG_TCP].unsent && !path->connected;
	for (int i = RUNG_TCP; i <= RUNG_TCP_BARE; i++)
		/* our own kernel's message only says that no neighbour answers */
		if (rungs[i].icmp_from.sa.sa_family != AF_UNSPEC && (rungs[i].icmp_forbids || !networks_is_own(&rungs[i].icmp_from))) {
			path->icmp_from = rungs[i].icmp_from;
			path->icmp_forbids = rungs[i].icmp_forbids;
			path->icmp_error = rungs[i].error;
		}
	settle_mptcp(path, rungs);
	path->mptcp_lost_here = path->mptcp == PROBE_MPTCP_LOST && loses_mptcp_here(&request);
	settle_syn_data(path, rungs);
	settle_answer(path, rungs);
}

/* --- asking ------------------------------------------------------------------------------ */

void check_ask(struct check_path *path)
{
	struct probe_request request = check_request(path);

	request.in_syn = true;
	request.padding = REQUEST_PADDING;
	probe_run(&request, &path->probe);
	/* RFC 8803 says nothing of bytes behind a request for information. */
	if (path->probe.outcome == PROBE_RESET || path->probe.outcome == PROBE_CLOSED) {
		request.padding = 0;
		probe_run(&request, &path->probe);
	}
	path->connected = probe_is_connected(&path->probe);
	path->mptcp = path->probe.mptcp;
	path->syn_data = path->probe.syn_data;
	if (path->syn_data == PROBE_SYN_DATA_TAKEN)
		path->syn_passed = path->probe.syn_bytes;
	if (is_doubtful(&path->probe))
		climb_down(request, path);
}

/* Returns the cookie of a Missing Cookie error, which follows a zero byte (Section 6.2.8); empty if it has none. */
static struct convert_span given_cookie(const struct probe_result *probe)
{
	struct convert_span value = probe->response.error_value;

	if (probe->outcome != PROBE_ANSWERED || !probe->response.has_error ||
	    probe->response.error_code != CONVERT_ERROR_MISSING_COOKIE || value.len < 2)
		return (struct convert_span){ 0 };
	return (struct convert_span){ value.data + 1, value.len - 1 };
}

/* Connects again without a cookie to determine whether the converter refuses the client or the cookie. */
static void look_at_refusal(struct check_candidate *candidate)
{
	struct probe_request request = check_request(&candidate->first);
	struct probe_result without;

	if (!candidate->converters->settings->cookie_len) {
		candidate->refused = CHECK_COOKIE_CLIENT;
		return;
	}
	request.cookie = (struct convert_span){ 0 };
	request.in_syn = true;
	probe_run(&request, &without);
	if (without.outcome != PROBE_ANSWERED)
		return;
	if (!without.response.has_error || given_cookie(&without).len)
		candidate->refused = CHECK_COOKIE_NOT_NEEDED;
	else if (without.response.error_code == CONVERT_ERROR_MISSING_COOKIE)
		candidate->refused = CHECK_COOKIE_WRONG;
}

void check_ask_first(struct check_candidate *candidate)
{
	const struct settings *settings = candidate->converters->settings;
	struct convert_span cookie;

	if (settings->cookie_len && settings->cookie_len <= sizeof(candidate->cookie)) {
		memcpy(candidate->cookie, settings->cookie, settings->cookie_len);
		candidate->cookie_len = settings->cookie_len;
	}
	check_ask(&candidate->first);
	cookie = given_cookie(&candidate->first.probe);
	if (cookie.len) {
		memcpy(candidate->cookie, cookie.data, cookie.len);
		candidate->cookie_len = cookie.len;
		candidate->cookie_learned = true;
		candidate->first = (struct check_path){ .candidate = candidate, .from = candidate->first.from,
							.device = candidate->first.device, .home = candidate->first.home };
		check_ask(&candidate->first);
	}
	if (refuses(&candidate->first.probe))
		look_at_refusal(candidate);
}

/* --- the answer to an Info TLV --------------------------------------------------- */

static const char *kind_name(uint8_t kind)
{
	/* from IANA's "TCP Parameters": those that Section 7 lets a converter announce */
	static const struct {
		uint8_t kind;
		const char *name;
	} names[] = {
		{ 4, "SACK" }, { 8, "timestamps" }, { 19, "MD5" }, { 27, "quick start" },
		{ 28, "user timeout" }, { 30, "Multipath TCP" }, { 34, "Fast Open" },
		{ 69, "encryption (ENO)" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].kind == kind)
			return names[i].name;
	return "TCP option";
}

static void report_options(const struct check_candidate *candidate)
{
	struct convert_span kinds = candidate->first.probe.response.supported;
	size_t size;
	char *list = NULL;
	FILE *stream;
	struct fact *fact;

	while (kinds.len && !kinds.data[kinds.len - 1])
		kinds.len--; /* padding */
	stream = open_memstream(&list, &size);
	if (!stream)
		return;
	for (size_t i = 0; i < kinds.len; i++)
		fprintf(stream, "%s%s (%u)", i ? ", " : " ", kind_name(kinds.data[i]), kinds.data[i]);
	fclose(stream);
	fact = check_fact(candidate, FACT_OK, "converter.supports", "supports towards servers:%s",
			  list && kinds.len ? list : " no TCP option");
	fact_value_bytes(fact, kinds.data, kinds.len);
	free(list);
}

/* Reports TLVs of the answer that libconvert doesn't know, probably private ones. */
static void report_unknown(const struct check_candidate *candidate)
{
	uint8_t types[CONVERT_MESSAGE_MAX / 4];
	struct convert_span tlvs = candidate->first.probe.response.tlvs;
	size_t size, count = 0;
	struct convert_tlv tlv;
	char *list = NULL;
	FILE *stream = open_memstream(&list, &size);

	if (!stream)
		return;
	while (convert_tlv_next(&tlvs, &tlv) == CONVERT_STATUS_OK) {
		if (strcmp(convert_tlv_name(tlv.type), "unknown") != 0)
			continue;
		fprintf(stream, "%s%u%s (%zu bytes)", count ? ", " : " ", tlv.type,
			tlv.type >= CONVERT_TLV_PRIVATE_FIRST ? ", private" : "", tlv.value.len);
		types[count++] = tlv.type;
	}
	fclose(stream);
	if (count && list)
		fact_value_bytes(check_fact(candidate, FACT_NOTE, "converter.unknown_tlvs",
					    "sends TLVs that mean nothing to libconvert: type%s", list), types, count);
	free(list);
}

/* Reports whether its SYN+ACK confirms the server (doc/private-tlvs.md). Converters of other projects don't tell. */
static void report_withholding(const struct check_candidate *candidate)
{
	const bool withheld = candidate->first.probe.response.withholding.withheld;
	struct fact *fact;

	if (!candidate->first.probe.response.has_withholding)
		return;
	fact = check_fact(candidate, withheld ? FACT_OK : FACT_NOTE, "converter.withholds", withheld ?
			  "withholds SYNs until servers have answered" :
			  "withholds no SYNs: connections over Multipath TCP take one more round trip to it");
	if (!withheld)
		fact_remedy(fact, "on the converter, start convertd with --hold-syn on, which says what is missing");
	fact_value_bool(fact, withheld);
}

/*
 * Linux misreads the window of an MPTCP SYN with data as many times larger, and floods clients that have several paths. If the
 * converter doesn't correct that, programs send no such SYNs.
 */
static void report_windows(const struct check_candidate *candidate)
{
	const bool corrects = candidate->first.probe.response.withholding.corrects;
	struct fact *fact;

	fact = check_fact(candidate, corrects ? FACT_OK : FACT_WARN, "converter.windows", corrects ?
			  "corrects the windows of SYNs with data, so SYNs of Multipath TCP may carry requests" :
			  "doesn't say that it corrects the windows of SYNs with data: over Multipath TCP, requests follow the handshake "
			  "(one more round trip)");
	if (!corrects)
		fact_remedy(fact,
			    "if it is convertd, start it with CAP_NET_ADMIN there, as its systemd unit does; with --hold-syn on it says "
			    "what else is missing");
	fact_value_bool(fact, corrects);
}

void check_supported(const struct check_candidate *candidate)
{
	if (candidate->first.probe.response.has_supported)
		report_options(candidate);
	report_withholding(candidate);
	if (candidate->first.mptcp == PROBE_MPTCP_KEPT)
		report_windows(candidate);
	report_unknown(candidate);
}
