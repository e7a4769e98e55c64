/* SPDX-License-Identifier: BSD-3-Clause */
/* hold_queue.h - a netfilter queue in the serving process: reads packets and gives verdicts on them */
#ifndef HOLD_HOLD_QUEUE_H
#define HOLD_HOLD_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hold_queue;

/*
 * Receives each packet that has arrived. The packet waits in the kernel until one of the functions below gives a
 * verdict with its @id.
 * @packet, @len: a copy, from the IP header on; the handler may change it, and must not use it after it has returned
 */
typedef void hold_queue_handler(void *arg, uint32_t id, uint8_t *packet, size_t len);

/*
 * hold_queue_open() - read from a queue that the main process owns (rights_own_queues())
 * @index: the number of the queue among those, from 0
 * @handler: called with @arg for each packet
 * Returns 0 with @queue set, for hold_queue_close(), or -errno.
 */
int hold_queue_open(struct hold_queue **queue, size_t index, hold_queue_handler *handler, void *arg);

/*
 * Sends the collected verdicts, and waits until the main process has given up the queue: the kernel then drops
 * packets that have no verdict. NULL is fine.
 */
void hold_queue_close(struct hold_queue *queue);

/* Returns the descriptor that is readable when packets have arrived. */
int hold_queue_fd(const struct hold_queue *queue);

/*
 * Calls the handler for packets that have arrived, up to a limit. Returns whether there may be more; then the
 * descriptor is readable again.
 */
bool hold_queue_read(struct hold_queue *queue);

/*
 * Verdicts on a packet: hold_queue_pass() lets it go on unchanged, hold_queue_pass_changed() as the given bytes, and
 * hold_queue_drop() drops it. They are collected, and sent to the main process by hold_queue_flush() at the latest.
 */
void hold_queue_pass(struct hold_queue *queue, uint32_t id);
void hold_queue_pass_changed(struct hold_queue *queue, uint32_t id, const uint8_t *packet,
			    size_t len);
void hold_queue_drop(struct hold_queue *queue, uint32_t id);

/* Sends the collected verdicts. Returns false if there is no main process any more. */
bool hold_queue_flush(struct hold_queue *queue);

#endif
