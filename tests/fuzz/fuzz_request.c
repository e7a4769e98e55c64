/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_request.c - any bytes as a client's request
 *
 * `make check` runs it over corpus/request and mutations of it (driver.c). To search
 * for new inputs, with clang, from the top of the source:
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Ilib \
 *         -o fuzz_request tests/fuzz/fuzz_request.c tests/fuzz/properties.c \
 *         lib/read.c lib/write.c lib/names.c
 *   mkdir -p new && ./fuzz_request -max_len=1100 new tests/fuzz/corpus/request
 */
#include "properties.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	request_check(data, size);
	return 0;
}
