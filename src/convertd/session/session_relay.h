/* SPDX-License-Identifier: BSD-3-Clause */
/* session_relay.h - a session's relay: what it carries is counted, and what its end is called */
#ifndef CONVERTD_SESSION_RELAY_H
#define CONVERTD_SESSION_RELAY_H

#include "convertd/session/session_private.h"

/* Runs the relay, and counts the bytes that it carries. */
enum relay_result session_relay_run(struct session *s);

/* Looks whether anything moves. Returns OUTCOME_NONE, or why the session ends: a time-out of relay_watch.h. */
enum outcome session_relay_watch(struct session *s);

/* Are bytes on their way to the peer at @end? */
bool session_relay_unsent(const struct session *s, enum relay_end end);

/* What the end of a session is called whose socket at @end has failed. */
enum outcome session_relay_lost(const struct session *s, enum relay_end end);

#endif
