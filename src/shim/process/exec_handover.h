/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exec_handover.h - tells a started program about the sockets that it inherits
 *
 * After an exec another program has our descriptors and none of our memory. So we write our knowledge of the sockets into a variable of its
 * environment, and the shim in that program removes the variable before the program begins.
 */
#ifndef SHIM_EXEC_HANDOVER_H
#define SHIM_EXEC_HANDOVER_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXEC_HANDOVER_VARIABLE "CONVERT_SOCKETS"

/* In bytes. A socket takes some 100. */
#define EXEC_HANDOVER_TEXT_MAX 16384u

/* Takes over the sockets from the variable in the environment, and removes it. Call once, at start, after all other initializations. */
void exec_handover_adopt(void);

/* May a program with this environment need the variable? Cheap if no socket was ever connected. */
bool exec_handover_is_due(char *const envp[]);

/* The descriptors that the program gets. */
enum exec_handover_way {
	EXEC_HANDOVER_AS_THEY_ARE, /* those that this process has now */
	EXEC_HANDOVER_CHANGED,     /* others may be duplicated from them before: posix_spawn_file_actions_t */
};

/*
 * exec_handover_prepare() - end pending connections that we can't hand over to a program
 * @informed: exec_handover_write() will tell the program about its sockets. For other programs we handle only the standard descriptors:
 * such a program doesn't know that it inherits more, unless somebody told it so on purpose.
 * Waits for CONVERT_TIMEOUT at most. errno stays as it was. Also for vfork() children.
 */
void exec_handover_prepare(enum exec_handover_way way, bool informed);

/*
 * exec_handover_write() - write the variable, "NAME=value", for a program started in this way
 * Call after exec_handover_prepare(). Marks the sockets as given away. Returns the length, or 0 if there is nothing to hand over. Also for
 * vfork() children: allocates nothing, and writes only to @out and those marks.
 */
size_t exec_handover_write(char out[EXEC_HANDOVER_TEXT_MAX], enum exec_handover_way way);

/* --- socket_record.c: our knowledge of one socket, as text that fits into an environment variable --- */

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
