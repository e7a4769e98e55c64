/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * own_connects.c - does a program have code that connects by system calls of its own?
 *
 * A preloaded library doesn't see a connect() that is a system call instruction, which rustix (async-io, smol) compiles into programs, for
 * example. The compiler puts the number into its register, then the remaining arguments into theirs, and then the instruction. So we look
 * for the number and, a few bytes behind it, the instruction. Such code may never run, but nothing else looks like it: none of 2,000
 * programs and libraries of Debian had it, except static ones and the C library. We miss such code in the program's libraries, and in
 * functions that take the number as an argument.
 */
#include "config.h"

#include "convertize/run/launch.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(__LP64__)
static const uint8_t number[] = { 0xb8, 42, 0, 0, 0 }; /* mov $42, %eax */
static const uint8_t instruction[] = { 0x0f, 0x05 };   /* syscall */
#elif defined(__aarch64__)
static const uint8_t number[] = { 0x68, 0x19, 0x80 }; /* mov x8, #203, or w8, by the next byte */
static const uint8_t instruction[] = { 0x01, 0x00, 0x00, 0xd4 }; /* svc #0 */
#endif

#if (defined(__x86_64__) && defined(__LP64__)) || defined(__aarch64__)
#define PROGRAM_HEADERS_MAX 64
#define BLOCK_BYTES (256 * 1024)
#define GAP_BYTES 24 /* between the two, for the other arguments */

/* Is another value of the register, a call, a return or a jump in between? Then the two don't belong together. */
static bool is_interrupted(const uint8_t *gap, size_t len)
{
#if defined(__x86_64__)
	static const char others[] = { '\xb8', '\xe8', '\xe9', '\xeb', '\xc3' };

	for (size_t i = 0; i < len; i++)
		if (memchr(others, gap[i], sizeof(others)) && !(i && gap[i] == 0xb8 && gap[i - 1] == 0x41)) /* mov to %r8d */
			return true;
#else
	for (size_t i = 1; i + 3 < len; i += 4)
		if ((gap[i + 3] & 0x7c) == 0x14 || gap[i + 3] == 0x54 || gap[i + 3] == 0xd6) /* b, bl, b.cond, br, blr, ret */
			return true;
#endif
	return false;
}

static bool has_call(const uint8_t *code, size_t len)
{
	const uint8_t *end = code + len, *at = code;

	/* memchr(3) for a byte that is rare in code is several times faster than memmem(3) */
	while ((at = memchr(at + 1, number[1], (size_t)(end - at) - 1))) {
		const uint8_t *gap = at - 1 + sizeof(number), *call;

		if (gap > end || memcmp(at - 1, number, sizeof(number)) != 0)
			continue;
		call = memmem(gap, (size_t)(end - gap) < GAP_BYTES ? (size_t)(end - gap) : GAP_BYTES, instruction, sizeof(instruction));
		if (call && !is_interrupted(gap, (size_t)(call - gap)))
			return true;
	}
	return false;
}

/* Looks through a segment in blocks that overlap. */
static bool segment_has_call(int fd, const ElfW(Phdr) *segment, uint8_t *block)
{
	const size_t overlap = sizeof(number) + GAP_BYTES;
	uint64_t offset = segment->p_offset, left = segment->p_filesz;

	while (left > overlap) {
		const size_t wanted = left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
		const ssize_t got = pread(fd, block, wanted, (off_t)offset);

		if (got <= (ssize_t)overlap)
			return false;
		if (has_call(block, (size_t)got))
			return true;
		offset += (uint64_t)got - overlap;
		left -= (uint64_t)got - overlap;
	}
	return false;
}

bool own_connects(const char *path)
{
	ElfW(Phdr) segments[PROGRAM_HEADERS_MAX];
	ElfW(Ehdr) header;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	uint8_t *block = malloc(BLOCK_BYTES);
	ssize_t wanted = 0;
	bool found = false;

	if (fd >= 0 && block && pread(fd, &header, sizeof(header), 0) == sizeof(header) && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
	    header.e_phentsize == sizeof(segments[0]) && header.e_phnum <= PROGRAM_HEADERS_MAX)
		wanted = (ssize_t)(header.e_phnum * sizeof(segments[0]));
	if (wanted && pread(fd, segments, (size_t)wanted, (off_t)header.e_phoff) != wanted)
		wanted = 0;
	for (ssize_t i = 0; i < wanted / (ssize_t)sizeof(segments[0]) && !found; i++)
		found = segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_X && segment_has_call(fd, &segments[i], block);
	free(block);
	if (fd >= 0)
		close(fd);
	return found;
}

#else

bool own_connects(const char *path)
{
	return !path;
}

#endif
