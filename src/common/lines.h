/* SPDX-License-Identifier: BSD-3-Clause */
/* lines.h - the lines of a configuration file: comments taken off, names and values apart */
#ifndef COMMON_LINES_H
#define COMMON_LINES_H

#include <stdbool.h>
#include <stddef.h>

/* A walk through a text, line by line. lines_first() starts it. */
struct lines {
	char *pos, *end;
	unsigned number; /* of the line returned last, from 1 */
};

/* Starts a walk through @text, which has @len bytes and room for one more; the walk writes into it. */
void lines_first(struct lines *lines, char *text, size_t len);

/*
 * lines_next() - find the next line that isn't empty once its comment and outer blanks are removed
 * A comment starts with a # at the start of a line or behind a blank. A NUL byte ends the line's
 * text where it stands, and *has_nul is set. Returns the line, or NULL at the end of the text.
 */
char *lines_next(struct lines *lines, bool *has_nul);

/* Splits "name value" or "name = value", and ends the name; returns the value, NULL if there is none. */
char *lines_split(char *line);

#endif
