/* SPDX-License-Identifier: BSD-3-Clause */
/* child.h - runs another program for what it prints */
#ifndef COMMON_CHILD_H
#define COMMON_CHILD_H

#define CHILD_NO_TIMEOUT (-1)

struct child_output {
	int status;     /* of waitpid(2): 0 if it has ended well */
	char *text;     /* what it has printed, and what it has said on its standard error; both to be freed */
	char *messages;
};

/*
 * child_run() - run it, without a shell, with nothing on its standard input, until its end
 * @words: its name, which is looked for on PATH, and its arguments, ending with NULL
 * @timeout_ms: it is killed after so long; CHILD_NO_TIMEOUT: never
 * Returns 0 with *@out filled; or -errno, with nothing to free: -ENOENT where there is no such program, -ETIMEDOUT.
 */
int child_run(const char *const words[], int timeout_ms, struct child_output *out);

#endif
