/* SPDX-License-Identifier: BSD-3-Clause */
/* session_place.h - does a session lead back to this host? */
#ifndef CONVERTD_SESSION_PLACE_H
#define CONVERTD_SESSION_PLACE_H

#include "convertd/session/session_private.h"

struct tcp_info;

/* Looks at the client's first bytes for its server: those behind its request. */
void session_look_early(struct session *s, const uint8_t *early, size_t len);

/* Likewise in RELAY: those that are still in the client's socket. */
void session_look_first(struct session *s);

/* Does the session wait for what comes of a look at its server? Then its deadline is set. */
bool session_awaits_token(struct session *s);

/*
 * Has it turned out that its server is this host, which no rule opens?
 * @info: of the server's connection if that has just been made; NULL where it was looked at then
 */
bool session_leads_here(struct session *s, const struct tcp_info *info);

#endif
