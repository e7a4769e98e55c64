/* SPDX-License-Identifier: BSD-3-Clause */
/* input.h - where an MPTCP socket receives otherwise than a TCP one (Linux 6.18) */
#ifndef SHIM_INPUT_H
#define SHIM_INPUT_H

#include "shim/connect/gate.h"
#include "shim/connect/reset.h"

#include <errno.h>
#include <sys/socket.h>

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

#endif
