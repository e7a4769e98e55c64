/* SPDX-License-Identifier: BSD-3-Clause */
/* program.h - the files that executing a command comes down to, and what they are */
#ifndef COMMON_PROGRAM_H
#define COMMON_PROGRAM_H

#include "common/elf.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* --- the #! line of a script: which program runs it --- */

#define SCRIPT_LINE_MAX 256 /* bytes that the kernel looks at: BINPRM_BUF_SIZE */

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
 * script_env_program() - the program that "env" starts, by the argument of a #! line
 * @argument: such as "python3", "-S python3 -u", "-S NAME=value python3"
 * @out: its name, to be searched for in PATH; false if there is none.
 */
bool script_env_program(const char *argument, char out[static SCRIPT_LINE_MAX]);

#define PROGRAM_FILES_MAX 12 /* the kernel follows 4 interpreters, and "env" doubles them */

enum program_kind {
	PROGRAM_ELF,
	PROGRAM_SCRIPT,
	PROGRAM_OTHER,      /* binfmt_misc has an interpreter for it, or the shell runs it */
	PROGRAM_DAMAGED,    /* an ELF file that can't be read to its end */
	PROGRAM_UNREADABLE, /* only its mode is known */
};

/* A file that is executed, or that is loaded to execute another. */
struct program_file {
	char path[PATH_MAX];
	enum program_kind kind;
	uid_t uid;
	gid_t gid;
	mode_t mode;
	bool nosuid;              /* its file system is mounted with nosuid */
	bool capabilities;        /* has file capabilities */
	bool interpreter_missing; /* the loader of an ELF file, or what the #! line names */
	struct elf_facts elf;     /* of PROGRAM_ELF */
	struct script script;     /* of PROGRAM_SCRIPT */
};

/* The command's own file, the interpreter of that if it is a script, and so on. */
struct program {
	struct program_file files[PROGRAM_FILES_MAX];
	size_t count;
};

/*
 * program_inspect() - find a command as execvp(3) does, and look at its files
 * Returns 0; -ENOENT: there is no such command; -EACCES: there is, and it can't be executed; or
 * another -errno. The files behind a missing interpreter are not looked for.
 */
int program_inspect(struct program *out, const char *command);

/*
 * program_inspect_exec() - the same for what exec(3) is given
 * @searched: @command is searched for in PATH, as by execvp(3). The program that env(1) starts is not looked for.
 */
int program_inspect_exec(struct program *out, const char *command, bool searched);

/* program_read_elf() - elf_inspect() of a file; or -errno if it can't be read */
int program_read_elf(struct elf_facts *out, const char *path);

#endif
