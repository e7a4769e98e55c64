/* SPDX-License-Identifier: BSD-3-Clause */
/* unit_file.c - unit files, read as systemd reads them, as far as convertize has to know */
#include "config.h"

#include "convertize/enable/unit_file.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BLANKS " \t\r"
#define EXEC_PREFIXES "-@:+!|" /* of systemd.service(5), in front of a command */

/* How the property that systemctl shows follows from the assignments. */
enum unit_form {
	FORM_TEXT,    /* the last one */
	FORM_SWITCH,  /* the last one: yes or no */
	FORM_LIST,    /* all of them, as one list */
	FORM_ONCE,    /* as it is, if there is one only: two of them aren't simply added */
	FORM_COMMAND, /* each a line */
	FORM_FILE,    /* each a line */
};

static const struct {
	const char *name, *property;
	enum unit_form form;
} forms[] = {
	{ "ExecStart", "ExecStart", FORM_COMMAND },
	{ "Environment", "Environment", FORM_LIST },
	{ "EnvironmentFile", "EnvironmentFiles", FORM_FILE },
	{ "UnsetEnvironment", "UnsetEnvironment", FORM_LIST },
	{ "User", "User", FORM_TEXT },
	{ "Group", "Group", FORM_TEXT },
	{ "DynamicUser", "DynamicUser", FORM_SWITCH },
	{ "NoNewPrivileges", "NoNewPrivileges", FORM_SWITCH },
	{ "PrivateNetwork", "PrivateNetwork", FORM_SWITCH },
	{ "PrivateTmp", "PrivateTmp", FORM_SWITCH },
	{ "ProtectHome", "ProtectHome", FORM_SWITCH },
	{ "RootDirectory", "RootDirectory", FORM_TEXT },
	{ "RootImage", "RootImage", FORM_TEXT },
	{ "InaccessiblePaths", "InaccessiblePaths", FORM_LIST },
	{ "TemporaryFileSystem", "TemporaryFileSystem", FORM_LIST },
	{ "NoExecPaths", "NoExecPaths", FORM_LIST },
	{ "ExecPaths", "ExecPaths", FORM_LIST },
	{ "IPAddressDeny", "IPAddressDeny", FORM_LIST },
	{ "RestrictAddressFamilies", "RestrictAddressFamilies", FORM_ONCE },
};

#define FORMS (sizeof(forms) / sizeof(forms[0]))

static bool add(struct unit_file *file, const char *name, const char *value)
{
	if (file->count == file->room) {
		size_t room = file->room ? 2 * file->room : 32;
		struct unit_assignment *list = realloc(file->list, room * sizeof(*list));

		if (!list)
			return false;
		file->list = list;
		file->room = room;
	}
	file->list[file->count] = (struct unit_assignment){ strdup(name), strdup(value) };
	file->count++;
	return file->list[file->count - 1].name && file->list[file->count - 1].value;
}

/* Takes a line off the text, with those that a backslash at its end joins to it. Comments within are dropped. */
static char *next_line(char **text)
{
	char *line = *text, *to = *text, *from = *text;
	bool more = true;

	if (!*line)
		return NULL;
	while (more && *from) {
		size_t len = strcspn(from, "\n");
		size_t start = strspn(from, BLANKS);
		bool comment = from != line && (from[start] == '#' || from[start] == ';');

		more = comment || (len && from[len - 1] == '\\');
		if (!comment) {
			memmove(to, from, len);
			to += len;
			if (more)
				to[-1] = ' ';
		}
		from += len + (from[len] == '\n');
	}
	*text = from;
	*to = '\0';
	return line;
}

bool unit_file_parse(struct unit_file *file, char *text)
{
	bool service = false, right = true;
	char *line;

	while (right && (line = next_line(&text))) {
		char *equals, *end;

		line += strspn(line, BLANKS);
		end = line + strlen(line);
		while (end > line && strchr(BLANKS, end[-1]))
			*--end = '\0';
		if (*line == '[') {
			service = strcmp(line, "[Service]") == 0;
			continue;
		}
		equals = strchr(line, '=');
		if (!service || !equals || *line == '#' || *line == ';')
			continue;
		end = equals;
		while (end > line && strchr(BLANKS, end[-1]))
			end--;
		*end = '\0';
		right = add(file, line, equals + 1 + strspn(equals + 1, BLANKS));
	}
	return right;
}

/* Returns the index of the first assignment that still counts: those in front of an empty one don't. */
static size_t first_of(const struct unit_file *file, const char *name)
{
	size_t first = 0;

	for (size_t i = 0; i < file->count; i++)
		if (strcmp(file->list[i].name, name) == 0 && !*file->list[i].value)
			first = i + 1;
	return first;
}

static const char *switch_of(const char *value)
{
	static const char *const words[] = { "1", "yes", "y", "true", "t", "on" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasecmp(value, words[i]) == 0)
			return "yes";
	return value;
}

static void print_command(FILE *out, const char *value)
{
	size_t len;

	value += strspn(value, EXEC_PREFIXES);
	len = strcspn(value, " \t");
	fprintf(out, "ExecStart={ path=%.*s ; argv[]=%s ; ignore_errors=no }\n", (int)len, value, value);
}

static void print_value(FILE *out, size_t form, const char *value)
{
	const char *property = forms[form].property;

	switch (forms[form].form) {
	case FORM_COMMAND:
		print_command(out, value);
		break;
	case FORM_FILE:
		fprintf(out, "%s=%s (ignore_errors=%s)\n", property, value + (*value == '-'), *value == '-' ? "yes" : "no");
		break;
	case FORM_SWITCH:
		fprintf(out, "%s=%s\n", property, switch_of(value));
		break;
	case FORM_ONCE:
		fprintf(out, "%s=%s\n", property, strcmp(value, "none") == 0 ? "" : value);
		break;
	default:
		fprintf(out, "%s=%s\n", property, value);
		break;
	}
}

/* Prints a list in one line. */
static void print_list(const struct unit_file *file, size_t form, size_t first, FILE *out)
{
	fprintf(out, "%s=", forms[form].property);
	for (size_t i = first; i < file->count; i++)
		if (strcmp(file->list[i].name, forms[form].name) == 0)
			fprintf(out, "%s ", file->list[i].value);
	fputc('\n', out);
}

/* Is each assignment a line of its own? */
static bool is_each(enum unit_form form)
{
	return form == FORM_COMMAND || form == FORM_FILE;
}

void unit_file_print(const struct unit_file *file, FILE *out)
{
	for (size_t form = 0; form < FORMS; form++) {
		size_t first = first_of(file, forms[form].name), found = 0, last = 0;

		for (size_t i = first; i < file->count; i++) {
			if (strcmp(file->list[i].name, forms[form].name) != 0)
				continue;
			found++;
			last = i;
			if (is_each(forms[form].form))
				print_value(out, form, file->list[i].value);
		}
		if (found && forms[form].form == FORM_LIST)
			print_list(file, form, first, out);
		else if (found && !is_each(forms[form].form) && (found == 1 || forms[form].form != FORM_ONCE))
			print_value(out, form, file->list[last].value);
	}
}

void unit_file_fini(struct unit_file *file)
{
	for (size_t i = 0; i < file->count; i++) {
		free(file->list[i].name);
		free(file->list[i].value);
	}
	free(file->list);
	memset(file, 0, sizeof(*file));
}
