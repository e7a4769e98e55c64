/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_judge.h - one worker's part of withholding SYNs: judges each SYN, and connects to its server */
#ifndef SERVE_SYN_JUDGE_H
#define SERVE_SYN_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

struct request_context;
struct syn_judge;

/*
 * syn_judge_create() - create a judge without a queue
 * @context: of its worker; must outlive it
 * Returns NULL if memory is short.
 */
struct syn_judge *syn_judge_create(struct request_context *context);

/* Releases all withheld SYNs, forgets the released ones, and frees the judge. Call in the worker's thread. NULL is fine. */
void syn_judge_destroy(struct syn_judge *judge);

/*
 * syn_judge_open() - take over one of the queues that rights_own_queues() has made
 * Any thread may call it before syn_judge_start(). Returns 0 or -errno.
 */
int syn_judge_open(struct syn_judge *judge, size_t index);

/* Begins to read the queue. Call in the worker's thread. Returns 0 or -ENOMEM. */
int syn_judge_start(struct syn_judge *judge);

/* Applies new settings: releases the SYNs that they don't grant, for their sessions to refuse them. */
void syn_judge_again(struct syn_judge *judge);

/*
 * syn_judge_stop() - release all SYNs and give up the queue
 * @read: the queue gets no more packets: first read those that are in it
 * Call in the worker's thread, or in any thread if syn_judge_start() wasn't called.
 */
void syn_judge_stop(struct syn_judge *judge, bool read);

#endif
