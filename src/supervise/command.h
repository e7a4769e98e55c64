/* SPDX-License-Identifier: BSD-3-Clause */
/* command.h - the command that the supervisor runs for convertize */
#ifndef SUPERVISE_COMMAND_H
#define SUPERVISE_COMMAND_H

#include <stdbool.h>

struct supervise_command {
	const char *file; /* as for execvp(3), like @argv; a path, if @binary */
	bool binary;      /* the file isn't a script: if the kernel can't run it, no shell may read it */
	char *const *argv;
	const char *otherwise; /* the user's alternative if we can't supervise the program, as the end of a sentence */
};

#endif
