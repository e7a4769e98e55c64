/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_elf.c - any bytes as the file of a program that convertize is to run
 *
 * `make check` runs it over corpus/elf and mutations of it (driver.c). To search
 * for new inputs, with clang, from the top of a tree that is configured:
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I. -Isrc \
 *         -o fuzz_elf tests/fuzz/fuzz_elf.c src/common/elf.c src/common/program.c
 *   mkdir -p new && ./fuzz_elf -max_len=1100 new tests/fuzz/corpus/elf
 *
 * The properties: it answers after at most READS_MAX reads, its texts have an end, it gives the
 * same answer a second time, and it says nothing that the bytes don't.
 */
#include "config.h"

#include "common/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READS_MAX 20000

/* In place of assert(), which NDEBUG turns off. */
#define REQUIRE(condition) ((condition) ? (void)0 : require_failed(#condition, __LINE__))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct source {
	const uint8_t *data;
	size_t size;
	unsigned int reads;
};

static _Noreturn void require_failed(const char *condition, int line)
{
	fprintf(stderr, "fuzz_elf.c:%d: does not hold: %s\n", line, condition);
	abort();
}

static bool source_read(void *arg, uint64_t offset, void *out, size_t len)
{
	struct source *source = arg;

	REQUIRE(++source->reads <= READS_MAX);
	if (offset > source->size || len > source->size - offset)
		return false;
	memcpy(out, source->data + offset, len);
	return true;
}

static bool contains(const uint8_t *data, size_t size, const char *text)
{
	return memmem(data, size, text, strlen(text)) != NULL;
}

static void elf_check(const uint8_t *data, size_t size)
{
	struct source source = { data, size, 0 };
	char text[ELF_MACHINE_STRLEN];
	struct elf_facts facts, again;
	int ret = elf_inspect(&facts, source_read, &source);

	REQUIRE(ret == 0 || ret == -ENOEXEC || ret == -EBADMSG);
	REQUIRE((ret == -ENOEXEC) == (size < 4 || memcmp(data, "\x7f" "ELF", 4) != 0));
	source.reads = 0;
	REQUIRE(elf_inspect(&again, source_read, &source) == ret);
	if (ret < 0)
		return;
	REQUIRE(memcmp(&facts, &again, sizeof(facts)) == 0);
	REQUIRE(memchr(facts.loader, 0, sizeof(facts.loader)));
	REQUIRE(contains(data, size, facts.loader));
	REQUIRE((unsigned int)facts.libc < ELF_LIBC_COUNT);
	REQUIRE(facts.libc == ELF_LIBC_NONE || facts.loader[0] || contains(data, size, "libc."));
	REQUIRE(facts.libc != ELF_LIBC_NONE || !facts.loader[0]);
	REQUIRE(!facts.needs_libc || contains(data, size, "libc."));
	REQUIRE(!facts.go || contains(data, size, "Go") || contains(data, size, ".go.buildinfo"));
	REQUIRE(elf_same_machine(&facts, &again));
	REQUIRE(strlen(elf_machine_format(&facts, text)) < sizeof(text) - 1);
}

static void script_check(const uint8_t *data, size_t size)
{
	char program[SCRIPT_LINE_MAX];
	struct script script;

	if (!script_parse(&script, (const char *)data, size))
		return;
	REQUIRE(size > 2 && data[0] == '#' && data[1] == '!');
	REQUIRE(script.interpreter[0] && !strpbrk(script.interpreter, " \t\n"));
	REQUIRE(contains(data, size, script.interpreter) && contains(data, size, script.argument));
	REQUIRE(!strchr(script.argument, '\n') && script.argument[0] != ' ' &&
		script.argument[0] != '\t');
	if (script_env_program(script.argument, program))
		REQUIRE(program[0] && contains(data, size, program));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	elf_check(data, size);
	script_check(data, size);
	return 0;
}
