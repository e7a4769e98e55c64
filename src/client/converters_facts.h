/* SPDX-License-Identifier: BSD-3-Clause */
/* converters_facts.h - what was learned of each converter as a whole, by this process and by the user's others */
#ifndef CLIENT_CONVERTERS_FACTS_H
#define CLIENT_CONVERTERS_FACTS_H

#include "client/cache.h"
#include "client/handshake.h"
#include "client/settings.h"

/* Converter @index isn't asked for anything for @seconds. */
void converters_rest(int index, unsigned int seconds);

/* Is it still left alone at the time @now, of clock_seconds()? INT64_MAX: none is then. */
bool converters_rests(int index, int64_t now);

/*
 * converters_proved() - a valid response came from it
 * From now on, for an hour, its silence is the server's, who may take as long as with a direct
 * connection; until then it may as well be no converter, or a middlebox eats its responses
 * (Section 8). A converter that isn't proven is asked what it supports.
 */
void converters_proved(int index);
bool converters_is_proven(int index);

/* It was silent for so long that it has to prove itself again. */
void converters_doubt(int index);

/* It has served a connection: it is proven, and the answer to an Info TLV, if there is one in @told, is kept. */
void converters_answered(int index, const struct handshake_step *told);

/*
 * converters_withholds_ms() - for how long at most does it withhold SYNs until the server has answered?
 * Milliseconds. 0: as far as is known, or as the user says, it doesn't; then its SYN+ACK confirms nothing.
 */
unsigned int converters_withholds_ms(const struct settings *settings, int index);

/* It doesn't withhold SYNs, or not always, whatever it says. */
void converters_withholds_nothing(int index);

/* What a converter makes of silent requests (doc/private-tlvs.md). */
enum converters_silence {
	CONVERTERS_ANSWERS,  /* as far as is known, it answers each request */
	CONVERTERS_SILENT,   /* it takes silent requests */
	CONVERTERS_BLIND,    /* and blind ones */
	CONVERTERS_OUTDATED, /* it took silent requests some time ago: it has to say so again */
};

/*
 * converters_silence() - may requests to it be silent?
 * It has said so within the last ten minutes, while it withheld SYNs. That is a short time for what is learned: another host may
 * stand at the address tomorrow, and one that takes all that it is sent for data would get these requests as well.
 */
enum converters_silence converters_silence(const struct settings *settings, int index);

/* Is what it has said about that good for less than a minute more? Whoever asks now need not wait for the answer then. */
bool converters_silence_ends_soon(int index);

/* Does it know blind requests that are made again? It has said so when it said that it takes blind ones. */
bool converters_takes_repeats(int index);

/* Does it understand Hold Time TLVs (doc/private-tlvs.md)? It has said so when it said that it withholds SYNs. */
bool converters_takes_hold_times(int index);

/* It was sent one, and doesn't, whatever it has said. */
void converters_forget_hold_times(int index);

/* It was sent a silent request, and what came then was neither silence nor a response. */
void converters_forget_silence(int index);

/*
 * converters_doubt_silence() - a silent request has failed, and that may be the converter's fault: it is CONVERTERS_OUTDATED
 * So the next request asks, for whatever process, and none is silent before the answer.
 */
void converters_doubt_silence(int index);

/*
 * converters_corrects_windows() - may an MPTCP SYN to it carry data, if several paths come up?
 * Linux as a converter takes the window of such a SYN wrongly unless somebody corrects it, and a download
 * over several paths is slower than over one then (src/hold/syn_window.c). False unless the converter
 * has said so within a day, in its answer to an Info TLV, or the user says that it withholds SYNs.
 */
bool converters_corrects_windows(const struct settings *settings, int index);

/* It wants no request for Multipath TCP towards the server (Unsupported TCP Option). */
void converters_note_no_mptcp(int index);
bool converters_take_mptcp(int index);

/*
 * converters_mptcp() - does Multipath TCP get through to it?
 * Where it didn't, at the SYN+ACK or right behind the handshake, the converter is asked over plain TCP for a while:
 * a socket that falls back loses bytes. Where it did lately, a connection need not wait for the converter's first bytes
 * to be sure; where it is doubted, the next connection has it again, and waits for them.
 */
enum cache_mptcp converters_mptcp(int index);

/* A connection has kept its Multipath TCP. */
void converters_note_mptcp(int index);

/*
 * converters_note_fallback() - a connection has become TCP
 * Where Multipath TCP was known to hold, a lost packet may have done that: it counts as lost if the same happens to another connection,
 * whose SYN was sent afterwards, before one has kept it, within ten minutes. @syn_at: CLOCK_MONOTONIC in ns, when the SYN was sent
 */
void converters_note_fallback(int index, int64_t syn_at);

/* Whether Multipath TCP gets through to it isn't known any more, if it was known to. */
void converters_doubt_mptcp(int index);

/* Takes over what @found, of converters_noted(), knows. @now: clock_seconds() */
void converters_renew_facts(int index, const struct cache_converter *found, int64_t now);

/* Forgets all of this, but for what the cache has: converters_forget(). */
void converters_facts_forget(void);

#endif
