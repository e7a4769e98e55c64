/* SPDX-License-Identifier: BSD-3-Clause */
/* test_library.c - which files a path with $LIB stands for, and what of them LD_PRELOAD gets */
#include "config.h"

#include "convertize/run/launch.h"

#include "elf_image.h"
#include "run.h"
#include "tempdir.h"

#include <check.h>
#include <elf.h>
#include <ftw.h>
#include <sys/stat.h>

#define REST "/libconvert/libconvert.so"
#define HAS_LIB (sizeof(LIBCONVERT_LOADER_LIB) > 1)

static const struct elf_image_spec x86 = { .machine = EM_X86_64, .needed = { "libc.so.6" } },
				   intel32 = { .machine = EM_386, .is32 = true, .needed = { "libc.so.6" } },
				   arm_musl = { .machine = EM_AARCH64, .needed = { "libc.so" } };

static char root[PATH_MAX / 4], pattern[PATH_MAX / 2], problem[LIBRARY_PROBLEM_MAX];
static struct library library;
static struct program program;

/* Makes a library in a directory below the root, and the directories on the way to it. */
static void put(const char *directory, const struct elf_image_spec *spec)
{
	char path[PATH_MAX / 2];
	struct elf_image image;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s" REST, root, directory);
	for (char *slash = path + strlen(root); (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	elf_image_make(&image, spec);
	file = fopen(path, "wb");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(image.bytes, 1, image.len, file), image.len);
	ck_assert_int_eq(fclose(file), 0);
}

static int drop(const char *path, const struct stat *status, int type, struct FTW *at)
{
	(void)status;
	(void)type;
	(void)at;
	return remove(path);
}

static void setup(void)
{
	char made[PATH_MAX];

	tempdir_make(made);
	ck_assert_uint_lt(strlen(made), sizeof(root));
	strcpy(root, made);
	snprintf(pattern, sizeof(pattern), "%s/$LIB" REST, root);
}

static void teardown(void)
{
	nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS);
}

static const struct library_build *for_program(const struct elf_image_spec *spec)
{
	program.count = 1;
	program.files[0].kind = PROGRAM_ELF;
	program.files[0].elf = (struct elf_facts){ .machine = spec->machine, .is64 = !spec->is32 };
	return library_for(&library, &program);
}

START_TEST(each_machine_has_its_own)
{
	char expected[PATH_MAX];

	put(LIBCONVERT_LOADER_LIB, &x86);
	put("lib32", &intel32);
	put("lib/aarch64-linux-musl", &arm_musl);
	put("lib/x86_64-linux-other", &x86); /* one of a machine is enough */
	put("lib/elsewhere", &(struct elf_image_spec){ .machine = EM_S390, .big_endian = true });
	put("local", &(struct elf_image_spec){ .machine = EM_RISCV });
	ck_assert_msg(library_find(&library, pattern, problem), "%s", problem);
	ck_assert_uint_eq(library.count, 3);

	ck_assert_ptr_eq(for_program(&x86), &library.builds[0]);
	snprintf(expected, sizeof(expected), "%s/" LIBCONVERT_LOADER_LIB REST, root);
	ck_assert_str_eq(library.builds[0].path, expected);
	ck_assert_str_eq(library_preload(&library, &library.builds[0]), pattern);

	snprintf(expected, sizeof(expected), "%s/lib32" REST, root);
	ck_assert_str_eq(for_program(&intel32)->path, expected);
	ck_assert_str_eq(library_preload(&library, for_program(&intel32)), pattern);

	/* musl's loader knows no $LIB */
	snprintf(expected, sizeof(expected), "%s/lib/aarch64-linux-musl" REST, root);
	ck_assert_str_eq(library_preload(&library, for_program(&arm_musl)), expected);

	/* there is none for it: the verdict about the program is the caller's */
	ck_assert_ptr_eq(for_program(&(struct elf_image_spec){ .machine = EM_RISCV }), &library.builds[0]);
	program.files[0].kind = PROGRAM_OTHER;
	ck_assert_ptr_eq(library_for(&library, &program), &library.builds[0]);
}
END_TEST

START_TEST(the_file_that_runs_in_the_end_counts)
{
	put(LIBCONVERT_LOADER_LIB, &x86);
	put("lib32", &intel32);
	ck_assert(library_find(&library, pattern, problem));
	for_program(&intel32);
	program.files[1] = program.files[0];
	program.files[0].kind = PROGRAM_SCRIPT;
	program.count = 2;
	ck_assert_uint_eq(library_for(&library, &program)->elf.machine, EM_386);
}
END_TEST

START_TEST(a_file_is_for_one_machine)
{
	char path[PATH_MAX];

	put("lib", &intel32);
	put("lib64", &x86);
	snprintf(path, sizeof(path), "%s/lib" REST, root);
	ck_assert_msg(library_find(&library, path, problem), "%s", problem);
	ck_assert_uint_eq(library.count, 1);
	ck_assert_str_eq(library_preload(&library, for_program(&x86)), path);
}
END_TEST

static void refused(const char *path, const char *reason)
{
	ck_assert(!library_find(&library, path, problem));
	ck_assert_msg(strncmp(problem, path, strlen(path)) == 0 && strstr(problem, reason), "%s", problem);
}

START_TEST(what_is_wrong_is_said)
{
	char path[PATH_MAX];
	FILE *file;

	refused(pattern, "No such file");
	refused(pattern, LIBCONVERT_LOADER_LIB REST);
	put("lib/i386-linux-other", &intel32);
	refused(pattern, "install libconvert");
	refused("usr/$LIB" REST, "absolute");
	snprintf(path, sizeof(path), "%s/a b/$LIB" REST, root);
	refused(path, "blanks and colons");
	put(LIBCONVERT_LOADER_LIB, &x86);
	snprintf(path, sizeof(path), "%s/" LIBCONVERT_LOADER_LIB REST, root);
	file = fopen(path, "wb");
	ck_assert(file && fputs("text", file) >= 0 && fclose(file) == 0);
	ck_assert(!library_find(&library, pattern, problem));
	ck_assert_ptr_nonnull(strstr(problem, "not a whole ELF library"));
}
END_TEST

START_TEST(without_lib_its_own_path_is_asked_for)
{
	refused("/usr/$LIB" REST, "name the library's own path");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("library");
	TCase *all = tcase_create("all");

	suite_add_tcase(suite, all);
	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, a_file_is_for_one_machine);
	if (HAS_LIB) {
		tcase_add_test(all, each_machine_has_its_own);
		tcase_add_test(all, the_file_that_runs_in_the_end_counts);
		tcase_add_test(all, what_is_wrong_is_said);
	} else {
		tcase_add_test(all, without_lib_its_own_path_is_asked_for);
	}
	return test_run(suite);
}
