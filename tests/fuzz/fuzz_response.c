/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_response.c - any bytes as a converter's response
 *
 * `make check` runs it over corpus/response and mutations of it (driver.c). To search
 * for new inputs, with clang, from the top of the source:
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Ilib \
 *         -o fuzz_response tests/fuzz/fuzz_response.c tests/fuzz/properties.c \
 *         lib/read.c lib/write.c lib/names.c
 *   mkdir -p new && ./fuzz_response -max_len=1100 new tests/fuzz/corpus/response
 */
#include "properties.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	response_check(data, size);
	return 0;
}
