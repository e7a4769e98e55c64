/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_socket_record.c - any text in the variable that hands sockets over to another program
 *
 * `make check` runs it over corpus/socket_record and mutations of it (driver.c). To search for new
 * inputs, with clang, from the top of a source tree that is configured (config.h):
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I. -Ilib -Isrc \
 *         -o fuzz_socket_record tests/fuzz/fuzz_socket_record.c src/shim/process/socket_record.c \
 *         src/common/sockaddr.c
 *   mkdir -p new && ./fuzz_socket_record -max_len=1100 new tests/fuzz/corpus/socket_record
 */
#include "shim/process/socket_record.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* Writes a record that was read, reads it again, and requires the same record in no more text than @was. */
static void check_record(struct socket_record *record, size_t was)
{
	struct socket_record again;
	char *text = malloc(was + 1);
	size_t len;

	len = text ? socket_record_write(record, text, 0, was + 1) : 0;
	require(len > 0 && len <= was && text[len] == '\0');
	require(socket_record_read(&again, text) == text + len);
	require(!memcmp(again.numbers, record->numbers, sizeof(again.numbers)));
	require(!memcmp(&again.server, &record->server, sizeof(again.server)));
	require(socket_record_write(record, text, 0, len) == 0 && text[0] == '\0');
	require(socket_record_write(record, text, 0, was + 1) == len);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct socket_record record;
	const char *next, *at;
	char *text = malloc(size + 1);

	require(text);
	memcpy(text, data, size);
	text[size] = '\0';
	for (at = text; (next = socket_record_read(&record, at)); at = next) {
		require(next > at && next <= text + size);
		check_record(&record, (size_t)(next - at));
	}
	free(text);
	return 0;
}
