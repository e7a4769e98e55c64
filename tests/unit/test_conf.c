/* SPDX-License-Identifier: BSD-3-Clause */
/* test_conf.c - convertize.conf: what it sets, what is wrong with it, and whose sessions are converted */
#include "config.h"

#include "convertize/options/command_line.h"

#include "run.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Parses a text as the administrator's or a user's file. */
static void parse(struct conf *conf, const char *text, bool is_system, struct problems *problems)
{
	char copy[1024];

	memset(conf, 0, sizeof(*conf));
	strcpy(conf->path, "file");
	conf->is_system = is_system;
	snprintf(copy, sizeof(copy), "%s", text);
	conf_parse(conf, copy, strlen(copy), problems);
}

START_TEST(settings_are_variables)
{
	struct problems problems = { 0 };
	static struct conf conf;

	parse(&conf, "# nothing\n\nconverter a\n converter = [::1]:5 # second\nport=7\nearly-data\nno-bypass-mptcp no\nwarn yes\n", true,
	      &problems);
	ck_assert_msg(!problems.count, "%s", problems.first);
	ck_assert_str_eq(conf.values[OPTION_CONVERTER], "a,[::1]:5");
	ck_assert_uint_eq(conf.lines[OPTION_CONVERTER], 3);
	ck_assert_str_eq(conf.values[OPTION_PORT], "7");
	ck_assert_str_eq(conf.values[OPTION_EARLY_DATA], "1");
	ck_assert_str_eq(conf.values[OPTION_NO_BYPASS_MPTCP], "1");
	ck_assert_str_eq(conf.values[OPTION_WARN], "1");
	ck_assert_ptr_null(conf.values[OPTION_COOKIE]);
	ck_assert_int_eq(conf.session, CONF_SESSION_UNSET);
	conf_fini(&conf);
}
END_TEST

static const struct {
	const char *text, *problem;
} wrong[] = {
	{ "what", "file:1: \"what\" isn't a setting; see convertize.conf(5)" },
	{ "\n--port 5", "file:2: \"--port\" has dashes; in a file, write \"port\"" },
	{ "json", "file:1: \"json\" belongs on the command line" },
	{ "config x", "file:1: \"config\" belongs on the command line" },
	{ "port", "file:1: port: needs a value; write \"port PORT\"" },
	{ "port 1\nport 2", "file:2: port: \"2\": line 1 has it already; remove one" },
	{ "warn maybe", "file:1: warn: \"maybe\" is neither yes nor no" },
	{ "session", "file:1: session: \"\" is neither yes nor no" },
	{ "session yes\nsession no", "file:2: session: line 1 has it already; remove one" },
	{ "session-user a b", "file:1: session-user: \"a b\" is not one name; write a line for each" },
	{ "convertor a", "file:1: \"convertor\" isn't a setting; did you mean \"converter\"?" },
	{ "sesion yes", "file:1: \"sesion\" isn't a setting; did you mean \"session\"?" },
	{ "\001\033[2J", "file:1: \"??[2J\" isn't a setting; see convertize.conf(5)" },
};

START_TEST(mistakes_are_named)
{
	struct problems problems = { 0 };
	static struct conf conf;

	parse(&conf, wrong[_i].text, true, &problems);
	ck_assert_uint_eq(problems.count, 1);
	ck_assert_str_eq(problems.first, wrong[_i].problem);
	conf_fini(&conf);
}
END_TEST

START_TEST(a_nul_is_named)
{
	static struct conf conf = { .path = "file" };
	struct problems problems = { 0 };
	char text[] = "port\0 5\n";

	conf_parse(&conf, text, sizeof(text) - 1, &problems);
	ck_assert_str_eq(problems.first, "file:1: \"port\": there is a NUL byte; this isn't text");
	conf_fini(&conf);
}
END_TEST

START_TEST(only_the_system_file_has_session_groups)
{
	struct problems problems = { 0 };
	static struct conf conf;

	parse(&conf, "session-group a", false, &problems);
	ck_assert_uint_eq(problems.count, 1);
	ck_assert_ptr_nonnull(strstr(problems.first, "session-group: only "));
	ck_assert_ptr_null(conf.groups);
	conf_fini(&conf);
}
END_TEST

static const struct {
	const char *user_file, *system_file; /* NULL: there is none */
	uid_t uid;
	bool converted;
	const char *file; /* NULL: none decides */
} sessions[] = {
	{ NULL, NULL, 1000, false, NULL },
	{ NULL, "converter a", 1000, false, NULL },
	{ NULL, "session yes", 1000, true, "system" },
	{ NULL, "session yes", 0, false, "system" },
	{ NULL, "session no", 1000, false, "system" },
	{ "session yes", NULL, 0, true, "user" },
	{ "session no", "session yes", 1000, false, "user" },
	{ "session yes", "session no", 1000, true, "user" },
	{ "converter b", "session yes", 1000, true, "system" },
	{ NULL, "session yes\nsession-user bob", 1000, false, "system" },
	{ NULL, "session yes\nsession-user ali\nsession-user alicia", 1000, false, "system" },
	{ NULL, "session yes\nsession-user bob\nsession-user alice", 1000, true, "system" },
	{ NULL, "session yes\nsession-user alice", 0, true, "system" },
	{ NULL, "session yes\nsession-group mobil", 1000, false, "system" },
	{ NULL, "session yes\nsession-user bob\nsession-group mobile", 1000, true, "system" },
};

START_TEST(sessions_are_decided)
{
	static const char *const groups[] = { "users", "mobile", NULL };
	struct login_user user = { .uid = sessions[_i].uid, .name = "alice", .groups = groups };
	struct problems problems = { 0 };
	static struct conf_files files;
	const char *file;

	files.count = 0;
	if (sessions[_i].user_file) {
		parse(&files.files[files.count], sessions[_i].user_file, false, &problems);
		strcpy(files.files[files.count++].path, "user");
	}
	if (sessions[_i].system_file) {
		parse(&files.files[files.count], sessions[_i].system_file, true, &problems);
		strcpy(files.files[files.count++].path, "system");
	}
	ck_assert_msg(!problems.count, "%s", problems.first);
	ck_assert_int_eq(conf_session(&files, &user, &file), sessions[_i].converted);
	ck_assert_pstr_eq(file, sessions[_i].file);
	for (size_t i = 0; i < files.count; i++)
		conf_fini(&files.files[i]);
}
END_TEST

START_TEST(similar_words)
{
	static const struct {
		const char *word, *similar; /* NULL: none */
	} cases[] = { { "chek", "check" },   { "check", NULL },     { "cehck", "check" }, { "lits", "list" }, { "enabel", "enable" },
		      { "curl", NULL },	     { "lists", "list" },   { "ls", NULL },	  { "", NULL },	      { "enviroment", "environment" },
		      { "verison", "version" }, { "a-word-that-is-longer-than-any", NULL } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		ck_assert_pstr_eq(options_similar(cases[i].word, false), cases[i].similar);
	ck_assert_str_eq(options_similar("convertor", true), "converter");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("convertize.conf");
	TCase *all = tcase_create("all");

	suite_add_tcase(suite, all);
	tcase_add_test(all, settings_are_variables);
	tcase_add_loop_test(all, mistakes_are_named, 0, ARRAY_SIZE(wrong));
	tcase_add_test(all, a_nul_is_named);
	tcase_add_test(all, similar_words);
	tcase_add_test(all, only_the_system_file_has_session_groups);
	tcase_add_loop_test(all, sessions_are_decided, 0, ARRAY_SIZE(sessions));
	return test_run(suite);
}
