/* SPDX-License-Identifier: BSD-3-Clause */
/* tally.h - what becomes of each connection that tally.c makes, and the system calls by which it makes them */
#ifndef TALLY_H
#define TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Each function returns as the system call does that it is called after: -1 with errno. */
struct way {
	const char *name;
	bool (*open)(void); /* false: this kernel, or whoever stands in front of it, has no such calls */
	int (*connect)(int fd, const struct sockaddr *to, socklen_t len);
	ssize_t (*send)(int fd, const void *data, size_t len);
	ssize_t (*recv)(int fd, void *data, size_t len);
};

/* The C library's calls, and what a program without io_uring falls back to. */
extern const struct way plain_way;

/* For WITH_URING (tally_uring.c): all by io_uring; connected and written by the C library, received by io_uring. */
extern const struct way uring_way, uring_recv_way;

#endif
