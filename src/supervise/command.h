/* SPDX-License-Identifier: BSD-3-Clause */
/* command.h - what convertize has the supervisor run */
#ifndef SUPERVISE_COMMAND_H
#define SUPERVISE_COMMAND_H

#include <stdbool.h>

struct supervise_command {
	const char *file; /* as for execvp(3), as @argv; a path, if @binary */
	bool binary;      /* it is no script, so that no shell may read it where the kernel can't run it */
	char *const *argv;
	const char *otherwise; /* what the user can do where it can't be supervised, as the end of a sentence */
};

#endif
