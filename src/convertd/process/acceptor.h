/* SPDX-License-Identifier: BSD-3-Clause */
/* acceptor.h - a worker's part of a listener: takes clients out of a socket's queue */
#ifndef CONVERTD_ACCEPTOR_H
#define CONVERTD_ACCEPTOR_H

#include <stdbool.h>

struct acceptor;
struct listener;
struct worker_context;

/*
 * acceptor_create() - prepare to accept clients of @listener in @worker
 * Any thread may call this: nothing happens before acceptor_start(). Returns NULL without memory.
 */
struct acceptor *acceptor_create(struct listener *listener, const struct worker_context *worker);

/* Accepts from now on. In the worker's thread. */
void acceptor_start(struct acceptor *acceptor);

/*
 * acceptor_stop() - accept whoever has connected already, and then nobody until acceptor_start()
 * Those who come meanwhile wait in the socket's queue. In the worker's thread.
 */
void acceptor_stop(struct acceptor *acceptor);

/*
 * acceptor_destroy() - accept nobody any more, and close the socket if no other worker has it
 * In the worker's thread, or in any if it was never started. Sessions go on.
 * @drain: first accept whoever has connected already
 */
void acceptor_destroy(struct acceptor *acceptor, bool drain);

#endif
