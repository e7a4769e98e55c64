/* SPDX-License-Identifier: BSD-3-Clause */
/* problems.c - reads the lines of a configuration, and reports all its errors, each in one line with its remedy */
#include "config.h"

#include "common/problems.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Quotes this many bytes of a text; a longer one ends in an ellipsis. */
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

/* --- the name that the user may have meant by a mistyped word --- */

#define SIMILAR_MAX 32 /* letters of a word; longer ones are similar to none */
#define SHORT_NAME 6   /* a name with fewer letters may have one wrong letter only */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Returns the number of wrong letters that turn one word into the other. */
static size_t distance(const char *a, const char *b)
{
	size_t len_a = strlen(a), len_b = strlen(b), rows[SIMILAR_MAX + 1][SIMILAR_MAX + 1];

	if (len_a > SIMILAR_MAX || len_b > SIMILAR_MAX)
		return SIZE_MAX;
	for (size_t i = 0; i <= len_a; i++)
		for (size_t j = 0; j <= len_b; j++) {
			if (!i || !j) {
				rows[i][j] = i + j;
				continue;
			}
			rows[i][j] = least(least(rows[i - 1][j], rows[i][j - 1]) + 1, rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				rows[i][j] = least(rows[i][j], rows[i - 2][j - 2] + 1);
		}
	return rows[len_a][len_b];
}

void similar_compare(struct similar *best, const char *word, const char *name)
{
	size_t wrong = distance(word, name);

	if (wrong > (strlen(name) < SHORT_NAME ? 1 : 2) || (best->name && wrong >= best->wrong))
		return;
	best->name = name;
	best->wrong = wrong;
}

/* --- the lines of a configuration file: without comments, split into names and values --- */

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

/* Ends the line's text, which reaches to @end, before its comment and the blanks in front of that. */
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
