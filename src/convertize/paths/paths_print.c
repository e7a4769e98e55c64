/* SPDX-License-Identifier: BSD-3-Clause */
/* paths_print.c - prints the networks of "convertize paths", as a table or as a JSON object */
#include "config.h"

#include "convertize/paths/paths_command.h"

#include "common/quote.h"
#include "host/host_model.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/mptcp.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CELL_MAX 96

enum column {
	COLUMN_DEVICE,
	COLUMN_ADDRESS,
	COLUMN_GATEWAY,
	COLUMN_ENDPOINT,
	COLUMN_TABLE,
	COLUMN_METERED,
	COLUMN_WORKS,
	COLUMN_SINCE,
	COLUMN_SUBFLOWS,
	COLUMN_RECEIVED,
	COLUMN_SENT,
	COLUMN_WISH,
	COLUMN_LEARNED,
	COLUMN_COUNT
};

static const char *const titles[] = { "DEVICE", "ADDRESS", "GATEWAY",  "ENDPOINT", "TABLE", "METERED",
				      "WORKS",  "SINCE",   "SUBFLOWS", "RECEIVED", "SENT",  "PREFERRED", "LEARNED" };
static_assert(sizeof(titles) / sizeof(titles[0]) == COLUMN_COUNT, "a title for each column");

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
		return "something else than a converter answers";
	}
}

/* --- the table -------------------------------------------------------------------------- */

static void format_bytes(uint64_t bytes, char out[static CELL_MAX])
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 999.5 && unit < 4) {
		value /= 1000;
		unit++;
	}
	snprintf(out, CELL_MAX, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static void format_endpoint(const struct paths_row *row, char out[static CELL_MAX])
{
	size_t len;

	if (!row->has_endpoint) {
		strcpy(out, "none");
		return;
	}
	len = (size_t)snprintf(out, CELL_MAX, "%u", row->endpoint.id);
	for (size_t i = 0; i < FLAG_COUNT; i++)
		if (row->endpoint.flags & flags[i].flag)
			len += (size_t)snprintf(out + len, CELL_MAX - len, " %s", flags[i].name);
}

/* Formats the routing table for packets from the address: "main" for the kernel's main table, else its number. */
static void format_table(const struct paths_row *row, char out[static CELL_MAX])
{
	if (!row->way_table)
		strcpy(out, "none");
	else if (row->way_index != row->network.link.index)
		strcpy(out, "other way");
	else if (row->way_table == RT_TABLE_MAIN)
		strcpy(out, "main");
	else
		snprintf(out, CELL_MAX, "%u", row->way_table);
}

static void format_works(const struct paths_row *row, char out[static CELL_MAX])
{
	if (row->works == PATHS_WORKS_UNASKED)
		strcpy(out, "unknown");
	else if (row->works == PATHS_WORKS_YES)
		snprintf(out, CELL_MAX, "%.0f ms", row->probe.answer_ms);
	else
		strcpy(out, "no");
}

static void format_since(int64_t since, char out[static CELL_MAX])
{
	time_t seconds = (time_t)since;
	struct tm tm;

	strcpy(out, "unknown");
	if (since && localtime_r(&seconds, &tm))
		strftime(out, CELL_MAX, "%Y-%m-%d %H:%M:%S", &tm);
}

/* Formats the network's place in CONVERT_PATHS. */
static void format_wish(const struct paths_row *row, char out[static CELL_MAX])
{
	if (row->use != PATH_USE_ORDERED)
		strcpy(out, path_use_name(row->use));
	else if (row->preference == PATH_PREFERENCE_NONE)
		strcpy(out, "unnamed");
	else
		snprintf(out, CELL_MAX, "%u", row->preference + 1u);
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
static void format_learned(const struct paths_row *row, char out[static CELL_MAX])
{
	size_t len = (size_t)snprintf(out, CELL_MAX, "%s", learned_names[row->learned.path.state]);
	int64_t ago = asked_ago(row);

	if (row->learned.path.rtt_ms)
		len += (size_t)snprintf(out + len, CELL_MAX - len, ", %u ms", row->learned.path.rtt_ms);
	if (data_lost(row))
		len += (size_t)snprintf(out + len, CELL_MAX - len, ", lost the data of %u SYN%s", data_lost(row),
					data_lost(row) == 1 ? "" : "s");
	if (row->learned.path.state > CACHE_PATH_WORKS && ago >= 0)
		snprintf(out + len, CELL_MAX - len, ", asked %" PRId64 " s ago", ago);
}

static void format_row(const struct paths_row *row, char cells[static COLUMN_COUNT][CELL_MAX])
{
	const struct host_network *network = &row->network;
	char address[SOCKADDR_STRLEN];

	snprintf(cells[COLUMN_DEVICE], CELL_MAX, "%s", network->link.name);
	snprintf(cells[COLUMN_ADDRESS], CELL_MAX, "%s", host_format_address(&network->address, address));
	strcpy(cells[COLUMN_GATEWAY], "none");
	if (network->gateway.sa.sa_family != AF_UNSPEC)
		snprintf(cells[COLUMN_GATEWAY], CELL_MAX, "%s", host_format_address(&network->gateway, address));
	format_endpoint(row, cells[COLUMN_ENDPOINT]);
	format_table(row, cells[COLUMN_TABLE]);
	snprintf(cells[COLUMN_METERED], CELL_MAX, "%s%s", metered_names[row->metered],
		 row->metered == HOST_METERED_GUESSED_NO || row->metered == HOST_METERED_GUESSED_YES ? " (guess)" : "");
	format_works(row, cells[COLUMN_WORKS]);
	format_since(row->since, cells[COLUMN_SINCE]);
	snprintf(cells[COLUMN_SUBFLOWS], CELL_MAX, "%zu", row->subflows.count);
	format_bytes(network->link.received, cells[COLUMN_RECEIVED]);
	format_bytes(network->link.sent, cells[COLUMN_SENT]);
	format_wish(row, cells[COLUMN_WISH]);
	format_learned(row, cells[COLUMN_LEARNED]);
}

static void print_line(FILE *out, const size_t widths[static COLUMN_COUNT], const char cells[static COLUMN_COUNT][CELL_MAX])
{
	for (size_t i = 0; i + 1 < COLUMN_COUNT; i++)
		fprintf(out, "%-*s  ", (int)widths[i], cells[i]);
	fprintf(out, "%s\n", cells[COLUMN_COUNT - 1]);
}

static void print_table(FILE *out, const struct paths_view *view)
{
	char(*lines)[COLUMN_COUNT][CELL_MAX] = calloc(view->count + 1, sizeof(*lines));
	size_t widths[COLUMN_COUNT] = { 0 };

	for (size_t j = 0; lines && j < COLUMN_COUNT; j++)
		snprintf(lines[0][j], CELL_MAX, "%s", titles[j]);
	for (size_t i = 0; lines && i <= view->count; i++) {
		if (i > 0)
			format_row(&view->rows[i - 1], lines[i]);
		for (size_t j = 0; j < COLUMN_COUNT; j++)
			if (strlen(lines[i][j]) > widths[j])
				widths[j] = strlen(lines[i][j]);
	}
	for (size_t i = 0; lines && i <= view->count; i++)
		print_line(out, widths, lines[i]);
	free(lines);
}

/* Prints the lines below the table, for facts that need a sentence. */
static void print_remarks(FILE *out, const struct paths_view *view)
{
	char address[SOCKADDR_STRLEN];

	for (size_t i = 0; i < view->count; i++) {
		const struct paths_row *row = &view->rows[i];

		if (row->works == PATHS_WORKS_NO)
			fprintf(out, "%s %s doesn't work: %s (%s)\n", row->network.link.name,
				host_format_address(&row->network.address, address), describe_failure(&row->probe),
				row->converter);
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
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return;
	if (view->count)
		print_table(stream, view);
	else
		fputs("there is no network with an address and a default route\n", stream);
	print_remarks(stream, view);
	if (fclose(stream) == 0)
		fputs(shell_printable(text), out);
	free(text);
}

/* --- JSON ------------------------------------------------------------------------------- */

static void put_string(FILE *out, const char *name, const char *value)
{
	fprintf(out, ", \"%s\": ", name);
	if (value)
		json_string(out, value);
	else
		fputs("null", out);
}

/* Writes a number, or null if there is none. */
static void put_number(FILE *out, const char *name, bool known, int64_t value)
{
	if (known)
		fprintf(out, ", \"%s\": %" PRId64, name, value);
	else
		fprintf(out, ", \"%s\": null", name);
}

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
	fprintf(out, "], \"ours\": %s", row->endpoint_is_ours ? "true" : "false");
	put_number(out, "since", row->since, row->since);
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
	put_string(out, "converter", row->converter);
	put_string(out, "problem", row->works == PATHS_WORKS_NO ? describe_failure(&row->probe) : NULL);
	if (row->works == PATHS_WORKS_YES) {
		fputs(", \"answer_ms\": ", out);
		json_number(out, row->probe.answer_ms);
	}
	fprintf(out, ", \"mptcp\": %s", row->probe.mptcp == PROBE_MPTCP_KEPT ? "true" : "false");
}

static void put_knowledge(FILE *out, const struct paths_row *row)
{
	const bool ordered = row->use == PATH_USE_ORDERED;

	put_string(out, "preferred", ordered ? NULL : path_use_name(row->use));
	put_number(out, "order", ordered && row->preference != PATH_PREFERENCE_NONE, row->preference + 1);
	if (!*row->learned_of) {
		fputs(", \"learned\": null", out);
		return;
	}
	fputs(", \"learned\": {\"converter\": ", out);
	json_string(out, row->learned_of);
	put_string(out, "state", learned_names[row->learned.path.state]);
	put_number(out, "rtt_ms", row->learned.path.rtt_ms, row->learned.path.rtt_ms);
	put_number(out, "syn_data_lost", true, data_lost(row));
	put_number(out, "asked_seconds_ago", asked_ago(row) >= 0, asked_ago(row));
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
	put_string(out, "kind", network->link.kind);
	put_string(out, "address", host_format_address(&network->address, text));
	put_string(out, "gateway", has_gateway ? host_format_address(&network->gateway, text) : NULL);
	put_string(out, "verdict", host_verdict_name(network->verdict));
	put_string(out, "keeper", keeper_names[network->keeper]);
	put_endpoint(out, row);
	fprintf(out, ", \"table\": %u, \"leaves_by_device\": %s", row->way_table,
		row->way_table && row->way_index == network->link.index ? "true" : "false");
	put_string(out, "metered", metered_names[row->metered]);
	put_string(out, "metered_by", metered_by_names[row->metered_by]);
	put_works(out, row);
	fprintf(out, ", \"subflows\": {\"count\": %zu, \"received\": %" PRIu64 ", \"sent\": %" PRIu64, row->subflows.count,
		row->subflows.received, row->subflows.sent);
	put_number(out, "heard_ms", row->subflows.count, row->subflows.heard_ms);
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
		put_string(out, "address", host_format_address(&network->address, text));
		put_string(out, "verdict", host_verdict_name(network->verdict));
		put_string(out, "text", host_verdict_text(network->verdict));
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
