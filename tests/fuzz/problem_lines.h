/* SPDX-License-Identifier: BSD-3-Clause */
/* problem_lines.h - messages about a file must be lines for a terminal and a log: printable, short, with the place in front */
#ifndef TESTS_FUZZ_PROBLEM_LINES_H
#define TESTS_FUZZ_PROBLEM_LINES_H

#include "common/problems.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FUZZ_FILE "fuzz"

static inline void check_line(const char *line)
{
	size_t len = strlen(line);

	if (len >= PROBLEM_MAX || strncmp(line, FUZZ_FILE ":", sizeof(FUZZ_FILE)) != 0)
		abort();
	for (size_t i = 0; i < len; i++)
		if (line[i] < ' ' || line[i] > '~')
			abort();
}

/* Returns a copy of the data with a NUL behind it, to be freed: parsers write into the text that they read. */
static inline char *text_of(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

static inline void read_as(void (*read)(char *text, size_t len, struct problems *problems), const uint8_t *data, size_t size)
{
	struct problems problems = { .print = check_line };
	char *text = text_of(data, size);

	read(text, size, &problems);
	free(text);
}

#endif
