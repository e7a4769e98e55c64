/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_queue.h - a netfilter queue: packets from the kernel, and what becomes of them */
#ifndef CONVERTD_SYN_QUEUE_H
#define CONVERTD_SYN_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct syn_queue;

/*
 * Called for each packet that has arrived. It waits in the kernel until one of the functions below is called with its
 * @id. @packet: from the IP header on; the handler may change it, and must not use it after it has returned
 */
typedef void syn_queue_handler(void *arg, uint32_t id, uint8_t *packet, size_t len);

/*
 * syn_queue_open() - read from a queue that the main process owns (rights_own_queues())
 * @index: which one of them. Returns 0 with @queue set, or -errno.
 */
int syn_queue_open(struct syn_queue **queue, size_t index, syn_queue_handler *handler, void *arg);

/*
 * Gives the verdicts that there are, and waits until the main process has given up the queue: the kernel drops
 * what still waits. NULL is fine.
 */
void syn_queue_close(struct syn_queue *queue);

/* The descriptor that is readable when packets have arrived. */
int syn_queue_fd(const struct syn_queue *queue);

/* Hands over what has arrived, some packets at most. Returns whether there may be more: it is readable then. */
bool syn_queue_read(struct syn_queue *queue);

/*
 * Verdicts on a packet: it goes on as it is, or as these bytes, or it is dropped. They go to the main process together, at
 * syn_queue_flush() at the latest.
 */
void syn_queue_pass(struct syn_queue *queue, uint32_t id);
void syn_queue_pass_changed(struct syn_queue *queue, uint32_t id, const uint8_t *packet,
			    size_t len);
void syn_queue_drop(struct syn_queue *queue, uint32_t id);

/* Sends the verdicts that there are. Returns false if there is no main process any more. */
bool syn_queue_flush(struct syn_queue *queue);

#endif
