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
	HANDOVER_RCVLOWAT,
	HANDOVER_LOCAL_PORT,
	HANDOVER_STARTED, /* CLOCK_MONOTONIC, ns */
	HANDOVER_NUMBER_COUNT
};

struct handover_record {
	uint64_t numbers[HANDOVER_NUMBER_COUNT];
	union sockaddr_ip server; /* AF_UNSPEC: none */
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

#endif
