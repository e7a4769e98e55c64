/* SPDX-License-Identifier: BSD-3-Clause */
/* test_metrics.c - counters, histograms, and what Prometheus and people read of them */
#include "config.h"

#include "convert/convert.h"
#include "daemon/metrics.h"
#include "convertd/policy/cookies.h"
#include "convertd/process/converter.h"
#include "observe/monitor.h"

#include "run.h"

#include <check.h>
#include <pthread.h>
#include <string.h>

static struct metrics metrics;
static struct demand *demand;
static char *written;

static void forget(void)
{
	memset(&metrics, 0, sizeof(metrics));
	demand_destroy(demand);
	demand = NULL;
	free(written);
	written = NULL;
}

static struct status make_status(void)
{
	struct status status = { .program = &converter_status, .listening = "[::]:1234", .now = 1000, .started = 900,
				 .configured = 950 };

	if (!demand)
		demand = demand_create();
	status.own = demand;
	metrics_add_up(&status.latest.sum, &metrics);
	return status;
}

/* Returns what one of status.h's functions writes about @status; forget() frees it. */
static const char *write_with(void (*function)(FILE *out, const struct status *status),
			      const struct status *status)
{
	size_t len;
	FILE *out;

	free(written);
	out = open_memstream(&written, &len);
	ck_assert_ptr_nonnull(out);
	function(out, status);
	fclose(out);
	return written;
}

/* Is there such a line? */
static bool has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (const char *at = text; (at = strstr(at, line)); at++)
		if ((at == text || at[-1] == '\n') && at[len] == '\n')
			return true;
	return false;
}

#define ASSERT_LINES(text, ...) assert_lines(text, (const char *const[]){ __VA_ARGS__, NULL })

static void assert_lines(const char *text, const char *const *line)
{
	for (; *line; line++)
		ck_assert_msg(has_line(text, *line), "no line %s", *line);
}

static const char *exposition(void)
{
	struct status status = make_status();

	return write_with(status_write_metrics, &status);
}

START_TEST(histogram_of_times)
{
	static const uint64_t times_us[] = { 0, 500, 501, 30000000, 30000001 };
	const char *text;

	/* bounds are inclusive: 500 us is in the first bucket, 501 in the next */
	for (size_t i = 0; i < sizeof(times_us) / sizeof(times_us[0]); i++)
		metrics_observe_us(&metrics, METRIC_CONNECT_SECONDS, times_us[i]);
	text = exposition();
	ASSERT_LINES(text,
		     "# TYPE convertd_connect_duration_seconds histogram",
		     "convertd_connect_duration_seconds_bucket{le=\"0.0005\"} 2",
		     "convertd_connect_duration_seconds_bucket{le=\"0.001\"} 3",
		     "convertd_connect_duration_seconds_bucket{le=\"10\"} 3",
		     "convertd_connect_duration_seconds_bucket{le=\"30\"} 4",
		     "convertd_connect_duration_seconds_bucket{le=\"+Inf\"} 5",
		     "convertd_connect_duration_seconds_count 5",
		     "convertd_connect_duration_seconds_sum 60.001002",
		     "convertd_request_duration_seconds_count 0");
}
END_TEST

START_TEST(histogram_of_subflows)
{
	const char *text;

	for (unsigned subflows = 1; subflows <= 10; subflows++)
		metrics_observe_subflows(&metrics, subflows);
	text = exposition();
	ASSERT_LINES(text,
		     "convertd_connection_subflows_bucket{le=\"1\"} 1",
		     "convertd_connection_subflows_bucket{le=\"4\"} 4",
		     "convertd_connection_subflows_bucket{le=\"8\"} 8",
		     "convertd_connection_subflows_bucket{le=\"+Inf\"} 10",
		     "convertd_connection_subflows_sum 55");
}
END_TEST

START_TEST(quantiles)
{
	struct metrics_sum sum = { 0 };

	ck_assert(metrics_quantile_us(&sum, METRIC_CONNECT_SECONDS, 0.5) < 0);
	for (int i = 0; i < 98; i++)
		metrics_observe_us(&metrics, METRIC_CONNECT_SECONDS, 4000);
	metrics_observe_us(&metrics, METRIC_CONNECT_SECONDS, 90000);
	metrics_observe_us(&metrics, METRIC_CONNECT_SECONDS, 40000000);
	metrics_add_up(&sum, &metrics);
	ck_assert_double_eq_tol(metrics_quantile_us(&sum, METRIC_CONNECT_SECONDS, 0.49), 3750, 0.1);
	ck_assert_double_eq_tol(metrics_quantile_us(&sum, METRIC_CONNECT_SECONDS, 0.98), 5000, 0.1);
	ck_assert_double_eq_tol(metrics_quantile_us(&sum, METRIC_CONNECT_SECONDS, 0.99), 100000, 0.1);
	ck_assert_double_eq_tol(metrics_quantile_us(&sum, METRIC_CONNECT_SECONDS, 1), 30000000, 0.1);
}
END_TEST

START_TEST(errors)
{
	const char *text;

	for (int code = 0; code < 256; code++)
		if (metrics_error_metric((uint8_t)code))
			metrics_add(&metrics, metrics_error_metric((uint8_t)code), 1);
	metrics_add(&metrics, metrics_error_metric(CONVERT_ERROR_CONNECTION_RESET), 1);
	text = exposition();
	ASSERT_LINES(text,
		     "convertd_errors_sent_total{code=\"0\",name=\"Unsupported Version\"} 1",
		     "convertd_errors_sent_total{code=\"96\",name=\"Connection Reset\"} 2");
	for (unsigned i = 0; i < METRICS_ERRORS; i++)
		ck_assert_str_ne(convert_error_name(metrics_error_code(i)), "unknown");
}
END_TEST

START_TEST(records)
{
	struct record record = { .transport = RECORD_MPTCP, .subflows_max = 2,
				 .outcome = OUTCOME_DONE };
	const char *text;

	metrics_count_record(&metrics, &record);
	record.transport = RECORD_FALLBACK;
	record.outcome = OUTCOME_LIMIT_PENDING;
	metrics_count_record(&metrics, &record);
	text = exposition();
	ASSERT_LINES(text,
		     "convertd_connections_ended_total{outcome=\"done\"} 1",
		     "convertd_connections_ended_total{outcome=\"limit_pending\"} 1",
		     "convertd_connections_ended_total{outcome=\"idle\"} 0",
		     "convertd_client_transports_total{transport=\"mptcp\"} 1",
		     "convertd_client_transports_total{transport=\"fallback\"} 1",
		     "convertd_connection_subflows_count 1");
	ck_assert_ptr_null(strstr(text, "unknown"));
}
END_TEST

#define THREADS 4
#define TIMES 50000

static void *count(void *arg)
{
	struct metrics *own = arg;

	for (int i = 0; i < TIMES; i++) {
		metrics_add(own, METRIC_ACCEPTED, 1);
		metrics_add(own, METRIC_STATE + SESSION_REQUEST, 1);
		metrics_add(own, METRIC_STATE + SESSION_REQUEST, (uint64_t)-1);
	}
	return NULL;
}

/* Two threads count in each of two structures; no count is lost, whether they share one or not. */
START_TEST(threads)
{
	static struct metrics own[2];
	struct metrics_sum sum = { 0 };
	pthread_t ids[THREADS];

	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&ids[i], NULL, count, &own[i % 2]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
	metrics_add_up(&sum, &own[0]);
	metrics_add_up(&sum, &own[1]);
	ck_assert_uint_eq(sum.values[METRIC_ACCEPTED], THREADS * TIMES);
	ck_assert_uint_eq(metrics_sessions(&sum), 0);
}
END_TEST

START_TEST(rates_and_bounds)
{
	struct sample before = { .at_ms = 5000, .sum.values[METRIC_ACCEPTED] = 30 };
	struct status status;

	metrics_add(&metrics, METRIC_ACCEPTED, 50);
	metrics_add(&metrics, METRIC_BYTES + RELAY_DOWNSTREAM, 1250000);
	metrics_add(&metrics, METRIC_STATE + SESSION_RELAY, 3);
	status = make_status();
	status.before = &before;
	status.latest.at_ms = 15000;
	status.max_connections = 100;
	status.draining = true;
	write_with(status_write_text, &status);
	ck_assert(has_line(written, "convertd " PACKAGE_VERSION ": draining"));
	ASSERT_LINES(written,
		     "  all                                        3 of 100",
		     "  pending                                    0",
		     "  new connections                            2.0 a second",
		     "  to clients                                 1.000 Mbit/s",
		     "  bytes to clients                           1250000 (1.2 MB)",
		     "  running since                              "
				    "1970-01-01 00:15:00 UTC, 1 min 40 s ago");
	write_with(status_write_metrics, &status);
	ck_assert(has_line(written, "convertd_draining 1"));
}
END_TEST

/* Whatever a warning quotes is text in the page. */
START_TEST(page_is_escaped)
{
	struct status status = make_status();

	status.notice_count = 1;
	status.notices[0] = (struct notice){ .text = "\"<script>&amp;", .told = 2 };
	write_with(status_write_html, &status);
	ck_assert_ptr_null(strstr(written, "<script"));
	ck_assert_ptr_nonnull(strstr(written, "\"&lt;script&gt;&amp;amp;"));
	ck_assert_ptr_nonnull(strstr(written, "(2 times)"));
	ck_assert_ptr_null(strstr(written, "http://"));
}
END_TEST

/* As at a start or a reload: each has a name of its own, since readers of JSON keep one value for each name. */
START_TEST(warnings_of_one_second)
{
	struct status status = make_status();

	status.notice_count = 4;
	status.notices[0] = (struct notice){ .text = "of the next second", .last = 1001, .told = 1 };
	status.notices[1] = (struct notice){ .text = "third", .last = 1000, .told = 2 };
	status.notices[2] = (struct notice){ .text = "second", .last = 1000, .told = 1 };
	status.notices[3] = (struct notice){ .text = "first", .last = 1000, .told = 1 };
	write_with(status_write_json, &status);
	ck_assert_ptr_nonnull(strstr(written, "{\"1970-01-01 00:16:41\": \"of the next second\", "
					      "\"1970-01-01 00:16:40, no. 3 (2 times)\": \"third\", "
					      "\"1970-01-01 00:16:40, no. 2\": \"second\", "
					      "\"1970-01-01 00:16:40\": \"first\"}"));
}
END_TEST

/* How often is @part in what was written? */
static size_t occurrences(const char *part)
{
	size_t count = 0;

	for (const char *at = written; (at = strstr(at, part)); at++)
		count++;
	return count;
}

/* The pictures of a full hour: a column for each half minute, drawn inside the picture, and the figures of the busiest one. */
START_TEST(page_of_an_hour)
{
	static struct sample history[HISTORY_MAX];
	struct status status;

	for (size_t i = 0; i < HISTORY_MAX; i++) {
		unsigned busy = i == 60 ? 300 : 30;

		history[i].at_ms = 1000 + i * 30000;
		metrics_add_up(&history[i].sum, &metrics);
		metrics_add(&metrics, METRIC_ACCEPTED, busy);
		metrics_add(&metrics, METRIC_BYTES + RELAY_DOWNSTREAM, busy * 125000);
		for (unsigned n = 0; n < busy; n++) {
			metrics_observe_us(&metrics, METRIC_CONNECT_SECONDS, 7000);
			metrics_observe_us(&metrics, METRIC_ROUND_TRIP_SECONDS, 15000);
			metrics_observe_subflows(&metrics, 2);
		}
		metrics_add(&metrics, METRIC_TRANSPORT + RECORD_MPTCP, busy);
		metrics_add(&metrics, METRIC_ENDED + OUTCOME_NOT_AUTHORIZED, busy);
	}
	status = make_status();
	status.now = 4000000;
	status.history = history;
	status.history_count = HISTORY_MAX;
	status.before = &history[HISTORY_MAX - 1];
	status.latest.at_ms = status.before->at_ms + 30000;
	write_with(status_write_html, &status);
	ck_assert_uint_eq(occurrences("<rect x="), 5 * (HISTORY_MAX - 1));
	ck_assert_ptr_nonnull(strstr(written, "<b>1</b> a second <small>peak 10</small>"));
	ck_assert_ptr_nonnull(strstr(written, "<b>1 Mbit/s</b> to clients <small>peak 10 Mbit/s</small>"));
	ck_assert_ptr_nonnull(strstr(written, "<b>7.5 ms</b> half of them"));
	ck_assert_ptr_nonnull(strstr(written, "<b>18 ms</b> half of them"));
	ck_assert_ptr_nonnull(strstr(written, "0.5 ms to 100 ms, logarithmic"));
	ck_assert_ptr_nonnull(strstr(written, "<th scope=\"row\">2 subflows</th><td>3900</td><td>100 %</td>"));
	ck_assert_ptr_nonnull(strstr(written, "<th scope=\"row\">not authorized</th><td>3900</td>"));
	/* the busiest interval reaches the upper edge of its pictures; the last column ends at the right edge */
	ck_assert_uint_eq(occurrences(" 0.0H"), 4);
	ck_assert_uint_eq(occurrences("H720V120\"/>"), 5);
	ck_assert_uint_eq(occurrences("nan") + occurrences("inf") + occurrences("-0."), 0);
}
END_TEST

/* Without a history, and without a server that has answered, the page has no figures that look like measurements. */
START_TEST(page_at_the_start)
{
	struct sample first = { .at_ms = 1000 };
	struct status status = make_status();

	status.history = status.before = &first;
	status.history_count = 1;
	for (status.latest.at_ms = 1000; status.latest.at_ms <= 11000; status.latest.at_ms += 10000) {
		write_with(status_write_html, &status);
		ck_assert_uint_eq(occurrences("<rect x="), 0);
		ck_assert_ptr_nonnull(strstr(written, "<b>–</b> half of them"));
		ck_assert_ptr_nonnull(strstr(written, "<p class=\"none\">none</p>"));
		ck_assert_ptr_null(strstr(written, "nan"));
	}
	status.history_count = 0;
	status.before = NULL;
	write_with(status_write_html, &status);
	ck_assert_ptr_null(strstr(written, "nan"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("metrics");
	TCase *tcase = tcase_create("metrics");

	tcase_add_checked_fixture(tcase, forget, forget);
	tcase_add_test(tcase, histogram_of_times);
	tcase_add_test(tcase, histogram_of_subflows);
	tcase_add_test(tcase, quantiles);
	tcase_add_test(tcase, errors);
	tcase_add_test(tcase, records);
	tcase_add_test(tcase, threads);
	tcase_add_test(tcase, rates_and_bounds);
	tcase_add_test(tcase, page_is_escaped);
	tcase_add_test(tcase, warnings_of_one_second);
	tcase_add_test(tcase, page_of_an_hour);
	tcase_add_test(tcase, page_at_the_start);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
