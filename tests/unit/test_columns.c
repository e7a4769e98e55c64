/* SPDX-License-Identifier: BSD-3-Clause */
/* test_columns.c - text in lines of a width, and numbers in few characters */
#include "config.h"

#include "common/columns.h"

#include "run.h"

#include <check.h>
#include <string.h>

static char written[4096];

static const char *wrap(const char *text, unsigned int width, size_t used, unsigned int indent, const char *joint)
{
	FILE *stream = fmemopen(written, sizeof(written), "w");

	ck_assert_ptr_nonnull(stream);
	columns_wrap(stream, text, width, used, indent, joint);
	fclose(stream);
	return written;
}

START_TEST(test_wrap)
{
	ck_assert_str_eq(wrap("", 10, 0, 2, ""), "\n");
	ck_assert_str_eq(wrap("one two", 7, 0, 2, ""), "one two\n");
	ck_assert_str_eq(wrap("one two", 6, 0, 2, ""), "one\n  two\n");
	ck_assert_str_eq(wrap("one two", 10, 4, 2, ""), "one\n  two\n");
	ck_assert_str_eq(wrap("  one  two three", 10, 0, 4, ""), "  one  two\n    three\n");
	ck_assert_str_eq(wrap("a word-that-is-too-long b", 8, 0, 1, ""), "a\n word-that-is-too-long\n b\n");
	ck_assert_str_eq(wrap("\xe2\x82\xac\xe2\x82\xac \xc3\xa9\xc3\xa9", 5, 0, 0, ""), "\xe2\x82\xac\xe2\x82\xac \xc3\xa9\xc3\xa9\n");
	ck_assert_str_eq(wrap("a\x1b[31m\tb", 80, 0, 0, ""), "a?[31m?b\n");
	/* a command: each line but the last ends with a backslash, within the width */
	ck_assert_str_eq(wrap("ip route add default", 10, 0, 2, " \\"), "ip route \\\n  add \\\n  default\n");
	ck_assert_str_eq(wrap("ip route", 8, 0, 2, " \\"), "ip route\n");
}
END_TEST

START_TEST(test_no_line_is_longer)
{
	static const char text[] = "the quick brown fox jumps over a lazy dog, and then does so again";

	for (unsigned int width = 12; width < 80; width++) {
		const char *line = wrap(text, width, 3, 5, " \\");
		size_t used = 3;

		for (const char *end; (end = strchr(line, '\n')); line = end + 1, used = 0)
			ck_assert_uint_le(used + (size_t)(end - line), width);
	}
}
END_TEST

START_TEST(test_amounts)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} sizes[] = { { 0, "0 B" }, { 999, "999 B" }, { 1000, "1.0 kB" }, { 999499, "999.5 kB" }, { 999500, "1.0 MB" },
		      { 5000000000, "5.0 GB" }, { UINT64_MAX, "18446744.1 TB" } };
	static const struct {
		int64_t seconds;
		const char *text;
	} times[] = { { 0, "0 s" }, { 119, "119 s" }, { 120, "2 min" }, { 7199, "119 min" }, { 7200, "2 h" }, { 172799, "47 h" },
		      { 172800, "2 d" } };
	char buf[AMOUNT_MAX];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		ck_assert_str_eq(amount_of_bytes(sizes[i].bytes, buf), sizes[i].text);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		ck_assert_str_eq(amount_of_time(times[i].seconds, buf), times[i].text);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("columns");
	Suite *suite = suite_create("columns");

	tcase_add_test(tcase, test_wrap);
	tcase_add_test(tcase, test_no_line_is_longer);
	tcase_add_test(tcase, test_amounts);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
