/* SPDX-License-Identifier: BSD-3-Clause */
/* preload.h - does preloading a library reach a program? */
#ifndef COMMON_PRELOAD_H
#define COMMON_PRELOAD_H

#include "common/program.h"

#define PRELOAD_TEXT_MAX (PATH_MAX + 512)

enum preload_verdict {
	PRELOAD_WORKS,
	PRELOAD_NO_FORMAT,      /* whatever runs it, nothing is known against it */
	PRELOAD_UNREADABLE,     /* nobody knows */
	PRELOAD_GO_WITH_C,      /* Go code goes past the C library, C code does not */
	PRELOAD_GO,
	PRELOAD_STATIC,
	PRELOAD_DAMAGED,
	PRELOAD_FOREIGN,        /* for another machine than the library */
	PRELOAD_OTHER_LIBC,     /* it would not even start */
	PRELOAD_NO_INTERPRETER, /* nor would this */
	PRELOAD_SETUID,         /* ld.so(8), secure-execution mode */
	PRELOAD_SETGID,
	PRELOAD_CAPABILITIES,
	PRELOAD_VERDICT_COUNT
};

enum preload_level { PRELOAD_LEVEL_WORKS, PRELOAD_LEVEL_DOUBTFUL, PRELOAD_LEVEL_REFUSED };

/* Who executes it. */
struct preload_caller {
	uid_t uid; /* real ones */
	gid_t gid;
	bool no_new_privs; /* prctl(2): set-user-ID bits have no effect */
};

/* preload_file_verdict() - what a library made as @library says meets in a file; no I/O */
enum preload_verdict preload_file_verdict(const struct program_file *file,
					  const struct elf_facts *library,
					  const struct preload_caller *caller);

/*
 * preload_program_verdict() - the worst of a program's files, of equals the first
 * @index: set to the number of that file
 */
enum preload_verdict preload_program_verdict(const struct program *program,
					     const struct elf_facts *library,
					     const struct preload_caller *caller, size_t *index);

enum preload_level preload_level(enum preload_verdict verdict);

/* One word, for programs: "static", "setuid", … */
const char *preload_name(enum preload_verdict verdict);

/*
 * preload_describe() - what is so, as a sentence without its end
 * @index: of the file that the verdict is about. Returns @buf.
 */
const char *preload_describe(enum preload_verdict verdict, const struct program *program,
			     size_t index, const struct elf_facts *library,
			     char buf[static PRELOAD_TEXT_MAX]);

/* What to do about it, or NULL. */
const char *preload_remedy(enum preload_verdict verdict);

#endif
