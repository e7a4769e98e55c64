/* SPDX-License-Identifier: BSD-3-Clause */
/* test_script.c - #! lines as the kernel reads them, and what env makes of its argument */
#include "config.h"

#include "common/program.h"

#include "bytes.h"
#include "run.h"

#include <check.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *text, *interpreter, *argument;
} scripts[] = {
	{ "#!/bin/sh\necho", "/bin/sh", "" },
	{ "#!/bin/sh", "/bin/sh", "" },
	{ "#! \t/bin/sh \t\n", "/bin/sh", "" },
	{ "#!/bin/sh -e -u \n", "/bin/sh", "-e -u" },
	{ "#!/usr/bin/env  python3\n", "/usr/bin/env", "python3" },
	{ "#!python\n", "python", "" },
};

START_TEST(line_is_read)
{
	struct script script;

	ck_assert(script_parse(&script, scripts[_i].text, strlen(scripts[_i].text)));
	ck_assert_str_eq(script.interpreter, scripts[_i].interpreter);
	ck_assert_str_eq(script.argument, scripts[_i].argument);
}
END_TEST

static const char *const none[] = { "",	   "#",		  "#!",		 "#! \t \n/bin/sh",
				    "#!\n", " #!/bin/sh", "# !/bin/sh", "/bin/sh" };

START_TEST(other_text_is_no_script)
{
	struct script script;

	ck_assert(!script_parse(&script, none[_i], strlen(none[_i])));
}
END_TEST

/* Tries every length, each in a buffer of exactly its size. */
START_TEST(long_line)
{
	char text[2 * SCRIPT_LINE_MAX];
	struct script script;

	memset(text, 'x', sizeof(text));
	memcpy(text, "#!/", 3);
	for (size_t blank = 3; blank < sizeof(text); blank += 50)
		for (size_t len = 0; len <= sizeof(text); len++) {
			struct bytes copy;

			text[blank] = ' ';
			copy = bytes_copy(text, len);
			ck_assert_int_eq(script_parse(&script, (char *)copy.data, len), len > 2);
			ck_assert(len <= 2 || script.interpreter[0] == '/');
			bytes_fini(&copy);
			text[blank] = 'x';
		}
}
END_TEST

static const struct {
	const char *argument, *program; /* NULL: none */
} env[] = {
	{ "python3", "python3" },
	{ "python3 -u", "python3 -u" }, /* as a name, which is the mistake that -S is for */
	{ "-S python3 -u", "python3" },
	{ "-Spython3", "python3" },
	{ "-vS python3", "python3" },
	{ "--split-string=python3 -u", "python3" },
	{ "-S -i A=b C= \tpython3 D=e", "python3" },
	{ "-S", NULL },
	{ "-S A=b", NULL },
	{ "-i", NULL },
	{ "", NULL },
};

START_TEST(program_of_env)
{
	char program[SCRIPT_LINE_MAX];

	ck_assert_int_eq(script_env_program(env[_i].argument, program), env[_i].program != NULL);
	if (env[_i].program)
		ck_assert_str_eq(program, env[_i].program);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("script");
	TCase *tcase = tcase_create("script");

	tcase_add_loop_test(tcase, line_is_read, 0, ARRAY_SIZE(scripts));
	tcase_add_loop_test(tcase, other_text_is_no_script, 0, ARRAY_SIZE(none));
	tcase_add_test(tcase, long_line);
	tcase_add_loop_test(tcase, program_of_env, 0, ARRAY_SIZE(env));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
