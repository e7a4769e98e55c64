/* SPDX-License-Identifier: BSD-3-Clause */
/* gate.h - may the application send or receive now? */
#ifndef SHIM_GATE_H
#define SHIM_GATE_H

#include "shim/socket/conn.h"

#include <sys/socket.h>

/* What a hook does next: call the next function (@pass), or return @ret. The functions below leave errno as it was. */
struct gate {
	bool pass;
	int ret; /* if !pass: 0 or -errno */
};

struct gate gate_input_slow(struct conn *conn, int fd, int flags);
struct gate gate_output_slow(struct conn *conn, int fd, int flags);

/* May the application read from @fd? Not before the response is off the stream. @flags: as in recv(2) */
static inline struct gate gate_input(int fd, int flags)
{
	struct conn *conn = conn_attentive(fd);

	return conn ? gate_input_slow(conn, fd, flags) : (struct gate){ .pass = true };
}

/* May the application write to @fd? Not before the request, nor to a server that wasn't reached. */
static inline struct gate gate_output(int fd, int flags)
{
	struct conn *conn = conn_attentive(fd);

	return conn ? gate_output_slow(conn, fd, flags) : (struct gate){ .pass = true };
}

/* Does the kernel say that @fd is writable? */
bool gate_is_writable(int fd);

/*
 * gate_may_block() - would a call with @flags (MSG_DONTWAIT) on the descriptor @fd of @conn block?
 * @conn: NULL if the socket has none. An O_NONBLOCK that operations_connect() has set for a moment doesn't count.
 */
bool gate_may_block(const struct conn *conn, int fd, int flags);

#endif
