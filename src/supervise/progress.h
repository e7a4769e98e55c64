/* SPDX-License-Identifier: BSD-3-Clause */
/* progress.h - a connection from its call to the answer */
#ifndef SUPERVISE_PROGRESS_H
#define SUPERVISE_PROGRESS_H

#include "client/converters.h"
#include "supervise/connection.h"

/* Begins a connection whose call has just come. It may be answered, and forgotten, when this returns; so with all below. */
void progress_begin(struct connection *connection);

/* Something has happened on the socket, or look_at is over. */
void progress_step(struct connection *connection);

/* A converter's name was looked up: all that wait for it go on. */
void progress_resolved(void);

/* Looks at those connections whose time has come. Returns how many milliseconds there are until the next one, -1 for ever. */
int progress_look(void);

#endif
