/* SPDX-License-Identifier: BSD-3-Clause */
/* own_files.h - the files that convertize makes for units and sessions: it writes each whole or not at all, and removes only its own */
#ifndef CONVERTIZE_OWN_FILES_H
#define CONVERTIZE_OWN_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum own_result {
	OWN_DONE,
	OWN_NOTHING, /* nothing had to change */
	OWN_FAILED,  /* the function has printed the reason on standard error */
};

/*
 * own_units() - find the directory in which the administrator, or with @user the user, adds and changes units
 * Returns false, with the reason on standard error, if the user has no home directory.
 */
bool own_units(char path[static PATH_MAX], bool user);

/* Writes the path of a file beside a unit's drop-ins: "UNIT.d/NAME". Returns false if it is too long. */
bool own_path(char path[static PATH_MAX], const char *units, const char *unit, const char *name);

/*
 * own_write() - make the file's directories, write it under another name, and rename it
 * Fails, and changes nothing, if somebody else made the file that is there.
 */
enum own_result own_write(const char *path, const char *text, mode_t mode);

/* own_remove() - remove a file that is ours and, with @directory, its directory if that is empty then */
enum own_result own_remove(const char *path, bool directory);

/* own_read() - read a file that is ours; returns its text, which the caller frees, or NULL */
char *own_read(const char *path);

#endif
