/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_unit.c - any bytes as a unit's file, as what "systemctl show" prints, and as a drop-in
 *
 * What is read from a unit's file is printed in the form of properties, and these are judged. A value that a drop-in is written
 * with must come out of it again. To search for new inputs see fuzz_request.c; sources are those of libconvertize.la.
 */
#include "config.h"

#include "convertize/enable/unit_dropin.h"
#include "convertize/enable/unit_file.h"
#include "convertize/enable/unit_judge.h"

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
	static struct unit_command command;
	struct unit_findings findings = { .count = 0 };
	const char *start;
	size_t next = 0;

	unit_properties_parse(&properties, text);
	unit_judge_sandbox(&findings, &properties, "/usr/lib/libconvert/libconvert.so");
	if (findings.count > UNIT_FINDINGS_MAX)
		abort();
	while ((start = unit_property_next(&properties, "ExecStart", &next)))
		if (unit_command_parse(&command, start) && (strlen(command.path) >= PATH_MAX || strlen(command.words) >= UNIT_WORD_MAX))
			abort();
}

static void read_file(char *text)
{
	struct unit_file file = { 0 };
	char *printed = NULL;
	size_t len;
	FILE *out = open_memstream(&printed, &len);

	if (!out || !unit_file_parse(&file, text))
		abort();
	unit_file_print(&file, out);
	unit_file_fini(&file);
	if (fclose(out) != 0)
		abort();
	judge(printed);
	free(printed);
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
	for (int use = 0; use < 4; use++) {
		char *text = malloc(size + 1);

		if (!text)
			abort();
		memcpy(text, data, size);
		text[size] = '\0';
		if (use == 0)
			judge(text);
		else if (use == 1)
			read_file(text);
		else if (use == 2)
			free(unit_dropin_variable(text, "CONVERT_ADDR"));
		else
			write_value(text);
		free(text);
	}
	return 0;
}
