/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_handover.c - any text in the variable that hands sockets over to another program
 *
 * `make check` runs it over corpus/handover and mutations of it (driver.c). To search for new
 * inputs, with clang, from the top of a source tree that is configured (config.h):
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I. -Ilib -Isrc \
 *         -o fuzz_handover tests/fuzz/fuzz_handover.c src/shim/process/handover_record.c
 *   mkdir -p new && ./fuzz_handover -max_len=1100 new tests/fuzz/corpus/handover
 */
#include "shim/process/handover_record.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* Writes a record that was read, reads it again, and requires the same record in no more text than @was. */
static void check_record(struct handover_record *record, size_t was)
{
	struct handover_record again;
	char *text = malloc(was + 1);
	size_t len;

	len = text ? handover_record_write(record, text, 0, was + 1) : 0;
	require(len > 0 && len <= was && text[len] == '\0');
	require(handover_record_read(&again, text) == text + len);
	require(!memcmp(again.numbers, record->numbers, sizeof(again.numbers)));
	require(!memcmp(&again.server, &record->server, sizeof(again.server)));
	require(handover_record_write(record, text, 0, len) == 0 && text[0] == '\0');
	require(handover_record_write(record, text, 0, was + 1) == len);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct handover_record record;
	const char *next, *at;
	char *text = malloc(size + 1);

	require(text);
	memcpy(text, data, size);
	text[size] = '\0';
	for (at = text; (next = handover_record_read(&record, at)); at = next) {
		require(next > at && next <= text + size);
		check_record(&record, (size_t)(next - at));
	}
	free(text);
	return 0;
}
