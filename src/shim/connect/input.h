/* SPDX-License-Identifier: BSD-3-Clause */
/* input.h - makes input from an MPTCP socket look like input from a TCP one */
#ifndef SHIM_INPUT_H
#define SHIM_INPUT_H

#include "shim/connect/gate.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* --- what the reset of a connection shows of the path to its converter --- */

/* The part of reset_told() for sockets that need a closer look. */
void reset_told_slow(int fd);

/*
 * reset_told() - note that a call of the application on @fd ends with @error, an errno
 * The reset of a silent connection shows that its path may have lost Multipath TCP: exchange_reset_silently(). The kernel reports it once,
 * to the application's first call.
 */
static inline void reset_told(int fd, int error)
{
	if (error == ECONNRESET)
		reset_told_slow(fd);
}

/* --- input --- */

/* Parts of the functions below, for sockets and errors that need a closer look. */
struct gate input_urgent_slow(int fd, int flags);
bool input_ended_slow(int fd);
bool input_is_mptcp(int fd);

/*
 * input_gate() - gate_input() for a call with flags
 * An MPTCP socket ignores MSG_OOB and would return ordinary data; TCP without urgent data returns EINVAL.
 */
static inline struct gate input_gate(int fd, int flags)
{
	return flags & MSG_OOB ? input_urgent_slow(fd, flags) : gate_input(fd, flags);
}

/*
 * input_has_ended() - is a failed recv(2) on @fd the end of the stream?
 * After a failed connection has reported its error, TCP returns 0 as at the end of a stream, and MPTCP returns ENOTCONN, as if there had
 * never been a connection. Reads errno.
 */
static inline bool input_has_ended(int fd)
{
	reset_told(fd, errno);
	return errno == ENOTCONN && input_ended_slow(fd);
}

/* --- MSG_PEEK on an MPTCP socket, as on TCP (Linux before 6.18) --- */

/* The part of peek_prepare() for calls that peek. */
bool peek_prepare_slow(int fd, size_t want, int *flags);

/*
 * peek_prepare() - prepare a call with @flags on @fd, with room for @want bytes, so that it sees all that TCP would show
 *
 * On MPTCP, MSG_PEEK doesn't show bytes that come after those that it has shown; with MSG_WAITALL it waits for them in an endless loop in
 * the kernel (Linux 6.12; 6.1 shows the first ones twice). So we bring the bytes together first, and wait for them here. Returns false with
 * errno set if the wait has failed, and so does the call; else *@flags are the flags for the call.
 */
static inline bool peek_prepare(int fd, size_t want, int *flags)
{
	return !(*flags & MSG_PEEK) || !want || peek_prepare_slow(fd, want, flags);
}

#endif
