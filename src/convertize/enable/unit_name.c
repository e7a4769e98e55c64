/* SPDX-License-Identifier: BSD-3-Clause */
/* unit_name.c - names of systemd's units (systemd.unit(5)) */
#include "config.h"

#include "convertize/enable/unit_name.h"

#include <stdio.h>
#include <string.h>

#define CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\@"
#define INSTANCE "convertize" /* nobody starts it: systemd only reads the template for it */

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
