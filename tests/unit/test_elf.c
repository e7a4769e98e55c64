/* SPDX-License-Identifier: BSD-3-Clause */
/* test_elf.c - ELF files of every kind, cut off everywhere, damaged everywhere */
#include "config.h"

#include "common/program.h"

#include "elf_image.h"
#include "run.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define READS_MAX 2000 /* for files of 1 KB */

#define GLIBC_LOADER "/lib64/ld-linux-x86-64.so.2"

static int inspect(const struct elf_image *image, size_t len, struct elf_facts *facts)
{
	struct elf_image_source source = { image->bytes, len, 0 };
	int ret = elf_inspect(facts, elf_image_read, &source);

	ck_assert_msg(source.reads <= READS_MAX, "%u reads", source.reads);
	return ret;
}

static const struct {
	struct elf_image_spec spec;
	enum elf_libc libc;
	bool needs_libc, go;
} kinds[] = {
	{ { .machine = 62, .loader = GLIBC_LOADER, .needed = { "libm.so.6", "libc.so.6" } },
	  ELF_LIBC_GLIBC, true, false },
	{ { .is32 = true, .machine = 3, .loader = "/lib/ld-linux.so.2", .needed = { "libc.so.6" } },
	  ELF_LIBC_GLIBC, true, false },
	{ { .big_endian = true, .machine = 22, .loader = "/lib/ld64.so.1",
	    .needed = { "libc.so.6" } },
	  ELF_LIBC_GLIBC, true, false },
	{ { .is32 = true, .big_endian = true, .machine = 8, .loader = "/lib/ld.so.1",
	    .needed = { "libc.so.6" } },
	  ELF_LIBC_GLIBC, true, false },
	{ { .machine = 183, .loader = "/lib/ld-musl-aarch64.so.1",
	    .needed = { "libc.musl-aarch64.so.1"} },
	  ELF_LIBC_MUSL, true, false },
	{ { .machine = 62, .loader = "/lib/ld-musl-x86_64.so.1", .needed = { "libc.so" } },
	  ELF_LIBC_MUSL, true, false },
	{ { .machine = 183, .loader = "/system/bin/linker64", .needed = { "libc.so" } },
	  ELF_LIBC_UNKNOWN, true, false },
	/* libraries */
	{ { .machine = 62, .needed = { "libc.so.6" } }, ELF_LIBC_GLIBC, true, false },
	{ { .machine = 62, .needed = { "libc.musl-x86_64.so.1" } }, ELF_LIBC_MUSL, true, false },
	{ { .machine = 62, .needed = { "libdl.so.2" } }, ELF_LIBC_NONE, false, false },
	{ { .machine = 62, .loader = GLIBC_LOADER, .needed = { "libasan.so.8", "libc.so.6" } },
	  ELF_LIBC_GLIBC, true, false },
	{ { .machine = 62, .loader = GLIBC_LOADER, .needed = { "libc.so.6", "libasan.so.8" } },
	  ELF_LIBC_GLIBC, true, false },
	/* static ones */
	{ { .machine = 62 }, ELF_LIBC_NONE, false, false },
	{ { .machine = 62, .go_note = true }, ELF_LIBC_NONE, false, true },
	{ { .machine = 62, .go_section = true }, ELF_LIBC_NONE, false, true },
	/* Go with C, and with a loader alone */
	{ { .machine = 62, .go_note = true, .loader = GLIBC_LOADER, .needed = { "libc.so.6" } },
	  ELF_LIBC_GLIBC, true, true },
	{ { .machine = 62, .go_note = true, .loader = GLIBC_LOADER }, ELF_LIBC_GLIBC, false, true },
	{ { .is32 = true, .big_endian = true, .machine = 8, .go_section = true },
	  ELF_LIBC_NONE, false, true },
	/* Bun */
	{ { .machine = 62, .bun_section = true, .loader = GLIBC_LOADER, .needed = { "libc.so.6" } },
	  ELF_LIBC_GLIBC, true, false },
};

static bool is_needed(const struct elf_image_spec *spec, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(spec->needed) && spec->needed[i]; i++)
		if (strcmp(spec->needed[i], name) == 0)
			return true;
	return false;
}

START_TEST(kind_is_told)
{
	struct elf_image image;
	struct elf_facts facts;

	elf_image_make(&image, &kinds[_i].spec);
	ck_assert_int_eq(inspect(&image, image.len, &facts), 0);
	ck_assert_int_eq(facts.is64, !kinds[_i].spec.is32);
	ck_assert_int_eq(facts.big_endian, kinds[_i].spec.big_endian);
	ck_assert_uint_eq(facts.machine, kinds[_i].spec.machine);
	ck_assert_str_eq(facts.loader, kinds[_i].spec.loader ? kinds[_i].spec.loader : "");
	ck_assert_int_eq(facts.libc, kinds[_i].libc);
	ck_assert_int_eq(facts.needs_libc, kinds[_i].needs_libc);
	ck_assert_int_eq(facts.go, kinds[_i].go);
	ck_assert_int_eq(facts.own_waits, kinds[_i].spec.bun_section);
	ck_assert_int_eq(facts.needs_asan, is_needed(&kinds[_i].spec, "libasan.so.8"));
}
END_TEST

/* A file without its last bytes is refused, or recognized with less known of it. */
START_TEST(every_truncation)
{
	struct elf_image image;
	struct elf_facts facts;

	elf_image_make(&image, &kinds[_i].spec);
	for (size_t len = 0; len < image.len; len++) {
		size_t headers = elf_image_segment(&image, ELF_IMAGE_SEGMENTS);
		int ret = inspect(&image, len, &facts);

		if (len < 4)
			ck_assert_int_eq(ret, -ENOEXEC);
		else if (len < headers)
			ck_assert_int_eq(ret, -EBADMSG);
		else
			ck_assert(ret == 0 || ret == -EBADMSG);
		if (ret < 0)
			continue;
		ck_assert(!facts.go || kinds[_i].go);
		ck_assert(!facts.needs_libc || kinds[_i].needs_libc);
		ck_assert_str_eq(facts.loader, kinds[_i].spec.loader ? kinds[_i].spec.loader : "");
	}
}
END_TEST

START_TEST(every_byte_damaged)
{
	static const uint8_t values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
	char text[ELF_MACHINE_STRLEN];
	struct elf_image image, sound;
	struct elf_facts facts;

	elf_image_make(&sound, &kinds[_i].spec);
	for (size_t at = 0; at < sound.len; at++)
		for (size_t n = 0; n < ARRAY_SIZE(values); n++) {
			int ret;

			image = sound;
			image.bytes[at] = values[n];
			ret = inspect(&image, image.len, &facts);
			ck_assert(ret == 0 || ret == -ENOEXEC || ret == -EBADMSG);
			if (ret < 0)
				continue;
			ck_assert_uint_lt(strnlen(facts.loader, ELF_LOADER_MAX), ELF_LOADER_MAX);
			ck_assert_int_lt(facts.libc, ELF_LIBC_COUNT);
			ck_assert_uint_lt(strlen(elf_machine_format(&facts, text)),
					  ELF_MACHINE_STRLEN - 1);
		}
}
END_TEST

static const char *const others[] = { "", "\x7f", "\x7f" "EL", "#!/bin/sh\n", "\x7f" "elf",
				      "MZ\x90" };

START_TEST(other_file_is_none)
{
	struct elf_image_source source = { (const uint8_t *)others[_i], strlen(others[_i]), 0 };
	struct elf_facts facts;

	ck_assert_int_eq(elf_inspect(&facts, elf_image_read, &source), -ENOEXEC);
}
END_TEST

static void assert_damaged(struct elf_image *image)
{
	struct elf_facts facts;

	ck_assert_int_eq(inspect(image, image->len, &facts), -EBADMSG);
	elf_image_make(image, &kinds[0].spec);
}

/* What no kernel would execute. */
START_TEST(damaged_header_is_refused)
{
	struct elf_image image;

	elf_image_make(&image, &kinds[0].spec);
	image.bytes[4] = 3; /* EI_CLASS */
	assert_damaged(&image);
	image.bytes[5] = 0; /* EI_DATA */
	assert_damaged(&image);
	elf_image_put(&image, 56, 2, 0); /* e_phnum */
	assert_damaged(&image);
	elf_image_put(&image, 56, 2, 65536 / 56 + 1);
	assert_damaged(&image);
	elf_image_put(&image, 54, 2, 32); /* e_phentsize */
	assert_damaged(&image);
	elf_image_put(&image, 32, 8, UINT64_MAX); /* e_phoff */
	assert_damaged(&image);
	elf_image_put(&image, 32, 8, UINT64_MAX - 55);
	assert_damaged(&image);
}
END_TEST

static const struct {
	uint64_t offset, size;
} loaders[] = {
	{ 288, 0 },	       { 288, 1 },	       { 288, ELF_LOADER_MAX + 1 },
	{ 288, UINT64_MAX },   { UINT64_MAX, 8 },      { UINT64_MAX - 7, 8 },
	{ 288, 27 /* no NUL */ }, { 287, 2 /* empty */ }, { ELF_IMAGE_MAX, 2 },
};

START_TEST(damaged_loader_is_refused)
{
	struct elf_image image;

	elf_image_make(&image, &kinds[0].spec);
	elf_image_put_segment(&image, ELF_IMAGE_INTERP, 3, loaders[_i].offset, loaders[_i].size);
	assert_damaged(&image);
}
END_TEST

/* The loader complains about these, if anyone does. */
static const struct {
	size_t segment;
	uint32_t type;
	uint64_t offset, size;
} segments[] = {
	{ ELF_IMAGE_NOTE, 4, UINT64_MAX - 8, 64 }, { ELF_IMAGE_NOTE, 4, 328, UINT64_MAX },
	{ ELF_IMAGE_NOTE, 4, 328, 3 },		   { ELF_IMAGE_DYNAMIC, 2, UINT64_MAX, 64 },
	{ ELF_IMAGE_DYNAMIC, 2, 400, UINT64_MAX }, { ELF_IMAGE_LOAD, 0, 0, 0 },
	{ ELF_IMAGE_LOAD, 1, UINT64_MAX, UINT64_MAX },
};

START_TEST(damage_elsewhere_is_passed_over)
{
	struct elf_facts facts;
	struct elf_image image;

	elf_image_make(&image, &kinds[0].spec);
	elf_image_put_segment(&image, segments[_i].segment, segments[_i].type, segments[_i].offset,
			      segments[_i].size);
	ck_assert_int_eq(inspect(&image, image.len, &facts), 0);
	ck_assert_int_eq(facts.libc, ELF_LIBC_GLIBC);
	ck_assert(!facts.go);
}
END_TEST

static bool read_file(void *source, uint64_t offset, void *out, size_t len)
{
	FILE *file = source;

	return fseek(file, (long)offset, SEEK_SET) == 0 && fread(out, len, 1, file) == 1;
}

START_TEST(this_program)
{
	FILE *file = fopen("/proc/self/exe", "rb");
	struct elf_facts facts;

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(elf_inspect(&facts, read_file, file), 0);
	fclose(file);
	ck_assert_int_eq(facts.is64, sizeof(void *) == 8);
	ck_assert(!facts.go);
	ck_assert(elf_same_machine(&facts, &facts));
}
END_TEST

START_TEST(machines)
{
	struct elf_facts amd64 = { .is64 = true, .machine = 62 }, x32 = { .machine = 62 };
	struct elf_facts mips = { .big_endian = true, .machine = 8 }, mipsel = { .machine = 8 };
	struct elf_facts strange = { .is64 = true, .machine = 65535 };
	char text[ELF_MACHINE_STRLEN];

	ck_assert(!elf_same_machine(&amd64, &x32));
	ck_assert(!elf_same_machine(&mips, &mipsel));
	ck_assert(!elf_same_machine(&amd64, &strange));
	ck_assert_str_eq(elf_machine_format(&amd64, text), "x86-64, 64 bit");
	ck_assert_str_eq(elf_machine_format(&mips, text), "MIPS, 32 bit, big-endian");
	ck_assert_str_eq(elf_machine_format(&strange, text), "machine 65535, 64 bit");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("elf");
	TCase *tcase = tcase_create("elf");

	tcase_add_loop_test(tcase, kind_is_told, 0, ARRAY_SIZE(kinds));
	tcase_add_loop_test(tcase, every_truncation, 0, ARRAY_SIZE(kinds));
	tcase_add_loop_test(tcase, every_byte_damaged, 0, ARRAY_SIZE(kinds));
	tcase_add_loop_test(tcase, other_file_is_none, 0, ARRAY_SIZE(others));
	tcase_add_test(tcase, damaged_header_is_refused);
	tcase_add_loop_test(tcase, damaged_loader_is_refused, 0, ARRAY_SIZE(loaders));
	tcase_add_loop_test(tcase, damage_elsewhere_is_passed_over, 0, ARRAY_SIZE(segments));
	tcase_add_test(tcase, this_program);
	tcase_add_test(tcase, machines);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
