/* SPDX-License-Identifier: BSD-3-Clause */
/* session_life.h - a session from accept() to its end */
#ifndef CONVERTD_SESSION_LIFE_H
#define CONVERTD_SESSION_LIFE_H

#include "convertd/session/session_private.h"

/* Does all that can be done now. The session may be gone afterwards. */
void session_advance(struct session *s);

/* What the poller calls for the client's and the server's socket of a session. */
void session_on_upstream(void *session, uint32_t events);
void session_on_downstream(void *session, uint32_t events);

#endif
