/* SPDX-License-Identifier: BSD-3-Clause */
/* textfile.h - files of lines with comments: the configuration, keys, cookies */
#ifndef CONVERTD_TEXTFILE_H
#define CONVERTD_TEXTFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct place;
struct problems;

/* A larger file is refused; in bytes. */
#define TEXTFILE_MAX (4 * 1024 * 1024)

/*
 * Makes names without a leading slash relative to @directory from now on. It is called with the working
 * directory before the process changes to "/", so that the names in the settings keep their meaning.
 */
void textfile_start_from(const char *directory);

/* Writes the absolute path of the file @name to @path. Returns false if it is too long. */
bool textfile_path(const char *name, char path[static PATH_MAX]);

/* A walk through a text, line by line. textfile_first() starts it. */
struct textfile {
	char *pos, *end;
	unsigned line; /* the number of the line returned last, from 1 */
};

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

/* Starts a walk through @text, which has @len bytes and room for one more; the walk writes into it. */
void textfile_first(struct textfile *file, char *text, size_t len);

/*
 * textfile_next() - find the next line that isn't empty once its comment and outer blanks are removed
 * A comment starts with a # at the start of a line or behind a blank. A NUL byte ends the line's
 * text where it stands, and *has_nul is set. Returns the line, or NULL at the end of the text.
 */
char *textfile_next(struct textfile *file, bool *has_nul);

#endif
