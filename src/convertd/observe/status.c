/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status.c - writes the status of the converter: tables for people, as text, and metrics for Prometheus (no I/O)
 *
 * The tables are written once, as headings and rows; each format has a layout of its own (status_page.c: HTML).
 */
#include "config.h"

#include "convertd/observe/monitor.h"

#include "convert/convert.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sink {
	FILE *out;
	const struct status_layout *layout;
	bool started;
};

#define VALUE_MAX 8192

static void heading(struct sink *sink, const char *text)
{
	if (sink->started)
		sink->layout->end(sink->out);
	sink->layout->heading(sink->out, text, !sink->started);
	sink->started = true;
}

static void row(struct sink *sink, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void row(struct sink *sink, const char *name, const char *format, ...)
{
	char value[VALUE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	sink->layout->row(sink->out, name, value);
}

/* Writes a row like "1234567 (1.2 MB)". */
static void row_bytes(struct sink *sink, const char *name, uint64_t bytes)
{
	static const char *const units[] = { "kB", "MB", "GB", "TB", "PB", "EB" };
	double value = (double)bytes / 1000;
	size_t unit = 0;

	while (value >= 999.95 && unit < sizeof(units) / sizeof(units[0]) - 1) {
		value /= 1000;
		unit++;
	}
	row(sink, name, "%llu (%.1f %s)", (unsigned long long)bytes, value, units[unit]);
}

/* Writes a row like "2026-11-21 15:40:00 UTC, 3 d 4 h ago", with the two largest units that the time fills. */
static void row_time(struct sink *sink, const char *name, time_t then, time_t now)
{
	static const struct {
		long long seconds;
		const char *name;
	} units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
	long long ago = now > then ? (long long)(now - then) : 0;
	char text[32];
	struct tm utc;
	size_t unit = 0;

	gmtime_r(&then, &utc);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &utc);
	while (unit < 2 && ago < units[unit].seconds)
		unit++;
	row(sink, name, "%s UTC, %lld %s %lld %s ago", text, ago / units[unit].seconds,
	    units[unit].name, ago % units[unit].seconds / units[unit + 1].seconds,
	    units[unit + 1].name);
}

static void row_of(struct sink *sink, const char *name, uint64_t value, uint64_t limit)
{
	if (limit && limit != UINT64_MAX)
		row(sink, name, "%llu of %llu", (unsigned long long)value,
		    (unsigned long long)limit);
	else
		row(sink, name, "%llu", (unsigned long long)value);
}

static void tell_converter(struct sink *sink, const struct status *status)
{
	heading(sink, "Converter");
	row(sink, "state", "%s", status->draining ? "draining" : "serving");
	row(sink, "listening on", "%s", status->listening ? status->listening : "");
	row_of(sink, "workers", status->workers, 0);
	row_time(sink, "running since", status->started, status->now);
	row_time(sink, "configured", status->configured, status->now);
	row(sink, "reloads", "%llu, and %llu that failed", (unsigned long long)status->reloads,
	    (unsigned long long)status->reloads_failed);
}

static void tell_now(struct sink *sink, const struct status *status)
{
	heading(sink, "Connections now");
	row_of(sink, "all", metrics_sessions(&status->sum), status->max_connections);
	row_of(sink, "pending", status->sum.values[METRIC_PENDING], status->max_pending);
	for (unsigned i = 0; i < SESSION_CLOSED; i++)
		row_of(sink, metrics_state_name(i), status->sum.values[METRIC_STATE + i], 0);
	row_of(sink, "withheld SYNs", status->sum.values[METRIC_SYNS_WITHHELD], 0);
	row_bytes(sink, "kernel memory that they hold", status->sum.values[METRIC_MEMORY]);
	if (status->max_memory)
		row_bytes(sink, "of that, before what stands still is ended", status->max_memory);
	row_of(sink, "addresses not proved", status->demand.unproven, status->demand.most);
	row(sink, "cookies demanded by themselves", "%s, %llu times since the start",
	    status->demand.in_force ? "now" : "no", (unsigned long long)status->demand.begun);
}

static double seconds_before(const struct status *status)
{
	return status->before ? (double)(status->now_ms - status->before->at_ms) / 1000 : 0;
}

/* Returns by how much per second the sum of @count counters from @first on has grown since the earlier copy. */
static double rate(const struct status *status, unsigned first, unsigned count)
{
	double added = 0;

	for (unsigned i = first; i < first + count; i++)
		added += (double)(status->sum.values[i] - status->before->sum.values[i]);
	return added / seconds_before(status);
}

static void tell_rates(struct sink *sink, const struct status *status)
{
	char text[64];

	if (seconds_before(status) <= 0)
		return;
	snprintf(text, sizeof(text), "In the last %.0f seconds", seconds_before(status));
	heading(sink, text);
	row(sink, "new connections", "%.1f a second", rate(status, METRIC_ACCEPTED, 1));
	row(sink, "from clients", "%.3f Mbit/s",
	    rate(status, METRIC_BYTES + RELAY_UPSTREAM, 1) * 8 / 1e6);
	row(sink, "to clients", "%.3f Mbit/s",
	    rate(status, METRIC_BYTES + RELAY_DOWNSTREAM, 1) * 8 / 1e6);
	row(sink, "errors sent", "%.1f a second", rate(status, METRIC_ERRORS, METRICS_ERRORS));
}

static void row_quantile(struct sink *sink, const char *name, const struct status *status,
			 enum metric metric, double quantile)
{
	uint64_t us = metrics_quantile_us(&status->sum, metric, quantile);

	if (us == UINT64_MAX)
		row(sink, name, "more than %g ms", (double)metrics_time_bound_max_us() / 1000);
	else if (us)
		row(sink, name, "within %g ms", (double)us / 1000);
}

static void tell_start(struct sink *sink, const struct status *status)
{
	const uint64_t *values = status->sum.values;

	heading(sink, "Since the start");
	row_of(sink, "connections accepted", values[METRIC_ACCEPTED], 0);
	row_bytes(sink, "bytes from clients", values[METRIC_BYTES + RELAY_UPSTREAM]);
	row_bytes(sink, "bytes to clients", values[METRIC_BYTES + RELAY_DOWNSTREAM]);
	row_of(sink, "requests with data in the SYN", values[METRIC_REQUESTS + 1], 0);
	row_of(sink, "requests without", values[METRIC_REQUESTS], 0);
	row_quantile(sink, "servers answered, median", status, METRIC_CONNECT_SECONDS, 0.5);
	row_quantile(sink, "servers answered, 99 %", status, METRIC_CONNECT_SECONDS, 0.99);
}

static void tell_ended(struct sink *sink, const struct status *status)
{
	const uint64_t *values = status->sum.values;

	heading(sink, "Connections that ended");
	row_of(sink, "over Multipath TCP", values[METRIC_TRANSPORT + RECORD_MPTCP], 0);
	row_of(sink, "fallen back to TCP", values[METRIC_TRANSPORT + RECORD_FALLBACK], 0);
	row_of(sink, "over TCP", values[METRIC_TRANSPORT + RECORD_TCP], 0);
	for (unsigned i = 1; i < OUTCOME_COUNT; i++)
		if (values[METRIC_ENDED + i])
			row_of(sink, outcome_text((enum outcome)i), values[METRIC_ENDED + i], 0);
}

static void tell_errors(struct sink *sink, const struct status *status)
{
	bool any = false;

	for (unsigned i = 0; i < METRICS_ERRORS; i++) {
		uint64_t count = status->sum.values[METRIC_ERRORS + i];

		if (!count)
			continue;
		if (!any)
			heading(sink, "Errors sent to clients");
		any = true;
		row_of(sink, convert_error_name(metrics_error_code(i)), count, 0);
	}
}

/* Writes the connections of clients whose cookies have names. */
static void tell_clients(struct sink *sink)
{
	const struct cookies_client *first = cookies_clients();

	if (first)
		heading(sink, "Connections of clients with names");
	for (const struct cookies_client *client = first; client; client = client->next)
		row_of(sink, client->name, atomic_load_explicit(&client->connections, memory_order_relaxed), 0);
}

static void tell_syns(struct sink *sink, const struct status *status)
{
	const uint64_t *values = &status->sum.values[METRIC_SYNS];
	bool any = false;

	for (unsigned i = 0; i < METRICS_SYN_COUNT; i++) {
		if (!values[i])
			continue;
		if (!any)
			heading(sink, "SYNs");
		any = true;
		row_of(sink, metrics_syn_text(i), values[i], 0);
	}
}

const char *status_family_text(const struct status *status, enum family family)
{
	static const char *const texts[] = {
		[FAMILY_UNKNOWN] = "no server has answered yet",
		[FAMILY_WORKS] = "servers answer",
		[FAMILY_DOUBTED] = "several servers were silent, others are tested",
		[FAMILY_SILENT] = "no server answers; clients are told to connect directly",
	};

	return status->families[family].routed ? texts[status->families[family].state] :
						 "no route; clients are told to connect directly";
}

/* Writes which address families work. */
static void tell_network(struct sink *sink, const struct status *status)
{
	heading(sink, "Network");
	for (int i = 0; i < FAMILY_COUNT; i++)
		row(sink, families_name((enum family)i), "%s", status_family_text(status, (enum family)i));
}

static void tell_process(struct sink *sink, const struct status *status)
{
	const struct resource_usage *process = &status->process;

	heading(sink, "Process");
	if (process->open_files != UINT64_MAX)
		row_of(sink, "descriptors", process->open_files, process->max_files);
	row_of(sink, "pipes in use", status->sum.values[METRIC_PIPES], 0);
	row_bytes(sink, "memory", process->resident_bytes);
	row(sink, "processor time", "%.2f s", process->cpu_seconds);
}

static void tell_notices(struct sink *sink, const struct status *status)
{
	heading(sink, "Warnings and errors");
	for (size_t i = 0; i < status->notice_count; i++) {
		const struct notice *notice = &status->notices[i];
		struct tm utc;
		char text[48];
		size_t len;

		gmtime_r(&notice->last, &utc);
		len = strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &utc);
		if (notice->told > 1)
			snprintf(text + len, sizeof(text) - len, " (%lu times)", notice->told);
		row(sink, text, "%s", notice->text);
	}
	if (!status->notice_count)
		row(sink, "none", "since the configuration was read");
}

void status_write_tables(FILE *out, const struct status *status, const struct status_layout *layout)
{
	struct sink sink = { out, layout, false };

	tell_converter(&sink, status);
	tell_now(&sink, status);
	tell_rates(&sink, status);
	tell_start(&sink, status);
	tell_ended(&sink, status);
	tell_errors(&sink, status);
	tell_clients(&sink);
	tell_syns(&sink, status);
	tell_network(&sink, status);
	tell_process(&sink, status);
	tell_notices(&sink, status);
	layout->end(out);
}

static void text_heading(FILE *out, const char *text, bool first)
{
	fprintf(out, "%s%s\n", first ? "" : "\n", text);
}

static void text_row(FILE *out, const char *name, const char *value)
{
	fprintf(out, "  %-42s %s\n", name, value);
}

static void text_end(FILE *out)
{
	(void)out;
}

void status_write_text(FILE *out, const struct status *status)
{
	static const struct status_layout layout = { text_heading, text_row, text_end };

	fprintf(out, "convertd %s: %s\n\n", PACKAGE_VERSION,
		status->draining ? "draining" : "serving");
	status_write_tables(out, status, &layout);
}

/* ----- writes the status of the converter for Prometheus ----- */

static void write_value(FILE *out, const char *name, const char *type, const char *help,
			double value)
{
	metrics_write_head(out, name, type, help);
	fprintf(out, "%s %.17g\n", name, value);
}

static void write_gauge(FILE *out, const char *name, const char *help, double value)
{
	write_value(out, name, "gauge", help, value);
}

static void write_converter(FILE *out, const struct status *status)
{
	static const char build[] = "convertd_build_info", reloads[] = "convertd_reloads_total";

	metrics_write_head(out, build, "gauge", "Always 1; the version is a label.");
	fprintf(out, "%s{version=\"%s\"} 1\n", build, PACKAGE_VERSION);
	write_gauge(out, "convertd_draining",
		    "1 while it accepts nobody and waits for its connections to end.",
		    status->draining);
	metrics_write_head(out, reloads, "counter", "Configurations read again, by how that went.");
	fprintf(out, "%s{result=\"ok\"} %llu\n%s{result=\"failed\"} %llu\n", reloads,
		(unsigned long long)status->reloads, reloads,
		(unsigned long long)status->reloads_failed);
	write_gauge(out, "convertd_configured_timestamp_seconds",
		    "When the configuration in force was read.", (double)status->configured);
	write_gauge(out, "convertd_workers", "Threads that serve clients.",
		    (double)status->workers);
	write_gauge(out, "convertd_max_connections",
		    "Connections that there may be, as --max-connections or the limit of open "
		    "files has it; 0: no limit.",
		    status->max_connections);
	write_gauge(out, "convertd_max_pending_requests",
		    "Pending requests that there may be (--max-pending); 0: no limit.",
		    status->max_pending);
	write_gauge(out, "convertd_max_kernel_memory_bytes",
		    "Kernel memory that connections may hold before what stands still is ended; 0: "
		    "no limit.",
		    (double)status->max_memory);
	write_gauge(out, "convertd_unproven_clients",
		    "Clients that haven't proved their addresses: SYNs that are withheld, and "
		    "connections without a third ACK or a valid cookie.",
		    status->demand.unproven);
	write_gauge(out, "convertd_max_unproven_clients",
		    "As many have cookies demanded (--cookie-demand); 0: never.",
		    status->demand.most);
	write_gauge(out, "convertd_cookies_demanded",
		    "1 while requests in SYNs need a cookie because of these.",
		    status->demand.in_force);
	write_value(out, "convertd_cookie_demands_total", "counter",
		    "Times that cookies came to be demanded.", (double)status->demand.begun);
	write_gauge(out, "convertd_notices",
		    "Different warnings and errors since the configuration was read, 16 at most.",
		    (double)status->notice_count);
}

static void write_network(FILE *out, const struct status *status)
{
	static const char works[] = "convertd_family_works";

	metrics_write_head(out, works, "gauge",
			   "0 where there is no route to servers of this address family, or none answers.");
	for (int i = 0; i < FAMILY_COUNT; i++)
		fprintf(out, "%s{family=\"%s\"} %d\n", works, families_name((enum family)i),
			status->families[i].routed && status->families[i].state != FAMILY_SILENT);
}

/* Writes the connections of clients whose cookies have names, which the operator chooses. */
static void write_clients(FILE *out)
{
	static const char name[] = "convertd_client_connections_total";

	metrics_write_head(out, name, "counter", "Connections granted to clients whose cookies have names.");
	for (const struct cookies_client *client = cookies_clients(); client; client = client->next)
		fprintf(out, "%s{client=\"%s\"} %llu\n", name, client->name,
			(unsigned long long)atomic_load_explicit(&client->connections, memory_order_relaxed));
}

/* Writes the metrics of the process under the names that all of Prometheus's own libraries use. */
static void write_process(FILE *out, const struct status *status)
{
	const struct resource_usage *process = &status->process;

	write_value(out, "process_cpu_seconds_total", "counter",
		    "Total user and system CPU time spent in seconds.", process->cpu_seconds);
	write_gauge(out, "process_start_time_seconds",
		    "Start time of the process since unix epoch in seconds.",
		    (double)status->started);
	if (process->open_files != UINT64_MAX)
		write_gauge(out, "process_open_fds", "Number of open file descriptors.",
			    (double)process->open_files);
	if (process->max_files != UINT64_MAX)
		write_gauge(out, "process_max_fds", "Maximum number of open file descriptors.",
			    (double)process->max_files);
	write_gauge(out, "process_resident_memory_bytes", "Resident memory size in bytes.",
		    (double)process->resident_bytes);
	write_gauge(out, "process_virtual_memory_bytes", "Virtual memory size in bytes.",
		    (double)process->virtual_bytes);
}

void status_write_metrics(FILE *out, const struct status *status)
{
	metrics_write(out, "convertd", &status->sum);
	write_converter(out, status);
	write_clients(out);
	write_network(out, status);
	write_process(out, status);
}
