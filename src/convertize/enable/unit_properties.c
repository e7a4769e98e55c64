/* SPDX-License-Identifier: BSD-3-Clause */
/* unit_properties.c - a unit's properties, as "systemctl show" prints them */
#include "config.h"

#include "convertize/enable/unit_properties.h"

#include <string.h>

#define BLANKS " \t\n"

void unit_properties_parse(struct unit_properties *out, char *text)
{
	out->count = 0;
	while (*text && out->count < UNIT_PROPERTIES_MAX) {
		char *end = strchr(text, '\n');

		if (end)
			*end = '\0';
		if (strchr(text, '='))
			out->lines[out->count++] = text;
		if (!end)
			break;
		text = end + 1;
	}
}

const char *unit_property_next(const struct unit_properties *properties, const char *name, size_t *next)
{
	size_t len = strlen(name);

	while (*next < properties->count) {
		const char *line = properties->lines[(*next)++];

		if (strncmp(line, name, len) == 0 && line[len] == '=')
			return line + len + 1;
	}
	return NULL;
}

const char *unit_property(const struct unit_properties *properties, const char *name)
{
	size_t next = 0;
	const char *value = unit_property_next(properties, name, &next);

	return value ? value : "";
}

bool unit_property_yes(const struct unit_properties *properties, const char *name)
{
	return strcmp(unit_property(properties, name), "yes") == 0;
}

/* The characters that C has escapes for, which systemctl writes between $' and '. */
static char unescape(char c)
{
	static const char from[] = "abfnrtv", to[] = "\a\b\f\n\r\t\v";
	const char *found = c ? strchr(from, c) : NULL;

	return found ? to[found - from] : c;
}

bool unit_word_next(const char **list, char word[static UNIT_WORD_MAX])
{
	const char *at = *list + strspn(*list, BLANKS);
	size_t len = 0;
	char quote = 0;
	bool dollar = false;

	if (!*at)
		return false;
	for (; *at && (quote || !strchr(BLANKS, *at)); at++) {
		char c = *at;

		if (!quote && c == '$' && at[1] == '\'') {
			dollar = true;
			quote = *++at;
			continue;
		}
		if (quote ? c == quote : c == '"' || c == '\'') {
			quote = quote ? 0 : c;
			dollar = dollar && quote;
			continue;
		}
		if (c == '\\' && at[1] && (quote != '\'' || dollar)) {
			c = dollar ? unescape(at[1]) : at[1];
			at++;
		}
		if (len < UNIT_WORD_MAX - 1)
			word[len++] = c;
	}
	word[len] = '\0';
	*list = at;
	return true;
}

bool unit_list_has(const char *list, const char *word)
{
	char found[UNIT_WORD_MAX];

	while (unit_word_next(&list, found))
		if (strcmp(found, word) == 0)
			return true;
	return false;
}

bool unit_list_variable(const char *list, const char *name, char value[static UNIT_WORD_MAX])
{
	char found[UNIT_WORD_MAX];
	size_t len = strlen(name);
	bool has = false;

	/* the last assignment counts */
	while (unit_word_next(&list, found)) {
		if (strncmp(found, name, len) != 0 || found[len] != '=')
			continue;
		strcpy(value, found + len + 1);
		has = true;
	}
	return has;
}

/* Copies what stands between @start and @end in @value. Returns false if it isn't there, or too long. */
static bool copy_between(const char *value, const char *start, const char *end, char *out, size_t size)
{
	const char *from = strstr(value, start), *to = from ? strstr(from, end) : NULL;
	size_t len;

	if (!to)
		return false;
	from += strlen(start);
	len = to > from ? (size_t)(to - from) : 0;
	if (len >= size)
		return false;
	memcpy(out, from, len);
	out[len] = '\0';
	return true;
}

bool unit_command_parse(struct unit_command *out, const char *value)
{
	return copy_between(value, "path=", " ; ", out->path, sizeof(out->path)) &&
	       copy_between(value, "argv[]=", " ; ignore_errors=", out->words, sizeof(out->words));
}
