/* SPDX-License-Identifier: BSD-3-Clause */
/* bytes.h - byte strings of exactly their size on the heap: AddressSanitizer sees each overread */
#ifndef TESTS_UNIT_BYTES_H
#define TESTS_UNIT_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct bytes {
	uint8_t *data;
	size_t len;
};

/* Copies @len bytes; bytes_fini() frees the copy. Aborts the test if there is no memory. */
struct bytes bytes_copy(const void *data, size_t len);

/*
 * bytes_hex() - the bytes that @hex spells, blanks between them skipped
 * "01*1020" stands for 1020 times 01. Anything else in @hex aborts the test.
 */
struct bytes bytes_hex(const char *hex);

void bytes_fini(struct bytes *bytes);

/* Fails the Check test unless @got has exactly the bytes that @hex spells. */
void bytes_assert_hex(const uint8_t *got, size_t len, const char *hex);

#endif
