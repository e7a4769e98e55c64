/* SPDX-License-Identifier: BSD-3-Clause */
/* converters_destinations.h - the destinations that a converter isn't asked for, since it refused them or was silent, and those that it serves */
#ifndef CLIENT_CONVERTERS_DESTINATIONS_H
#define CLIENT_CONVERTERS_DESTINATIONS_H

#include "client/cache.h"
#include "client/handshake.h"

/*
 * converters_refused() - converter @index won't serve @destination: it isn't asked for that for @seconds
 * A converter that refuses several destinations of one address family in a row, and serves none of it, isn't asked
 * for that family for a while: it may have no way there. Other processes of the user don't ask it either.
 */
void converters_refused(int index, const union sockaddr_ip *destination, unsigned int seconds);

/*
 * converters_served() - converter @index has reached @destination: its refusals before that were about others
 * @told: its response, for converters_answered()
 */
void converters_served(int index, const union sockaddr_ip *destination, const struct handshake_step *told);

/* Does the same after a silent request, to which there is no response. */
void converters_reached(int index, const union sockaddr_ip *destination);

/*
 * converters_silent() - converter @index takes connections, has never answered anything, and has said nothing of @destination
 * The caller calls converters_refused(), too. The silence is noted for the user's other processes; when they find it about
 * other destinations besides, it is no server's, and the converter isn't asked for anything for a while.
 */
void converters_silent(int index, const union sockaddr_ip *destination);

/* Is converter @index not to be asked for @destination at the time @now? INT64_MAX: none is refused then. */
bool converters_has_refused(int index, const union sockaddr_ip *destination, int64_t now);

/* Is it not to be asked for any destination of @destination's address family? */
bool converters_has_refused_family(int index, const union sockaddr_ip *destination, int64_t now);

/*
 * converters_admitted() - converter @index was asked for @destination, and has tried to reach it
 * Whether its server has answered or not: the converter's rules let this client have that host, on any port. It is known for ten minutes,
 * and by the user's other processes where converters refuse such an address as a rule (policy_is_private()).
 */
void converters_admitted(int index, const union sockaddr_ip *destination);

/* Was it lately? What isn't known may be refused. */
bool converters_admits(int index, const union sockaddr_ip *destination);

/* Takes over the silence of @found, of converters_noted(), if CACHE_SILENCE is known. @now: clock_seconds() */
void converters_renew_refusals(int index, const struct cache_converter *found, int64_t now);

/* --- which servers are known to speak Multipath TCP themselves (RFC 8803, Section 5.1) --- */

/*
 * servers_mptcp() - what converter @index has said of @server
 * HANDSHAKE_SERVER_UNKNOWN if nothing, or too long ago;
 * HANDSHAKE_SERVER_PLAIN also if the server was tried directly in vain.
 */
enum handshake_server_mptcp servers_mptcp(int index, const union sockaddr_ip *server);

/* Has any converter said that @server speaks Multipath TCP? */
bool servers_any_mptcp(const union sockaddr_ip *server);

/* Notes what the response of converter @index has said of @server. */
void servers_note_mptcp(int index, const union sockaddr_ip *server, enum handshake_server_mptcp mptcp);

/* Notes that Multipath TCP to @server failed without a converter, so that it isn't tried again for an hour, whoever has said so. */
void servers_note_no_bypass(const union sockaddr_ip *server);

/* Forgets what this process has learned of all destinations: converters_forget(). */
void converters_destinations_forget(void);

#endif
