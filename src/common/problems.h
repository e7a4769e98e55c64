/* SPDX-License-Identifier: BSD-3-Clause */
/* problems.h - collects everything that is wrong with a configuration, each error in one line with its remedy */
#ifndef COMMON_PROBLEMS_H
#define COMMON_PROBLEMS_H

#include <stddef.h>

#define PROBLEM_MAX 512 /* bytes of a line, with the NUL */

struct problems {
	unsigned count;
	char first[PROBLEM_MAX];
	void (*print)(const char *line); /* called for each error; may be NULL */
};

/* Where a setting was written, and which option it is for. */
struct place {
	const char *file; /* NULL: the command line */
	unsigned line;    /* from 1; 0: the file as a whole */
	const char *name; /* the option's name without dashes; NULL: the text belongs to no option */
};

/*
 * problems_add() - count and print one more error, as "--NAME: TEXT" or "FILE:LINE: NAME: TEXT"
 * Foreign text that @format quotes must have gone through problems_quote().
 */
void problems_add(struct problems *problems, const struct place *place, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define PROBLEM_QUOTE_MAX 68

/* Writes @text to @buf in double quotes, printable and cut short if it is long, fit for a line of the log. Returns @buf. */
const char *problems_quote(const char *text, char buf[static PROBLEM_QUOTE_MAX]);

#endif
