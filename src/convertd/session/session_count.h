/* SPDX-License-Identifier: BSD-3-Clause */
/* session_count.h - what a session counts as: for the limits, and in the metrics */
#ifndef CONVERTD_SESSION_COUNT_H
#define CONVERTD_SESSION_COUNT_H

#include "convertd/session/session_private.h"

/* Adds @by to the pending sessions that the metrics know, if @class is one of these. */
void session_count_pending(struct session *s, enum limits_class class, uint64_t by);

/* Tells the metrics that the limits have changed the session's class, which was @before. */
void session_count_class(struct session *s, enum limits_class before);

/* Has the limits count the session as @class from now on, and the metrics as well. */
void session_set_class(struct session *s, enum limits_class class);

#endif
