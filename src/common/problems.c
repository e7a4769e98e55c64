/* SPDX-License-Identifier: BSD-3-Clause */
/* problems.c - collects everything that is wrong with a configuration, each error in one line with its remedy */
#include "config.h"

#include "common/problems.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* This many bytes of a text are quoted; a longer one ends in an ellipsis. */
#define QUOTED_MAX 60

static_assert(QUOTED_MAX + sizeof("\"...\"") <= PROBLEM_QUOTE_MAX, "room for quotes and ellipsis");

void problems_add(struct problems *problems, const struct place *place, const char *format, ...)
{
	char line[PROBLEM_MAX];
	size_t len = 0;
	va_list args;

	line[0] = '\0';
	if (place->file && place->line)
		len = (size_t)snprintf(line, sizeof(line), "%.200s:%u: ", place->file, place->line);
	else if (place->file)
		len = (size_t)snprintf(line, sizeof(line), "%.200s: ", place->file);
	if (place->name)
		len += (size_t)snprintf(line + len, sizeof(line) - len, "%s%.60s: ",
					place->file ? "" : "--", place->name);
	va_start(args, format);
	vsnprintf(line + len, sizeof(line) - len, format, args);
	va_end(args);
	if (problems->count++ == 0)
		strcpy(problems->first, line);
	if (problems->print)
		problems->print(line);
}

const char *problems_quote(const char *text, char buf[static PROBLEM_QUOTE_MAX])
{
	char *out = buf;

	*out++ = '"';
	for (int i = 0; *text && i < QUOTED_MAX; i++, text++)
		*out++ = *text >= ' ' && *text < 127 ? *text : '?';
	strcpy(out, *text ? "...\"" : "\"");
	return buf;
}
