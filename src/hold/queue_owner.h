/* SPDX-License-Identifier: BSD-3-Clause */
/* queue_owner.h - owns the netfilter queues in the main process, and passes verdicts on to the kernel */
#ifndef HOLD_QUEUE_OWNER_H
#define HOLD_QUEUE_OWNER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue_owner;

/* Tells whether a SYN may be released to this address and port (host byte order). */
typedef bool queue_owner_policy(const void *policy, const struct in6_addr *destination, uint16_t port);

/*
 * queue_owner_create() - become the owner of @count queues with consecutive numbers, the first free ones from @from on
 * Returns 0 with @out set, or -errno: -EBUSY where none are free, -EPERM without CAP_NET_ADMIN.
 */
int queue_owner_create(struct queue_owner **out, uint16_t from, size_t count);

/* Gives up the queues; the kernel drops packets that still wait in them. NULL is fine. */
void queue_owner_destroy(struct queue_owner *owner);

size_t queue_owner_count(const struct queue_owner *owner);

/* Returns the number of the first queue. */
uint16_t queue_owner_first(const struct queue_owner *owner);

/* Returns the netlink socket from which the packets of queue @index come, which stays the owner's; -1: the queue is closed. */
int queue_owner_packets(const struct queue_owner *owner, size_t index);

/* Returns the serving process's end of the socket for verdicts of queue @index, which the caller closes; -1: it was taken before. */
int queue_owner_take_verdicts(struct queue_owner *owner, size_t index);

/* Returns the socket that is readable when there are verdicts; -1: the other end was closed, and the queue with it. */
int queue_owner_socket(const struct queue_owner *owner, size_t index);

/*
 * queue_owner_serve() - carry out the verdicts that have come, or close the queue if the other end was closed
 * A packet that @allows, which gets @policy, doesn't allow in its changed form goes on as it came. Returns false for a
 * message that doesn't consist of verdicts.
 */
bool queue_owner_serve(struct queue_owner *owner, size_t index, queue_owner_policy *allows, const void *policy);

#endif
