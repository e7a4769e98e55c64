/* SPDX-License-Identifier: BSD-3-Clause */
/* script.c - the #! line of a script: which program runs it */
#include "config.h"

#include "common/script.h"

#include <string.h>

#define BLANKS " \t"

bool script_parse(struct script *out, const char *text, size_t len)
{
	char line[SCRIPT_LINE_MAX];
	char *at, *end;

	if (len < 2 || text[0] != '#' || text[1] != '!')
		return false;
	len = len - 2 < sizeof(line) - 1 ? len - 2 : sizeof(line) - 1;
	memcpy(line, text + 2, len);
	line[len] = '\0';
	line[strcspn(line, "\n")] = '\0';
	end = line + strlen(line);
	while (end > line && strchr(BLANKS, end[-1]))
		*--end = '\0';
	at = line + strspn(line, BLANKS);
	if (!*at)
		return false;
	memset(out, 0, sizeof(*out));
	len = strcspn(at, BLANKS);
	memcpy(out->interpreter, at, len);
	at += len;
	at += strspn(at, BLANKS);
	strcpy(out->argument, at);
	return true;
}

/* The word at *@at, which is moved behind it; false if there is none. */
static bool next_word(const char **at, char out[static SCRIPT_LINE_MAX])
{
	const char *start = *at + strspn(*at, BLANKS);
	size_t len = strcspn(start, BLANKS);

	if (!len || len >= SCRIPT_LINE_MAX)
		return false;
	memcpy(out, start, len);
	out[len] = '\0';
	*at = start + len;
	return true;
}

bool script_env_program(const char *argument, char out[static SCRIPT_LINE_MAX])
{
	static const char *const split[] = { "--split-string=", "--split-string", "-vS", "-S" };
	size_t len = 0;

	for (size_t i = 0; i < sizeof(split) / sizeof(split[0]) && !len; i++)
		if (strncmp(argument, split[i], strlen(split[i])) == 0)
			len = strlen(split[i]);
	if (!len) {
		/* the kernel hands over one argument, which env without -S takes for a name, with all blanks */
		if (!*argument || *argument == '-' || strlen(argument) >= SCRIPT_LINE_MAX)
			return false;
		strcpy(out, argument);
		return true;
	}
	argument += len;
	while (next_word(&argument, out))
		if (*out != '-' && !strchr(out, '='))
			return true;
	return false;
}
