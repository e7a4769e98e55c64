/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_conf.c - any bytes as convertize.conf
 *
 * Its messages about them must be lines that a terminal can show, with the place in front; the settings must be as the rest of
 * convertize expects them. To search for new inputs see fuzz_request.c; the sources are those of libconvertize.la.
 */
#include "config.h"

#include "convertize/options/command_line.h"
#include "problem_lines.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(const char *list)
{
	if (list && (!*list || *list == ' ' || list[strlen(list) - 1] == ' ' || strstr(list, "  ")))
		abort();
}

static void check_conf(const struct conf *conf)
{
	for (int i = 0; i < OPTION_COUNT; i++)
		if (conf->values[i] && (!option_is_setting((enum option_id)i) || !conf->lines[i] || strchr(conf->values[i], '\n')))
			abort();
	if ((conf->users || conf->groups) && !conf->is_system)
		abort();
	if (conf->session != CONF_SESSION_UNSET && !conf->session_line)
		abort();
	check_list(conf->users);
	check_list(conf->groups);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int is_system = 0; is_system < 2; is_system++) {
		struct conf conf = { .path = FUZZ_FILE, .is_system = is_system };
		struct problems problems = { .print = check_line };
		char *text = text_of(data, size);

		conf_parse(&conf, text, size, &problems);
		check_conf(&conf);
		conf_fini(&conf);
		free(text);
	}
	return 0;
}
