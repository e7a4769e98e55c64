/* SPDX-License-Identifier: BSD-3-Clause */
/* test_preload.c - which programs a preloaded library reaches, and what is said of the others */
#include "config.h"

#include "common/program.h"

#include "run.h"

#include <check.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define LOADER "/lib64/ld-linux-x86-64.so.2"

static const struct elf_facts library = { .is64 = true, .machine = 62, .libc = ELF_LIBC_GLIBC };

/* Describes a dynamically linked program that differs as given. */
#define ELF(...) { .is64 = true, .machine = 62, .loader = LOADER, .libc = ELF_LIBC_GLIBC, \
		   .needs_libc = true, __VA_ARGS__ }

static const struct {
	struct program_file file;
	enum preload_verdict verdict;
} files[] = {
	{ { .elf = ELF(.go = false) }, PRELOAD_WORKS },
	{ { .elf = { .is64 = true, .machine = 62 } }, PRELOAD_STATIC },
	{ { .elf = { .is64 = true, .machine = 62, .go = true } }, PRELOAD_GO },
	{ { .elf = { .is64 = true, .machine = 62, .go = true, .loader = LOADER } }, PRELOAD_GO },
	{ { .elf = ELF(.go = true) }, PRELOAD_GO_WITH_C },
	{ { .elf = ELF(.own_waits = true) }, PRELOAD_OWN_WAITS },
	{ { .elf = { .is64 = true, .machine = 62, .own_waits = true } }, PRELOAD_STATIC },
	{ { .elf = { .machine = 62, .loader = "/lib/ld-linux.so.2" } }, PRELOAD_FOREIGN },
	{ { .elf = { .is64 = true, .machine = 183, .loader = LOADER } }, PRELOAD_FOREIGN },
	{ { .elf = { .is64 = true, .machine = 62, .loader = "/lib/ld-musl-x86_64.so.1",
		     .libc = ELF_LIBC_MUSL } }, PRELOAD_OTHER_LIBC },
	{ { .elf = { .is64 = true, .machine = 62, .loader = "/opt/loader",
		     .libc = ELF_LIBC_UNKNOWN } }, PRELOAD_WORKS },
	{ { .elf = ELF(.go = false), .interpreter_missing = true }, PRELOAD_NO_INTERPRETER },
	{ { .kind = PROGRAM_SCRIPT }, PRELOAD_WORKS },
	{ { .kind = PROGRAM_SCRIPT, .interpreter_missing = true }, PRELOAD_NO_INTERPRETER },
	{ { .kind = PROGRAM_DAMAGED }, PRELOAD_DAMAGED },
	{ { .kind = PROGRAM_OTHER }, PRELOAD_NO_FORMAT },
	{ { .kind = PROGRAM_UNREADABLE }, PRELOAD_UNREADABLE },
	/* secure execution */
	{ { .elf = ELF(.go = false), .mode = 04755 }, PRELOAD_SETUID },
	{ { .kind = PROGRAM_UNREADABLE, .mode = 04711 }, PRELOAD_SETUID },
	{ { .elf = ELF(.go = false), .mode = 04755, .uid = 1000 }, PRELOAD_WORKS },
	{ { .elf = ELF(.go = false), .mode = 04755, .nosuid = true }, PRELOAD_WORKS },
	{ { .kind = PROGRAM_SCRIPT, .mode = 04755 }, PRELOAD_WORKS },
	{ { .elf = ELF(.go = false), .mode = 02755 }, PRELOAD_SETGID },
	{ { .elf = ELF(.go = false), .mode = 02755, .gid = 1000 }, PRELOAD_WORKS },
	{ { .elf = ELF(.go = false), .mode = 02745 }, PRELOAD_WORKS },
	{ { .elf = ELF(.go = false), .capabilities = true }, PRELOAD_CAPABILITIES },
	{ { .elf = ELF(.go = false), .capabilities = true, .nosuid = true }, PRELOAD_WORKS },
};

static const struct preload_caller user = { .uid = 1000, .gid = 1000 }, root = { 0, 0, false },
				   locked = { .uid = 1000, .gid = 1000, .no_new_privs = true };

START_TEST(file_is_judged)
{
	ck_assert_int_eq(preload_file_verdict(&files[_i].file, &library, &user), files[_i].verdict);
}
END_TEST

START_TEST(callers_differ)
{
	struct program_file file = { .elf = ELF(.go = false), .mode = 06755, .uid = 33, .gid = 33 };
	struct program_file capable = { .elf = ELF(.go = false), .capabilities = true };

	ck_assert_int_eq(preload_file_verdict(&file, &library, &root), PRELOAD_SETUID);
	ck_assert_int_eq(preload_file_verdict(&file, &library, &locked), PRELOAD_WORKS);
	ck_assert_int_eq(preload_file_verdict(&capable, &library, &root), PRELOAD_WORKS);
	ck_assert_int_eq(preload_file_verdict(&capable, &library, &locked), PRELOAD_CAPABILITIES);
}
END_TEST

/* A script, env, and what that starts. */
START_TEST(worst_file_counts)
{
	struct program program = { .count = 3 };
	enum preload_verdict verdict;
	char text[PRELOAD_TEXT_MAX];
	size_t index;

	program.files[0] = (struct program_file){ .path = "./run", .kind = PROGRAM_SCRIPT };
	program.files[1] = (struct program_file){ .path = "/usr/bin/env", .elf = ELF(.go = false) };
	program.files[2] = (struct program_file){ .path = "/opt/prog", .elf = ELF(.go = true) };
	verdict = preload_program_verdict(&program, &library, &user, &index);
	ck_assert_int_eq(verdict, PRELOAD_GO_WITH_C);
	ck_assert_uint_eq(index, 2);
	program.files[1].elf.loader[0] = '\0';
	verdict = preload_program_verdict(&program, &library, &user, &index);
	ck_assert_int_eq(verdict, PRELOAD_STATIC);
	ck_assert_uint_eq(index, 1);
	program.files[2].elf.loader[0] = '\0';
	verdict = preload_program_verdict(&program, &library, &user, &index);
	ck_assert_int_eq(verdict, PRELOAD_STATIC);
	ck_assert_uint_eq(index, 1);
	ck_assert_str_eq(preload_describe(verdict, &program, index, &library, text),
			 "/usr/bin/env, which runs ./run, is statically linked: no library can be "
			 "preloaded into it");
}
END_TEST

START_TEST(details_are_told)
{
	static const struct {
		struct program_file file;
		const char *detail;
	} cases[] = {
		{ { .elf = { .is64 = true, .machine = 183, .loader = LOADER } },
		  " (AArch64, 64 bit; the library: x86-64, 64 bit)" },
		{ { .elf = { .is64 = true, .machine = 62, .loader = "/x", .libc = ELF_LIBC_MUSL } },
		  " (musl; the library: glibc)" },
		{ { .elf = ELF(.go = false), .interpreter_missing = true },
		  " " LOADER ", which isn't there" },
		{ { .kind = PROGRAM_SCRIPT, .script = { .interpreter = "/bin/perl6" },
		    .interpreter_missing = true }, " /bin/perl6, which isn't there" },
	};
	char text[PRELOAD_TEXT_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct program program = { .files = { cases[i].file }, .count = 1 };
		size_t index;
		enum preload_verdict verdict =
			preload_program_verdict(&program, &library, &user, &index);

		preload_describe(verdict, &program, index, &library, text);
		ck_assert_msg(strstr(text, cases[i].detail), "\"%s\" lacks \"%s\"", text,
			      cases[i].detail);
	}
}
END_TEST

/* The longest paths are cut in messages, and these still say what is wrong. */
START_TEST(long_paths)
{
	struct program program = { .count = 2 };
	enum preload_verdict verdict;
	char text[PRELOAD_TEXT_MAX];
	size_t index;

	for (size_t i = 0; i < 2; i++)
		memset(program.files[i].path, 'p', PATH_MAX - 1);
	program.files[0].kind = PROGRAM_SCRIPT;
	program.files[1].elf = (struct elf_facts){ .is64 = true, .machine = 62 };
	verdict = preload_program_verdict(&program, &library, &user, &index);
	preload_describe(verdict, &program, index, &library, text);
	ck_assert_ptr_nonnull(strstr(text, "statically linked"));
}
END_TEST

START_TEST(words_are_complete)
{
	enum preload_verdict verdict = (enum preload_verdict)_i;

	ck_assert_ptr_nonnull(preload_name(verdict));
	ck_assert_int_eq(preload_level(verdict) == PRELOAD_LEVEL_WORKS,
			 verdict == PRELOAD_WORKS || verdict == PRELOAD_NO_FORMAT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("preload");
	TCase *tcase = tcase_create("preload");

	tcase_add_loop_test(tcase, file_is_judged, 0, ARRAY_SIZE(files));
	tcase_add_test(tcase, callers_differ);
	tcase_add_test(tcase, worst_file_counts);
	tcase_add_test(tcase, details_are_told);
	tcase_add_test(tcase, long_paths);
	tcase_add_loop_test(tcase, words_are_complete, 0, PRELOAD_VERDICT_COUNT);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
