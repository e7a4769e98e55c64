/* SPDX-License-Identifier: BSD-3-Clause */
/* cache_properties.h - what must hold whatever bytes are in the cache's file */
#ifndef TESTS_FUZZ_CACHE_PROPERTIES_H
#define TESTS_FUZZ_CACHE_PROPERTIES_H

#include <stddef.h>
#include <stdint.h>

/*
 * cache_check() - put @data into the cache's file, use it, and abort unless all properties hold
 * @data: what it is, in CACHE_INPUT_HEAD bytes, then the beginning of a bucket, or of the file:
 *	0     the number of an enum cache_kind, less one, and bits of CACHE_INPUT_*
 *	1     unused, since tests/fuzz/driver.c writes lengths there
 *	2, 3  the time of the reader, in units of CACHE_INPUT_UNIT from CACHE_INPUT_NOW on, signed
 */
void cache_check(const uint8_t *data, size_t size);

#define CACHE_INPUT_SEALED 0x08 /* the records have right checksums */
#define CACHE_INPUT_FILE 0x10   /* the bytes are the beginning of the file, not of a bucket */
#define CACHE_INPUT_CUT 0x20    /* they are all of the file */
#define CACHE_INPUT_HEAD 4
#define CACHE_INPUT_NOW INT64_C(100000000)
#define CACHE_INPUT_UNIT 2500 /* ms */

/* The converter, the server and the path that are looked up. */
#define CACHE_INPUT_ADDRESS "192.0.2.1:1234"
#define CACHE_INPUT_PATH 7

#endif
