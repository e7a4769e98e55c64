/* SPDX-License-Identifier: BSD-3-Clause */
/* program.h - the program that executes a command, and whether a preloaded library reaches it */
#ifndef COMMON_PROGRAM_H
#define COMMON_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* --- facts in an ELF file that matter for preloading: its machine, its loader, its C library, Go, Bun: elf.c --- */

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

/* --- the #! line of a script, which names its interpreter --- */

#define SCRIPT_LINE_MAX 256 /* bytes that the kernel reads: BINPRM_BUF_SIZE */

struct script {
	char interpreter[SCRIPT_LINE_MAX];
	char argument[SCRIPT_LINE_MAX]; /* the rest of the line, as one argument; may be empty */
};

/*
 * script_parse() - read a #! line as the kernel does (fs/binfmt_script.c)
 * @text, @len: the beginning of the file, SCRIPT_LINE_MAX bytes if it has them
 * Returns false if it isn't a script.
 */
bool script_parse(struct script *out, const char *text, size_t len);

/*
 * script_env_program() - find the program that "env" starts, from the argument of a #! line
 * @argument: such as "python3", "-S python3 -u", "-S NAME=value python3"
 * @out: its name, to be looked up in PATH. Returns false if there is none.
 */
bool script_env_program(const char *argument, char out[static SCRIPT_LINE_MAX]);

/* --- the files that execute a command, and their properties --- */

#define PROGRAM_FILES_MAX 12 /* the kernel follows 4 interpreters, and "env" doubles them */

enum program_kind {
	PROGRAM_ELF,
	PROGRAM_SCRIPT,
	PROGRAM_OTHER,      /* binfmt_misc has an interpreter for it, or the shell runs it */
	PROGRAM_DAMAGED,    /* an ELF file that is truncated or damaged */
	PROGRAM_UNREADABLE, /* only its mode is known */
};

/* A file that is executed, or loaded to execute another. */
struct program_file {
	char path[PATH_MAX];
	enum program_kind kind;
	uid_t uid;
	gid_t gid;
	mode_t mode;
	bool nosuid;              /* its file system is mounted with nosuid */
	bool capabilities;        /* has file capabilities */
	bool interpreter_missing; /* the loader of an ELF file, or the interpreter of the #! line */
	struct elf_facts elf;     /* of PROGRAM_ELF */
	struct script script;     /* of PROGRAM_SCRIPT */
};

/* The command's own file, its interpreter if it is a script, and so on. */
struct program {
	struct program_file files[PROGRAM_FILES_MAX];
	size_t count;
};

/*
 * program_inspect() - find a command as execvp(3) does, and inspect its files
 * Returns 0; -ENOENT: there is no such command; -EACCES: it can't be executed; or another -errno. Stops at a missing interpreter.
 */
int program_inspect(struct program *out, const char *command);

/*
 * program_inspect_exec() - the same for an argument of exec(3)
 * @searched: look @command up in PATH, like execvp(3). Doesn't look for the program that env(1) starts.
 */
int program_inspect_exec(struct program *out, const char *command, bool searched);

/* program_read_elf() - elf_inspect() of a file; -errno if it can't be read */
int program_read_elf(struct elf_facts *out, const char *path);

/* --- does preloading a library reach a program? preload.c --- */

#define PRELOAD_TEXT_MAX (PATH_MAX + 512)

enum preload_verdict {
	PRELOAD_WORKS,
	PRELOAD_NO_FORMAT,      /* it has no known format; its interpreter may take the library */
	PRELOAD_UNREADABLE,     /* it can't be read, so we know nothing */
	PRELOAD_GO_WITH_C,      /* its Go code makes system calls without the C library, its C code doesn't */
	PRELOAD_OWN_WAITS,      /* it waits for sockets without the C library, and does all else by it */
	PRELOAD_OWN_CONNECTS,   /* it has code that connects without the C library: own_connects() */
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
 * preload_program_verdict() - return the worst verdict on a program's files
 * @index: set to the number of that file: of equally bad ones the first, of files that all work the last
 */
enum preload_verdict preload_program_verdict(const struct program *program,
					     const struct elf_facts *library,
					     const struct preload_caller *caller, size_t *index);

enum preload_level preload_level(enum preload_verdict verdict);

/*
 * preload_leaves_to_supervisor() - does a supervisor (src/supervise) reach the program?
 * It sees system calls, however the program is linked. @program: the file that the verdict is about; for a foreign machine,
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

/* Returns the last component of a path of @len bytes. */
static inline const char *program_base_name(const char *path, size_t len)
{
	const char *slash = memrchr(path, '/', len);

	return slash ? slash + 1 : path;
}

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
