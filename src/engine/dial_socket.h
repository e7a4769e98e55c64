/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dial_socket.h - the operations on dial->fd that are the same for all front ends
 *
 * The engine itself makes no system call: these functions are compiled into each front end, with its way to the kernel (kernel_socket.h).
 */
#ifndef ENGINE_DIAL_SOCKET_H
#define ENGINE_DIAL_SOCKET_H

#include "common/kernel_socket.h"
#include "engine/dial.h"

static uint64_t dial_socket_cookie(const struct dial *dial)
{
	return kernel_cookie(dial->fd);
}

static void dial_socket_info(struct dial *dial, struct tcp_info *out)
{
	*out = kernel_tcp_info(dial->fd);
}

static bool dial_socket_fell_back(struct dial *dial)
{
	return kernel_has_fallen_back(dial->fd);
}

static ssize_t dial_socket_peek(struct dial *dial, uint8_t *buffer, size_t size, bool *ended)
{
	return kernel_peek(dial->fd, buffer, size, ended);
}

/* Not inlined, so that its buffer isn't on the stack later. */
__attribute__((noinline)) static bool dial_socket_take(struct dial *dial, size_t bytes)
{
	return kernel_take(dial->fd, bytes);
}

/* For front ends that keep no error themselves. */
static inline int dial_socket_error(struct dial *dial)
{
	return kernel_get(dial->fd, SOL_SOCKET, SO_ERROR, 0);
}

#define DIAL_SOCKET_OPERATIONS                                                                                        \
	.cookie = dial_socket_cookie, .info = dial_socket_info, .fell_back = dial_socket_fell_back, .peek = dial_socket_peek, \
	.take = dial_socket_take

#endif
