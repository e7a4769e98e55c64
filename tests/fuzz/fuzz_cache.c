/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_cache.c - any bytes in the file of the client's cache
 *
 * `make check` runs it over corpus/cache and mutations of it (driver.c). To search for new
 * inputs, with clang, from the top of a source tree that is configured (config.h):
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I. -Ilib -Isrc \
 *         -o fuzz_cache tests/fuzz/fuzz_cache.c tests/fuzz/cache_properties.c \
 *         src/client/cache*.c src/common/sockaddr.c
 *   mkdir -p new && ./fuzz_cache -max_len=1100 new tests/fuzz/corpus/cache
 */
#include "cache_properties.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cache_check(data, size);
	return 0;
}
