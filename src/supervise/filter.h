/* SPDX-License-Identifier: BSD-3-Clause */
/* filter.h - which system calls of a supervised program stop until the supervisor has answered */
#ifndef SUPERVISE_FILTER_H
#define SUPERVISE_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The calls that the supervisor handles, independent of their numbers on the caller's architecture. */
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
	FILTER_SOCKETCALL,     /* i386: the calls above under one number, with their arguments in memory (socketcall(2)) */
	FILTER_IO_URING_SETUP, /* the filter answers this one itself */
	FILTER_CALL_COUNT
};

#define FILTER_LENGTH_MAX 768 /* instructions; the kernel takes 4096 */

/*
 * filter_build() - write the filter, for all architectures whose programs this kernel may run
 * Returns its length; 0 on an unknown machine.
 */
size_t filter_build(struct sock_filter out[static FILTER_LENGTH_MAX]);

/*
 * filter_call_of() - identify the call @number of a program with the audit architecture @arch
 * @narrow: set if pointers and sizes in memory have 32 bits. Returns FILTER_CALL_COUNT for a call that the filter doesn't stop.
 */
enum filter_call filter_call_of(uint32_t arch, int number, bool *narrow);

/* Identifies a call by its number in socketcall(2). Returns FILTER_CALL_COUNT for a call that the supervisor doesn't handle. */
enum filter_call filter_socketcall_of(unsigned int number);

#endif
