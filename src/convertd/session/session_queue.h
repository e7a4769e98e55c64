/* SPDX-License-Identifier: BSD-3-Clause */
/* session_queue.h - the sessions of a pool that are to run: in the next round, or at the end of this one */
#ifndef CONVERTD_SESSION_QUEUE_H
#define CONVERTD_SESSION_QUEUE_H

#include "convertd/session/session_private.h"

/* Has the session run again in the next round, after the others: there is more to do than fits into this one. */
void session_set_hungry(struct session *s);

/* Has the session run at the end of this round, when all events of its sockets are known. */
void session_set_due(struct session *s);

/* Takes the session out of the queue, if it is in there. */
void session_unqueue(struct session *s);

#endif
