/* SPDX-License-Identifier: BSD-3-Clause */
/* input.h - where an MPTCP socket receives otherwise than a TCP one */
#ifndef SHIM_INPUT_H
#define SHIM_INPUT_H

#include "shim/connect/gate.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* --- what an application's connection that was reset says of the path to its converter --- */

/* The part of reset_told() for sockets that need a closer look. */
void reset_told_slow(int fd);

/*
 * reset_told() - a call of the application on @fd ends with @error, an errno
 * By a reset a silent connection tells that its path may have lost Multipath TCP: exchange_reset_silently(). An application is told
 * of it once, by whatever call comes first.
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
 * input_gate() - gate_input() for a call that has flags
 * An MPTCP socket ignores MSG_OOB and would return ordinary data, where TCP without urgent data says EINVAL.
 */
static inline struct gate input_gate(int fd, int flags)
{
	return flags & MSG_OOB ? input_urgent_slow(fd, flags) : gate_input(fd, flags);
}

/*
 * input_has_ended() - is a failed recv(2) on @fd the end of the stream?
 * After a connection has failed, and the error was told, TCP returns 0 as at the end of a stream, and MPTCP ENOTCONN, as if
 * there had never been a connection. Looks at errno.
 */
static inline bool input_has_ended(int fd)
{
	reset_told(fd, errno);
	return errno == ENOTCONN && input_ended_slow(fd);
}

/* --- MSG_PEEK on an MPTCP socket, as it is on TCP (Linux before 6.18) --- */

/* The part of peek_prepare() for calls that peek. */
bool peek_prepare_slow(int fd, size_t want, int *flags);

/*
 * peek_prepare() - has a call with @flags on @fd, which has room for @want bytes, see all that TCP would show
 *
 * Behind bytes that MSG_PEEK has shown it shows no later ones on MPTCP, and with MSG_WAITALL waits for them in a loop in the kernel that has no
 * end (Linux 6.12; 6.1 shows the first ones twice). So they are brought together first, and waited for here. Returns false, with errno set,
 * where the call fails for what the wait has ended with; else *@flags are those to call with.
 */
static inline bool peek_prepare(int fd, size_t want, int *flags)
{
	return !(*flags & MSG_PEEK) || !want || peek_prepare_slow(fd, want, flags);
}

#endif
