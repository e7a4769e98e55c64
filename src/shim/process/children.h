/* SPDX-License-Identifier: BSD-3-Clause */
/* children.h - programs that are started and that the library doesn't reach: reported, or left to a supervisor */
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

/* Does a program with this environment have our library, as far as that says? After children_init(). */
bool children_have_library(char *const environment[]);

/*
 * children_init() - look at how the library was loaded; set children_are_watched, if there is a supervisor, a log or CONVERT_WARN
 * @supervisor: the value of SETTINGS_SUPERVISOR_VARIABLE, or NULL
 */
void children_init(const struct settings *settings, const char *supervisor);

/*
 * children_look() - is our library out of reach of this program?
 * Returns the path of the convertize that has to run it in its place, where that reaches it. Else NULL, and a line is logged if the
 * program's connections won't be converted. Nothing is allocated, and nothing left behind in the memory of a vfork() child's parent.
 */
const char *children_look(const struct child *child);

#endif
