/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_judge.h - one worker's part of withholding SYNs: judges each SYN, and asks its server */
#ifndef SERVE_SYN_JUDGE_H
#define SERVE_SYN_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

struct request_context;
struct syn_judge;

/*
 * syn_judge_create() - has no queue yet
 * @context: of its worker; must outlive it
 * Returns NULL without memory.
 */
struct syn_judge *syn_judge_create(struct request_context *context);

/* Releases what is withheld, forgets what was released, and frees it; in the worker's thread. NULL is fine. */
void syn_judge_destroy(struct syn_judge *judge);

/*
 * syn_judge_open() - takes over one of the queues that rights_own_queues() has made
 * Any thread may call it before syn_judge_start(). Returns 0 or -errno.
 */
int syn_judge_open(struct syn_judge *judge, size_t index);

/* Begins to read the queue, in the worker's thread. Returns 0 or -ENOMEM. */
int syn_judge_start(struct syn_judge *judge);

/* The settings have changed: releases the SYNs that these don't grant, for their sessions to refuse them. */
void syn_judge_again(struct syn_judge *judge);

/*
 * syn_judge_stop() - releases all SYNs and gives up the queue
 * @read: nothing comes into the queue any more: read first what is in it
 * In the worker's thread; in any thread where syn_judge_start() hasn't been called.
 */
void syn_judge_stop(struct syn_judge *judge, bool read);

#endif
