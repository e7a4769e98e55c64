/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics.c - counts events, and writes the counters for Prometheus, and a session's line in the log (no I/O)
 *
 * Names follow https://prometheus.io/docs/practices/naming/: base units, "_total" for values that only grow. A
 * family's labels are a closed set of constants, and none comes from a client.
 */
#include "config.h"

#include "daemon/metrics.h"

#include "common/quote.h"
#include "convert/convert.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

/*
 * ----- the line of the log about a session that has ended (no I/O) -----
 *
 * The line consists of addresses, numbers and constants only, so that no peer can put text into the log.
 */

static const char *const transport_names[] = {
	[RECORD_TCP] = "tcp",
	[RECORD_MPTCP] = "mptcp",
	[RECORD_FALLBACK] = "fallback",
};
static_assert(sizeof(transport_names) / sizeof(transport_names[0]) == RECORD_TRANSPORT_COUNT,
	      "a name for each transport");

/* Appends to the text in @buf, cut where the buffer is full. @len: the text's length, which grows */
static void append(char buf[static RECORD_TEXT_MAX], size_t *len, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void append(char buf[static RECORD_TEXT_MAX], size_t *len, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(buf + *len, RECORD_TEXT_MAX - *len, format, args);
	va_end(args);
	if (n > 0)
		*len += (size_t)n < RECORD_TEXT_MAX - *len ? (size_t)n : RECORD_TEXT_MAX - 1 - *len;
}

static void append_transport(char buf[static RECORD_TEXT_MAX], size_t *len,
			     const struct record *record)
{
	switch (record->transport) {
	case RECORD_MPTCP:
		append(buf, len, ", MPTCP with %u subflow%s", record->subflows_max,
		       record->subflows_max == 1 ? "" : "s");
		break;
	case RECORD_FALLBACK:
		append(buf, len, ", MPTCP fell back to TCP");
		break;
	case RECORD_TCP:
	case RECORD_TRANSPORT_COUNT:
		append(buf, len, ", TCP");
		break;
	}
}

const char *record_text(const struct record *record, char buf[static RECORD_TEXT_MAX])
{
	char client[SOCKADDR_STRLEN], server[SOCKADDR_STRLEN] = "nowhere", source[SOCKADDR_STRLEN];
	size_t len = 0;

	if (record->server.sa.sa_family)
		sockaddr_ip_format(&record->server, server);
	append(buf, &len, "%s to %s: %llu bytes up, %llu down, %llu.%03u s: %s (id %llu",
	       sockaddr_ip_format(&record->client, client), server,
	       (unsigned long long)record->bytes_up, (unsigned long long)record->bytes_down,
	       (unsigned long long)(record->duration_us / 1000000),
	       (unsigned)(record->duration_us / 1000 % 1000), record->reason,
	       (unsigned long long)record->id);
	if (record->name)
		append(buf, &len, ", client %s", record->name);
	if (record->source.sa.sa_family)
		append(buf, &len, ", from %s", sockaddr_ip_format(&record->source, source));
	if (record->connect_us != RECORD_NEVER)
		append(buf, &len, ", server after %llu.%01u ms",
		       (unsigned long long)(record->connect_us / 1000),
		       (unsigned)(record->connect_us / 100 % 10));
	append_transport(buf, &len, record);
	append(buf, &len, "%s%s)", record->syn_data ? ", data in the SYN" : "", record->silent ? ", silent" : "");
	return buf;
}

static void json_address(FILE *out, const char *name, const union sockaddr_ip *address)
{
	const struct prefix whole = { .address = sockaddr_ip_in6(address), .length = 128 };
	char text[PREFIX_STRLEN];

	fprintf(out, ",\"%s\":\"%s\",\"%s_port\":%u", name, prefix_format(&whole, text), name, (unsigned)sockaddr_ip_port(address));
}

static void json_seconds(FILE *out, const char *name, uint64_t us)
{
	fprintf(out, ",\"%s\":%llu.%06u", name, (unsigned long long)(us / 1000000),
		(unsigned)(us % 1000000));
}

void record_json(FILE *out, const void *arg)
{
	const struct record *record = arg;

	fprintf(out, ",\"event\":\"connection\",\"id\":%llu", (unsigned long long)record->id);
	json_address(out, "client", &record->client);
	if (record->name)
		fprintf(out, ",\"client_name\":\"%s\"", record->name);
	if (record->server.sa.sa_family)
		json_address(out, "destination", &record->server);
	if (record->source.sa.sa_family)
		json_address(out, "source", &record->source);
	fprintf(out, ",\"bytes_up\":%llu,\"bytes_down\":%llu",
		(unsigned long long)record->bytes_up, (unsigned long long)record->bytes_down);
	json_seconds(out, "duration_seconds", record->duration_us);
	if (record->connect_us != RECORD_NEVER)
		json_seconds(out, "connect_seconds", record->connect_us);
	fprintf(out, ",\"transport\":\"%s\"", transport_names[record->transport]);
	if (record->transport == RECORD_MPTCP)
		fprintf(out, ",\"subflows\":%u,\"subflows_max\":%u", record->subflows,
			record->subflows_max);
	if (record->silent)
		fputs(",\"answer\":\"silent\"", out);
	fprintf(out, ",\"syn_data\":%s,\"outcome\":\"%s\",\"reason\":",
		record->syn_data ? "true" : "false", outcome_name(record->outcome));
	json_string(out, record->reason);
	if (record->error != RECORD_NO_ERROR)
		fprintf(out, ",\"error_code\":%d", record->error);
}

/* ----- counters ----- */

/* The upper bounds, inclusive: from a local network's round trip to the default of --connect-timeout. */
static const uint64_t time_bounds_us[] = { 500,	   1000,   2500,    5000,    10000,
					   25000,  50000,  100000,  250000,  500000,
					   1000000, 2500000, 10000000, 30000000 };
static_assert(sizeof(time_bounds_us) / sizeof(time_bounds_us[0]) == METRICS_TIME_BUCKETS - 1,
	      "a bound for each bucket but the last");

static const uint64_t subflow_bounds[] = { 1, 2, 3, 4, 8 };
static_assert(sizeof(subflow_bounds) / sizeof(subflow_bounds[0]) == METRICS_SUBFLOW_BUCKETS - 1,
	      "a bound for each bucket but the last");

static const uint8_t error_codes[] = {
	CONVERT_ERROR_UNSUPPORTED_VERSION,  CONVERT_ERROR_MALFORMED_MESSAGE,
	CONVERT_ERROR_UNSUPPORTED_MESSAGE,  CONVERT_ERROR_MISSING_COOKIE,
	CONVERT_ERROR_NOT_AUTHORIZED,	    CONVERT_ERROR_UNSUPPORTED_TCP_OPTION,
	CONVERT_ERROR_RESOURCE_EXCEEDED,    CONVERT_ERROR_NETWORK_FAILURE,
	CONVERT_ERROR_CONNECTION_RESET,	    CONVERT_ERROR_DESTINATION_UNREACHABLE,
};
static_assert(sizeof(error_codes) == METRICS_ERRORS, "all codes of Section 6.2.8");

static const struct {
	const char *name, *text;
} syns[] = {
	[METRICS_SYN_ANSWERED] = { "answered", "let go: the server has answered" },
	[METRICS_SYN_FAILED] = { "failed", "let go: the server can't be reached" },
	[METRICS_SYN_LATE] = { "late", "let go: the server was silent" },
	[METRICS_SYN_STOPPED] = { "stopped", "let go: no longer withheld" },
	[METRICS_SYN_PASSED] = { "passed", "passed: no request to connect, or not the first SYN" },
	[METRICS_SYN_NOT_GRANTED] = { "not_granted", "passed, to be refused" },
	[METRICS_SYN_UNCONFIRMED] = { "unconfirmed", "passed: not to be withheld now" },
	[METRICS_SYN_UNREADABLE] = { "unreadable", "passed: unreadable" },
	[METRICS_SYN_REPEATED] = { "repeated", "dropped: one like it is withheld" },
	[METRICS_SYN_FOREIGN] = { "foreign", "dropped: no request" },
	[METRICS_SYN_REFUSED] = { "refused", "refused by a reset or ICMP" },
	[METRICS_SYN_UNANSWERED] = { "silent", "dropped: nothing was heard of the server" },
	[METRICS_SYN_MISSED] = { "missed", "passed: the queue was full" },
};
static_assert(sizeof(syns) / sizeof(syns[0]) == METRICS_SYN_COUNT, "a name for each");

const char *metrics_syn_text(unsigned syn)
{
	return syns[syn].text;
}

static void observe(struct metrics *metrics, enum metric first, const uint64_t *bounds,
		    unsigned buckets, uint64_t value)
{
	unsigned bucket = 0;

	while (bucket < buckets - 1 && value > bounds[bucket])
		bucket++;
	metrics_add(metrics, first + bucket, 1);
	metrics_add(metrics, first + buckets, value);
}

void metrics_observe_us(struct metrics *metrics, enum metric metric, uint64_t us)
{
	observe(metrics, metric, time_bounds_us, METRICS_TIME_BUCKETS, us);
}

void metrics_observe_subflows(struct metrics *metrics, unsigned subflows)
{
	observe(metrics, METRIC_SUBFLOWS, subflow_bounds, METRICS_SUBFLOW_BUCKETS, subflows);
}

unsigned metrics_error_metric(uint8_t code)
{
	const uint8_t *found = memchr(error_codes, code, sizeof(error_codes));

	return found ? METRIC_ERRORS + (unsigned)(found - error_codes) : 0;
}

void metrics_count_record(struct metrics *metrics, const struct record *record)
{
	metrics_add(metrics, METRIC_ENDED + record->outcome, 1);
	metrics_add(metrics, METRIC_TRANSPORT + record->transport, 1);
	if (record->transport == RECORD_MPTCP)
		metrics_observe_subflows(metrics, record->subflows_max);
}

void metrics_add_up(struct metrics_sum *sum, const struct metrics *metrics)
{
	for (unsigned i = 0; i < METRIC_COUNT; i++)
		sum->values[i] += atomic_load_explicit(&metrics->values[i], memory_order_relaxed);
}

uint64_t metrics_sessions(const struct metrics_sum *sum)
{
	uint64_t sessions = 0;

	for (unsigned i = 0; i < SESSION_CLOSED; i++)
		sessions += sum->values[METRIC_STATE + i];
	return sessions;
}

double metrics_quantile_us(const struct metrics_sum *sum, enum metric metric, double quantile)
{
	const uint64_t *values = &sum->values[metric];
	double rank, from, width;
	uint64_t count = 0;
	unsigned bucket = 0;

	for (unsigned i = 0; i < METRICS_TIME_BUCKETS; i++)
		count += values[i];
	if (!count)
		return -1;
	for (rank = quantile * (double)count; bucket < METRICS_TIME_BUCKETS - 1 && (double)values[bucket] < rank; bucket++)
		rank -= (double)values[bucket];
	from = bucket ? (double)time_bounds_us[bucket - 1] : 0;
	width = bucket < METRICS_TIME_BUCKETS - 1 ? (double)time_bounds_us[bucket] - from : 0;
	return values[bucket] ? from + width * rank / (double)values[bucket] : from;
}

uint8_t metrics_error_code(unsigned i)
{
	return error_codes[i];
}

void metrics_write_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

#define LABELS_MAX 96

/* OUTCOME_NONE is no end: the labels begin behind it. */
static void outcome_labels(unsigned i, char buf[static LABELS_MAX])
{
	snprintf(buf, LABELS_MAX, "{outcome=\"%s\"}", outcome_name((enum outcome)(i + 1)));
}

static void error_labels(unsigned i, char buf[static LABELS_MAX])
{
	snprintf(buf, LABELS_MAX, "{code=\"%u\",name=\"%s\"}", (unsigned)error_codes[i],
		 convert_error_name(error_codes[i]));
}

static void syn_labels(unsigned i, char buf[static LABELS_MAX])
{
	snprintf(buf, LABELS_MAX, "{fate=\"%s\"}", syns[i].name);
}

static const char *const directions[RELAY_ENDS] = { [RELAY_UPSTREAM] = "up", [RELAY_DOWNSTREAM] = "down" };
static const char *const yes_or_no[] = { "no", "yes" };
static const char *const replies[] = {
	[JUDGEMENT_RESPONSE] = "response", [JUDGEMENT_SILENT] = "silent", [JUDGEMENT_RESET] = "reset",
};
static_assert(sizeof(replies) / sizeof(replies[0]) == JUDGEMENT_REPLIES, "a name for each");

/* Families without buckets. */
static const struct {
	const char *name, *type, *help;
	unsigned first, count;
	void (*labels)(unsigned i, char buf[static LABELS_MAX]);
	const char *label, *const *words; /* without @labels: one label and its values; NULL: one counter without labels */
} families[] = {
	{ "connections_accepted_total", "counter", "Clients that connected.",
	  METRIC_ACCEPTED, .count = 1 },
	{ "connections", "gauge", "Open connections, by state.",
	  METRIC_STATE, SESSION_CLOSED, .label = "state", .words = session_state_names },
	{ "pending_requests", "gauge",
	  "Connections that --max-pending counts: without their server's answer, or the client's "
	  "third ACK.",
	  METRIC_PENDING, .count = 1 },
	{ "connections_ended_total", "counter", "Ended connections, by outcome.",
	  METRIC_ENDED + 1, OUTCOME_COUNT - 1, .labels = outcome_labels },
	{ "errors_sent_total", "counter", "Error TLVs sent to clients, by code.",
	  METRIC_ERRORS, METRICS_ERRORS, .labels = error_labels },
	{ "relayed_bytes_total", "counter",
	  "Bytes carried between clients and servers: up from clients, down to them.",
	  METRIC_BYTES, RELAY_ENDS, .label = "direction", .words = directions },
	{ "requests_total", "counter",
	  "Granted requests to connect, by whether the kernel took the SYN's data.",
	  METRIC_REQUESTS, 2, .label = "syn_data", .words = yes_or_no },
	{ "silent_requests_total", "counter",
	  "Silent requests, by the answer that the client got.", METRIC_SILENT,
	  JUDGEMENT_REPLIES, .label = "answer", .words = replies },
	{ "client_transports_total", "counter",
	  "Ended connections, by the client's transport: TCP, Multipath TCP, or Multipath "
	  "TCP that fell back.",
	  METRIC_TRANSPORT, RECORD_TRANSPORT_COUNT, .label = "transport", .words = transport_names },
	{ "accept_pauses_total", "counter",
	  "How often clients waited for descriptors or memory.",
	  METRIC_ACCEPT_PAUSES, .count = 1 },
	{ "log_lines_left_out_total", "counter",
	  "Lines about connections that --log-rate kept out of the log.",
	  METRIC_LOG_LEFT_OUT, .count = 1 },
	{ "relay_pipes", "gauge",
	  "Pipes in use, which carry bulk data without copies.", METRIC_PIPES, .count = 1 },
	{ "kernel_memory_bytes", "gauge",
	  "Kernel memory of the connections that hold much.", METRIC_MEMORY, .count = 1 },
	{ "withheld_syns", "gauge", "SYNs withheld until their servers have answered.",
	  METRIC_SYNS_WITHHELD, .count = 1 },
	{ "syns_total", "counter",
	  "SYNs that were judged, by fate.", METRIC_SYNS,
	  METRICS_SYN_COUNT, .labels = syn_labels },
};

static const struct {
	const char *name, *help;
	unsigned first, buckets;
	const uint64_t *bounds;
	double unit; /* of bounds and sums */
} histograms[] = {
	{ "request_duration_seconds",
	  "From accept to a granted request.",
	  METRIC_REQUEST_SECONDS, METRICS_TIME_BUCKETS, time_bounds_us, 1e-6 },
	{ "connect_duration_seconds", "From the request to the server's answer.",
	  METRIC_CONNECT_SECONDS, METRICS_TIME_BUCKETS, time_bounds_us, 1e-6 },
	{ "client_round_trip_seconds", "The round trip of each client's handshake.",
	  METRIC_ROUND_TRIP_SECONDS, METRICS_TIME_BUCKETS, time_bounds_us, 1e-6 },
	{ "connection_subflows",
	  "The most subflows of each ended Multipath TCP connection.",
	  METRIC_SUBFLOWS, METRICS_SUBFLOW_BUCKETS, subflow_bounds, 1 },
};

#define NAME_MAX_LEN 96

static void write_histogram(FILE *out, const char *name, const uint64_t *values, unsigned buckets,
			    const uint64_t *bounds, double unit)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < buckets - 1; i++) {
		count += values[i];
		fprintf(out, "%s_bucket{le=\"%g\"} %llu\n", name, (double)bounds[i] * unit,
			(unsigned long long)count);
	}
	count += values[buckets - 1];
	fprintf(out, "%s_bucket{le=\"+Inf\"} %llu\n", name, (unsigned long long)count);
	fprintf(out, "%s_sum %.10g\n", name, (double)values[buckets] * unit);
	fprintf(out, "%s_count %llu\n", name, (unsigned long long)count);
}

void metrics_write(FILE *out, const char *program, const struct metrics_sum *sum)
{
	char labels[LABELS_MAX] = "", name[NAME_MAX_LEN];

	for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		snprintf(name, sizeof(name), "%s_%s", program, families[f].name);
		metrics_write_head(out, name, families[f].type, families[f].help);
		for (unsigned i = 0; i < families[f].count; i++) {
			labels[0] = '\0';
			if (families[f].labels)
				families[f].labels(i, labels);
			else if (families[f].label)
				snprintf(labels, sizeof(labels), "{%s=\"%s\"}", families[f].label, families[f].words[i]);
			fprintf(out, "%s%s %llu\n", name, labels,
				(unsigned long long)sum->values[families[f].first + i]);
		}
	}
	for (size_t h = 0; h < sizeof(histograms) / sizeof(histograms[0]); h++) {
		snprintf(name, sizeof(name), "%s_%s", program, histograms[h].name);
		metrics_write_head(out, name, "histogram", histograms[h].help);
		write_histogram(out, name, &sum->values[histograms[h].first],
				histograms[h].buckets, histograms[h].bounds, histograms[h].unit);
	}
}
