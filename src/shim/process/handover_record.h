/* SPDX-License-Identifier: BSD-3-Clause */
/* handover_record.h - what is known of one socket, as text that fits into an environment variable */
#ifndef SHIM_HANDOVER_RECORD_H
#define SHIM_HANDOVER_RECORD_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of a record, in their order in the text. */
enum handover_number {
	HANDOVER_PHASE, /* enum conn_phase */
	HANDOVER_FD,
	HANDOVER_COOKIE, /* SO_COOKIE */
	HANDOVER_FLAGS,
	HANDOVER_ERROR,
	HANDOVER_SENT,
	HANDOVER_SENT_IN_SYN,
	HANDOVER_RCVLOWAT,
	HANDOVER_LOCAL_PORT,
	HANDOVER_STARTED,  /* CLOCK_MONOTONIC, ns */
	HANDOVER_DEADLINE, /* the same */
	HANDOVER_NUMBER_COUNT
};

enum handover_address { HANDOVER_SERVER, HANDOVER_CONVERTER, HANDOVER_ADDRESS_COUNT };

/* The converter's cookie, and early data. */
enum handover_bytes { HANDOVER_CONVERT_COOKIE, HANDOVER_EARLY, HANDOVER_BYTES_COUNT };

struct handover_record {
	uint64_t numbers[HANDOVER_NUMBER_COUNT];
	union sockaddr_ip addresses[HANDOVER_ADDRESS_COUNT]; /* AF_UNSPEC: none */
	struct {
		const void *data; /* when written: the bytes; when read: hexadecimal digits in the text */
		size_t len;       /* in bytes, either way */
	} bytes[HANDOVER_BYTES_COUNT];
};

/*
 * handover_record_write() - append a record to the text of @len bytes in @text
 * Returns the text's new length, or 0 with the text unchanged if it doesn't fit into @room with
 * a NUL. No allocation and no system call: fit for a vfork() child.
 */
size_t handover_record_write(const struct handover_record *record, char *text, size_t len,
			     size_t room);

/*
 * handover_record_read() - the first record of @text
 * Returns where the next one is, or NULL if there is none or it is not as we write it.
 */
const char *handover_record_read(struct handover_record *out, const char *text);

/* handover_record_bytes() - copies bytes of a record that was read to @out, @room at most. Returns how many. */
size_t handover_record_bytes(const struct handover_record *record, enum handover_bytes which,
			     uint8_t *out, size_t room);

#endif
