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

/* Bytes of a file, at most. */
#define TEXTFILE_MAX (4 * 1024 * 1024)

/* From now on names without a leading slash are below this directory: before the process leaves it. */
void textfile_start_from(const char *directory);

/* The whole path of a file with this name; returns false if it is too long. */
bool textfile_path(const char *name, char path[static PATH_MAX]);

/* A text that is being walked line by line. Start it with textfile_first(). */
struct textfile {
	char *pos, *end;
	unsigned line; /* the number of the line returned last, from 1 */
};

/*
 * textfile_read() - the whole of a regular file
 * @place: where it is named, for @problems
 * @owner: of a secret, which others must not read and which must be this user's or root's; NULL
 * for what is none
 * @len: set to its bytes
 * Returns what the caller frees, with a NUL behind it; or NULL after telling @problems.
 */
char *textfile_read(const char *path, const uid_t *owner, size_t *len, const struct place *place,
		    struct problems *problems);

/* @text: @len bytes and room for one more; the walk writes into it. */
void textfile_first(struct textfile *file, char *text, size_t len);

/*
 * textfile_next() - the next line that says anything, without its comment and outer blanks
 * A comment starts with a # at the start of a line or behind a blank. A NUL byte ends the line's
 * text where it stands, and *has_nul is set. Returns NULL at the end.
 */
char *textfile_next(struct textfile *file, bool *has_nul);

#endif
