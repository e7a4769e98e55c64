/* SPDX-License-Identifier: BSD-3-Clause */
/* paths_print.c - prints the networks of "convertize paths", as text in lines that fit the terminal, or as a JSON object */
#include "config.h"

#include "convertize/paths/paths_command.h"

#include "common/columns.h"
#include "common/quote.h"
#include "host/host_model.h"

#include <assert.h>
#include <inttypes.h>
#include <linux/mptcp.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PART_MAX 96
#define LINE_INDENT 4

static const char *const metered_names[] = {
	[HOST_METERED_UNKNOWN] = "unknown", [HOST_METERED_NO] = "no",		 [HOST_METERED_YES] = "yes",
	[HOST_METERED_GUESSED_NO] = "no",   [HOST_METERED_GUESSED_YES] = "yes",
};

static const char *const metered_by_names[] = {
	[PATHS_BY_NOBODY] = "nobody",
	[PATHS_BY_NETWORK_MANAGER] = "NetworkManager",
	[PATHS_BY_KIND] = "device kind",
};

static const char *const keeper_names[] = {
	[HOST_KEEPER_OURS] = "convertize",
	[HOST_KEEPER_OTHER] = "other",
	[HOST_KEEPER_NM] = "NetworkManager",
	[HOST_KEEPER_MPTCPD] = "mptcpd",
};
static_assert(sizeof(keeper_names) / sizeof(keeper_names[0]) == HOST_KEEPER_COUNT, "a name for each keeper");

static const struct {
	uint32_t flag;
	const char *name;
} flags[] = {
	{ MPTCP_PM_ADDR_FLAG_SUBFLOW, "subflow" },   { MPTCP_PM_ADDR_FLAG_SIGNAL, "signal" },
	{ MPTCP_PM_ADDR_FLAG_BACKUP, "backup" },     { MPTCP_PM_ADDR_FLAG_FULLMESH, "fullmesh" },
	{ MPTCP_PM_ADDR_FLAG_IMPLICIT, "implicit" },
};
#define FLAG_COUNT (sizeof(flags) / sizeof(flags[0]))

/* Returns in a few words why a network doesn't work. */
static const char *describe_failure(const struct probe_result *probe)
{
	switch (probe->outcome) {
	case PROBE_LOCAL:
	case PROBE_UNREACHABLE:
		return strerror(probe->error);
	case PROBE_NO_SYN_ACK:
		return "nothing comes back";
	case PROBE_SILENT:
		return "connected, and no answer";
	case PROBE_CLOSED:
	case PROBE_RESET:
		return "connected, and closed without an answer";
	default:
		return "something other than a converter answers";
	}
}

/* --- text -------------------------------------------------------------------------- */

static void format_endpoint(const struct paths_row *row, char out[static PART_MAX])
{
	size_t len;

	if (!row->has_endpoint) {
		strcpy(out, "none");
		return;
	}
	len = (size_t)snprintf(out, PART_MAX, "%u", row->endpoint.id);
	for (size_t i = 0; i < FLAG_COUNT; i++)
		if (row->endpoint.flags & flags[i].flag)
			len += (size_t)snprintf(out + len, PART_MAX - len, " %s", flags[i].name);
}

/* Formats the routing table for packets from the address: "main" for the kernel's main table, else its number. */
static void format_table(const struct paths_row *row, char out[static PART_MAX])
{
	if (!row->way_table)
		strcpy(out, "none");
	else if (row->way_index != row->network.link.index)
		strcpy(out, "other way");
	else if (row->way_table == RT_TABLE_MAIN)
		strcpy(out, "main");
	else
		snprintf(out, PART_MAX, "%u", row->way_table);
}

static void format_since(int64_t since, char out[static PART_MAX])
{
	time_t seconds = (time_t)since;
	struct tm tm;

	out[0] = '\0';
	if (localtime_r(&seconds, &tm))
		strftime(out, PART_MAX, "%Y-%m-%d %H:%M:%S", &tm);
}

/* Formats the network's place in CONVERT_PATHS. */
static void format_wish(const struct paths_row *row, char out[static PART_MAX])
{
	if (row->use != PATH_USE_ORDERED)
		strcpy(out, path_use_name(row->use));
	else if (row->preference == PATH_PREFERENCE_NONE)
		strcpy(out, "unnamed");
	else
		snprintf(out, PART_MAX, "%u", row->preference + 1u);
}

static const char *const learned_names[] = {
	[CACHE_PATH_UNKNOWN] = "nothing", [CACHE_PATH_WORKS] = "works",	  [CACHE_PATH_DATALESS] = "takes no SYN data",
	[CACHE_PATH_LOSES] = "loses packets", [CACHE_PATH_SILENT] = "silent",
	[CACHE_PATH_REFUSES] = "refuses",
};
static_assert(sizeof(learned_names) / sizeof(learned_names[0]) == CACHE_PATH_COUNT, "a name for each state");

/* Returns the number of SYNs in a row that lost their data, on a path that works. */
static unsigned int data_lost(const struct paths_row *row)
{
	return row->learned.path.state == CACHE_PATH_WORKS ? row->learned.path.doubts : 0;
}

/* Returns the seconds since a program last asked over the path or saw its state; -1: unknown. */
static int64_t asked_ago(const struct paths_row *row)
{
	int64_t ago = cache_now() - row->learned.path.asked;

	return row->learned.path.asked > 0 && ago >= 0 ? ago / 1000 : -1;
}

/* Formats the entry of the user's cache: "works, 21 ms", "silent, asked 3 s ago". */
static void format_learned(const struct paths_row *row, char out[static PART_MAX])
{
	size_t len = (size_t)snprintf(out, PART_MAX, "%s", learned_names[row->learned.path.state]);
	int64_t ago = asked_ago(row);

	if (row->learned.path.rtt_ms)
		len += (size_t)snprintf(out + len, PART_MAX - len, ", %u ms", row->learned.path.rtt_ms);
	if (data_lost(row))
		len += (size_t)snprintf(out + len, PART_MAX - len, ", lost the data of %u SYN%s", data_lost(row),
					data_lost(row) == 1 ? "" : "s");
	if (row->learned.path.state > CACHE_PATH_WORKS && ago >= 0)
		snprintf(out + len, PART_MAX - len, ", asked %" PRId64 " s ago", ago);
}

/* Writes a network: its first line says whether it works, the next ones all else. */
static void print_row(FILE *out, const struct paths_row *row)
{
	const struct host_network *network = &row->network;
	const bool guessed = row->metered == HOST_METERED_GUESSED_NO || row->metered == HOST_METERED_GUESSED_YES;
	char address[SOCKADDR_STRLEN], part[PART_MAX], amount[AMOUNT_MAX];

	fprintf(out, "%s %s ", network->link.name, host_format_address(&network->address, address));
	if (row->works == PATHS_WORKS_NO)
		fprintf(out, "doesn't work: %s (%s)", describe_failure(&row->probe), row->converter);
	else if (row->works == PATHS_WORKS_YES)
		fprintf(out, "works, %.0f ms", row->probe.answer_ms);
	else
		fputs("wasn't asked", out);
	fprintf(out, "\n%*s", LINE_INDENT, "");
	strcpy(address, "none");
	if (network->gateway.sa.sa_family != AF_UNSPEC)
		host_format_address(&network->gateway, address);
	format_endpoint(row, part);
	fprintf(out, "gateway %s, endpoint %s", address, part);
	format_table(row, part);
	fprintf(out, ", table %s, metered %s%s", part, metered_names[row->metered], guessed ? " (guess)" : "");
	if (row->since) {
		format_since(row->since, part);
		fprintf(out, ", since %s", part);
	}
	fprintf(out, ", %zu subflow%s, received %s", row->subflows.count, row->subflows.count == 1 ? "" : "s",
		amount_of_bytes(network->link.received, amount));
	fprintf(out, ", sent %s", amount_of_bytes(network->link.sent, amount));
	format_wish(row, part);
	fprintf(out, ", preferred: %s", part);
	format_learned(row, part);
	fprintf(out, ", learned: %s\n", part);
}

/* Writes the lines behind the networks, for facts that need a sentence. */
static void print_remarks(FILE *out, const struct paths_view *view)
{
	char address[SOCKADDR_STRLEN];

	for (size_t i = 0; i < view->count; i++) {
		const struct paths_row *row = &view->rows[i];

		if (row->way_table && row->way_index != row->network.link.index)
			fprintf(out, "%s %s: packets from there leave by another device, as a rule for it is missing\n",
				row->network.link.name, host_format_address(&row->network.address, address));
	}
	for (size_t i = 0; i < view->wishes.count; i++)
		if (!network_is_there(&view->wishes.wishes[i]))
			fprintf(out, "CONVERT_PATHS names %s: there is no such device or address now\n",
				path_wish_format(&view->wishes.wishes[i], address));
	for (size_t i = 0; i < view->wanted.count; i++) {
		const struct host_network *network = &view->wanted.networks[i];

		if (network->verdict != HOST_USED)
			fprintf(out, "%s %s is left alone: %s\n", network->link.name,
				host_format_address(&network->address, address), host_verdict_text(network->verdict));
	}
	for (size_t i = 0; i < view->host.managers.nm_count; i++)
		if (view->host.managers.nm[i].endpoints)
			fprintf(out, "%s: NetworkManager keeps its endpoints\n", view->host.managers.nm[i].name);
	if (view->host.managers.mptcpd || view->host.managers.userspace)
		fputs("endpoints are left to mptcpd, which manages paths here\n", out);
	if (!view->converter_count)
		fputs("no converter was asked: name one, --converter ADDR\n", out);
	if (view->mptcp <= 0)
		fprintf(out, "Multipath TCP is %s\n",
			view->mptcp == 0 ? "switched off; remedy: sysctl -w net.mptcp.enabled=1" : "not in this kernel");
	else if (!view->is_managed && !view->host.managers.mptcpd && !view->host.managers.userspace)
		fputs("nothing manages them: systemctl enable --now convertize-paths\n", out);
}

void paths_print(FILE *out, const struct paths_view *view)
{
	unsigned int width = columns_of(out);
	char *text = NULL, *rest, *line;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return;
	for (size_t i = 0; i < view->count; i++)
		print_row(stream, &view->rows[i]);
	if (!view->count)
		fputs("there is no network with an address and a default route\n", stream);
	print_remarks(stream, view);
	rest = fclose(stream) == 0 ? text : NULL;
	while ((line = strsep(&rest, "\n")) && (rest || *line))
		columns_wrap(out, line, width ? width : COLUMNS_USUAL, 0, LINE_INDENT, "");
	free(text);
}

/* --- JSON ------------------------------------------------------------------------------- */

static void put_endpoint(FILE *out, const struct paths_row *row)
{
	const char *separator = "";

	if (!row->has_endpoint) {
		fputs(", \"endpoint\": null", out);
		return;
	}
	fprintf(out, ", \"endpoint\": {\"id\": %u, \"flags\": [", row->endpoint.id);
	for (size_t i = 0; i < FLAG_COUNT; i++)
		if (row->endpoint.flags & flags[i].flag) {
			fprintf(out, "%s\"%s\"", separator, flags[i].name);
			separator = ", ";
		}
	fputc(']', out);
	json_member_bool(out, "ours", row->endpoint.is_ours);
	json_member_number(out, "since", row->since, row->since);
	fputc('}', out);
}

static void put_works(FILE *out, const struct paths_row *row)
{
	static const char *const names[] = {
		[PATHS_WORKS_UNASKED] = "null", [PATHS_WORKS_NO] = "false", [PATHS_WORKS_YES] = "true"
	};

	fprintf(out, ", \"works\": %s", names[row->works]);
	if (row->works == PATHS_WORKS_UNASKED)
		return;
	json_member(out, "converter", row->converter);
	json_member(out, "problem", row->works == PATHS_WORKS_NO ? describe_failure(&row->probe) : NULL);
	if (row->works == PATHS_WORKS_YES) {
		fputs(", \"answer_ms\": ", out);
		json_number(out, row->probe.answer_ms);
	}
	json_member_bool(out, "mptcp", row->probe.mptcp == PROBE_MPTCP_KEPT);
}

static void put_knowledge(FILE *out, const struct paths_row *row)
{
	const bool ordered = row->use == PATH_USE_ORDERED;

	json_member(out, "preferred", ordered ? NULL : path_use_name(row->use));
	json_member_number(out, "order", ordered && row->preference != PATH_PREFERENCE_NONE, row->preference + 1);
	if (!*row->learned_of) {
		fputs(", \"learned\": null", out);
		return;
	}
	fputs(", \"learned\": {\"converter\": ", out);
	json_string(out, row->learned_of);
	json_member(out, "state", learned_names[row->learned.path.state]);
	json_member_number(out, "rtt_ms", row->learned.path.rtt_ms, row->learned.path.rtt_ms);
	json_member_number(out, "syn_data_lost", true, data_lost(row));
	json_member_number(out, "asked_seconds_ago", asked_ago(row) >= 0, asked_ago(row));
	fputc('}', out);
}

static void put_missing(FILE *out, const struct path_preferences *wishes)
{
	const char *separator = "";
	char name[SOCKADDR_STRLEN];

	for (size_t i = 0; i < wishes->count; i++) {
		if (network_is_there(&wishes->wishes[i]))
			continue;
		fputs(separator, out);
		json_string(out, path_wish_format(&wishes->wishes[i], name));
		separator = ", ";
	}
}

static void put_row(FILE *out, const struct paths_row *row)
{
	const struct host_network *network = &row->network;
	bool has_gateway = network->gateway.sa.sa_family != AF_UNSPEC;
	char text[SOCKADDR_STRLEN];

	fputs("{\"device\": ", out);
	json_string(out, network->link.name);
	json_member(out, "kind", network->link.kind);
	json_member(out, "address", host_format_address(&network->address, text));
	json_member(out, "gateway", has_gateway ? host_format_address(&network->gateway, text) : NULL);
	json_member(out, "verdict", host_verdict_name(network->verdict));
	json_member(out, "keeper", keeper_names[network->keeper]);
	put_endpoint(out, row);
	json_member_number(out, "table", true, row->way_table);
	json_member_bool(out, "leaves_by_device", row->way_table && row->way_index == network->link.index);
	json_member(out, "metered", metered_names[row->metered]);
	json_member(out, "metered_by", metered_by_names[row->metered_by]);
	put_works(out, row);
	fprintf(out, ", \"subflows\": {\"count\": %zu, \"received\": %" PRIu64 ", \"sent\": %" PRIu64, row->subflows.count,
		row->subflows.received, row->subflows.sent);
	json_member_number(out, "heard_ms", row->subflows.count, row->subflows.heard_ms);
	fputc('}', out);
	put_knowledge(out, row);
	fprintf(out, ", \"device_received\": %" PRIu64 ", \"device_sent\": %" PRIu64 "}", network->link.received,
		network->link.sent);
}

static void put_left_alone(FILE *out, const struct paths_view *view)
{
	const char *separator = "";
	char text[SOCKADDR_STRLEN];

	for (size_t i = 0; i < view->wanted.count; i++) {
		const struct host_network *network = &view->wanted.networks[i];

		if (network->verdict == HOST_USED)
			continue;
		fprintf(out, "%s{\"device\": ", separator);
		json_string(out, network->link.name);
		json_member(out, "address", host_format_address(&network->address, text));
		json_member(out, "verdict", host_verdict_name(network->verdict));
		json_member(out, "text", host_verdict_text(network->verdict));
		fputc('}', out);
		separator = ", ";
	}
}

void paths_print_json(FILE *out, const struct paths_view *view)
{
	fputs("{\"networks\": [", out);
	for (size_t i = 0; i < view->count; i++) {
		fputs(i ? ",\n " : "\n ", out);
		put_row(out, &view->rows[i]);
	}
	fputs("],\n \"left_alone\": [", out);
	put_left_alone(out, view);
	fputs("],\n \"missing\": [", out);
	put_missing(out, &view->wishes);
	fprintf(out, "],\n \"managed\": %s, \"mptcpd\": %s, \"converters\": %zu, \"subflow_limit\": %u}\n",
		view->is_managed ? "true" : "false", view->host.managers.mptcpd || view->host.managers.userspace ? "true" : "false",
		view->converter_count, view->host.endpoints.subflow_limit);
}
