/* SPDX-License-Identifier: BSD-3-Clause */
/* output.h - sends the first output of an application as early data */
#ifndef SHIM_OUTPUT_H
#define SHIM_OUTPUT_H

#include "shim/socket/conn.h"

#include <sys/socket.h>
#include <sys/uio.h>

/*
 * output_fastopen_slow() - the part of output_is_fastopen(), below, for calls that may begin a connection
 * This and all functions below leave errno as it was.
 */
bool output_fastopen_slow(int fd, const struct iovec *iov, size_t count, int flags,
			  const struct sockaddr *addr, socklen_t addrlen, ssize_t *result);

/* Would output be early data on @fd? */
bool output_takes_early(int fd);

/*
 * output_is_early() - are these the first bytes of an application that didn't wait for the server?
 * If so, takes them, and sets @result to the return value for send(2), or -errno. @flags: as in send(2)
 */
bool output_is_early(int fd, const struct iovec *iov, size_t count, int flags, ssize_t *result);

/* Does the same for sendto(MSG_FASTOPEN), which connects to @addr first. */
static inline bool output_is_fastopen(int fd, const struct iovec *iov, size_t count, int flags,
				      const struct sockaddr *addr, socklen_t addrlen,
				      ssize_t *result)
{
	return (flags & MSG_FASTOPEN) && addr &&
	       output_fastopen_slow(fd, iov, count, flags, addr, addrlen, result);
}

#endif
