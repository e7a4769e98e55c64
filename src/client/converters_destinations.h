/* SPDX-License-Identifier: BSD-3-Clause */
/* converters_destinations.h - the destinations that a converter refuses or serves, and the servers that speak Multipath TCP */
#ifndef CLIENT_CONVERTERS_DESTINATIONS_H
#define CLIENT_CONVERTERS_DESTINATIONS_H

#include "client/cache.h"
#include "client/handshake.h"

/*
 * converters_refused() - note that converter @index refuses to serve @destination
 * For @seconds no process of the user asks it for that destination. After three refusals in a row for one address family nobody asks it for
 * that family for a while: it may have no route there.
 */
void converters_refused(int index, const union sockaddr_ip *destination, unsigned int seconds);

/*
 * converters_served() - note that converter @index reached @destination, which ends its row of refusals
 * @told: its response, for converters_answered()
 */
void converters_served(int index, const union sockaddr_ip *destination, const struct handshake_step *told);

/* Does the same after a silent request, which has no response. */
void converters_reached(int index, const union sockaddr_ip *destination);

/*
 * converters_silent() - note that converter @index, which accepts connections and has never answered, gave no answer about @destination
 * The caller calls converters_refused(), too. The user's other processes learn of the silence. If it concerns several destinations, the
 * converter is the cause and not a server, and nobody uses the converter for a while.
 */
void converters_silent(int index, const union sockaddr_ip *destination);

/* Has converter @index refused @destination, so that nobody asks it at the time @now? With INT64_MAX no refusal counts. */
bool converters_has_refused(int index, const union sockaddr_ip *destination, int64_t now);

/* Has it refused the address family of @destination in the same way? */
bool converters_has_refused_family(int index, const union sockaddr_ip *destination, int64_t now);

/*
 * converters_admitted() - note that converter @index tried to reach @destination
 * Whether the server answered or not, the converter's rules allow this client that host, on any port. The note lasts ten minutes,
 * and by the user's other processes where converters refuse such an address as a rule (policy_is_private()).
 */
void converters_admitted(int index, const union sockaddr_ip *destination);

/* Has it tried to reach that host lately? If not, it may refuse the host. */
bool converters_admits(int index, const union sockaddr_ip *destination);

/* Takes over the silence in @found, from converters_noted(), if CACHE_SILENCE is known. @now: clock_seconds() */
void converters_renew_refusals(int index, const struct cache_converter *found, int64_t now);

/* --- which servers are known to speak Multipath TCP themselves (RFC 8803, Section 5.1) --- */

/*
 * servers_mptcp() - return what converter @index has said about @server
 * HANDSHAKE_SERVER_UNKNOWN if it said nothing, or said it too long ago; HANDSHAKE_SERVER_PLAIN also if a direct attempt failed.
 */
enum handshake_server_mptcp servers_mptcp(int index, const union sockaddr_ip *server);

/* Has any converter said that @server speaks Multipath TCP? */
bool servers_any_mptcp(const union sockaddr_ip *server);

/* Notes what converter @index said about @server in its response. */
void servers_note_mptcp(int index, const union sockaddr_ip *server, enum handshake_server_mptcp mptcp);

/* Notes that Multipath TCP to @server failed without a converter, so that no connection tries it again for an hour. */
void servers_note_no_bypass(const union sockaddr_ip *server);

/* Forgets what this process has learned about all destinations: converters_forget(). */
void converters_destinations_forget(void);

#endif
