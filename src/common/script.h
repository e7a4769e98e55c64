/* SPDX-License-Identifier: BSD-3-Clause */
/* script.h - the #! line of a script: which program runs it */
#ifndef COMMON_SCRIPT_H
#define COMMON_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
