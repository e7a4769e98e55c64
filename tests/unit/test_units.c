/* SPDX-License-Identifier: BSD-3-Clause */
/* test_units.c - systemd's units: their names, their properties, their filters of system calls, and their drop-ins */
#include "config.h"

#include "convertize/enable/enable.h"

#include "run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *word, *name; /* NULL: it is none */
} names[] = {
	{ "ssh", "ssh.service" },
	{ "ssh.service", "ssh.service" },
	{ "a@b.service", "a@b.service" },
	{ "a@", "a@.service" },
	{ "org.example.x", "org.example.x.service" },
	{ "dev\\x2dsda", "dev\\x2dsda.service" },
	{ "ssh.socket", NULL },
	{ "x.timer", NULL },
	{ "", NULL },
	{ "a b", NULL },
	{ "../x", NULL },
	{ "x/y.service", NULL },
	{ ".service", NULL },
	{ "@x", NULL },
};

START_TEST(names_are_completed)
{
	char name[UNIT_NAME_MAX];
	const char *wrong = unit_name_complete(name, names[_i].word);

	ck_assert_int_eq(!wrong, names[_i].name != NULL);
	if (!wrong)
		ck_assert_str_eq(name, names[_i].name);
}
END_TEST

START_TEST(long_names_are_none)
{
	char word[2 * UNIT_NAME_MAX], name[UNIT_NAME_MAX], instance[UNIT_NAME_MAX];

	for (size_t len = 200; len < sizeof(word); len++) {
		memset(word, 'x', len);
		strcpy(word + len - 1, "@");
		if (unit_name_complete(name, word))
			continue;
		unit_name_instance(instance, name);
		unit_name_template(instance);
		ck_assert_str_eq(instance, name);
	}
	ck_assert_ptr_nonnull(unit_name_complete(name, word));
}
END_TEST

START_TEST(templates)
{
	char name[UNIT_NAME_MAX];

	ck_assert(unit_name_is_template("a@.service"));
	ck_assert(!unit_name_is_template("a@b.service"));
	ck_assert(!unit_name_is_template("a.service"));
	unit_name_instance(name, "a@.service");
	ck_assert_str_eq(name, "a@convertize.service");
	unit_name_template(name);
	ck_assert_str_eq(name, "a@.service");
	unit_name_instance(name, "a.service");
	ck_assert_str_eq(name, "a.service");
}
END_TEST

START_TEST(words_of_systemctl)
{
	static const char *const words[] = { "A=b", "LD_PRELOAD=/x y", "Q=a\"b$c\\d", "N=a\nb", "" };
	const char *list = " A=b \"LD_PRELOAD=/x y\" \"Q=a\\\"b\\$c\\\\d\" $'N=a\\nb' \"\" ";
	char word[UNIT_WORD_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		ck_assert(unit_word_next(&list, word));
		ck_assert_str_eq(word, words[i]);
	}
	ck_assert(!unit_word_next(&list, word));
	ck_assert(unit_list_variable("A=1 AB=2 A=3", "A", word));
	ck_assert_str_eq(word, "3");
	ck_assert(!unit_list_variable("AB=2", "A", word));
}
END_TEST

START_TEST(commands_of_systemctl)
{
	static struct unit_properties properties;
	char text[] = "Id=a.service\nExecStart={ path=/bin/a ; argv[]=/bin/a -x 1 ; ignore_errors=no ; pid=0 }\nno line\n"
		      "ExecStart={ path=/bin/b ; argv[]=/bin/b ; ignore_errors=yes ; pid=0 }\nExecStartPre={ path=/bin/c }\n";
	char path[PATH_MAX];

	unit_properties_parse(&properties, text);
	ck_assert_str_eq(unit_property(&properties, "Id"), "a.service");
	ck_assert_str_eq(unit_property(&properties, "I"), "");
	ck_assert(unit_command_path(unit_property(&properties, "ExecStart"), path));
	ck_assert_str_eq(path, "/bin/a");
	ck_assert(!unit_command_path("{ path=/bin/a }", path));
	ck_assert(!unit_command_path("", path));
}
END_TEST

#define CALLS "connect socket dup3 fcntl getpeername getsockname getsockopt recvfrom recvmsg rt_sigprocmask sendmsg setsockopt"

static const struct {
	const char *properties, *deadly; /* NULL: no call ends the process */
} filters[] = {
	{ "", NULL },
	{ "SystemCallFilter=~", NULL },
	{ "SystemCallFilter=~connect", NULL },
	{ "SystemCallFilter=~connect:EPERM", NULL },
	{ "SystemCallFilter=~clock_settime", NULL },
	{ "SystemCallFilter=read write", NULL },
	{ "SystemCallFilter=" CALLS "\nSystemCallErrorNumber=1", NULL },
	{ "SystemCallFilter=" CALLS "\nSystemCallErrorNumber=0", "getrandom" },
	{ "SystemCallFilter=" CALLS "\nSystemCallErrorNumber=2147483646", "getrandom" },
	{ "SystemCallFilter=" CALLS " getrandom gettid kcmp process_vm_readv process_vm_writev", NULL },
	{ "SystemCallFilter=~dup3\nSystemCallErrorNumber=1", NULL },
	{ "SystemCallFilter=~dup3", "dup3" },
	{ "SystemCallFilter=~setsockopt:KILL dup2", "setsockopt" },
};

START_TEST(filters_that_end_the_process)
{
	static struct unit_properties properties;
	char text[1024];

	snprintf(text, sizeof(text), "%s", filters[_i].properties);
	unit_properties_parse(&properties, text);
	ck_assert_pstr_eq(unit_deadly_call(&properties), filters[_i].deadly);
}
END_TEST

static const char *variables(const char *name)
{
	return strcmp(name, "CONVERT_ADDR") == 0    ? "a%b,\"c\"" :
	       strcmp(name, "CONVERT_COOKIE") == 0  ? "secret" :
	       strcmp(name, "CONVERT_LIBRARY") == 0 ? "/lib" :
	       strcmp(name, "CONVERT_CONFIG") == 0  ? "none" :
	       strcmp(name, "CONVERT_LOG") == 0	    ? "" :
						      NULL;
}

START_TEST(drop_ins)
{
	char *text = unit_dropin_text("a.service", "/x.so:/usr/$LIB/libconvert/libconvert.so", "/etc/100%/b\\c", variables), *value;

	ck_assert_str_eq(strchr(text, '['), "[Service]\n"
					    "Environment=\"LD_PRELOAD=/x.so:/usr/$LIB/libconvert/libconvert.so\"\n"
					    "Environment=\"CONVERT_ADDR=a%%b,\\\"c\\\"\"\n"
					    "EnvironmentFile=/etc/100%%/b\\c\n");
	ck_assert(unit_text_is_ours(text));
	ck_assert(!unit_text_is_ours("[Service]\n"));
	value = unit_dropin_variable(text, "CONVERT_ADDR");
	ck_assert_str_eq(value, "a%b,\"c\"");
	free(value);
	ck_assert_ptr_null(unit_dropin_variable(text, "CONVERT_LOG"));
	free(text);
	ck_assert_ptr_null(unit_dropin_text("a.service", "/x\n.so", NULL, variables));
	text = unit_cookie_text("a.service", "a\"b\\c$d`");
	ck_assert_str_eq(strchr(text, '\n'), "\nCONVERT_COOKIE=\"a\\\"b\\\\c\\$d\\`\"\n");
	ck_assert(unit_text_is_ours(text));
	free(text);
	ck_assert_ptr_null(unit_cookie_text("a.service", "a\nb"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("units");
	TCase *all = tcase_create("all");

	suite_add_tcase(suite, all);
	tcase_add_loop_test(all, names_are_completed, 0, ARRAY_SIZE(names));
	tcase_add_test(all, long_names_are_none);
	tcase_add_test(all, templates);
	tcase_add_test(all, words_of_systemctl);
	tcase_add_test(all, commands_of_systemctl);
	tcase_add_loop_test(all, filters_that_end_the_process, 0, ARRAY_SIZE(filters));
	tcase_add_test(all, drop_ins);
	return test_run(suite);
}
