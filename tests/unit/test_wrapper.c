/* SPDX-License-Identifier: BSD-3-Clause */
/* test_wrapper.c - commands and libraries that set LD_PRELOAD, and where libconvert.so is put in it */
#include "config.h"

#include "convertize/run/launch.h"

#include "run.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *words[8];
	const char *command; /* NULL: none */
} commands[] = {
	{ { "curl", "sudo" }, NULL },
	{ { "/usr/bin/sudo", "-u", "me", "curl" }, "sudo" },
	{ { "sudoku" }, NULL },
	{ { "proxychains4", "curl" }, "proxychains" },
	{ { "proxychains-ng" }, NULL },
	{ { "nice", "-n", "5", "torsocks", "curl" }, "torsocks" },
	{ { "nice", "grep", "torsocks" }, NULL },
	{ { "snap", "run", "browser" }, "snap" },
	{ { "nice", "snap", "install", "browser" }, NULL },
	{ { "/usr/bin/flatpak", "run", "org.example.App" }, "flatpak" },
	{ { "env", "A=b", "timeout", "5", "/usr/bin/mptcpize", "run" }, "mptcpize" },
	{ { "faketime", "2020-01-01 00:00:00", "torify", "curl" }, "torify" },
	{ { "env", "-i", "LD_PRELOAD=other.so", "curl" }, "env" },
	{ { "env", "LD_PRELOAD=/usr/lib/libconvert.so:other.so", "curl" }, NULL },
	{ { "env" }, NULL },
	{ { "nice", "-n", "5" }, NULL },
	{ { "chroot", "/x", "/y" }, "chroot" },
	{ { "unshare", "--root", "/x", "/y" }, "unshare" },
	{ { "unshare", "-R", "/x", "-m", "/y" }, "unshare" },
	{ { "unshare", "--root=/x", "--net", "/y" }, NULL },
	{ { "unshare", "-n", "-R", "/x", "/y" }, NULL },
	{ { "unshare", "-m", "/y", "-R", "/x" }, NULL },
};

START_TEST(command_is_known)
{
	const struct wrapper *wrapper = wrapper_of_command((char *const *)commands[_i].words);

	ck_assert_int_eq(!wrapper, !commands[_i].command);
	if (wrapper)
		ck_assert_str_eq(wrapper->command, commands[_i].command);
}
END_TEST

static const struct {
	const char *list, *command; /* NULL: none */
} preloaded[] = {
	{ NULL, NULL },
	{ "", NULL },
	{ " : ", NULL },
	{ "/usr/lib/libjemalloc.so.2", NULL },
	{ "/libtorsocks/libc.so.6", NULL },
	{ "libc.so.6:/usr/lib/torsocks/libtorsocks.so", "torsocks" },
	{ "/usr/lib/libproxychains.so.4 /usr/lib/libc.so.6", "proxychains" },
};

START_TEST(library_is_known)
{
	const struct wrapper *wrapper = wrapper_of_preloads(preloaded[_i].list);

	ck_assert_int_eq(!wrapper, !preloaded[_i].command);
	if (wrapper)
		ck_assert_str_eq(wrapper->command, preloaded[_i].command);
}
END_TEST

static const struct {
	const char *list, *joined;
} lists[] = {
	{ NULL, "/a/libconvert.so" },
	{ "", "/a/libconvert.so" },
	{ "b.so", "b.so:/a/libconvert.so" },
	{ " b.so\tc.so: ", "b.so:c.so:/a/libconvert.so" },
	{ "/a/libconvert.so", "/a/libconvert.so" },
	{ "/a/libconvert.so:b.so", "b.so:/a/libconvert.so" },
	{ "b.so:/other/libconvert.so libconvert.so c.so", "b.so:c.so:/a/libconvert.so" },
	{ "/a/libconvert.so.d/b.so", "/a/libconvert.so.d/b.so:/a/libconvert.so" },
};

START_TEST(library_is_the_last)
{
	char *joined = wrapper_preloads_with(lists[_i].list, "/a/libconvert.so");

	ck_assert_str_eq(joined, lists[_i].joined);
	free(joined);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("wrappers");
	TCase *all = tcase_create("all");

	suite_add_tcase(suite, all);
	tcase_add_loop_test(all, command_is_known, 0, ARRAY_SIZE(commands));
	tcase_add_loop_test(all, library_is_known, 0, ARRAY_SIZE(preloaded));
	tcase_add_loop_test(all, library_is_the_last, 0, ARRAY_SIZE(lists));
	return test_run(suite);
}
