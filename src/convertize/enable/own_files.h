/* SPDX-License-Identifier: BSD-3-Clause */
/* own_files.h - where units' drop-ins are: written as a whole or not at all, and removed only if they are ours */
#ifndef CONVERTIZE_OWN_FILES_H
#define CONVERTIZE_OWN_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum own_result {
	OWN_DONE,
	OWN_NOTHING, /* it was so before */
	OWN_FAILED,  /* the reason was said on standard error */
};

/*
 * own_units() - the directory of the units that an administrator, or a user, adds and changes
 * Returns false, with the reason on standard error, if the user has no home directory.
 */
bool own_units(char path[static PATH_MAX], bool user);

/* The path of a file beside a unit's drop-ins: "UNIT.d/NAME". Returns false if it is too long. */
bool own_path(char path[static PATH_MAX], const char *units, const char *unit, const char *name);

/*
 * own_write() - write a file under another name, and then rename it; its directories are made
 * A file that is there and isn't ours is left as it is: that is a failure.
 */
enum own_result own_write(const char *path, const char *text, mode_t mode);

/* own_remove() - remove a file that is ours, and its directory if that is empty then and @directory is set */
enum own_result own_remove(const char *path, bool directory);

/* own_read() - the text of a file that is ours, to be freed; or NULL */
char *own_read(const char *path);

#endif
