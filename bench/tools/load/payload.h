/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * payload.h - what goes over the wire between the client and the server
 *
 * A request is a head (PAYLOAD_HEAD bytes), which says how long it and its response are, and is
 * filled up with a pattern; so is the response. A connection may carry several, one after the
 * other. Byte i of a request or response is i modulo 251, a prime, so that a byte which is lost,
 * doubled or moved shows.
 */
#ifndef LOAD_PAYLOAD_H
#define LOAD_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAYLOAD_HEAD  24           /* bytes */
#define PAYLOAD_CHUNK (256 * 1024) /* bytes that one read or write is about */

struct payload_request {
	uint64_t request;  /* bytes, the head included */
	uint64_t response; /* bytes */
	bool close;        /* the server closes behind the response */
};

void payload_init(void);

void payload_head_write(uint8_t head[static PAYLOAD_HEAD], const struct payload_request *request);

/* Returns 0, or -1 if these bytes are no head. */
int payload_head_read(struct payload_request *request, const uint8_t head[static PAYLOAD_HEAD]);

/* The pattern from @offset on; PAYLOAD_CHUNK bytes of it can be read there. */
const uint8_t *payload_at(uint64_t offset);

/* Tells whether these are the bytes of the pattern from @offset on. */
bool payload_matches(const uint8_t *data, size_t len, uint64_t offset);

/* Returns how many of the bytes that are left one write is given. */
static inline size_t payload_chunk(uint64_t left)
{
	return left < PAYLOAD_CHUNK ? (size_t)left : PAYLOAD_CHUNK;
}

#endif
