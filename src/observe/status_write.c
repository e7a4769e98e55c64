/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status_write.c - writes a daemon's status: tables for people, as text and JSON, and metrics for Prometheus (no I/O)
 *
 * The tables are written once, as headings and rows; each format has a layout of its own (status_page.c: HTML).
 */
#include "config.h"

#include "observe/monitor.h"

#include "common/quote.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VALUE_MAX 8192

void status_heading(struct status_sink *sink, const char *text)
{
	if (sink->started)
		sink->layout->end(sink->out);
	sink->layout->heading(sink->out, text, !sink->started);
	sink->started = true;
	sink->has_row = false;
}

void status_row(struct status_sink *sink, const char *name, const char *format, ...)
{
	char value[VALUE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	sink->layout->row(sink->out, name, value, !sink->has_row);
	sink->has_row = true;
}

/* Writes a row like "1234567 (1.2 MB)". */
static void row_bytes(struct status_sink *sink, const char *name, uint64_t bytes)
{
	static const char *const units[] = { "kB", "MB", "GB", "TB", "PB", "EB" };
	double value = (double)bytes / 1000;
	size_t unit = 0;

	while (value >= 999.95 && unit < sizeof(units) / sizeof(units[0]) - 1) {
		value /= 1000;
		unit++;
	}
	status_row(sink, name, "%llu (%.1f %s)", (unsigned long long)bytes, value, units[unit]);
}

/* Writes a row like "2026-11-21 15:40:00 UTC, 3 d 4 h ago", with the two largest units that the time fills. */
static void row_time(struct status_sink *sink, const char *name, time_t then, time_t now)
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
	status_row(sink, name, "%s UTC, %lld %s %lld %s ago", text, ago / units[unit].seconds,
	    units[unit].name, ago % units[unit].seconds / units[unit + 1].seconds,
	    units[unit + 1].name);
}

void status_row_of(struct status_sink *sink, const char *name, uint64_t value, uint64_t limit)
{
	if (limit && limit != UINT64_MAX)
		status_row(sink, name, "%llu of %llu", (unsigned long long)value,
		    (unsigned long long)limit);
	else
		status_row(sink, name, "%llu", (unsigned long long)value);
}

static void tell_daemon(struct status_sink *sink, const struct status *status)
{
	status_heading(sink, status->program->title);
	status_row(sink, "state", "%s", status->draining ? "draining" : "serving");
	status_row(sink, "listening on", "%s", status->listening ? status->listening : "");
	status_row_of(sink, "workers", status->workers, 0);
	row_time(sink, "running since", status->started, status->now);
	row_time(sink, "configured", status->configured, status->now);
	status_row(sink, "reloads", "%llu, and %llu that failed", (unsigned long long)status->reloads,
	    (unsigned long long)status->reloads_failed);
}

static void tell_now(struct status_sink *sink, const struct status *status)
{
	status_heading(sink, "Connections now");
	status_row_of(sink, "all", metrics_sessions(&status->latest.sum), status->max_connections);
	status_row_of(sink, "pending", status->latest.sum.values[METRIC_PENDING], status->max_pending);
	for (unsigned i = 0; i < SESSION_CLOSED; i++)
		status_row_of(sink, session_state_names[i], status->latest.sum.values[METRIC_STATE + i], 0);
	status_row_of(sink, "withheld SYNs", status->latest.sum.values[METRIC_SYNS_WITHHELD], 0);
	row_bytes(sink, "kernel memory that they hold", status->latest.sum.values[METRIC_MEMORY]);
	if (status->max_memory)
		row_bytes(sink, "limit, above which stalled ones are reset", status->max_memory);
	if (status->program->tell_now)
		status->program->tell_now(sink, status);
}

double status_rate(const struct sample *from, const struct sample *to, unsigned first, unsigned count)
{
	uint64_t added = 0;

	for (unsigned i = first; i < first + count; i++)
		added += to->sum.values[i] - from->sum.values[i];
	return to->at_ms > from->at_ms ? (double)added * 1000 / (double)(to->at_ms - from->at_ms) : 0;
}

static void tell_rates(struct status_sink *sink, const struct status *status)
{
	const struct sample *from = status->before, *to = &status->latest;
	char text[64];

	if (!from || to->at_ms <= from->at_ms)
		return;
	snprintf(text, sizeof(text), "In the last %.0f seconds", (double)(to->at_ms - from->at_ms) / 1000);
	status_heading(sink, text);
	status_row(sink, "new connections", "%.1f a second", status_rate(from, to, METRIC_ACCEPTED, 1));
	status_row(sink, "from clients", "%.3f Mbit/s",
	    status_rate(from, to, METRIC_BYTES + RELAY_UPSTREAM, 1) * 8 / 1e6);
	status_row(sink, "to clients", "%.3f Mbit/s",
	    status_rate(from, to, METRIC_BYTES + RELAY_DOWNSTREAM, 1) * 8 / 1e6);
	status_row(sink, status->program->failures.row, "%.1f a second",
		   status_rate(from, to, status->program->failures.metric, status->program->failures.count));
}

static void row_quantile(struct status_sink *sink, const char *name, const struct status *status,
			 enum metric metric, double quantile)
{
	double us = metrics_quantile_us(&status->latest.sum, metric, quantile);

	if (us >= 0)
		status_row(sink, name, "about %.*f ms", us < 1e4 ? 1 : 0, us / 1000);
}

static void tell_start(struct status_sink *sink, const struct status *status)
{
	const uint64_t *values = status->latest.sum.values;

	status_heading(sink, "Since the start");
	status_row_of(sink, "connections accepted", values[METRIC_ACCEPTED], 0);
	row_bytes(sink, "bytes from clients", values[METRIC_BYTES + RELAY_UPSTREAM]);
	row_bytes(sink, "bytes to clients", values[METRIC_BYTES + RELAY_DOWNSTREAM]);
	status_row_of(sink, "requests with data in the SYN", values[METRIC_REQUESTS + 1], 0);
	status_row_of(sink, "requests without", values[METRIC_REQUESTS], 0);
	row_quantile(sink, "round trip to clients, median", status, METRIC_ROUND_TRIP_SECONDS, 0.5);
	row_quantile(sink, "servers answered, median", status, METRIC_CONNECT_SECONDS, 0.5);
	row_quantile(sink, "servers answered, 99 %", status, METRIC_CONNECT_SECONDS, 0.99);
}

static void tell_ended(struct status_sink *sink, const struct status *status)
{
	const uint64_t *values = status->latest.sum.values;

	status_heading(sink, "Connections that ended");
	status_row_of(sink, "over Multipath TCP", values[METRIC_TRANSPORT + RECORD_MPTCP], 0);
	status_row_of(sink, "fallen back to TCP", values[METRIC_TRANSPORT + RECORD_FALLBACK], 0);
	status_row_of(sink, "over TCP", values[METRIC_TRANSPORT + RECORD_TCP], 0);
	for (unsigned i = 1; i < OUTCOME_COUNT; i++)
		if (values[METRIC_ENDED + i])
			status_row_of(sink, outcome_text((enum outcome)i), values[METRIC_ENDED + i], 0);
}

void status_tell_syns(struct status_sink *sink, const struct status *status)
{
	const uint64_t *values = &status->latest.sum.values[METRIC_SYNS];
	bool any = false;

	for (unsigned i = 0; i < METRICS_SYN_COUNT; i++) {
		if (!values[i])
			continue;
		if (!any)
			status_heading(sink, "SYNs");
		any = true;
		status_row_of(sink, metrics_syn_text(i), values[i], 0);
	}
}

static void tell_process(struct status_sink *sink, const struct status *status)
{
	const struct resource_usage *process = &status->process;

	status_heading(sink, "Process");
	if (process->open_files != UINT64_MAX)
		status_row_of(sink, "descriptors", process->open_files, process->max_files);
	status_row_of(sink, "pipes in use", status->latest.sum.values[METRIC_PIPES], 0);
	row_bytes(sink, "memory", process->resident_bytes);
	status_row(sink, "processor time", "%.2f s", process->cpu_seconds);
}

/*
 * Names a notice by its time. Those of one second are numbered, since readers of JSON keep one value for each name: from the oldest on, so
 * that a new one changes no name.
 */
static void tell_notices(struct status_sink *sink, const struct status *status)
{
	status_heading(sink, "Warnings and errors");
	for (size_t i = 0; i < status->notice_count; i++) {
		const struct notice *notice = &status->notices[i];
		unsigned number = 1;
		struct tm utc;
		char text[64];
		size_t len;

		for (size_t older = i + 1; older < status->notice_count; older++)
			number += status->notices[older].last == notice->last;
		gmtime_r(&notice->last, &utc);
		len = strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &utc);
		if (number > 1)
			len += (size_t)snprintf(text + len, sizeof(text) - len, ", no. %u", number);
		if (notice->told > 1)
			snprintf(text + len, sizeof(text) - len, " (%lu times)", notice->told);
		status_row(sink, text, "%s", notice->text);
	}
	if (!status->notice_count)
		status_row(sink, "none", "since the configuration was read");
}

void status_write_tables(FILE *out, const struct status *status, const struct status_layout *layout)
{
	struct status_sink sink = { .out = out, .layout = layout };

	tell_daemon(&sink, status);
	tell_now(&sink, status);
	tell_rates(&sink, status);
	tell_start(&sink, status);
	tell_ended(&sink, status);
	if (status->program->tell_tables)
		status->program->tell_tables(&sink, status);
	tell_process(&sink, status);
	tell_notices(&sink, status);
	layout->end(out);
}

static void text_heading(FILE *out, const char *text, bool first)
{
	fprintf(out, "%s%s\n", first ? "" : "\n", text);
}

static void text_row(FILE *out, const char *name, const char *value, bool first)
{
	(void)first;
	fprintf(out, "  %-42s %s\n", name, value);
}

static void text_end(FILE *out)
{
	(void)out;
}

void status_write_text(FILE *out, const struct status *status)
{
	static const struct status_layout layout = { text_heading, text_row, text_end };

	fprintf(out, "%s %s: %s\n\n", status->program->name, PACKAGE_VERSION,
		status->draining ? "draining" : "serving");
	status_write_tables(out, status, &layout);
}

static void json_heading(FILE *out, const char *text, bool first)
{
	fputs(first ? "" : ",\n", out);
	json_string(out, text);
	fputs(": {", out);
}

static void json_row(FILE *out, const char *name, const char *value, bool first)
{
	fputs(first ? "" : ", ", out);
	json_string(out, name);
	fputs(": ", out);
	json_string(out, value);
}

static void json_end(FILE *out)
{
	fputs("}", out);
}

void status_write_json(FILE *out, const struct status *status)
{
	static const struct status_layout layout = { json_heading, json_row, json_end };

	fprintf(out, "{\"%s\": \"%s\",\n", status->program->name, PACKAGE_VERSION);
	status_write_tables(out, status, &layout);
	fputs("}\n", out);
}

/* ----- writes the status for Prometheus ----- */

#define NAME_MAX_BYTES 96

static void write_value(FILE *out, const char *name, const char *type, const char *help, double value)
{
	metrics_write_head(out, name, type, help);
	fprintf(out, "%s %.17g\n", name, value);
}

static void write_gauge(FILE *out, const char *name, const char *help, double value)
{
	write_value(out, name, "gauge", help, value);
}

void status_write_value(FILE *out, const struct status *status, const char *name, const char *type, const char *help, double value)
{
	char whole[NAME_MAX_BYTES];

	snprintf(whole, sizeof(whole), "%s_%s", status->program->name, name);
	write_value(out, whole, type, help, value);
}

static void write_daemon(FILE *out, const struct status *status)
{
	char build[NAME_MAX_BYTES], reloads[NAME_MAX_BYTES];

	snprintf(build, sizeof(build), "%s_build_info", status->program->name);
	snprintf(reloads, sizeof(reloads), "%s_reloads_total", status->program->name);
	metrics_write_head(out, build, "gauge", "Always 1; the version is a label.");
	fprintf(out, "%s{version=\"%s\"} 1\n", build, PACKAGE_VERSION);
	status_write_value(out, status, "draining", "gauge", "1 while it takes no new clients and lets connections end.",
			   status->draining);
	metrics_write_head(out, reloads, "counter", "Reloads of the configuration, by result.");
	fprintf(out, "%s{result=\"ok\"} %llu\n%s{result=\"failed\"} %llu\n", reloads, (unsigned long long)status->reloads, reloads,
		(unsigned long long)status->reloads_failed);
	status_write_value(out, status, "configured_timestamp_seconds", "gauge", "When the configuration in force was read.",
			   (double)status->configured);
	status_write_value(out, status, "workers", "gauge", "Threads that serve clients.", (double)status->workers);
	status_write_value(out, status, "max_connections", "gauge",
			   "The limit of connections, by --max-connections or open files; 0: none.",
			   status->max_connections);
	status_write_value(out, status, "max_pending_requests", "gauge",
			   "The limit of pending requests (--max-pending); 0: none.", status->max_pending);
	status_write_value(out, status, "max_kernel_memory_bytes", "gauge",
			   "The limit of kernel memory, above which stalled connections are reset; 0: none.",
			   (double)status->max_memory);
	status_write_value(out, status, "notices", "gauge",
			   "Different warnings and errors since the configuration was read, 16 at most.", (double)status->notice_count);
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
	metrics_write(out, status->program->name, &status->latest.sum);
	write_daemon(out, status);
	if (status->program->write_metrics)
		status->program->write_metrics(out, status);
	write_process(out, status);
}
