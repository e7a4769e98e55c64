/* SPDX-License-Identifier: BSD-3-Clause */
/* filter.h - which system calls of a supervised program stop until the supervisor has answered */
#ifndef SUPERVISE_FILTER_H
#define SUPERVISE_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a call is to the supervisor, whatever its number on the caller's architecture. */
enum filter_call {
	FILTER_SOCKET,
	FILTER_CONNECT,
	FILTER_GETPEERNAME,
	FILTER_SENDTO,
	FILTER_SENDMSG,
	FILTER_SENDMMSG,
	FILTER_SETSOCKOPT,
	FILTER_GETSOCKOPT,
	FILTER_LISTEN,
	FILTER_SOCKETCALL,     /* i386: the calls above by one number, with their arguments in memory (socketcall(2)) */
	FILTER_IO_URING_SETUP, /* never seen by the supervisor: the filter answers it */
	FILTER_CALL_COUNT
};

#define FILTER_LENGTH_MAX 768 /* instructions; the kernel takes 4096 */

/*
 * filter_build() - the filter, for all architectures whose programs this kernel may run. Returns its length, 0 on a machine it
 * doesn't know.
 */
size_t filter_build(struct sock_filter out[static FILTER_LENGTH_MAX]);

/*
 * filter_call_of() - what the call @number is, of a program with the audit architecture @arch
 * @narrow: set if pointers and sizes in memory have 32 bits. Returns FILTER_CALL_COUNT for one that the filter doesn't stop.
 */
enum filter_call filter_call_of(uint32_t arch, int number, bool *narrow);

/* The number of socketcall(2) for a call, or FILTER_CALL_COUNT for one that is none of the supervisor's. */
enum filter_call filter_socketcall_of(unsigned int number);

#endif
