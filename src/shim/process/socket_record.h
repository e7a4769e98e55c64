/* SPDX-License-Identifier: BSD-3-Clause */
/* socket_record.h - our knowledge of one socket, as text that fits into an environment variable */
#ifndef SHIM_SOCKET_RECORD_H
#define SHIM_SOCKET_RECORD_H

#include "common/sockaddr.h"

#include <stddef.h>
#include <stdint.h>

/* Numbers of a record, in their order in the text. */
enum socket_record_number {
	SOCKET_RECORD_PHASE, /* enum conn_phase */
	SOCKET_RECORD_FD,
	SOCKET_RECORD_COOKIE, /* SO_COOKIE */
	SOCKET_RECORD_FLAGS,
	SOCKET_RECORD_ERROR,
	SOCKET_RECORD_RCVLOWAT,
	SOCKET_RECORD_LOCAL_PORT,
	SOCKET_RECORD_STARTED, /* CLOCK_MONOTONIC, ns */
	SOCKET_RECORD_NUMBER_COUNT
};

struct socket_record {
	uint64_t numbers[SOCKET_RECORD_NUMBER_COUNT];
	union sockaddr_ip server; /* AF_UNSPEC: none */
};

/*
 * socket_record_write() - append a record to the text of @len bytes in @text
 * Returns the text's new length, or 0 with the text unchanged if the record doesn't fit into @room with a NUL. Makes no allocation and no
 * system call: fit for a vfork() child.
 */
size_t socket_record_write(const struct socket_record *record, char *text, size_t len,
			     size_t room);

/*
 * socket_record_read() - read the first record of @text
 * Returns the position of the next one, or NULL if there is none or it is malformed.
 */
const char *socket_record_read(struct socket_record *out, const char *text);

#endif
