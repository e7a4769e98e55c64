/* SPDX-License-Identifier: BSD-3-Clause */
/* problems.h - what is wrong with the configuration: all of it, each in one line with its remedy */
#ifndef CONVERTD_PROBLEMS_H
#define CONVERTD_PROBLEMS_H

#include <stddef.h>

#define PROBLEM_MAX 512 /* bytes of a line, with the NUL */

struct problems {
	unsigned count;
	char first[PROBLEM_MAX];
	void (*print)(const char *line); /* called for each; may be NULL */
};

/* Where a text was found, and for what. */
struct place {
	const char *file; /* NULL: the command line */
	unsigned line;    /* from 1; 0: the file as a whole */
	const char *name; /* of the option, without dashes; NULL: none */
};

/*
 * problems_add() - one more: "--NAME: TEXT" or "FILE:LINE: NAME: TEXT"
 * What the text quotes must have gone through problems_quote().
 */
void problems_add(struct problems *problems, const struct place *place, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define PROBLEM_QUOTE_MAX 68

/* @text in double quotes, printable and cut short if it is long: fit for a line of the log. */
const char *problems_quote(const char *text, char buf[static PROBLEM_QUOTE_MAX]);

#endif
