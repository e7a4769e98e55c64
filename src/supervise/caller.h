/* SPDX-License-Identifier: BSD-3-Clause */
/* caller.h - whether a call still waits for its connection, and what becomes of that when it doesn't */
#ifndef SUPERVISE_CALLER_H
#define SUPERVISE_CALLER_H

#include "supervise/connection.h"

/* The call has come: notes for how long it may wait. */
void caller_begin(struct connection *connection);

/*
 * caller_look() - does the call still wait, @now, and may it?
 * @caller: look at its thread, too. Returns false if the connection is over because of that.
 */
bool caller_look(struct connection *connection, bool caller, int64_t now);

#endif
