/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_srv.c - any bytes as a name server's response with SRV records
 *
 * `make check` runs it over corpus/srv and mutations of it (driver.c). To search
 * for new inputs, with clang, in a configured tree:
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I. -Isrc \
 *         -o fuzz_srv tests/fuzz/fuzz_srv.c tests/fuzz/srv_properties.c src/client/srv.c
 *   mkdir -p new && ./fuzz_srv -max_len=1100 new tests/fuzz/corpus/srv
 */
#include "srv_properties.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	srv_check(data, size);
	return 0;
}
