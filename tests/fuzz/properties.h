/* SPDX-License-Identifier: BSD-3-Clause */
/* properties.h - what must hold for every byte string that is read as a message */
#ifndef TESTS_FUZZ_PROPERTIES_H
#define TESTS_FUZZ_PROPERTIES_H

#include <stddef.h>
#include <stdint.h>

/*
 * request_check(), response_check() - read @data and abort unless all properties hold
 * @data: exactly @size bytes on the heap, so that AddressSanitizer sees an overread
 */
void request_check(const uint8_t *data, size_t size);
void response_check(const uint8_t *data, size_t size);

#endif
