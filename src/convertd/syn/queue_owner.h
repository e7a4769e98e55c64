/* SPDX-License-Identifier: BSD-3-Clause */
/* queue_owner.h - the netfilter queues as the main process has them: it owns them and gives verdicts */
#ifndef CONVERTD_QUEUE_OWNER_H
#define CONVERTD_QUEUE_OWNER_H

#include "convertd/privilege/warden_policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue_owner;

/*
 * queue_owner_create() - own @count queues with consecutive numbers, the first that are free from @from on
 * Returns 0 with @out set, or -errno: -EBUSY where none are free, -EPERM without CAP_NET_ADMIN.
 */
int queue_owner_create(struct queue_owner **out, uint16_t from, size_t count);

/* Gives up the queues; the kernel drops what still waits in them. NULL is fine. */
void queue_owner_destroy(struct queue_owner *owner);

size_t queue_owner_count(const struct queue_owner *owner);

/* The number of the first queue. */
uint16_t queue_owner_first(const struct queue_owner *owner);

/* The socket that the packets of queue @index come from; it stays the owner's. */
int queue_owner_packets(const struct queue_owner *owner, size_t index);

/* Returns the other end of the socket for the verdicts of queue @index, which is the caller's; -1 if somebody has it already. */
int queue_owner_take_verdicts(struct queue_owner *owner, size_t index);

/* The socket that is readable when there are verdicts; -1: the other end was closed, and the queue was closed with it. */
int queue_owner_socket(const struct queue_owner *owner, size_t index);

/*
 * queue_owner_serve() - carry out the verdicts that have come, or close the queue behind the last
 * A packet that @policy doesn't let go on as it was changed goes on as it came. Returns false for a
 * message that is none of verdicts.
 */
bool queue_owner_serve(struct queue_owner *owner, size_t index, const struct warden_policy *policy);

#endif
