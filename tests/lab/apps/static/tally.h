/* SPDX-License-Identifier: BSD-3-Clause */
/* tally.h - the calls by which tally.c makes its connections */
#ifndef TALLY_H
#define TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Each function returns as the system call of its name does: -1 with errno. */
struct way {
	const char *name;
	bool (*open)(void); /* false: the kernel, or a supervisor in front of it, lacks these calls */
	int (*connect)(int fd, const struct sockaddr *to, socklen_t len);
	ssize_t (*send)(int fd, const void *data, size_t len);
	ssize_t (*recv)(int fd, void *data, size_t len);
};

/* The C library's calls, also the alternative to io_uring. */
extern const struct way plain_way;

/* For WITH_URING (tally_uring.c): all calls by io_uring; connect and send by the C library, receive by io_uring. */
extern const struct way uring_way, uring_recv_way;

#endif
