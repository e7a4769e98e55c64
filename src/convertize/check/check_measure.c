/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_measure.c - a short transfer each way, and the largest packets that a path carries
 *
 * On request, convertd sends the bytes that follow a request back (the Echo TLV, doc/private-tlvs.md). With other converters we see
 * only the way there: an answer shows that the full segments with the request arrived.
 *
 * If full segments vanish, we try segments of many sizes at once, over plain TCP with a smaller maximum segment size, which
 * limits both sides. A few such rounds find the largest size that passes.
 */
#include "config.h"

#include "convertize/check/check.h"

#include <poll.h>

#define TRANSFER_BYTES (64 * 1024)
#define TRANSFER_ALL_BYTES (128 * 1024) /* more than an initial congestion window, so that the transfer uses all paths */
#define LOST_MIN 8        /* repeated segments, of some fifty; single ones get lost at times */
#define LOST_PERCENT_MIN 15
#define LOST_HANDSHAKES 3 /* in a row, before we give up a measurement */
#define STALL_MS 2000     /* three retransmissions, or four */
#define ONE_WAY_BYTES 4096
#define TRIES_OF_ALL 3 /* of a transfer over all paths at once, before we report its failure */
#define LIMIT_TRIES 3  /* at once, of connections that may be one too many */
#define LIMIT_MS 1000

#define SEARCH_BYTES 4096
#define SEARCH_STALL_MS 900
#define SEARCH_SIZES 8 /* at once: convertd refuses a client that asks more than 20 times in a second */
#define SEARCH_MIN 576 /* RFC 791 */

/* Did all @bytes arrive and come back? Sets *@both_ways if the converter sends bytes back at all. */
static bool carries(const struct probe_result *result, size_t bytes, bool *both_ways)
{
	*both_ways = result->outcome == PROBE_ANSWERED && result->response.has_echo;
	return *both_ways && result->returned >= bytes;
}

/* Tries only the way there: any answer shows that the segment with the request arrived. */
static bool carries_there(struct probe_request request, struct probe_result *out)
{
	request.echo = false;
	request.in_syn = false;
	request.padding = ONE_WAY_BYTES;
	probe_run(&request, out);
	return probe_is_connected(out) && out->outcome != PROBE_SILENT;
}

/* Does the result show a converter without Echo TLVs? It answers without one, or ends the connection. */
static bool knows_no_echo(const struct probe_result *result)
{
	return (result->outcome == PROBE_ANSWERED && !result->response.has_echo) ||
	       result->outcome == PROBE_CLOSED || result->outcome == PROBE_RESET ||
	       result->outcome == PROBE_NOT_CONVERT;
}

/* --- the largest packets --------------------------------------------------------------- */

struct search {
	struct probe_request request;
	unsigned int headers;
	unsigned int passed; /* the largest size that passed, in bytes; 0: none so far */
	unsigned int lost;   /* the smallest size that didn't pass */
	bool both_ways;      /* bytes came back */
};

/* Did segments of this size pass? Without Echo TLVs, any answer shows that the segment with the request arrived. */
static bool passes(const struct probe_result *result, bool *both_ways)
{
	if (carries(result, SEARCH_BYTES, both_ways))
		return true;
	return !*both_ways && probe_is_connected(result) && result->outcome != PROBE_SILENT;
}

/* @sizes: in ascending order */
static void search_round(struct search *search, const unsigned int sizes[], size_t count)
{
	struct probe_request requests[SEARCH_SIZES + 1];
	static struct probe_result results[SEARCH_SIZES + 1];
	bool both_ways;

	for (size_t i = 0; i < count; i++) {
		requests[i] = search->request;
		requests[i].segment = sizes[i] - search->headers;
	}
	probe_run_all(requests, results, count);
	for (size_t i = 0; i < count; i++) {
		if (passes(&results[i], &both_ways))
			search->passed = sizes[i];
		search->both_ways = search->both_ways || both_ways;
	}
	for (size_t i = count; i > 0; i--)
		if (sizes[i - 1] > search->passed)
			search->lost = sizes[i - 1];
}

/*
 * Searches the largest packets that pass. @mtu: the largest that the devices send, in bytes
 * Returns their size: @mtu if nothing is wrong, 0 if not even the smallest pass.
 */
static unsigned int search_size(struct probe_request request, unsigned int mtu, bool *both_ways)
{
	struct search search = { .headers = probe_headers(&request.converter), .lost = mtu + 1 };
	unsigned int sizes[SEARCH_SIZES + 1];
	size_t count = SEARCH_SIZES + 1;

	request.tcp = true;
	request.in_syn = false;
	request.echo = true;
	request.padding = SEARCH_BYTES;
	request.stall_ms = SEARCH_STALL_MS;
	search.request = request;
	if (mtu <= SEARCH_MIN)
		return 0;
	for (unsigned int i = 0; i < count; i++)
		sizes[i] = SEARCH_MIN + (mtu - SEARCH_MIN) * i / SEARCH_SIZES;
	search_round(&search, sizes, count);
	while (search.passed && search.passed < mtu && search.lost - search.passed > 1) {
		unsigned int gap = search.lost - search.passed;

		count = gap - 1 < SEARCH_SIZES ? gap - 1 : SEARCH_SIZES;
		for (unsigned int i = 0; i < count; i++)
			sizes[i] = search.passed + gap * (i + 1) / ((unsigned int)count + 1);
		search_round(&search, sizes, count);
	}
	*both_ways = *both_ways || search.both_ways;
	return search.passed;
}

/* --- one path ---------------------------------------------------------------------------- */

/* The paddings of the SYNs to try after a full one was lost, in bytes without the request. */
static const size_t syn_paddings[] = { 64, 160, 320, 512, 768, 1024, TRANSFER_BYTES };
#define SYN_PADDINGS (sizeof(syn_paddings) / sizeof(syn_paddings[0]))

#define SYN_TRIES 3

/* Finds the largest SYN that gets through, and the next larger one, which fails SYN_TRIES times: single packets may get lost. */
static void search_syn(struct probe_request request, struct check_path *path)
{
	struct probe_request requests[SYN_PADDINGS];
	struct probe_result results[SYN_PADDINGS];
	size_t taken = 0; /* the number of sizes that got through */

	request.connect_only = true;
	path->syn_lost = 0;
	for (int try = 0; try < SYN_TRIES && taken < SYN_PADDINGS; try++) {
		size_t count = SYN_PADDINGS - taken, largest = count;

		for (size_t i = 0; i < count; i++) {
			requests[i] = request;
			requests[i].padding = syn_paddings[taken + i];
		}
		probe_run_all(requests, results, count);
		while (largest > 0 && results[largest - 1].syn_data != PROBE_SYN_DATA_TAKEN)
			largest--;
		if (largest > 0)
			path->syn_passed = results[largest - 1].syn_bytes;
		path->syn_lost = largest < count ? results[largest].syn_bytes : 0;
		taken += largest;
	}
}

/*
 * Makes a transfer with as much data in the SYN as fits. If that SYN is lost, searches the largest SYN that passes, and repeats the
 * transfer without data in the SYN: a lost SYN distorts the measured speed.
 */
static void transfer(struct probe_request request, struct check_path *path,
		     struct probe_result *result)
{
	probe_run(&request, result);
	if (!request.in_syn)
		return;
	if (probe_is_connected(result) && !result->syn_again) {
		if (result->syn_data == PROBE_SYN_DATA_TAKEN)
			path->syn_passed = result->syn_bytes;
		return;
	}
	search_syn(request, path);
	request.in_syn = false;
	probe_run(&request, result);
}

void check_measure(struct check_path *path)
{
	struct probe_request request = check_request(path);
	static struct probe_result result;
	bool carried;

	request.echo = true;
	request.padding = TRANSFER_BYTES;
	request.stall_ms = STALL_MS;
	request.tcp = true; /* Multipath TCP would also use the other paths */
	request.in_syn = path->syn_data == PROBE_SYN_DATA_TAKEN;
	transfer(request, path, &result);
	/* The path has answered a request before. So a handshake that fails means lost packets: we try again. */
	for (int i = 1; i < LOST_HANDSHAKES && !probe_is_connected(&result); i++) {
		path->unsteady = i > 1;
		transfer(request, path, &result);
	}
	if (result.outcome == PROBE_RESET) {
		/* this client may have reached convertd's limit of answers in a second */
		poll(NULL, 0, 500);
		transfer(request, path, &result);
	}
	carried = carries(&result, TRANSFER_BYTES, &path->both_ways);
	path->mtu = result.mtu;
	path->transfer_ms = result.transfer_ms;
	if (result.lost >= LOST_MIN && 100 * result.lost >= LOST_PERCENT_MIN * result.segments)
		path->lost_percent = 100 * result.lost / result.segments;
	path->carried = TRANSFER_BYTES;
	path->size = CHECK_SIZE_CARRIED;
	if (!carried && !path->both_ways && knows_no_echo(&result)) {
		carried = carries_there(request, &result);
		path->carried = ONE_WAY_BYTES;
	}
	if (carried)
		return;
	if (!probe_is_connected(&result)) {
		path->unsteady = true;
		path->size = CHECK_SIZE_UNKNOWN;
		return;
	}
	/* acknowledgements without data come back even if full segments don't */
	path->size = result.acknowledged > result.syn_bytes + 2 * result.mtu ?
			     CHECK_SIZE_LOST_BACK : CHECK_SIZE_LOST_THERE;
	path->mtu = search_size(request, result.mtu, &path->both_ways);
	if (path->mtu == result.mtu)
		path->size = CHECK_SIZE_CARRIED;
}

/* --- all paths ------------------------------------------------------------------------- */

/* Makes a transfer over all paths at once. Returns false if not all bytes came back. */
static bool measure_all(const struct check_candidate *candidate, unsigned int subflows, struct probe_result *out)
{
	struct probe_request request = check_request(&candidate->first);
	bool both_ways;

	request.echo = true;
	request.padding = TRANSFER_ALL_BYTES;
	request.stall_ms = STALL_MS;
	request.subflows = subflows;
	probe_run(&request, out);
	return carries(out, TRANSFER_ALL_BYTES, &both_ways);
}

static bool is_good(const struct check_path *path)
{
	return path->mptcp == PROBE_MPTCP_KEPT && path->size == CHECK_SIZE_CARRIED;
}

/* Does no connection get through any more, over a path that lost nothing before? */
static bool is_limited(const struct check_candidate *candidate)
{
	struct probe_request requests[LIMIT_TRIES];
	struct probe_result results[LIMIT_TRIES];
	bool any = candidate->first.unsteady || candidate->first.lost_percent;

	for (int i = 0; i < LIMIT_TRIES; i++) {
		requests[i] = check_request(&candidate->first);
		requests[i].connect_only = true;
		requests[i].timeout_ms = LIMIT_MS;
	}
	probe_run_all(requests, results, LIMIT_TRIES);
	for (int i = 0; i < LIMIT_TRIES; i++)
		any = any || probe_is_connected(&results[i]);
	return !any;
}

/* Reports why a connection has fewer subflows than there are paths. */
static struct fact *report_missing(const struct check_candidate *candidate, unsigned int subflows, unsigned int expected)
{
	const struct host_managers *managers = &candidate->converters->networks->host.managers;
	struct fact *fact;

	if (managers->userspace) {
		fact = check_fact(candidate, FACT_WARN, "paths",
				  "a connection had %u path%s besides its first, and not %u: the path manager in user space makes no "
				  "others (net.mptcp.pm_type = 1)", subflows, subflows == 1 ? "" : "s", expected);
		if (managers->mptcpd)
			fact_remedy(fact, REMEDY_MPTCPD);
		else
			fact_command(fact, COMMAND_HERE, "sysctl", "-w", "net.mptcp.pm_type=0");
	} else if (is_limited(candidate)) {
		fact = check_fact(candidate, FACT_WARN, "paths",
				  "the first connections were made, later ones weren't: a firewall limits the rate of new connections");
		fact_remedy(fact,
			    "on the converter, let TCP to port %u through without a limit on new connections, such as that of ufw limit",
			    sockaddr_ip_port(&candidate->address));
	} else {
		fact = check_fact(candidate, FACT_WARN, "paths",
				  "a connection had %u path%s besides its first, and not %u, though each works alone: something on the "
				  "way drops the SYNs that join a connection, or the converter takes none", subflows,
				  subflows == 1 ? "" : "s", expected);
		fact_remedy(fact, "ask the operator of the network to let TCP option 30 through in each SYN, "
			    OTHER_PORT "; see also ip mptcp limits and net.mptcp.allow_join_initial_addr_port there");
	}
	return fact;
}

void check_measure_all(const struct check_candidate *candidate)
{
	const unsigned int limit = candidate->converters->networks->host.endpoints.subflow_limit;
	unsigned int expected = 0;
	static struct probe_result result;
	struct fact *fact;
	bool carried = false;

	for (size_t i = 0; i < candidate->path_count; i++)
		expected += candidate->paths[i].endpoint &&
			    (is_good(&candidate->paths[i]) || check_path_is_refused(&candidate->paths[i]));
	if (expected > limit)
		expected = limit;
	/* the fault of the first path, already reported, explains the rest */
	if (!is_good(&candidate->first) || !candidate->first.both_ways)
		return;
	report_flush(candidate->converters->report);
	/*
	 * Packets get lost at times. With one lost in thirty, each way, 41 of 538 tries failed: if the SYN+ACK to data in a SYN is lost,
	 * Linux falls back to TCP, and a join that loses its packets twice comes too late.
	 */
	for (int i = 0; i < TRIES_OF_ALL && (!carried || result.subflows < expected); i++)
		carried = measure_all(candidate, expected, &result);
	if (result.subflows < expected) {
		fact = report_missing(candidate, result.subflows, expected);
	} else if (!carried) {
		fact = check_fact(candidate, FACT_WARN, "paths",
				  "a transfer by Multipath TCP over %u path%s stalls, and by TCP it does not", result.subflows + 1,
				  result.subflows ? "s at once" : "");
		fact_remedy(fact, "try again, since packets are lost at times; if it stays so, use another network, " OTHER_PORT);
	} else {
		fact = check_fact(candidate, FACT_OK, "paths",
				  "a connection by Multipath TCP uses %u path%s (%.0f ms for %zu KiB, there and back)", result.subflows + 1,
				  result.subflows ? "s" : "", result.transfer_ms, result.returned / 1024);
	}
	fact_value_number(fact, result.subflows + 1);
}
