/* SPDX-License-Identifier: BSD-3-Clause */
/* check_paths_all.c - all paths to a converter at once: a connection of Multipath TCP that each path joins */
#include "config.h"

#include "convertize/check/check.h"

#define TRIES_OF_ALL 3 /* of a transfer over all paths at once, before we report its failure */
#define LIMIT_TRIES 3  /* at once, of connections that may be one too many */
#define LIMIT_MS 1000

static bool is_good(const struct check_path *path)
{
	return path->mptcp == PROBE_MPTCP_KEPT && path->size == CHECK_SIZE_CARRIED;
}

/* Does no connection get through any more, where each did before? */
static bool is_limited(const struct check_converters *converters, const struct check_candidate *candidate)
{
	struct probe_request requests[LIMIT_TRIES];
	struct probe_result results[LIMIT_TRIES];
	bool any = candidate->first.unsteady || candidate->first.lost_percent;

	for (int i = 0; i < LIMIT_TRIES; i++) {
		requests[i] = check_request(converters, candidate, &candidate->first);
		requests[i].connect_only = true;
		requests[i].timeout_ms = LIMIT_MS;
	}
	probe_run_all(requests, results, LIMIT_TRIES);
	for (int i = 0; i < LIMIT_TRIES; i++)
		any = any || probe_is_connected(&results[i]);
	return !any;
}

void check_paths_report_all(const struct check_converters *converters,
		       const struct check_candidate *candidate)
{
	unsigned int expected = 0;
	static struct probe_result result;
	struct fact *fact;
	bool carried = false;

	for (size_t i = 0; i < candidate->path_count; i++)
		expected += candidate->paths[i].endpoint &&
			    (is_good(&candidate->paths[i]) || check_path_is_refused(&candidate->paths[i]));
	if (expected > converters->networks->host.endpoints.subflow_limit)
		expected = converters->networks->host.endpoints.subflow_limit;
	/* the fault of the first path, already reported, explains the rest */
	if (!is_good(&candidate->first) || !candidate->first.both_ways)
		return;
	report_flush(converters->report);
	/*
	 * Packets get lost at times. With one lost in thirty, each way, 41 of 538 tries failed: if the SYN+ACK to data in a SYN is lost, Linux
	 * falls back to TCP, and a join that loses its packets twice comes too late.
	 */
	for (int i = 0; i < TRIES_OF_ALL && (!carried || result.subflows < expected); i++)
		carried = check_measure_all(converters, candidate, expected, &result);
	if (result.subflows < expected && converters->networks->host.managers.userspace) {
		fact = report_fact(converters->report, FACT_WARN, "paths", candidate->about,
				   "a connection had %u more path%s than its first, and not %u: the path manager in user space makes no "
				   "others (net.mptcp.pm_type = 1)",
				   result.subflows, result.subflows == 1 ? "" : "s", expected);
		if (converters->networks->host.managers.mptcpd)
			fact_remedy(fact, REMEDY_MPTCPD);
		else
			fact_command(fact, COMMAND_HERE, "sysctl", "-w", "net.mptcp.pm_type=0", (char *)NULL);
	} else if (result.subflows < expected && is_limited(converters, candidate)) {
		fact = report_fact(converters->report, FACT_WARN, "paths", candidate->about,
				   "connections were made, and then no more: a firewall limits how many begin in a time");
		fact_remedy(fact, REMEDY_RATE, sockaddr_ip_port(&candidate->address));
	} else if (result.subflows < expected) {
		fact = report_fact(converters->report, FACT_WARN, "paths", candidate->about,
				   "a connection had %u more path%s than its first, and not %u, "
				   "though each works alone: something on the way drops the SYNs that "
				   "join a connection, or the converter takes none",
				   result.subflows, result.subflows == 1 ? "" : "s", expected);
		fact_remedy(fact, REMEDY_OPTION_30_JOIN);
	} else if (!carried) {
		fact = report_fact(converters->report, FACT_WARN, "paths", candidate->about,
				   "a transfer by Multipath TCP over %u path%s stalls, and by TCP it "
				   "does not",
				   result.subflows + 1, result.subflows ? "s at once" : "");
		fact_remedy(fact, REMEDY_STALL);
	} else {
		fact = report_fact(converters->report, FACT_OK, "paths", candidate->about,
				   "a connection by Multipath TCP uses %u path%s (%.0f ms for %zu KiB, "
				   "there and back)",
				   result.subflows + 1, result.subflows ? "s" : "",
				   result.transfer_ms, result.returned / 1024);
	}
	fact_value_number(fact, result.subflows + 1);
}
