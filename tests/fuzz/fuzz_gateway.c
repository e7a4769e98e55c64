/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_gateway.c - any bytes as convertgw's configuration file (see fuzz_config.c)
 *
 * To search for new inputs see fuzz_request.c; the sources are src/gateway/gateway_settings.c and those of src/daemon, src/client and
 * src/common that the linker asks for.
 */
#include "config.h"

#include "gateway/gateway_settings.h"

#include "problem_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_config(char *text, size_t len, struct problems *problems)
{
	gateway_settings_check_text(FUZZ_FILE, text, len, problems);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_as(read_config, data, size);
	return 0;
}
