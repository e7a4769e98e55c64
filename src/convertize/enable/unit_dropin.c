/* SPDX-License-Identifier: BSD-3-Clause */
/* unit_dropin.c - the files that convertize makes for a unit */
#include "config.h"

#include "convertize/enable/unit_dropin.h"

#include "convertize/options/option_table.h"
#include "convertize/enable/unit_properties.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COOKIE_VARIABLE "CONVERT_COOKIE"

bool unit_value_is_plain(const char *value)
{
	for (; *value; value++)
		if ((unsigned char)*value < ' ' || *value == 127)
			return false;
	return true;
}

/* Writes a path, as EnvironmentFile= takes it: without quotes; a % would begin a specifier. */
static void write_path(FILE *out, const char *path)
{
	for (; *path; path++)
		fprintf(out, "%s%c", *path == '%' ? "%" : "", *path);
}

/* Writes an assignment in quotes, as Environment= takes it. */
static void write_assignment(FILE *out, const char *name, const char *value)
{
	fprintf(out, "Environment=\"%s=", name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			fputc('\\', out);
		if (*value == '%')
			fputc('%', out);
		fputc(*value, out);
	}
	fputs("\"\n", out);
}

/* Ends the writing of a text. Returns it, or NULL if something has failed. */
static char *finish(FILE *out, char **text, bool right)
{
	right = !ferror(out) && right;
	if (fclose(out) == 0 && right)
		return *text;
	free(*text);
	return NULL;
}

char *unit_dropin_text(const char *unit, const char *preload, const char *cookie_path, unit_lookup *lookup)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool right = unit_value_is_plain(preload);

	if (!out)
		return NULL;
	fprintf(out,
		UNIT_MARKER ": \"convertize enable %s\" writes this file anew,\n"
			    "# \"convertize disable %s\" removes it.\n"
			    "[Service]\n",
		unit, unit);
	write_assignment(out, "LD_PRELOAD", preload);
	for (int i = 0; i < OPTION_COUNT; i++) {
		const char *variable = option_table[i].variable, *value;

		if (!option_is_library_variable((enum option_id)i) || strcmp(variable, COOKIE_VARIABLE) == 0)
			continue;
		value = lookup(variable);
		if (!value || !*value)
			continue;
		right = right && unit_value_is_plain(value);
		write_assignment(out, variable, value);
	}
	if (cookie_path) {
		fputs("EnvironmentFile=", out);
		write_path(out, cookie_path);
		fputc('\n', out);
	}
	return finish(out, &text, right);
}

char *unit_cookie_text(const char *unit, const char *cookie)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, UNIT_MARKER ": the cookie of %s, for no other eyes than its own\n" COOKIE_VARIABLE "=\"", unit);
	for (const char *at = cookie; *at; at++)
		fprintf(out, "%s%c", strchr("\"\\`$", *at) ? "\\" : "", *at);
	fputs("\"\n", out);
	return finish(out, &text, unit_value_is_plain(cookie));
}

char *unit_dropin_variable(const char *text, const char *name)
{
	static const char setting[] = "Environment=";
	char line[2 * UNIT_WORD_MAX], value[UNIT_WORD_MAX], *out = NULL, *to;

	for (const char *end; *text; text = end + (*end != '\0')) {
		end = text + strcspn(text, "\n");
		if (strncmp(text, setting, strlen(setting)) != 0)
			continue;
		snprintf(line, sizeof(line), "%.*s", (int)(end - text), text);
		if (!unit_list_variable(line + strlen(setting), name, value))
			continue;
		free(out);
		out = to = strdup(value);
		for (const char *from = value; to && *from; from++) {
			if (from[0] == '%' && from[1] == '%')
				from++;
			*to++ = *from;
		}
		if (to)
			*to = '\0';
	}
	return out;
}

bool unit_text_is_ours(const char *text)
{
	return strncmp(text, UNIT_MARKER, strlen(UNIT_MARKER)) == 0;
}
