/* SPDX-License-Identifier: BSD-3-Clause */
/* test_report.c - facts as lines and as JSON, whatever is in them */
#include "config.h"

#include "common/quote.h"
#include "convertize/check/report.h"

#include "run.h"

#include <check.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *text, *json;
} strings[] = {
	{ "", "\"\"" },
	{ "plain", "\"plain\"" },
	{ "a\"b\\c", "\"a\\\"b\\\\c\"" },
	{ "\n\t\x1b\x7f", "\"\\u000a\\u0009\\u001b\x7f\"" },
	{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
	/* cut off, alone, too long a form, a surrogate, above U+10FFFF (RFC 3629 3 and 10) */
	{ "\xc3", "\"\\ufffd\"" },
	{ "\xe2\x82", "\"\\ufffd\\ufffd\"" },
	{ "\xf0\x9f\x98", "\"\\ufffd\\ufffd\\ufffd\"" },
	{ "\x80x", "\"\\ufffdx\"" },
	{ "\xc0\xaf", "\"\\ufffd\\ufffd\"" },
	{ "\xe0\x9f\xbf", "\"\\ufffd\\ufffd\\ufffd\"" },
	{ "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"" },
	{ "\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"" },
	{ "\xff\"", "\"\\ufffd\\\"\"" },
};

static char written[4096];

static FILE *stream_open(void)
{
	FILE *stream = fmemopen(written, sizeof(written), "w");

	ck_assert_ptr_nonnull(stream);
	return stream;
}

START_TEST(string_is_valid)
{
	FILE *stream = stream_open();

	json_string(stream, strings[_i].text);
	fclose(stream);
	ck_assert_str_eq(written, strings[_i].json);
}
END_TEST

START_TEST(numbers)
{
	static const struct {
		double value;
		const char *json;
	} cases[] = { { 0, "0" },	 { 2, "2" },	     { 20.25, "20.250" }, { 0.0004, "0" },
		      { -0.25, "-0.250" }, { 3600, "3600" }, { 1.9996, "2" } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		FILE *stream = stream_open();

		json_number(stream, cases[i].value);
		fclose(stream);
		ck_assert_str_eq(written, cases[i].json);
	}
}
END_TEST

static void add_facts(struct report *report)
{
	static const uint8_t kinds[] = { 4, 30 };
	struct fact *fact;

	fact_value_bool(report_fact(report, FACT_OK, "a", NULL, "all is %s", "well"), true);
	fact = report_fact(report, FACT_WARN, "b", "x:1", "is \"slow\"\x1b[31m");
	fact_remedy(fact, "never");
	fact_remedy(fact, "run %d", 7);
	fact_value_number(fact, 1.5);
	fact_value_bytes(report_fact(report, FACT_NOTE, "c", NULL, "list"), kinds, 2);
	fact_value_text(report_fact(report, FACT_OK, "d", NULL, "text"), "a\"b");
}

START_TEST(lines)
{
	FILE *stream = stream_open();
	struct report report;

	report_init(&report, stream, false, false);
	add_facts(&report);
	report_flush(&report);
	ck_assert_str_eq(written, "ok    all is well\n"
				  "warn  x:1: is \"slow\"?[31m; remedy: run 7\n"
				  "note  list\n"
				  "ok    text\n");
	report_fact(&report, FACT_FAIL, "e", NULL, "late");
	ck_assert(report_finish(&report));
	report_fini(&report);
	fclose(stream);
	ck_assert_ptr_nonnull(strstr(written, "ok    text\nfail  late\nfailed: connections are not"));
}
END_TEST

START_TEST(json)
{
	FILE *stream = stream_open();
	struct report report;

	report_init(&report, stream, true, false);
	add_facts(&report);
	report_flush(&report);
	ck_assert(report_finish(&report));
	report_fini(&report);
	fclose(stream);
	ck_assert_str_eq(written,
			 "{\"convertize\": \"" PACKAGE_VERSION "\", \"result\": \"degraded\", \"facts\": [\n"
			 "  {\"name\": \"a\", \"status\": \"ok\", \"value\": true, \"text\": \"all is well\"},\n"
			 "  {\"name\": \"b\", \"status\": \"warn\", \"about\": \"x:1\", \"value\": 1.500, "
			 "\"text\": \"is \\\"slow\\\"\\u001b[31m\", \"remedy\": \"run 7\"},\n"
			 "  {\"name\": \"c\", \"status\": \"note\", \"value\": [4, 30], \"text\": \"list\"},\n"
			 "  {\"name\": \"d\", \"status\": \"ok\", \"value\": \"a\\\"b\", \"text\": \"text\"}\n"
			 "]}\n");
}
END_TEST

static void add_commands(struct report *report)
{
	struct fact *fact = report_fact(report, FACT_WARN, "a", "x:1", "bad");

	fact_command(fact, COMMAND_HERE, "ip", "link", "set", "dev", "a b");
	fact_command(fact, COMMAND_HERE, "sysctl", "-w", "net.x=1");
	fact = report_fact(report, FACT_FAIL, "b", "y:1", "worse");
	fact_command(fact, COMMAND_CONVERTER, "systemctl", "restart", "convertd");
	fact_command(fact, COMMAND_HERE, "sysctl", "-w", "net.x=1"); /* again */
	fact_remedy(fact, "in words");
	fact = report_fact(report, FACT_NOTE, "c", NULL, "as well");
	fact_command(fact, COMMAND_HERE, "true");
	fact = report_fact(report, FACT_WARN, "d", NULL, "there");
	fact_command(fact, COMMAND_CONVERTER, "it's", "", "$(x)", "`;\n");
}

static void write_one(char *const words[], const char *about, void *arg)
{
	fprintf(arg, "%s: ", about ? about : "-");
	report_write_command(arg, words);
	fputc('\n', arg);
}

/* A shell gets each word as it is; as remedies they stand for themselves where there is none in words. */
START_TEST(commands_as_text)
{
	char word[SHELL_WORD_MAX(0)];
	FILE *stream = stream_open();
	struct report report;

	ck_assert_str_eq(shell_quote("", word), "''"); /* fact_command() leaves empty words out */
	report_init(&report, stream, false, false);
	add_commands(&report);
	report_flush(&report);
	ck_assert_str_eq(written,
			 "warn  x:1: bad; remedy: ip link set dev 'a b' && sysctl -w net.x=1\n"
			 "fail  y:1: worse; remedy: in words\n"
			 "note  as well; remedy: true\n"
			 "warn  there; remedy: on the converter, 'it'\\''s' '$(x)' '`;?'\n");
	rewind(stream);
	ck_assert_uint_eq(report_commands(&report, COMMAND_HERE, write_one, stream), 2);
	ck_assert_uint_eq(report_commands(&report, COMMAND_CONVERTER, write_one, stream), 2);
	fclose(stream);
	report_fini(&report);
	ck_assert_ptr_nonnull(strstr(written, "x:1: ip link set dev 'a b'\nx:1: sysctl -w net.x=1\n"
					      "y:1: systemctl restart convertd\n-: 'it'\\''s' '$(x)' '`;\n'\n"));
}
END_TEST

START_TEST(commands_as_json)
{
	char words[3][4] = { "a", "b c", "d" };
	FILE *stream = stream_open();
	struct report report;

	report_init(&report, stream, true, false);
	report.commands = _i;
	add_commands(&report);
	report_ran(&report, (char *[]){ words[0], words[1], NULL }, 0);
	report_ran(&report, (char *[]){ words[2], NULL }, 2);
	ck_assert(report_finish(&report));
	report_fini(&report);
	fclose(stream);
	ck_assert_ptr_nonnull(strstr(written, "\"result\": \"failed\", \"ran\": [{\"command\": \"a 'b c'\", "
					      "\"status\": 0}, {\"command\": \"d\", \"status\": 2}], \"facts\""));
	ck_assert_int_eq(strstr(written, "\"in words\", \"commands\": [\"sysctl -w net.x=1\"], "
					 "\"converter_commands\": [\"systemctl restart convertd\"]}") != NULL, _i);
	ck_assert_ptr_nonnull(strstr(written, "\"text\": \"as well\", \"remedy\": \"true\"}"));
	ck_assert_int_eq(strstr(written, "commands") != NULL, _i);
}
END_TEST

START_TEST(full_disk)
{
	FILE *stream = fopen("/dev/full", "w");
	struct report report;

	ck_assert_ptr_nonnull(stream);
	report_init(&report, stream, _i, false);
	add_facts(&report);
	ck_assert(!report_finish(&report));
	report_fini(&report);
	fclose(stream);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("report");
	TCase *tcase = tcase_create("report");

	tcase_add_loop_test(tcase, string_is_valid, 0, ARRAY_SIZE(strings));
	tcase_add_test(tcase, numbers);
	tcase_add_test(tcase, lines);
	tcase_add_test(tcase, json);
	tcase_add_test(tcase, commands_as_text);
	tcase_add_loop_test(tcase, commands_as_json, 0, 2);
	tcase_add_loop_test(tcase, full_disk, 0, 2);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
