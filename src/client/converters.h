/* SPDX-License-Identifier: BSD-3-Clause */
/* converters.h - the configured converters: their addresses, which one a connection asks, and the facts learned about them */
#ifndef CLIENT_CONVERTERS_H
#define CLIENT_CONVERTERS_H

#include "client/cache.h"
#include "client/handshake.h"
#include "client/settings.h"
#include "convert/convert.h"

#define CONVERTERS_MAX 32 /* addresses over all of CONVERT_ADDR; a bit each in converters_query.tried */
#define CONVERTERS_NONE (-1)

/* Adds the numeric addresses of CONVERT_ADDR. The front end calls it once, before any other function here. */
void converters_init(const struct settings *settings);

/*
 * converters_replace() - take the converters of new settings in place of the present ones
 * No thread may be in another function of this module. Indices stay valid: connections that are being made go on.
 */
void converters_replace(const struct settings *settings);

/* After fork(): releases the table if a thread of the parent, which the child lacks, was adding an address. */
void converters_repair_in_child(void);

/* Returns the number of entries. Indices below it are valid. A full table reuses the index of an address that was retired long ago. */
int converters_count(void);

/* Returns the address of converter @index, with its port. */
const union sockaddr_ip *converters_address(int index);

/*
 * converters_note(), converters_noted() - write and read the facts about converter @index in the user's cache
 * As cache_converter_update() and cache_converter_get().
 */
void converters_note(int index, unsigned int facts, const struct cache_converter *value);
unsigned int converters_noted(int index, unsigned int facts, struct cache_converter *out);

/* --- which converter a connection is made through: converters.c --- */

/* The input of the choice. */
struct converters_query {
	const union sockaddr_ip *destination;
	int family;       /* of the application's socket: AF_INET or AF_INET6 */
	bool v6only;      /* it takes no v4-mapped address */
	bool any_family;  /* the socket can be replaced by one of the other family */
	uint32_t tried;   /* a bit for each converter that must not be chosen again */
	bool may_resolve; /* the call may ask the resolver, which blocks */
};

/*
 * converters_choose() - choose the converter for a connection, in the order of CONVERT_ADDR
 * @out: the address to send the SYN to, in the socket's family unless @query->any_family
 *
 * Resolves a name when its turn comes, and again when none of its addresses can be asked. With CONVERT_FALLBACK=none it takes a converter
 * that rests or has refused the destination if no other is left. Returns the converter's index; CONVERTERS_UNRESOLVED if it has to resolve
 * a name first and the query doesn't allow that; or CONVERTERS_NONE with a static text in @reason. Set @verdict to POLICY_CONVERT before:
 * this changes it only if the destination is a converter itself, or serves to find one.
 */
#define CONVERTERS_UNRESOLVED (-2)
int converters_choose(const struct settings *settings, const struct converters_query *query,
		      union sockaddr_ip *out, enum policy_verdict *verdict, const char **reason);

/*
 * The cookie that a request to a converter carries (RFC 8803, Section 6.2.7)
 *
 * A cookie that a converter gave to any process of the user replaces the configured one. Each cookie has a number. A request notes the
 * number of its cookie, so that the second part of a request has the same cookie as the first.
 */

typedef uint8_t converters_cookie_number;

/* Returns the number of the cookie that requests to converter @index carry now. */
converters_cookie_number converters_cookie_current(int index);

/* Returns the bytes of cookie @number, length 0 for none. They stay until the process has learned three more cookies. */
struct convert_span converters_cookie(const struct settings *settings, int index, converters_cookie_number number);

/* Keeps a cookie that converter @index gave; returns false if it is empty, or longer than CACHE_COOKIE_MAX. */
bool converters_learn_cookie(int index, struct convert_span cookie);

/*
 * converters_forget_cookie() - forget cookie @number, since the converter has refused it
 * The converter has another key by now, or we have another address. Returns false if we didn't learn that cookie from the converter.
 */
bool converters_forget_cookie(int index, converters_cookie_number number);

/*
 * converters_forget() - forget the facts that this process has learned of converters, paths and destinations
 * A front end calls it when a connection is in another network namespace than the one before: the facts may differ there, and the cache has
 * those of that namespace. Cookies stay.
 */
void converters_forget(void);

/* --- facts about each converter as a whole, learned by this process and by the user's others: converters_facts.c --- */

/* Lets converter @index rest for @seconds: no connection goes through it. */
void converters_rest(int index, unsigned int seconds);

/* The same for this process only. */
void converters_rest_here(int index, unsigned int seconds);

/* Makes a fact last until @seconds of clock_seconds(), unless it lasts longer already. */
void facts_extend(_Atomic int64_t *until, int64_t seconds);

/* Does converter @index still rest at the time @now, of clock_seconds()? With INT64_MAX none does. */
bool converters_rests(int index, int64_t now);

/*
 * converters_proved() - note that converter @index sent a valid response
 * For the next hour we attribute a silence of the converter to the server, which may take as long as with a direct connection. Without
 * such proof the address may have no converter, or a middlebox may drop the responses (Section 8): requests then ask for the converter's
 * supported extensions.
 */
void converters_proved(int index);
bool converters_is_proven(int index);

/* Notes that converter @index was silent for too long: it has to prove itself again. */
void converters_doubt(int index);

/* Notes that converter @index served a connection, which proves it, and keeps its answer to an Info TLV, if @told has one. */
void converters_answered(int index, const struct handshake_step *told);

/*
 * converters_withholds_ms() - return for how long at most converter @index withholds SYNs until the server has answered
 * Milliseconds. 0: it doesn't, as far as we know or as the user says; then its SYN+ACK confirms nothing.
 */
unsigned int converters_withholds_ms(const struct settings *settings, int index);

/* Notes that converter @index doesn't withhold SYNs, or not always, although it says so. */
void converters_withholds_nothing(int index);

/* How a converter treats silent requests (doc/private-tlvs.md). */
enum converters_silence {
	CONVERTERS_ANSWERS,  /* as far as is known, the converter answers each request */
	CONVERTERS_SILENT,   /* it takes silent requests */
	CONVERTERS_BLIND,    /* and blind ones */
	CONVERTERS_OUTDATED, /* it took silent requests some time ago: it has to say so again */
};

/*
 * converters_silence() - may requests to converter @index be silent?
 * Yes, if the converter offered that within the last ten minutes, while it withheld SYNs. The time is short because another host may have
 * the address tomorrow, and could take a silent request for data.
 */
enum converters_silence converters_silence(const struct settings *settings, int index);

/* Does the offer to take silent requests end within a minute? A request that renews the offer now saves a later request the wait. */
bool converters_silence_ends_soon(int index);

/* Does converter @index recognize a blind request that a client repeats? It says so together with its offer to take blind requests. */
bool converters_takes_repeats(int index);

/* Does converter @index understand Hold Time TLVs (doc/private-tlvs.md)? It says so together with its offer to withhold SYNs. */
bool converters_takes_hold_times(int index);

/* Notes that converter @index refused a Hold Time TLV, although it says that it understands them. */
void converters_forget_hold_times(int index);

/* Notes that converter @index answered a silent request with neither silence nor a response. */
void converters_forget_silence(int index);

/*
 * converters_doubt_silence() - note that a silent request failed, perhaps because of the converter: it becomes CONVERTERS_OUTDATED
 * The next request of any process asks again, and none is silent before the answer.
 */
void converters_doubt_silence(int index);

/*
 * converters_corrects_windows() - may an MPTCP SYN to converter @index carry data, if several paths come up?
 * A converter on Linux misreads the window of such a SYN unless it corrects windows, as convertd does. Otherwise a download over several
 * paths is slower than over one (src/hold/syn_packet.h). True only if the converter has said within a day, in its answer to an Info TLV,
 * that it corrects them, or if the user says that it withholds SYNs.
 */
bool converters_corrects_windows(const struct settings *settings, int index);

/* Notes that converter @index refuses requests for Multipath TCP towards the server (Unsupported TCP Option). */
void converters_note_no_mptcp(int index);
bool converters_takes_mptcp(int index);

/* Takes over the facts in @found, from converters_noted(). @now: clock_seconds() */
void converters_renew_facts(int index, const struct cache_converter *found, int64_t now);

/* Forgets the facts of this part, except in the cache: converters_forget(). */
void converters_facts_forget(void);

/* --- the destinations that a converter refuses or serves: converters_destinations.c --- */

/*
 * converters_refused() - note that converter @index refuses to serve @destination
 * For @seconds no process of the user asks the converter for that destination. After three refusals in a row for one address family nobody
 * asks it for that family for a while: it may have no route there.
 */
void converters_refused(int index, const union sockaddr_ip *destination, unsigned int seconds);

/* Notes that converter @index reached @destination, which ends its row of refusals. */
void converters_reached(int index, const union sockaddr_ip *destination);

/*
 * converters_unanswered() - note that converter @index, which accepts connections and has never answered, gave no answer about @destination
 * The caller calls converters_refused(), too. If the silences of all the user's processes concern several destinations,
 * the converter is the cause and not a server, and nobody uses the converter for a while.
 */
void converters_unanswered(int index, const union sockaddr_ip *destination);

/* Returns why nobody asks converter @index about @destination for now: the converter refused it, or its address family. NULL: neither. */
const char *converters_refusal(int index, const union sockaddr_ip *destination);

/*
 * converters_admitted() - note that converter @index tried to reach @destination
 * Whether the server answered or not, the converter's rules allow this client that host, on any port. The note lasts ten minutes.
 * The user's other processes see it only for addresses that converters refuse by default (policy_is_private()).
 */
void converters_admitted(int index, const union sockaddr_ip *destination);

/* Has converter @index tried to reach the host of @destination lately? If it hasn't, its rules may refuse the host. */
bool converters_admits(int index, const union sockaddr_ip *destination);

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
