/* SPDX-License-Identifier: BSD-3-Clause */
/* srv_properties.h - what must hold for any bytes that are read as a name server's response */
#ifndef TESTS_FUZZ_SRV_PROPERTIES_H
#define TESTS_FUZZ_SRV_PROPERTIES_H

#include <stddef.h>
#include <stdint.h>

/* The name that srv_check() asks for. */
#define SRV_CHECK_OWNER "_convert._tcp.example"

/*
 * srv_check() - read @data as a response and abort unless all properties hold
 * @data: exactly @size bytes on the heap, so that AddressSanitizer sees an overread
 */
void srv_check(const uint8_t *data, size_t size);

#endif
