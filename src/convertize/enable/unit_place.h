/* SPDX-License-Identifier: BSD-3-Clause */
/* unit_place.h - where units' drop-ins are: written as a whole or not at all, and removed only if they are ours */
#ifndef CONVERTIZE_UNIT_PLACE_H
#define CONVERTIZE_UNIT_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum place_result {
	PLACE_DONE,
	PLACE_NOTHING, /* it was so before */
	PLACE_FAILED,  /* the reason was said on standard error */
};

/*
 * place_units() - the directory of the units that an administrator, or a user, adds and changes
 * Returns false, with the reason on standard error, if the user has no home directory.
 */
bool place_units(char path[static PATH_MAX], bool user);

/* The path of a file beside a unit's drop-ins: "UNIT.d/NAME". Returns false if it is too long. */
bool place_of(char path[static PATH_MAX], const char *units, const char *unit, const char *name);

/*
 * place_write() - write a file under another name, and then rename it; its directories are made
 * A file that is there and isn't ours is left as it is: that is a failure.
 */
enum place_result place_write(const char *path, const char *text, mode_t mode);

/* place_remove() - remove a file that is ours, and its directory if that is empty then and @directory is set */
enum place_result place_remove(const char *path, bool directory);

/* place_read() - the text of a file that is ours, to be freed; or NULL */
char *place_read(const char *path);

#endif
