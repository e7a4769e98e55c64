/* SPDX-License-Identifier: BSD-3-Clause */
/* session_silence.h - clients that want no response: which of them can't be served */
#ifndef CONVERTD_SESSION_SILENCE_H
#define CONVERTD_SESSION_SILENCE_H

#include "convertd/session/session_private.h"

struct judgement;

/*
 * session_cant_be_silent() - can't a client that wants no response be served without one, nor be told so?
 * Returns why, a constant for the log; NULL: it can, or wants a response.
 */
const char *session_cant_be_silent(const struct session *s, const struct judgement *judgement);

/* In RELAY: has the connection of a silent client, which needs Multipath TCP, become one of TCP? */
bool session_has_fallen_back(struct session *s);

#endif
