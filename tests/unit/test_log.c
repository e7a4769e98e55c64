/* SPDX-License-Identifier: BSD-3-Clause */
/* test_log.c - limits of lines, lines of sessions, and the list of the last warnings */
#include "config.h"

#include "daemon/log.h"
#include "daemon/metrics.h"

#include "run.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define SECOND 1000000ULL

START_TEST(limit_is_a_burst_and_a_rate)
{
	struct log_limit limit = { 0 };
	uint64_t now = 5 * SECOND;

	/* ten at once, then one each 100 ms */
	for (int i = 0; i < 10; i++)
		ck_assert(log_limit_take(&limit, SECOND / 10, 10, now));
	ck_assert(!log_limit_take(&limit, SECOND / 10, 10, now));
	ck_assert(!log_limit_take(&limit, SECOND / 10, 10, now + SECOND / 10 - 1));
	ck_assert(log_limit_take(&limit, SECOND / 10, 10, now + SECOND / 10));
	ck_assert(!log_limit_take(&limit, SECOND / 10, 10, now + SECOND / 10));
	ck_assert_uint_eq(limit.left_out, 3);
	/* a pause gives the burst again, and not more */
	now += 60 * SECOND;
	for (int i = 0; i < 10; i++)
		ck_assert(log_limit_take(&limit, SECOND / 10, 10, now));
	ck_assert(!log_limit_take(&limit, SECOND / 10, 10, now));
}
END_TEST

START_TEST(limit_of_one)
{
	struct log_limit limit = { 0 };
	unsigned suppressed = 99;

	ck_assert(log_limit_pass(&limit, &suppressed));
	ck_assert_uint_eq(suppressed, 0);
	ck_assert(!log_limit_pass(&limit, &suppressed));
	ck_assert(!log_limit_pass(&limit, &suppressed));
	ck_assert_uint_eq(limit.left_out, 2);
	/* as if LOG_LIMIT_MS had passed */
	limit.next_us -= LOG_LIMIT_MS * 1000ULL;
	ck_assert(log_limit_pass(&limit, &suppressed));
	ck_assert_uint_eq(suppressed, 2);
}
END_TEST

#define THREADS 4
#define TRIES 20000

static struct log_limit shared;

static void *take_many(void *arg)
{
	unsigned *taken = arg;

	for (int i = 0; i < TRIES; i++)
		*taken += log_limit_take(&shared, SECOND, 1000, SECOND);
	return NULL;
}

/* However many lines come, as many pass as may, and each of the others is counted. */
START_TEST(limit_of_several_threads)
{
	pthread_t threads[THREADS];
	unsigned taken[THREADS] = { 0 }, all = 0;

	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, take_many, &taken[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		all += taken[i];
	}
	ck_assert_uint_eq(all, 1000);
	ck_assert_uint_eq(shared.left_out, THREADS * TRIES - 1000);
}
END_TEST

static struct record make_record(void)
{
	struct record record = {
		.id = 17,
		.bytes_up = 517,
		.bytes_down = 48310,
		.duration_us = 2118500,
		.connect_us = 41250,
		.transport = RECORD_MPTCP,
		.subflows = 1,
		.subflows_max = 2,
		.syn_data = true,
		.outcome = OUTCOME_DONE,
		.reason = "done",
		.error = RECORD_NO_ERROR,
	};

	ck_assert_int_eq(sockaddr_ip_parse(&record.client, "198.51.100.7:40112", 0), 0);
	ck_assert_int_eq(sockaddr_ip_parse(&record.server, "[2001:db8::9]:443", 0), 0);
	return record;
}

static const char *as_json(const struct record *record)
{
	static char text[1024];
	FILE *out = fmemopen(text, sizeof(text), "w");

	ck_assert_ptr_nonnull(out);
	record_json(out, record);
	fclose(out);
	return text;
}

START_TEST(record_of_a_transfer)
{
	struct record record = make_record();
	char text[RECORD_TEXT_MAX];

	ck_assert_str_eq(record_text(&record, text),
			 "198.51.100.7:40112 to [2001:db8::9]:443: 517 bytes up, 48310 down, "
			 "2.118 s: done (id 17, server after 41.2 ms, MPTCP with 2 subflows, data "
			 "in the SYN)");
	ck_assert_str_eq(as_json(&record),
			 ",\"event\":\"connection\",\"id\":17,\"client\":\"198.51.100.7\","
			 "\"client_port\":40112,\"destination\":\"2001:db8::9\","
			 "\"destination_port\":443,\"bytes_up\":517,\"bytes_down\":48310,"
			 "\"duration_seconds\":2.118500,\"connect_seconds\":0.041250,"
			 "\"transport\":\"mptcp\",\"subflows\":1,\"subflows_max\":2,"
			 "\"syn_data\":true,\"outcome\":\"done\",\"reason\":\"done\"");
}
END_TEST

/* The line of a session that came to nothing leaves out what there was not. A v4-mapped client is shown as IPv4. */
START_TEST(record_of_a_refusal)
{
	struct record record = make_record();
	char text[RECORD_TEXT_MAX];

	ck_assert_int_eq(sockaddr_ip_parse(&record.client, "[::ffff:198.51.100.7]:40112", 0), 0);
	memset(&record.server, 0, sizeof(record.server));
	record.bytes_up = record.bytes_down = 0;
	record.duration_us = 999;
	record.connect_us = RECORD_NEVER;
	record.transport = RECORD_TCP;
	record.syn_data = false;
	record.outcome = OUTCOME_BAD_REQUEST;
	record.reason = "TLV appears twice";
	record.error = 1;
	ck_assert_str_eq(record_text(&record, text),
			 "198.51.100.7:40112 to nowhere: 0 bytes up, 0 down, 0.000 s: TLV appears "
			 "twice (id 17, TCP)");
	ck_assert_str_eq(as_json(&record),
			 ",\"event\":\"connection\",\"id\":17,\"client\":\"198.51.100.7\","
			 "\"client_port\":40112,\"bytes_up\":0,\"bytes_down\":0,"
			 "\"duration_seconds\":0.000999,\"transport\":\"tcp\",\"syn_data\":false,"
			 "\"outcome\":\"bad_request\",\"reason\":\"TLV appears twice\","
			 "\"error_code\":1");
}
END_TEST

/* The longest that there can be fits. */
START_TEST(record_of_the_longest)
{
	struct record record = make_record();
	char text[RECORD_TEXT_MAX];

	ck_assert_int_eq(sockaddr_ip_parse(&record.client,
					   "[1111:2222:3333:4444:5555:6666:7777:8888]:65535", 0),
			 0);
	record.server = record.client;
	record.id = record.bytes_up = record.bytes_down = record.duration_us = UINT64_MAX;
	record.connect_us = UINT64_MAX - 1;
	record.subflows_max = 255;
	for (int i = 0; i < OUTCOME_COUNT; i++) {
		record.reason = outcome_text((enum outcome)i);
		record_text(&record, text);
		ck_assert_int_eq(text[strlen(text) - 1], ')');
		ck_assert_uint_eq(strspn(outcome_name((enum outcome)i), "abcdefghijklmnopqrstuvwxyz_"),
				  strlen(outcome_name((enum outcome)i)));
	}
}
END_TEST

/* Returns what is logged to standard error while @format is in force. */
static const char *logged(enum log_format format, const char *message)
{
	static char text[16384];
	int ends[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	ck_assert_int_eq(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	log_set_format(format);
	log_warning("%s", message);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(ends[1]);
	n = read(ends[0], text, sizeof(text) - 1);
	close(ends[0]);
	ck_assert_int_gt(n, 0);
	text[n] = '\0';
	return text;
}

START_TEST(lines)
{
	const char *json;

	ck_assert_str_eq(logged(LOG_FORMAT_TEXT, "it's \"so\""),
			 "convertd: warning: it's \"so\"\n");
	json = logged(LOG_FORMAT_JSON, "it's \"so\"\n\xff");
	ck_assert_int_eq(strncmp(json, "{\"time\":\"2", 10), 0);
	ck_assert_str_eq(strchr(json, ','),
			 ",\"level\":\"warning\",\"message\":\"it's \\\"so\\\"\\u000a\\ufffd\"}\n");
}
END_TEST

/* A message that is too long is cut before it is quoted, so that the line is valid JSON in any case. */
START_TEST(long_lines)
{
	char message[12000];
	const char *text;

	memset(message, '"', sizeof(message) - 1);
	message[sizeof(message) - 1] = '\0';
	text = logged(LOG_FORMAT_TEXT, message);
	ck_assert_uint_eq(strlen(text), strlen("convertd: warning: \n") + 8191);
	ck_assert_int_eq(text[strlen(text) - 1], '\n');
}
END_TEST

/* Nothing waits for a reader of the log; how many lines got lost is reported once there is one. */
START_TEST(nobody_reads)
{
	static char text[1 << 16];
	char missing[80];
	int ends[2], kept = 0;
	ssize_t n;

	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	ck_assert_int_gt(fcntl(ends[1], F_SETPIPE_SZ, (int)(2 * sysconf(_SC_PAGESIZE))), 0);
	for (int i = 0; i < 2000; i++)
		log_info("one of many lines, of which all are whole");
	n = read(ends[0], text, sizeof(text) - 1);
	ck_assert_int_gt(n, 0);
	for (ssize_t i = 0; i < n; i++)
		kept += text[i] == '\n';
	ck_assert_int_gt(kept, 0);
	ck_assert_int_eq(n % kept, 0);
	log_info("somebody reads");
	n = read(ends[0], text, sizeof(text) - 1);
	ck_assert_int_gt(n, 0);
	text[n] = '\0';
	snprintf(missing, sizeof(missing), "somebody reads\nconvertd: warning: %d lines are missing",
		 2000 - kept);
	ck_assert_ptr_nonnull(strstr(text, missing));
}
END_TEST

START_TEST(notices_of_sixteen)
{
	struct notice notices[NOTICES_MAX];
	char text[2 * NOTICE_TEXT_MAX];

	notices_forget();
	ck_assert_uint_eq(notices_copy(notices), 0);
	notices_add("first");
	for (int i = 0; i < 3; i++)
		notices_add("second");
	notices_add("first");
	ck_assert_uint_eq(notices_copy(notices), 2);
	ck_assert_str_eq(notices[0].text, "first");
	ck_assert_uint_eq(notices[0].told, 2);
	ck_assert_str_eq(notices[1].text, "second");
	ck_assert_uint_eq(notices[1].told, 3);
	/* a long one is cut, and still known again */
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	notices_add(text);
	notices_add(text);
	ck_assert_uint_eq(notices_copy(notices), 3);
	ck_assert_uint_eq(strlen(notices[0].text), NOTICE_TEXT_MAX - 1);
	ck_assert_uint_eq(notices[0].told, 2);
	/* the one that is the longest ago makes room */
	for (int i = 0; i < NOTICES_MAX - 1; i++) {
		snprintf(text, sizeof(text), "other %d", i);
		notices_add(text);
	}
	ck_assert_uint_eq(notices_copy(notices), NOTICES_MAX);
	ck_assert_str_eq(notices[0].text, "other 14");
	ck_assert_uint_eq(notices[0].told, 1);
	ck_assert_uint_eq(strlen(notices[NOTICES_MAX - 1].text), NOTICE_TEXT_MAX - 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("log");
	TCase *tcase = tcase_create("log");

	tcase_add_test(tcase, limit_is_a_burst_and_a_rate);
	tcase_add_test(tcase, limit_of_one);
	tcase_add_test(tcase, limit_of_several_threads);
	tcase_add_test(tcase, record_of_a_transfer);
	tcase_add_test(tcase, record_of_a_refusal);
	tcase_add_test(tcase, record_of_the_longest);
	tcase_add_test(tcase, lines);
	tcase_add_test(tcase, long_lines);
	tcase_add_test(tcase, nobody_reads);
	tcase_add_test(tcase, notices_of_sixteen);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
