/* SPDX-License-Identifier: BSD-3-Clause */
/* converters_facts.h - facts about each converter as a whole, learned by this process and by the user's others */
#ifndef CLIENT_CONVERTERS_FACTS_H
#define CLIENT_CONVERTERS_FACTS_H

#include "client/cache.h"
#include "client/handshake.h"
#include "client/settings.h"

/* Lets converter @index rest for @seconds: no connection goes through it. */
void converters_rest(int index, unsigned int seconds);

/* Does it still rest at the time @now, of clock_seconds()? With INT64_MAX none does. */
bool converters_rests(int index, int64_t now);

/*
 * converters_proved() - note that it sent a valid response
 * For the next hour we attribute its silence to the server, which may take as long as with a direct connection. Without such proof the
 * address may have no converter, or a middlebox may drop the responses (Section 8): requests then ask for the converter's supported
 * extensions.
 */
void converters_proved(int index);
bool converters_is_proven(int index);

/* Notes that it was silent for too long: it has to prove itself again. */
void converters_doubt(int index);

/* Notes that it served a connection, which proves it, and keeps its answer to an Info TLV, if @told has one. */
void converters_answered(int index, const struct handshake_step *told);

/*
 * converters_withholds_ms() - return for how long at most it withholds SYNs until the server has answered
 * Milliseconds. 0: it doesn't, as far as we know or as the user says; then its SYN+ACK confirms nothing.
 */
unsigned int converters_withholds_ms(const struct settings *settings, int index);

/* Notes that it doesn't withhold SYNs, or not always, although it says so. */
void converters_withholds_nothing(int index);

/* How a converter treats silent requests (doc/private-tlvs.md). */
enum converters_silence {
	CONVERTERS_ANSWERS,  /* as far as is known, it answers each request */
	CONVERTERS_SILENT,   /* it takes silent requests */
	CONVERTERS_BLIND,    /* and blind ones */
	CONVERTERS_OUTDATED, /* it took silent requests some time ago: it has to say so again */
};

/*
 * converters_silence() - may requests to it be silent?
 * Yes, if it offered that within the last ten minutes, while it withheld SYNs. The time is short because another host may have the address
 * tomorrow, and could take a silent request for data.
 */
enum converters_silence converters_silence(const struct settings *settings, int index);

/* Does that offer end within a minute? A request that renews it now saves a later one the wait. */
bool converters_silence_ends_soon(int index);

/* Does it recognize a blind request that a client repeats? It says so together with its offer to take blind requests. */
bool converters_takes_repeats(int index);

/* Does it understand Hold Time TLVs (doc/private-tlvs.md)? It says so together with its offer to withhold SYNs. */
bool converters_takes_hold_times(int index);

/* Notes that it refused a Hold Time TLV, although it says otherwise. */
void converters_forget_hold_times(int index);

/* Notes that it answered a silent request with neither silence nor a response. */
void converters_forget_silence(int index);

/*
 * converters_doubt_silence() - note that a silent request failed, perhaps because of the converter: it becomes CONVERTERS_OUTDATED
 * The next request of any process asks again, and none is silent before the answer.
 */
void converters_doubt_silence(int index);

/*
 * converters_corrects_windows() - may an MPTCP SYN to it carry data, if several paths come up?
 * A converter on Linux misreads the window of such a SYN unless convertd corrects it, and a download over several paths is then slower
 * than over one (src/hold/syn_window.c). False unless the converter
 * has said so within a day, in its answer to an Info TLV, or the user says that it withholds SYNs.
 */
bool converters_corrects_windows(const struct settings *settings, int index);

/* Notes that it refuses requests for Multipath TCP towards the server (Unsupported TCP Option). */
void converters_note_no_mptcp(int index);
bool converters_take_mptcp(int index);

/*
 * converters_mptcp() - does Multipath TCP get through to it?
 * LOST: it failed at the SYN+ACK or right behind the handshake. Connections use plain TCP for a while, since a socket that falls back loses
 * bytes. HOLDS: it worked lately, and a connection need not wait for the converter's first bytes to be sure. DOUBTED: the next connection
 * tries it again, and waits for these bytes.
 */
enum cache_mptcp converters_mptcp(int index);

/* Notes that a connection kept its Multipath TCP. */
void converters_note_mptcp(int index);

/*
 * converters_note_fallback() - note that a connection fell back to TCP
 * Where Multipath TCP held before, a lost packet may be the cause. We consider it lost when a connection that began later falls back as
 * well, within ten minutes and before another connection has kept it. @syn_at: CLOCK_MONOTONIC in ns, when the SYN was sent
 */
void converters_note_fallback(int index, int64_t syn_at);

/* Forgets that Multipath TCP gets through to it, if that was known. */
void converters_doubt_mptcp(int index);

/* Takes over the facts in @found, from converters_noted(). @now: clock_seconds() */
void converters_renew_facts(int index, const struct cache_converter *found, int64_t now);

/* Forgets all of this, except in the cache: converters_forget(). */
void converters_facts_forget(void);

#endif
