/* SPDX-License-Identifier: BSD-3-Clause */
/* holder.h - a worker's part of withholding SYNs: what becomes of each */
#ifndef CONVERTD_HOLDER_H
#define CONVERTD_HOLDER_H

#include <stdbool.h>
#include <stdint.h>

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

/*
 * holder_open() - own the netfilter queue of this number, in any thread before holder_start()
 * Returns 0 or -errno: -EBUSY for a queue that has an owner, -EPERM without CAP_NET_ADMIN.
 */
int holder_open(struct holder *holder, uint16_t number);

/* From now on it looks at what its queue has. Returns 0, or -ENOMEM. */
int holder_start(struct holder *holder);

/*
 * holder_stop() - let go of all SYNs and give up the queue
 * @read: nothing is added to the queue any more: look at what is in it first
 * Where holder_start() hasn't been called, in any thread.
 */
void holder_stop(struct holder *holder, bool read);

#endif
