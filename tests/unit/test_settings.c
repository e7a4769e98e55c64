/* SPDX-License-Identifier: BSD-3-Clause */
/* test_settings.c - the command line and the configuration file: which settings are valid, and the messages about others */
#include "config.h"

#include "daemon/log.h"
#include "convertd/config/convertd_settings.h"

#include "run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static char path[] = "/tmp/test_settings.XXXXXX";

/* A file with this text; its name is in path. */
static void make_file(const char *text, size_t len)
{
	int fd;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, len), (ssize_t)len);
	close(fd);
}

/* Settings of "convertd --config FILE ARGUMENTS..."; @text NULL: no file. */
static struct convertd_settings *create(const char *text, const char *const *arguments,
					struct problems *problems)
{
	char *argv[16] = { (char *)"convertd", (char *)"--config", path };
	int argc = text ? 3 : 1;
	struct convertd_settings *settings;

	if (text)
		make_file(text, strlen(text));
	while (*arguments)
		argv[argc++] = (char *)*arguments++;
	settings = convertd_settings_read(argc, argv, problems);
	if (text)
		unlink(path);
	return settings;
}

static struct convertd_settings *create_right(const char *text, const char *const *arguments)
{
	struct problems problems = { 0 };
	struct convertd_settings *settings = create(text, arguments, &problems);

	ck_assert_msg(settings && !problems.count, "%s", problems.first);
	return settings;
}

static const char *const nothing[] = { NULL };

START_TEST(defaults)
{
	struct convertd_settings *settings = create_right(NULL, nothing);
	char text[SOCKADDR_STRLEN];

	ck_assert_int_eq(settings->action, SETTINGS_RUN);
	ck_assert_uint_eq(settings->listen_count, 1);
	ck_assert_str_eq(sockaddr_ip_format(&settings->listen[0].address, text), "[::]:1234");
	ck_assert_str_eq(settings->listen[0].device, "");
	ck_assert_uint_eq(settings->connect_timeout, 30);
	ck_assert_uint_eq(settings->request_timeout, 10);
	ck_assert_int_eq(settings->hold_syn, SETTINGS_HOLD_AUTO);
	ck_assert_uint_eq(settings->hold_time, 700);
	ck_assert_uint_eq(settings->log_level, LOG_LEVEL_INFO);
	ck_assert(!settings->no_silence);
	ck_assert_uint_eq(settings->drain_timeout, 30);
	ck_assert_str_eq(settings->user.name, "");
	ck_assert(!settings->no_syscall_filter);
	ck_assert(settings->listen_is_default);
	convertd_settings_destroy(settings);
}
END_TEST

START_TEST(user_is_looked_up)
{
	char *argv[] = { (char *)"convertd", (char *)"--user", (char *)"no-such-user", NULL };
	struct problems problems = { 0 };
	struct convertd_settings *settings = convertd_settings_read(3, argv, &problems);

	/* This is reported to root only: after a reload, others may lack the right to look. */
	if (geteuid() != 0) {
		ck_assert_str_eq(settings->user.name, "no-such-user");
		convertd_settings_destroy(settings);
		return;
	}
	ck_assert(!settings);
	ck_assert_msg(strstr(problems.first, "--user: \"no-such-user\" isn't a user"), "%s",
		      problems.first);
}
END_TEST

START_TEST(file_in_all_its_forms)
{
	struct convertd_settings *settings =
		create_right("# a comment\n"
			     "\n"
			     "listen 192.0.2.1:80\n"
			     "\tlisten = [2001:db8::1]:81 # and one behind it\r\n"
			     "listen=[::]%br-lan.7:82\n"
			     "  connect-timeout   =   7  \n"
			     "no-silence\n"
			     "log-level\tdebug",
			     nothing);
	char text[SOCKADDR_STRLEN];

	ck_assert_uint_eq(settings->listen_count, 3);
	ck_assert_str_eq(sockaddr_ip_format(&settings->listen[0].address, text), "192.0.2.1:80");
	ck_assert_str_eq(sockaddr_ip_format(&settings->listen[1].address, text),
			 "[2001:db8::1]:81");
	ck_assert_str_eq(sockaddr_ip_format(&settings->listen[2].address, text), "[::]:82");
	ck_assert_str_eq(settings->listen[2].device, "br-lan.7");
	ck_assert_uint_eq(settings->connect_timeout, 7);
	ck_assert(settings->no_silence);
	ck_assert_uint_eq(settings->log_level, LOG_LEVEL_DEBUG);
	convertd_settings_destroy(settings);
}
END_TEST

START_TEST(what_is_told_and_where)
{
	static const char *const arguments[] = { "--metrics", "127.0.0.1:9103", NULL };
	struct convertd_settings *settings = create_right("metrics unix:/run/metrics.sock\n"
							  "log-format json\n"
							  "log-rate 0\n",
							  arguments);
	struct problems problems = { 0 };
	char text[SOCKADDR_STRLEN];

	ck_assert_uint_eq(settings->metrics_count, 2);
	ck_assert_str_eq(sockaddr_ip_format(&settings->metrics[0].address, text),
			 "127.0.0.1:9103");
	ck_assert_str_eq(settings->metrics[0].path, "");
	ck_assert_str_eq(settings->metrics[1].path, "/run/metrics.sock");
	ck_assert_uint_eq(settings->log_format, LOG_FORMAT_JSON);
	ck_assert_uint_eq(settings->log_rate, 0);
	convertd_settings_destroy(settings);
	ck_assert(!create("metrics [::1]:1\nmetrics [::1]:2\nmetrics [::1]:3\nmetrics [::1]:4\n",
			  arguments, &problems));
	ck_assert_uint_eq(problems.count, 1);
	ck_assert_msg(strstr(problems.first, "\"[::1]:4\" is one too many, the limit is 4"), "%s",
		      problems.first);
}
END_TEST

/* The command line overrides the file, wherever --config stands; lists have the entries of both. */
START_TEST(command_line_counts)
{
	static const char *const arguments[] = { "--connect-timeout", "5", "--listen",
						 "192.0.2.2:1",	      NULL };
	struct convertd_settings *settings = create_right("connect-timeout 6\n"
							  "request-timeout 8\n"
							  "listen 192.0.2.1:1\n",
							  arguments);

	ck_assert_uint_eq(settings->connect_timeout, 5);
	ck_assert_uint_eq(settings->request_timeout, 8);
	ck_assert_uint_eq(settings->listen_count, 2);
	convertd_settings_destroy(settings);
}
END_TEST

/* The same command line a second time, as for a reload. */
START_TEST(read_twice)
{
	static const char *const arguments[] = { "--listen=192.0.2.2:1", "--check-config", NULL };

	for (int i = 0; i < 2; i++) {
		struct convertd_settings *settings = create_right("request-timeout 8\n", arguments);

		ck_assert_int_eq(settings->action, SETTINGS_CHECK);
		ck_assert_uint_eq(settings->listen_count, 1);
		ck_assert_uint_eq(settings->request_timeout, 8);
		convertd_settings_destroy(settings);
	}
}
END_TEST

START_TEST(actions)
{
	static const char *const help[] = { "--help", "--nonsense", NULL };
	static const char *const version[] = { "--version", NULL };
	struct convertd_settings *settings = create_right(NULL, help);

	ck_assert_int_eq(settings->action, SETTINGS_HELP);
	convertd_settings_destroy(settings);
	settings = create_right(NULL, version);
	ck_assert_int_eq(settings->action, SETTINGS_VERSION);
	convertd_settings_destroy(settings);
}
END_TEST

/* In a file: the line, what is quoted and what is advised. */
static const struct {
	const char *text;
	unsigned line;
	const char *says[3];
} wrong[] = {
	{ "\n\nlisten-to 1\n", 3, { "\"listen-to\"", "--help" } },
	{ "--listen [::]:1\n", 1, { "\"--listen\"", "write \"listen\"" } },
	{ "--nonsense\n", 1, { "\"--nonsense\"", "--help" } },
	{ "listen\n", 1, { "listen:", "listen ADDR" } },
	{ "listen =\n", 1, { "listen:", "listen ADDR" } },
	{ "listen # [::]:1\n", 1, { "listen:", "listen ADDR" } },
	{ "listen [::]\n", 1, { "\"[::]\"", "port" } },
	{ "listen 2001:db8::1\n", 1, { "[2001:db8::1]:1234" } },
	{ "listen name.example:1\n", 1, { "\"name.example:1\"", "numeric" } },
	{ "listen 192.0.2.1%:1\n", 1, { "\"192.0.2.1%:1\"", "%eth0" } },
	{ "listen 192.0.2.1%eth0\n", 1, { "\"192.0.2.1%eth0\"", "%eth0:" } },
	{ "listen [fe80::1%eth0]:1\n", 1, { "\"[fe80::1%eth0]:1\"", "[::]%eth0:" } },
	{ "listen [::]%a-name-too-long-for-it:1\n", 1, { "\"[::]%a-name", "%eth0" } },
	{ "listen [::]%\"eth0\":1\n", 1, { "%eth0" } },
	{ "listen [::]%a/b:1\n", 1, { "%eth0" } },
	{ "no-silence yes\n", 1, { "\"yes\"", "alone" } },
	{ "connect-timeout 0\n", 1, { "\"0\"", "seconds from 1 to 86400" } },
	{ "connect-timeout 86401\n", 1, { "\"86401\"" } },
	{ "connect-timeout -1\n", 1, { "\"-1\"" } },
	{ "connect-timeout = = 1\n", 1, { "\"= 1\"" } },
	{ "connect-timeout 99999999999999999999999\n", 1, { "\"99999999999999999999999\"" } },
	{ "connect-timeout 1\nconnect-timeout 2\n", 2, { "\"2\"", "line 1" } },
	{ "hold-syn maybe\n", 1, { "\"maybe\"", "auto, on, off" } },
	{ "hold-time 3000\n", 1, { "\"3000\"", "milliseconds from 1 to 2900" } },
	{ "log-level loud\n", 1, { "\"loud\"", "debug" } },
	{ "log-format xml\n", 1, { "\"xml\"", "text, json" } },
	{ "metrics 127.0.0.1\n", 1, { "\"127.0.0.1\"", "127.0.0.1:9103" } },
	{ "metrics unix:relative\n", 1, { "\"unix:relative\"", "unix:/PATH of at most 107" } },
	{ "metrics unix:/1234567890123456789012345678901234567890123456789012345678901234567890"
	  "1234567890123456789012345678901234567\n",
	  1, { "at most 107" } },
	{ "drain-timeout 86401\n", 1, { "\"86401\"", "seconds from 0 to 86400" } },
	{ "user :daemon\n", 1, { "\":daemon\"", "NAME:GROUP" } },
	{ "user nobody:\n", 1, { "\"nobody:\"", "NAME:GROUP" } },
	{ "user 1234567890123456789012345678901234567890123456789012345678901234\n", 1,
	  { "NAME:GROUP", "63 bytes" } },
	{ "no-syscall-filter yes\n", 1, { "\"yes\"", "alone" } },
	{ "config /etc/other\n", 1, { "config:", "--config" } },
	{ "help\n", 1, { "command line" } },
	{ "check-config\n", 1, { "command line" } },
	{ "listen \x1b[31m\n", 1, { "\"?[31m\"" } },
	{ "log-level 1234567890123456789012345678901234567890123456789012345678901\n", 1,
	  { "56789012345678901234567890...\"" } },
};

START_TEST(wrong_line_is_told)
{
	struct problems problems = { 0 };
	char place[64];

	ck_assert_msg(!create(wrong[_i].text, nothing, &problems), "%s", wrong[_i].text);
	ck_assert_uint_eq(problems.count, 1);
	snprintf(place, sizeof(place), "%s:%u: ", path, wrong[_i].line);
	ck_assert_msg(strncmp(problems.first, place, strlen(place)) == 0, "%s", problems.first);
	for (int n = 0; n < 3 && wrong[_i].says[n]; n++)
		ck_assert_msg(strstr(problems.first, wrong[_i].says[n]) != NULL, "%s",
			      problems.first);
}
END_TEST

START_TEST(all_that_is_wrong_is_told)
{
	static const char *const arguments[] = { "--connect-timeout=x", NULL };
	struct problems problems = { 0 };

	ck_assert(!create("listen x\nnonsense\nlog-level info\n", arguments, &problems));
	ck_assert_uint_eq(problems.count, 3);
	ck_assert_msg(strstr(problems.first, "--connect-timeout: \"x\"") != NULL, "%s",
		      problems.first);
}
END_TEST

/* A value that is overridden must be valid all the same, since it may count at the next start. */
START_TEST(overridden_value_is_checked)
{
	static const char *const arguments[] = { "--connect-timeout=5", NULL };
	struct problems problems = { 0 };

	ck_assert(!create("connect-timeout x\n", arguments, &problems));
	ck_assert_uint_eq(problems.count, 1);
}
END_TEST

START_TEST(nul_byte_is_told)
{
	static const char text[] = "connect-timeout 1\nlog-level\0 debug\n";
	char copy[sizeof(text)];
	struct problems problems = { 0 };

	memcpy(copy, text, sizeof(text));
	settings_check_text("name", copy, sizeof(text) - 1, &problems);
	ck_assert_uint_eq(problems.count, 1);
	ck_assert_msg(strncmp(problems.first, "name:2: \"log-level\"", 19) == 0, "%s",
		      problems.first);
}
END_TEST

START_TEST(file_that_cannot_be_read)
{
	static const char *const missing[] = { "--config", "/nonexistent/file", NULL };
	static const char *const directory[] = { "--config", "/tmp", NULL };
	static const char *const empty[] = { "--config=", NULL };
	struct problems problems = { 0 };

	ck_assert(!create(NULL, missing, &problems));
	ck_assert_msg(strstr(problems.first, "\"/nonexistent/file\" can't be read: No such file"),
		      "%s", problems.first);
	problems = (struct problems){ 0 };
	ck_assert(!create(NULL, directory, &problems));
	ck_assert_msg(strstr(problems.first, "\"/tmp\" is not a regular file"), "%s",
		      problems.first);
	problems = (struct problems){ 0 };
	ck_assert(!create(NULL, empty, &problems));
	ck_assert_msg(strstr(problems.first, "write its path"), "%s", problems.first);
}
END_TEST

static const struct {
	mode_t mode;
	bool right;
} modes[] = { { 0600, true },  { 0400, true },	{ 0640, true },	 { 0440, true },
	      { 0644, false }, { 0660, false }, { 0604, false }, { 0602, false } };

START_TEST(secrets_are_kept)
{
	const struct place place = { .name = "cookie-key" };
	const uid_t owner = geteuid();
	struct problems problems = { 0 };
	size_t len = 0;
	char *text;

	make_file("secret", 6);
	ck_assert_int_eq(chmod(path, modes[_i].mode), 0);
	text = textfile_read(path, &owner, &len, &place, &problems);
	ck_assert_int_eq(text != NULL, modes[_i].right);
	ck_assert_uint_eq(problems.count, modes[_i].right ? 0 : 1);
	ck_assert_msg(modes[_i].right || strstr(problems.first, "chmod 600"), "%s", problems.first);
	free(text);
	text = textfile_read(path, NULL, &len, &place, &problems);
	ck_assert_str_eq(text, "secret");
	free(text);
	unlink(path);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("settings");
	TCase *tcase = tcase_create("settings");

	tcase_add_test(tcase, defaults);
	tcase_add_test(tcase, user_is_looked_up);
	tcase_add_test(tcase, file_in_all_its_forms);
	tcase_add_test(tcase, what_is_told_and_where);
	tcase_add_test(tcase, command_line_counts);
	tcase_add_test(tcase, read_twice);
	tcase_add_test(tcase, actions);
	tcase_add_loop_test(tcase, wrong_line_is_told, 0, (int)ARRAY_SIZE(wrong));
	tcase_add_test(tcase, all_that_is_wrong_is_told);
	tcase_add_test(tcase, overridden_value_is_checked);
	tcase_add_test(tcase, nul_byte_is_told);
	tcase_add_test(tcase, file_that_cannot_be_read);
	tcase_add_loop_test(tcase, secrets_are_kept, 0, (int)ARRAY_SIZE(modes));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
