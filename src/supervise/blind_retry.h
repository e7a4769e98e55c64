/* SPDX-License-Identifier: BSD-3-Clause */
/* blind_retry.h - make blind requests again, many at a time, while the supervisor goes on */
#ifndef SUPERVISE_BLIND_RETRY_H
#define SUPERVISE_BLIND_RETRY_H

#include "common/sockaddr.h"
#include "engine/path_start.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What it takes to make a request again. The supervisor has no descriptor of the socket meanwhile, whose end is the program's. */
struct blind_retry {
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
void blind_retry_note(struct blind_retry *repeat, int fd, const void *message, size_t len);

/* A duplicate, to be closed, of the descriptor @at of the thread @tid, if that is the socket's; else -1. */
int blind_retry_open(const struct blind_retry *repeat, pid_t tid, int at);

/*
 * blind_retry_send() - make the request again, on @fd of blind_retry_open(), by the network of @start
 * @count: how often it was made before
 * The socket is hung up for a moment: blind_retry.c keeps that from the program. Returns whether the SYN was sent. If not, the connection
 * goes on as it was, or is over where the SYN+ACK came meanwhile.
 */
bool blind_retry_send(const struct blind_retry *repeat, int fd, const struct path_start *start, unsigned int count);

/* --- make blind requests again, many at a time, while the supervisor goes on --- */

#define BLIND_RETRY_MAX 64 /* requests at a time */

struct blind_retry_order {
	void *owner; /* of whom the order is: the caller's business */
	const struct blind_retry *repeat;
	const struct path_start *start;
	unsigned int count; /* as for blind_retry_send() */
	/* what has become of it */
	bool found;              /* the program has the socket still */
	bool sent;
	int64_t sent_at;         /* nanoseconds of CLOCK_MONOTONIC */
	union sockaddr_ip local; /* the connection's address here */
};

/*
 * blind_retry_start() - have these requests be made again, BLIND_RETRY_MAX at most, each with the fields above that are the caller's
 * What the orders point to is left alone until blind_retry_end(). Returns false, with nothing done, where no thread can be made.
 */
bool blind_retry_start(const struct blind_retry_order *orders, int count);

/* Are there orders on which blind_retry_end() wasn't called? supervision.retry_ready is readable once they are done. */
bool blind_retry_is_busy(void);

/* Ends what was started: returns the orders, and in @count how many they are. */
const struct blind_retry_order *blind_retry_end(int *count);

/*
 * blind_retry_cancel() - the request of this owner isn't to be made again after all; between blind_retry_lock() and blind_retry_unlock()
 * Returns whether it is one of those that are being made: what has become of it is still to come.
 */
bool blind_retry_cancel(const void *owner);

/* Between these no program's socket is hung up by us, so that what is seen of one holds. */
void blind_retry_lock(void);
void blind_retry_unlock(void);

#endif
