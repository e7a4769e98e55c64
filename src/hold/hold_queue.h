/* SPDX-License-Identifier: BSD-3-Clause */
/* hold_queue.h - netfilter queues: their packets in the serving process, and their owner in the main process */
#ifndef HOLD_HOLD_QUEUE_H
#define HOLD_HOLD_QUEUE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hold_queue;

/*
 * Receives each packet that has arrived. The packet waits in the kernel until one of the functions below gives a
 * verdict with its @id.
 * @packet, @len: a copy, from the IP header on; the handler may change it, and must not use it after it has returned. 0 bytes:
 *   this host bridges the packet and doesn't route it
 * @in, @out: indexes of the devices at which the packet arrived and by which it is to leave; 0: none yet
 */
typedef void hold_queue_handler(void *arg, uint32_t id, uint8_t *packet, size_t len, unsigned in, unsigned out);

/*
 * hold_queue_open() - read from a queue that the main process owns (rights_own_queues())
 * @index: the number of the queue among those, from 0
 * @handler: called with @arg for each packet
 * Returns 0 with @queue set, for hold_queue_close(), or -errno.
 */
int hold_queue_open(struct hold_queue **queue, size_t index, hold_queue_handler *handler, void *arg);

/*
 * Sends the collected verdicts, and waits until the queue's owner has given it up: the kernel then drops packets that
 * have no verdict. NULL is fine.
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
 * hold_queue_verdict() - let a packet go on, or drop it
 * @packet, @len: the bytes to go on with; NULL, 0: unchanged
 * Verdicts are collected, and sent by hold_queue_flush() at the latest.
 */
void hold_queue_verdict(struct hold_queue *queue, uint32_t id, bool accept, const uint8_t *packet, size_t len);

/* Sends the collected verdicts. */
void hold_queue_flush(struct hold_queue *queue);

/* ----- the queues in the main process, which owns them: queue_owner.c ----- */

struct queue_owner;

/* Tells whether a SYN may be released to this address and port (host byte order). */
typedef bool queue_owner_policy(const void *policy, const struct in6_addr *destination, uint16_t port);

/*
 * queue_owner_create() - become the owner of @count queues with consecutive numbers, the first free ones from @from on
 * Returns 0 with @out set, or -errno: -EBUSY where none are free, -EPERM without CAP_NET_ADMIN.
 */
int queue_owner_create(struct queue_owner **out, uint16_t from, size_t count);

/*
 * queue_owner_set_send() - let @send send each changed SYN that goes on, while the kernel drops the original
 * @send: gets the packet from the IP header on; returns false to leave it to the kernel. NULL: the kernel sends all
 */
typedef bool queue_owner_send(const uint8_t *packet, size_t len);
void queue_owner_set_send(struct queue_owner *owner, queue_owner_send *send);

/* Gives up the queues; the kernel drops packets that still wait in them. NULL is fine. */
void queue_owner_destroy(struct queue_owner *owner);

size_t queue_owner_count(const struct queue_owner *owner);

/* Returns the number of the first queue. */
uint16_t queue_owner_first(const struct queue_owner *owner);

/* Returns the netlink socket from which the packets of queue @index come, which stays the owner's; -1: the queue is closed. */
int queue_owner_packets(const struct queue_owner *owner, size_t index);

/* Gives up queue @index, once the reader of its packets has closed its socket; the kernel drops packets that still wait in it. */
void queue_owner_close(struct queue_owner *owner, size_t index);

/* Returns the serving process's end of the socket for verdicts of queue @index, which the caller closes; -1: it was taken before. */
int queue_owner_take_verdicts(struct queue_owner *owner, size_t index);

/* Returns the socket that is readable when there are verdicts; -1: the other end was closed, and the queue with it. */
int queue_owner_socket(const struct queue_owner *owner, size_t index);

/*
 * queue_owner_carry_out() - carry out verdicts on packets of queue @index, as warden_verdict_next() reads them
 * If @allows, called with @policy, forbids a changed packet, that packet goes on as it came; NULL allows all. Several threads may call this
 * at once, for different queues. Returns false for bytes that aren't verdicts.
 */
bool queue_owner_carry_out(struct queue_owner *owner, size_t index, const uint8_t *verdicts, size_t len, queue_owner_policy *allows,
			   const void *policy);

/*
 * queue_owner_serve() - carry out the verdicts that have come by its socket, or close the queue if the other end was closed
 * For the process that has the rights, on behalf of another one. Returns as queue_owner_carry_out().
 */
bool queue_owner_serve(struct queue_owner *owner, size_t index, queue_owner_policy *allows, const void *policy);

#endif
