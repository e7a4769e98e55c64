/* SPDX-License-Identifier: BSD-3-Clause */
/* progress.h - a connection from its call to the answer */
#ifndef SUPERVISE_PROGRESS_H
#define SUPERVISE_PROGRESS_H

#include "client/converters.h"
#include "supervise/connection.h"

/* Begins a connection whose call has just come. This and all functions below may answer the call, and free @connection. */
void progress_begin(struct connection *connection);

/* Takes the next step, after an event on the socket or at look_at. */
void progress_step(struct connection *connection);

/* Continues all connections that waited for the lookup of a converter's name. */
void progress_resolved(void);

/* Looks at all connections that are due. Returns the milliseconds until the next one is due; -1 for ever. */
int progress_look(void);

#endif
