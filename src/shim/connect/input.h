/* SPDX-License-Identifier: BSD-3-Clause */
/* input.h - where an MPTCP socket receives otherwise than a TCP one (Linux 6.18) */
#ifndef SHIM_INPUT_H
#define SHIM_INPUT_H

#include "shim/connect/gate.h"

#include <errno.h>
#include <sys/socket.h>

struct gate input_urgent_slow(int fd, int flags);
bool input_ended_slow(int fd);
bool input_is_mptcp(int fd);

/*
 * input_gate() - gate_input() for what has flags
 * MPTCP has no urgent data and takes MSG_OOB for ordinary data; TCP says EINVAL if there is none.
 */
static inline struct gate input_gate(int fd, int flags)
{
	return flags & MSG_OOB ? input_urgent_slow(fd, flags) : gate_input(fd, flags);
}

/*
 * input_has_ended() - is a failed recv(2) on @fd the end of the stream?
 * Once a connection has failed, and that was told, TCP gives 0 as at its end; MPTCP ENOTCONN, as if there
 * had never been one. Looks at errno.
 */
static inline bool input_has_ended(int fd)
{
	return errno == ENOTCONN && input_ended_slow(fd);
}

#endif
