/* SPDX-License-Identifier: BSD-3-Clause */
/* problems.h - reads the lines of a configuration, and reports all its errors, each in one line with its remedy */
#ifndef COMMON_PROBLEMS_H
#define COMMON_PROBLEMS_H

#include <stdbool.h>
#include <stddef.h>

#define PROBLEM_MAX 512 /* bytes of a line, with the NUL */

struct problems {
	unsigned count;
	char first[PROBLEM_MAX];
	void (*print)(const char *line); /* called for each error; may be NULL */
};

/* The place of a setting, and its option. */
struct place {
	const char *file; /* NULL: the command line */
	unsigned line;    /* from 1; 0: the file as a whole */
	const char *name; /* the option's name without dashes; NULL: the text belongs to no option */
};

/*
 * problems_add() - count and print one more error, as "--NAME: TEXT" or "FILE:LINE: NAME: TEXT"
 * The caller passes foreign text through problems_quote() first.
 */
void problems_add(struct problems *problems, const struct place *place, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define PROBLEM_QUOTE_MAX 68

/* Writes @text to @buf in double quotes, printable, shortened if it is long, and fit for a line of the log. Returns @buf. */
const char *problems_quote(const char *text, char buf[static PROBLEM_QUOTE_MAX]);

/* --- the name that the user may have meant by a mistyped word --- */

/* The name most similar to a word so far: { 0 } at first. */
struct similar {
	const char *name; /* NULL: none is similar */
	size_t wrong;     /* letters to add, remove, replace or swap with their neighbour; 0: @name is the word */
};

/* Makes @name the best so far if it is more similar to @word. A short name may have one wrong letter, a long one two. */
void similar_compare(struct similar *best, const char *word, const char *name);

/* --- the lines of a configuration file: without comments, split into names and values --- */

/* A walk through a text, line by line. lines_first() starts it. */
struct lines {
	char *pos, *end;
	unsigned number; /* of the line returned last, from 1 */
};

/* Starts a walk through @text, which has @len bytes and room for one more; the walk writes into it. */
void lines_first(struct lines *lines, char *text, size_t len);

/*
 * lines_next() - find the next line that isn't empty without its comment and outer blanks
 * A comment starts with a # at the start of a line or behind a blank. A NUL byte ends the line's text, and sets *has_nul. Returns the line,
 * or NULL at the end of the text.
 */
char *lines_next(struct lines *lines, bool *has_nul);

/* Splits "name value" or "name = value", and ends the name; returns the value, NULL if there is none. */
char *lines_split(char *line);

#endif
