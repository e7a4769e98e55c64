/* SPDX-License-Identifier: BSD-3-Clause */
/* hold_queue.h - a netfilter queue in the serving process: reads packets and gives verdicts on them */
#ifndef HOLD_HOLD_QUEUE_H
#define HOLD_HOLD_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct syn_queue;

/*
 * Called for each packet that has arrived. The packet waits in the kernel until one of the verdicts below is given with
 * its @id. @packet, @len: a copy, from the IP header on; the handler may change it, and must not use it after it has returned
 */
typedef void syn_queue_handler(void *arg, uint32_t id, uint8_t *packet, size_t len);

/*
 * syn_queue_open() - read from a queue that the main process owns (rights_own_queues())
 * @index: the number of the queue among those, from 0
 * @handler: called with @arg for each packet
 * Returns 0 with @queue set, for syn_queue_close(), or -errno.
 */
int syn_queue_open(struct syn_queue **queue, size_t index, syn_queue_handler *handler, void *arg);

/*
 * Sends the collected verdicts, and waits until the main process has given up the queue: the kernel then drops
 * packets that have no verdict. NULL is fine.
 */
void syn_queue_close(struct syn_queue *queue);

/* Returns the descriptor that is readable when packets have arrived. */
int syn_queue_fd(const struct syn_queue *queue);

/*
 * Calls the handler for packets that have arrived, a limited number of them. Returns whether there may be more, for which
 * the descriptor is readable again.
 */
bool syn_queue_read(struct syn_queue *queue);

/*
 * Verdicts on a packet: syn_queue_pass() lets it go on unchanged, syn_queue_pass_changed() as the given bytes, and
 * syn_queue_drop() drops it. They are collected, and sent to the main process by syn_queue_flush() at the latest.
 */
void syn_queue_pass(struct syn_queue *queue, uint32_t id);
void syn_queue_pass_changed(struct syn_queue *queue, uint32_t id, const uint8_t *packet,
			    size_t len);
void syn_queue_drop(struct syn_queue *queue, uint32_t id);

/* Sends the collected verdicts. Returns false if there is no main process any more. */
bool syn_queue_flush(struct syn_queue *queue);

#endif
