/* SPDX-License-Identifier: BSD-3-Clause */
/* holder.h - a worker's part of withholding SYNs: what becomes of each */
#ifndef CONVERTD_HOLDER_H
#define CONVERTD_HOLDER_H

#include <stdbool.h>
#include <stddef.h>

struct holder;
struct session_pool;

/*
 * holder_create() - one that looks at no SYNs yet
 * @pool: whose worker it is part of, and by whose terms requests are judged
 * Returns NULL without memory.
 */
struct holder *holder_create(struct session_pool *pool);

/* In the worker's thread, as the two below. NULL is fine. */
void holder_destroy(struct holder *holder);

/* hold_forget() */
void holder_forget(struct holder *holder);

/*
 * holder_open() - look after one of the queues that rights_own_queues() has got, in any thread before holder_start()
 * Returns 0 or -errno.
 */
int holder_open(struct holder *holder, size_t index);

/* From now on it looks at what its queue has. Returns 0, or -ENOMEM. */
int holder_start(struct holder *holder);

/* The terms of its pool are others now: lets go of the SYNs that these don't grant, for them to be refused. */
void holder_judge_again(struct holder *holder);

/*
 * holder_stop() - let go of all SYNs and give up the queue
 * @read: nothing is added to the queue any more: look at what is in it first
 * Where holder_start() hasn't been called, in any thread.
 */
void holder_stop(struct holder *holder, bool read);

#endif
