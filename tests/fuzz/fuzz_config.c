/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_config.c - any bytes as convertd's configuration file, its key file, its list of cookies
 *
 * What it says about them must be lines that a terminal and a log can show: printable, not too
 * long, with the place in front. To search for new inputs see fuzz_request.c; sources are
 * those of src/convertd/{base,config,policy} and src/common that the linker asks for; it needs
 * -lsodium.
 */
#include "config.h"

#include "convertd/config/convertd_settings.h"
#include "convertd/policy/cookies.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(const char *line)
{
	size_t len = strlen(line);

	if (len >= PROBLEM_MAX || strncmp(line, "fuzz:", 5) != 0)
		abort();
	for (size_t i = 0; i < len; i++)
		if (line[i] < ' ' || line[i] > '~')
			abort();
}

/* Reads a copy of the data, since all of these parsers write into the text that they read. */
static void read_as(void (*read)(char *text, size_t len, struct problems *problems),
		    const uint8_t *data, size_t size)
{
	struct problems problems = { .print = check_line };
	char *text = malloc(size + 1);

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	read(text, size, &problems);
	free(text);
}

static void read_config(char *text, size_t len, struct problems *problems)
{
	settings_check_text("fuzz", text, len, problems);
}

static const struct place place = { .file = "fuzz" };

static void read_keys(char *text, size_t len, struct problems *problems)
{
	struct cookies *cookies = cookies_create();

	cookies_add_keys(cookies, "fuzz", text, len, &place, problems);
	cookies_destroy(cookies);
}

static void read_fixed(char *text, size_t len, struct problems *problems)
{
	struct cookies *cookies = cookies_create();

	cookies_add_fixed(cookies, "fuzz", text, len, &place, problems);
	cookies_destroy(cookies);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_as(read_config, data, size);
	read_as(read_keys, data, size);
	read_as(read_fixed, data, size);
	return 0;
}
