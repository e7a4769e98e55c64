/* SPDX-License-Identifier: BSD-3-Clause */
/* elf.h - what an ELF file says about preloading: its machine, its loader, its C library, Go, Bun */
#ifndef COMMON_ELF_H
#define COMMON_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_LOADER_MAX 4096 /* bytes, NUL included: PATH_MAX, as in the kernel */
#define ELF_MACHINE_STRLEN 48

/* The C library that a file is linked against, as far as names tell. */
enum elf_libc { ELF_LIBC_NONE, ELF_LIBC_GLIBC, ELF_LIBC_MUSL, ELF_LIBC_UNKNOWN, ELF_LIBC_COUNT };

struct elf_facts {
	bool is64, big_endian;
	uint16_t machine;            /* EM_… of elf.h */
	char loader[ELF_LOADER_MAX]; /* PT_INTERP; empty: static, or a library */
	enum elf_libc libc;          /* by the loader, else by DT_NEEDED; NONE: neither names one */
	bool needs_libc;             /* a C library is among DT_NEEDED */
	bool needs_asan;             /* AddressSanitizer's run-time library is among them */
	bool go;                     /* compiled by Go */
	bool own_waits;              /* Bun, which waits for sockets by system calls of its own */
};

/*
 * The source of the bytes: copies exactly @len bytes at @offset to @out, or returns false if they aren't all there. Any offset and length
 * are allowed.
 */
typedef bool elf_read(void *source, uint64_t offset, void *out, size_t len);

/*
 * elf_inspect() - read the facts about an ELF file, without trust in its contents
 * Returns 0 with all of @out set; -ENOEXEC: not an ELF file; -EBADMSG: truncated, or so damaged that no kernel would execute it; don't use
 * @out then.
 */
int elf_inspect(struct elf_facts *out, elf_read *read, void *source);

/* Can code of one be loaded into the other's process? */
bool elf_same_machine(const struct elf_facts *a, const struct elf_facts *b);

/* Writes the machine, such as "x86-64, 64 bit". Returns @buf. */
const char *elf_machine_format(const struct elf_facts *facts, char buf[static ELF_MACHINE_STRLEN]);

/* Returns the name: "glibc", "musl", … */
const char *elf_libc_name(enum elf_libc libc);

#endif
