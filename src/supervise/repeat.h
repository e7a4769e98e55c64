/* SPDX-License-Identifier: BSD-3-Clause */
/* repeat.h - make a blind request again, on the program's socket */
#ifndef SUPERVISE_REPEAT_H
#define SUPERVISE_REPEAT_H

#include "common/sockaddr.h"
#include "engine/path_start.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What it takes to make a request again. The supervisor has no descriptor of the socket meanwhile, whose end is the program's. */
struct repeat {
	pid_t tid;       /* a thread of the program's */
	int at;          /* the program's number of the descriptor */
	uint64_t cookie; /* SO_COOKIE of the socket: that which has the number now may be another */
	uint64_t inode;  /* by which /proc names it */
	union sockaddr_ip to;
	uint8_t *message; /* all that the first SYN carried, to be freed; NULL: it can't be made again */
	size_t len;
	bool counted; /* the request has an attempt, and a count of its repeats */
};

/* Notes what it takes, of the socket @fd, over which @len bytes of @message went with the SYN. */
void repeat_note(struct repeat *repeat, int fd, const void *message, size_t len);

/* A duplicate, to be closed, of the descriptor @at of the thread @tid, if that is the socket's; else -1. */
int repeat_open(const struct repeat *repeat, pid_t tid, int at);

/*
 * repeat_send() - make the request again, on @fd of repeat_open(), by the network of @start
 * @count: how often it was made before
 * The socket is hung up for a moment: again.c keeps that from the program. Returns whether the SYN was sent. If not, the connection goes
 * on as it was, or is over where the SYN+ACK came meanwhile.
 */
bool repeat_send(const struct repeat *repeat, int fd, const struct path_start *start, unsigned int count);

#endif
