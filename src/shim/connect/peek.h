/* SPDX-License-Identifier: BSD-3-Clause */
/* peek.h - MSG_PEEK on an MPTCP socket, as it is on TCP (Linux before 6.18) */
#ifndef SHIM_PEEK_H
#define SHIM_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

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
