/* SPDX-License-Identifier: BSD-3-Clause */
/* bytes.c - byte strings of exactly their size on the heap */
#include "bytes.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bytes bytes_copy(const void *data, size_t len)
{
	struct bytes bytes = { .data = malloc(len), .len = len };

	if (!bytes.data && len > 0)
		abort();
	if (len > 0)
		memcpy(bytes.data, data, len);
	return bytes;
}

struct bytes bytes_hex(const char *hex)
{
	uint8_t buf[4096];
	size_t len = 0;

	for (const char *p = hex + strspn(hex, " "); *p; p += strspn(p, " ")) {
		unsigned int byte, count = 1;
		int taken = 0;

		if (sscanf(p, "%2x%n", &byte, &taken) != 1 || taken != 2)
			ck_abort_msg("not hex: \"%s\"", p);
		p += taken;
		if (*p == '*') {
			char *end;

			count = (unsigned int)strtoul(p + 1, &end, 10);
			p = end;
		}
		if (count > sizeof(buf) - len)
			ck_abort_msg("too long: \"%s\"", hex);
		memset(buf + len, (int)byte, count);
		len += count;
	}
	return bytes_copy(buf, len);
}

void bytes_fini(struct bytes *bytes)
{
	free(bytes->data);
	bytes->data = NULL;
	bytes->len = 0;
}

void bytes_assert_hex(const uint8_t *got, size_t len, const char *hex)
{
	struct bytes want = bytes_hex(hex);

	ck_assert_uint_eq(len, want.len);
	if (len > 0)
		ck_assert_mem_eq(got, want.data, len);
	bytes_fini(&want);
}
