/* SPDX-License-Identifier: BSD-3-Clause */
/* unit_text.c - the texts that convertize and systemd exchange: units' names, their properties, and our drop-ins */
#include "config.h"

#include "convertize/enable/enable.h"

#include "convertize/options/command_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\@"
#define INSTANCE "convertize" /* we only ask systemd about it: nobody starts it */
#define BLANKS " \t\n"
#define ERRNO_MAX 4095
#define COOKIE_VARIABLE "CONVERT_COOKIE"

static const char *const other_suffixes[] = { ".socket",    ".timer", ".target", ".path",  ".mount", ".automount",
					      ".swap", ".slice", ".scope",  ".device" };

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), wanted = strlen(end);

	return len > wanted && strcmp(text + len - wanted, end) == 0;
}

const char *unit_name_complete(char out[static UNIT_NAME_MAX], const char *word)
{
	bool is_service = ends_with(word, UNIT_SERVICE);

	if (strchr(word, '/'))
		return "is a file, and no unit; name the service, such as nginx.service";
	if (!*word || word[strspn(word, CHARACTERS)] || *word == '@' || *word == '.')
		return "can't be the name of a unit; name a service, such as nginx.service";
	for (size_t i = 0; !is_service && i < sizeof(other_suffixes) / sizeof(other_suffixes[0]); i++)
		if (ends_with(word, other_suffixes[i]))
			return "is not a service; name the service that it starts";
	if (strlen(word) + (is_service ? 0 : strlen(UNIT_SERVICE)) >= UNIT_NAME_MAX - strlen(INSTANCE))
		return "is too long for the name of a unit";
	snprintf(out, UNIT_NAME_MAX, "%s%s", word, is_service ? "" : UNIT_SERVICE);
	return NULL;
}

bool unit_name_is_template(const char *name)
{
	const char *at = strchr(name, '@');

	return at && strcmp(at + 1, UNIT_SERVICE) == 0;
}

void unit_name_instance(char out[static UNIT_NAME_MAX], const char *name)
{
	if (unit_name_is_template(name))
		snprintf(out, UNIT_NAME_MAX, "%.*s@" INSTANCE UNIT_SERVICE, (int)strcspn(name, "@"), name);
	else
		snprintf(out, UNIT_NAME_MAX, "%s", name);
}

void unit_name_template(char name[static UNIT_NAME_MAX])
{
	char *at = strchr(name, '@');

	if (at && strlen(UNIT_SERVICE) + 1 < UNIT_NAME_MAX - (size_t)(at - name))
		strcpy(at + 1, UNIT_SERVICE);
}

void unit_properties_parse(struct unit_properties *out, char *text)
{
	*out = (struct unit_properties){ text, strlen(text) };
	while ((text = strchr(text, '\n')))
		*text++ = '\0';
}

const char *unit_property(const struct unit_properties *properties, const char *name)
{
	const char *line = properties->text, *end = line + properties->len;
	size_t len = strlen(name);

	for (; line < end; line += strlen(line) + 1)
		if (strncmp(line, name, len) == 0 && line[len] == '=')
			return line + len + 1;
	return "";
}

/* Returns the character for the letter of a C escape: systemctl writes these between $' and '. */
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

bool unit_command_path(const char *value, char path[static PATH_MAX])
{
	const char *from = strstr(value, "path="), *to = from ? strstr(from, " ; ") : NULL;

	return to && snprintf(path, PATH_MAX, "%.*s", (int)(to - from - 5), from + 5) < PATH_MAX;
}

/* Does the filter permit the call? A filter with "~" in front names forbidden calls. An entry may have an error behind a colon. */
static bool permits(const char *filter, const char *call)
{
	bool names_forbidden = *filter == '~', found = false;
	char word[UNIT_WORD_MAX];

	filter += names_forbidden;
	while (!found && unit_word_next(&filter, word)) {
		word[strcspn(word, ":")] = '\0';
		found = strcmp(word, call) == 0;
	}
	return found != names_forbidden;
}

const char *unit_deadly_call(const struct unit_properties *unit)
{
	/* a program that may not make the first two makes no TCP connections: the library then makes none of the other calls */
	static const char *const calls[] = { "socket", "connect", "dup3", "fcntl", "getpeername", "getrandom", "getsockname",
					     "getsockopt", "gettid", "kcmp", "process_vm_readv", "process_vm_writev", "recvfrom",
					     "recvmsg", "rt_sigprocmask", "sendmsg", "setsockopt" };
	const char *filter = unit_property(unit, "SystemCallFilter");
	long error = strtol(unit_property(unit, "SystemCallErrorNumber"), NULL, 10);

	/* "~" alone: the unit has no filter */
	if (!*filter || strcmp(filter, "~") == 0 || (error >= 1 && error <= ERRNO_MAX))
		return NULL;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!permits(filter, calls[i]))
			return i < 2 ? NULL : calls[i];
	return NULL;
}

bool unit_value_is_plain(const char *value)
{
	for (; *value; value++)
		if ((unsigned char)*value < ' ' || *value == 127)
			return false;
	return true;
}

/* Writes the value with a backslash before each of @special, and with % doubled, which would begin a specifier of systemd's. */
static void write_value(FILE *out, const char *value, const char *special)
{
	for (; *value; value++)
		fprintf(out, "%s%c", *value == '%' ? "%" : strchr(special, *value) ? "\\" : "", *value);
}

/* Writes a quoted assignment for Environment=. */
static void write_assignment(FILE *out, const char *name, const char *value)
{
	fprintf(out, "Environment=\"%s=", name);
	write_value(out, value, "\"\\");
	fputs("\"\n", out);
}

void unit_write_quoted(FILE *out, const char *name, const char *value)
{
	fprintf(out, "%s=\"", name);
	for (; *value; value++)
		fprintf(out, "%s%c", strchr("\"\\`$", *value) ? "\\" : "", *value);
	fputs("\"\n", out);
}

char *unit_text_finish(FILE *out, char **text, bool right)
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
		write_value(out, cookie_path, "");
		fputc('\n', out);
	}
	return unit_text_finish(out, &text, right);
}

char *unit_cookie_text(const char *unit, const char *cookie)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, UNIT_MARKER ": the cookie of %s, for no other eyes than its own\n", unit);
	unit_write_quoted(out, COOKIE_VARIABLE, cookie);
	return unit_text_finish(out, &text, unit_value_is_plain(cookie));
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
