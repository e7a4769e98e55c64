/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_unit.c - any bytes as the output of "systemctl show", and as a drop-in
 *
 * A value that is written into a drop-in must come out of it again. To search for new inputs see fuzz_request.c; the sources are those of
 * libconvertize.la.
 */
#include "config.h"

#include "convertize/enable/enable.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *value; /* of all variables */

static const char *lookup(const char *name)
{
	return strcmp(name, "CONVERT_ADDR") == 0 ? value : NULL;
}

static void judge(char *text)
{
	static struct unit_properties properties;
	char path[PATH_MAX], word[UNIT_WORD_MAX];

	unit_properties_parse(&properties, text);
	unit_deadly_call(&properties);
	if (unit_command_path(unit_property(&properties, "ExecStart"), path) && strlen(path) >= PATH_MAX)
		abort();
	if (unit_list_variable(unit_property(&properties, "Environment"), "LD_PRELOAD", word) && strlen(word) >= UNIT_WORD_MAX)
		abort();
}

static void write_value(const char *text)
{
	char *dropin, *found;

	value = text;
	dropin = unit_dropin_text("fuzz.service", "/x.so", NULL, lookup);
	if (!dropin != !unit_value_is_plain(text))
		abort();
	found = dropin ? unit_dropin_variable(dropin, "CONVERT_ADDR") : NULL;
	if (dropin && *text && strlen(text) < UNIT_WORD_MAX / 2 && (!found || strcmp(found, text) != 0))
		abort();
	free(found);
	free(dropin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int use = 0; use < 3; use++) {
		char *text = malloc(size + 1);

		if (!text)
			abort();
		memcpy(text, data, size);
		text[size] = '\0';
		if (use == 0)
			judge(text);
		else if (use == 1)
			free(unit_dropin_variable(text, "CONVERT_ADDR"));
		else
			write_value(text);
		free(text);
	}
	return 0;
}
