/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_config.c - any bytes as convertd's configuration file, its key file, its list of cookies
 *
 * problem_lines.h says what its messages must be. To search for new inputs see fuzz_request.c; the sources are
 * those of src/convertd/{base,config,policy} and src/common that the linker asks for; it needs
 * -lsodium.
 */
#include "config.h"

#include "convertd/config/convertd_settings.h"
#include "convertd/policy/cookies.h"

#include "problem_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_config(char *text, size_t len, struct problems *problems)
{
	settings_check_text(FUZZ_FILE, text, len, problems);
}

static const struct place place = { .file = FUZZ_FILE };

static void read_keys(char *text, size_t len, struct problems *problems)
{
	struct cookies *cookies = cookies_create();

	cookies_add_keys(cookies, FUZZ_FILE, text, len, &place, problems);
	cookies_destroy(cookies);
}

static void read_fixed(char *text, size_t len, struct problems *problems)
{
	struct cookies *cookies = cookies_create();

	cookies_add_fixed(cookies, FUZZ_FILE, text, len, &place, problems);
	cookies_destroy(cookies);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_as(read_config, data, size);
	read_as(read_keys, data, size);
	read_as(read_fixed, data, size);
	return 0;
}
