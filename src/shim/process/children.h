/* SPDX-License-Identifier: BSD-3-Clause */
/* children.h - reports programs that are started and can't be converted */
#ifndef SHIM_CHILDREN_H
#define SHIM_CHILDREN_H

#include "client/settings.h"

#include <stdbool.h>

/* What exec(3) or posix_spawn(3) is about to start. */
struct child {
	int directory;    /* what @path is relative to, AT_FDCWD as a rule; or, without a path, the program itself */
	const char *path; /* NULL or empty: @directory is the program */
	bool searched;    /* @path is a name that is looked for in PATH */
	char *const *environment;
};

extern bool children_are_watched;

/* children_init() - sets children_are_watched, if there is a log or CONVERT_WARN */
void children_init(const struct settings *settings);

/*
 * children_look() - logs a line if our library won't be in this program, or won't convert there
 * Nothing is allocated, and nothing left behind in the memory of a vfork() child's parent.
 */
void children_look(const struct child *child);

#endif
