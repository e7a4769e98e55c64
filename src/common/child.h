/* SPDX-License-Identifier: BSD-3-Clause */
/* child.h - runs another program and returns its output */
#ifndef COMMON_CHILD_H
#define COMMON_CHILD_H

#define CHILD_NO_TIMEOUT (-1)

struct child_output {
	int status;     /* of waitpid(2): 0 if it has ended well */
	char *text;     /* its standard output, and its standard error; the caller frees both */
	char *messages;
};

/*
 * child_run() - run a program, without a shell and with nothing on its standard input, until it ends
 * @words: its name, to be looked up in PATH, and its arguments, ending with NULL
 * @timeout_ms: kill it after so long; CHILD_NO_TIMEOUT: never
 * Returns 0 with *@out filled; or -errno, with nothing to free: -ENOENT if there is no such program, -ETIMEDOUT.
 */
int child_run(const char *const words[], int timeout_ms, struct child_output *out);

#endif
