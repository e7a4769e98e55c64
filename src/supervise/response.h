/* SPDX-License-Identifier: BSD-3-Clause */
/* response.h - a converter's response at the head of a stream: what it says, and how it is taken off */
#ifndef SUPERVISE_RESPONSE_H
#define SUPERVISE_RESPONSE_H

#include "supervise/connection.h"

/* Judges the bytes that have arrived. Returns 0 with @out set, or -errno: -EAGAIN if there are none. */
int response_judge(const struct connection *connection, struct handshake_step *out);

/* Takes a response of @length bytes off the stream of @fd, which response_judge() has seen a moment ago. Returns whether it could be. */
bool response_take(int fd, size_t length);

#endif
