/* SPDX-License-Identifier: BSD-3-Clause */
/* children.h - programs that are started and can't be converted are told of */
#ifndef SHIM_CHILDREN_H
#define SHIM_CHILDREN_H

#include "client/settings.h"

#include <stdbool.h>

/* What exec(3) or posix_spawn(3) is about to start. */
struct child {
	int directory;    /* that @path is relative to, AT_FDCWD as a rule; or the program itself */
	const char *path; /* NULL or empty: @directory is the program */
	bool searched;    /* for in PATH */
	char *const *environment;
};

extern bool children_are_watched;

/* Begins to look, if somebody is to be told. */
void children_init(const struct settings *settings);

/*
 * children_look() - one line if the library won't be in this program, or won't convert there
 * Nothing is allocated, and nothing left behind in the memory of a vfork() child's parent.
 */
void children_look(const struct child *child);

#endif
