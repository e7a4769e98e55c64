/* SPDX-License-Identifier: BSD-3-Clause */
/* textfile.h - reads whole files: the configuration, keys, cookies */
#ifndef DAEMON_TEXTFILE_H
#define DAEMON_TEXTFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct place;
struct problems;

/* A larger file is refused; in bytes. */
#define TEXTFILE_MAX (4 * 1024 * 1024)

/*
 * Makes names without a leading slash relative to @directory from now on. Call it with the working directory before
 * the process changes to "/", so that the names in the settings keep their meaning.
 */
void textfile_start_from(const char *directory);

/* Writes the absolute path of the file @name to @path. Returns false if it is too long. */
bool textfile_path(const char *name, char path[static PATH_MAX]);

/*
 * textfile_read() - read the whole of a regular file
 * @path: its name; a relative one is below the directory of textfile_start_from()
 * @owner: for a secret: the user who may own the file, besides root, and nobody outside its group may read it;
 * NULL for a file that isn't secret
 * @len: set to the number of bytes that were read
 * @place: where the settings name the file, for messages
 * Returns the text, which the caller frees, with a NUL behind it; or NULL after adding the error to @problems.
 */
char *textfile_read(const char *path, const uid_t *owner, size_t *len, const struct place *place,
		    struct problems *problems);

#endif
