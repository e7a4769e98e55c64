/* SPDX-License-Identifier: BSD-3-Clause */
/* children.h - reports started programs that the library doesn't reach, or leaves them to a supervisor */
#ifndef SHIM_CHILDREN_H
#define SHIM_CHILDREN_H

#include "client/settings.h"

#include <stdbool.h>

/* A program that exec(3) or posix_spawn(3) is about to start. */
struct child {
	int directory;    /* @path is relative to it, usually AT_FDCWD; without a path, the program itself */
	const char *path; /* NULL or empty: @directory is the program */
	bool searched;    /* @path is a name to look up in PATH */
	char *const *environment;
};

extern bool children_are_watched;

/* Does this environment load our library into a program? After children_init(). */
bool children_have_library(char *const environment[]);

/*
 * children_init() - find out how the library was loaded; set children_are_watched if there is a supervisor, a log or CONVERT_WARN
 * @supervisor: the value of SETTINGS_SUPERVISOR_VARIABLE, or NULL
 */
void children_init(const struct settings *settings, const char *supervisor);

/*
 * children_look() - inspect a program before its start
 * If our library doesn't reach it and a supervisor does, returns the path of the convertize that has to run it instead. Else returns NULL,
 * and logs a line if the program's connections won't be converted. Allocates nothing, and leaves nothing behind in the memory of a vfork()
 * child's parent.
 */
const char *children_look(const struct child *child);

#endif
