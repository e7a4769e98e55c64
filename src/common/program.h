/* SPDX-License-Identifier: BSD-3-Clause */
/* program.h - finds the files that execute a command, and their properties */
#ifndef COMMON_PROGRAM_H
#define COMMON_PROGRAM_H

#include "common/elf.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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

#endif
