/* SPDX-License-Identifier: BSD-3-Clause */
/* blind_retry.h - makes blind requests again, many at a time, in a thread of its own */
#ifndef SUPERVISE_BLIND_RETRY_H
#define SUPERVISE_BLIND_RETRY_H

#include "common/sockaddr.h"
#include "engine/path_start.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All that is needed to make a request again. The supervisor keeps no descriptor of the socket, so that the program's close() ends it. */
struct blind_retry {
	pid_t tid;       /* a thread of the program */
	int at;          /* the program's descriptor number */
	uint64_t cookie; /* SO_COOKIE of the socket, since @at may be another socket by now */
	uint64_t inode;  /* the socket's name in /proc */
	union sockaddr_ip to;
	uint8_t *message; /* all that the first SYN carried, owned, to be freed; NULL: the request can't be made again */
	size_t len;
	bool counted; /* the request has an Attempt, with a count of its repeats */
};

/* Fills @repeat for the socket @fd, whose SYN carried the @len bytes of @message. */
void blind_retry_note(struct blind_retry *repeat, int fd, const void *message, size_t len);

/* Returns a duplicate, to be closed, of the descriptor @at of the thread @tid if it refers to the socket; else -1. */
int blind_retry_open(const struct blind_retry *repeat, pid_t tid, int at);

/*
 * blind_retry_send() - make the request again, on @fd of blind_retry_open(), over the network of @start
 * @count: how often it was made before
 * The socket is disconnected for a moment; blind_retry.c hides that from the program. Returns whether the SYN was sent. If not, the
 * connection continues unchanged, or it is over because the SYN+ACK came meanwhile.
 */
bool blind_retry_send(const struct blind_retry *repeat, int fd, const struct path_start *start, unsigned int count);

/* --- many requests at a time, in a thread --- */

#define BLIND_RETRY_MAX 64 /* requests at a time */

struct blind_retry_order {
	void *owner; /* the caller's own */
	const struct blind_retry *repeat;
	const struct path_start *start;
	unsigned int count; /* as for blind_retry_send() */
	/* the result */
	bool found;              /* the program still has the socket */
	bool sent;
	int64_t sent_at;         /* nanoseconds of CLOCK_MONOTONIC */
	union sockaddr_ip local; /* the connection's address here */
};

/*
 * blind_retry_start() - start a thread that makes these requests again, BLIND_RETRY_MAX at most
 * The caller fills the fields above the result, and doesn't touch what they point to until blind_retry_end(). Returns false, with nothing
 * done, if no thread can be created.
 */
bool blind_retry_start(const struct blind_retry_order *orders, int count);

/* Returns whether blind_retry_end() is still to be called. supervision.retry_ready becomes readable when the orders are done. */
bool blind_retry_is_busy(void);

/* Ends the thread, and returns the orders with their results, @count of them. */
const struct blind_retry_order *blind_retry_end(int *count);

/*
 * blind_retry_cancel() - don't make the request of this owner again; call with blind_retry_lock() held
 * Returns whether the thread has the order: then blind_retry_end() still returns its result.
 */
bool blind_retry_cancel(const void *owner);

/* The lock keeps the thread from disconnecting a program's socket, so that its state stays as we saw it. */
void blind_retry_lock(void);
void blind_retry_unlock(void);

#endif
