/* SPDX-License-Identifier: BSD-3-Clause */
/* lines.c - the lines of a configuration file: comments taken off, names and values apart */
#include "config.h"

#include "common/lines.h"

#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

void lines_first(struct lines *lines, char *text, size_t len)
{
	lines->pos = text;
	lines->end = text + len;
	lines->number = 0;
}

/* Ends the line's text, which reaches to @end, in front of its comment and of the blanks before that. */
static void cut(char *line, char *end)
{
	for (char *p = line; p < end; p++)
		if (*p == '#' && (p == line || is_blank(p[-1])))
			end = p;
	while (end > line && is_blank(end[-1]))
		end--;
	*end = '\0';
}

char *lines_next(struct lines *lines, bool *has_nul)
{
	*has_nul = false;
	while (lines->pos < lines->end) {
		char *line = lines->pos;
		char *end = memchr(line, '\n', (size_t)(lines->end - line));

		if (!end)
			end = lines->end;
		lines->pos = end < lines->end ? end + 1 : end;
		lines->number++;
		*has_nul = memchr(line, '\0', (size_t)(end - line)) != NULL;
		while (line < end && is_blank(*line))
			line++;
		cut(line, end);
		if (*line || *has_nul)
			return line;
	}
	return NULL;
}

char *lines_split(char *line)
{
	char *value = line + strcspn(line, " \t=");
	bool equals = false;

	if (!*value)
		return NULL;
	for (char *p = value; *p; p++) {
		bool is_equals = *p == '=' && !equals;

		if (*p != ' ' && *p != '\t' && !is_equals) {
			*value = '\0';
			return p;
		}
		equals |= is_equals;
	}
	*value = '\0';
	return NULL;
}
