/* SPDX-License-Identifier: BSD-3-Clause */
/* again.h - make blind requests again, many at a time, while the supervisor goes on */
#ifndef SUPERVISE_AGAIN_H
#define SUPERVISE_AGAIN_H

#include "supervise/repeat.h"

#define AGAIN_MAX 64 /* requests at a time */

struct again_order {
	void *owner; /* of whom the order is: the caller's business */
	const struct repeat *repeat;
	const struct path_start *start;
	unsigned int count; /* as for repeat_send() */
	/* what has become of it */
	bool found;              /* the program has the socket still */
	bool sent;
	int64_t sent_at;         /* nanoseconds of CLOCK_MONOTONIC */
	union sockaddr_ip local; /* the connection's address here */
};

/*
 * again_start() - have these requests be made again, AGAIN_MAX at most, each with the fields above that are the caller's
 * What the orders point to is left alone until again_end(). Returns false, with nothing done, where no thread can be made.
 */
bool again_start(const struct again_order *orders, int count);

/* Are there orders on which again_end() wasn't called? supervision.again_ready is readable once they are done. */
bool again_is_busy(void);

/* Ends what was started: returns the orders, and in @count how many they are. */
const struct again_order *again_end(int *count);

/*
 * again_cancel() - the request of this owner isn't to be made again after all; between again_lock() and again_unlock()
 * Returns whether it is one of those that are being made: what has become of it is still to come.
 */
bool again_cancel(const void *owner);

/* Between these no program's socket is hung up by us, so that what is seen of one holds. */
void again_lock(void);
void again_unlock(void);

#endif
