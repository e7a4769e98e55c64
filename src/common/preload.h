/* SPDX-License-Identifier: BSD-3-Clause */
/* preload.h - does preloading a library reach a program? */
#ifndef COMMON_PRELOAD_H
#define COMMON_PRELOAD_H

#include "common/program.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define PRELOAD_TEXT_MAX (PATH_MAX + 512)

enum preload_verdict {
	PRELOAD_WORKS,
	PRELOAD_NO_FORMAT,      /* it has no known format; its interpreter may take the library */
	PRELOAD_UNREADABLE,     /* it can't be read, so we know nothing */
	PRELOAD_GO_WITH_C,      /* its Go code makes system calls without the C library, its C code doesn't */
	PRELOAD_OWN_WAITS,      /* it waits for sockets without the C library, and does all else by it */
	PRELOAD_GO,
	PRELOAD_STATIC,
	PRELOAD_DAMAGED,
	PRELOAD_FOREIGN,        /* for another machine than the library */
	PRELOAD_OTHER_LIBC,     /* it has another C library than the library, and wouldn't start with it */
	PRELOAD_NO_INTERPRETER, /* its interpreter is missing: it doesn't start at all */
	PRELOAD_SETUID,         /* ld.so(8), secure-execution mode */
	PRELOAD_SETGID,
	PRELOAD_CAPABILITIES,
	PRELOAD_VERDICT_COUNT
};

enum preload_level { PRELOAD_LEVEL_WORKS, PRELOAD_LEVEL_DOUBTFUL, PRELOAD_LEVEL_REFUSED };

/* The process that executes the program. */
struct preload_caller {
	uid_t uid; /* the real ones */
	gid_t gid;
	bool no_new_privs; /* prctl(2): set-user-ID bits have no effect */
};

/* preload_file_verdict() - would a library with these facts be loaded into the program of one file? Does no I/O. */
enum preload_verdict preload_file_verdict(const struct program_file *file,
					  const struct elf_facts *library,
					  const struct preload_caller *caller);

/*
 * preload_program_verdict() - return the worst verdict on a program's files, of equals the first
 * @index: set to the number of that file
 */
enum preload_verdict preload_program_verdict(const struct program *program,
					     const struct elf_facts *library,
					     const struct preload_caller *caller, size_t *index);

enum preload_level preload_level(enum preload_verdict verdict);

/*
 * preload_leaves_to_supervisor() - does a supervisor (src/supervise) reach the program?
 * It sees the program's system calls, whatever that is linked with. @program: the file that the verdict is about; for a foreign machine,
 * this kernel must run that machine's programs, too.
 */
bool preload_leaves_to_supervisor(enum preload_verdict verdict, const struct elf_facts *program);

/* Returns the verdict as one word for scripts: "static", "setuid", … */
const char *preload_name(enum preload_verdict verdict);

/*
 * preload_describe() - write the verdict as a sentence, without its full stop
 * @index: of the file that the verdict is about. Returns @buf.
 */
const char *preload_describe(enum preload_verdict verdict, const struct program *program,
			     size_t index, const struct elf_facts *library,
			     char buf[static PRELOAD_TEXT_MAX]);

/* Returns the remedy, or NULL. */
const char *preload_remedy(enum preload_verdict verdict);

/* --- preload libraries that redirect a program's connections to proxies, by their file names --- */

#define PROXIES_PROXYCHAINS "libproxychains"
#define PROXIES_TORSOCKS "libtorsocks"
#define PROXIES_TSOCKS "libtsocks"
#define PROXIES_DANTE "libdsocks"

/* @name: of the file, without its directories; a version may follow */
static inline bool proxies_is_library(const char *name)
{
	static const char *const libraries[] = { PROXIES_PROXYCHAINS, PROXIES_TORSOCKS, PROXIES_TSOCKS,
						 PROXIES_DANTE };

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (strncmp(name, libraries[i], strlen(libraries[i])) == 0)
			return true;
	return false;
}

#endif
