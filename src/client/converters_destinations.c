/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * converters_destinations.c - the destinations that a converter refuses or serves, and the servers that speak Multipath TCP
 *
 * Each is the answer to a question about one converter and one destination. We believe a converter for its own connections only: one that
 * lies about a server must not take connections away from the others.
 *
 * A small hash table has this process's answers. If two have the same place, we forget the older, and learn it again. An answer with its
 * key is one atomic word, so that no reader sees half of one. The cache has the answers of the user's other processes.
 */
#include "config.h"

#include "client/converters.h"

#include "client/cache.h"
#include "client/settings.h"
#include "common/clock.h"

#include <stdatomic.h>

#define REFUSALS_IN_A_ROW 3 /* after this many, nobody asks it for that address family */
#define REFUSALS_REST_SECONDS 30
#define SILENCE_SECONDS 600 /* how long silences of other processes count */
#define ADMITTED_SECONDS 600
#define ADMITTED_RENEWED_SECONDS 300 /* an answer with more time left isn't written again */
#define MPTCP_SECONDS 3600 /* a server may lose its Multipath TCP, or get it */

enum question {
	REFUSES, /* does the converter refuse the destination? Without address and port: all of its family? */
	ADMITS,  /* has the converter tried to reach this host? Without a port */
	MPTCP,   /* does the server speak Multipath TCP itself, according to the converter? */
};

/* A converter may have no way to servers of the one address family and serve those of the other. */
static _Atomic uint32_t refusals_in_a_row[CONVERTERS_MAX][2]; /* of IPv6, of IPv4 */

/* --- answers --- */

#define PLACES 512u

/*
 * 40 bits of the key, 22 of the end in seconds (48 days go around), 2 of the answer: enum cache_answer, CACHE_UNKNOWN once we have seen its
 * end. 0: a free place.
 */
static _Atomic uint64_t answers[PLACES];

#define KEY_SHIFT 24
#define TIME_SHIFT 2
#define TIME_MASK 0x3fffffu
#define LEFT_MAX 3600 /* an answer with more seconds left has ended: no answer holds for longer, not even MPTCP's */

/* Returns the name under which the cache has a converter's answers to a question. */
static uint64_t source_of(int index, enum question question)
{
	return sockaddr_ip_hash(converters_address(index)) + question;
}

/* @hash: of the destination */
static uint64_t key_of(int index, enum question question, uint64_t hash)
{
	const uint64_t key = hash ^ source_of(index, question) * 0x9e3779b97f4a7c15u;

	return key ^ key >> 29;
}

/* Keeps an answer in this process. Returns whether its place had none with this key. */
static bool answer_keep(int index, enum question question, uint64_t hash, enum cache_answer answer, int64_t seconds)
{
	const uint64_t key = key_of(index, question, hash);
	const uint32_t end = (uint32_t)(clock_seconds() + seconds) & TIME_MASK;
	const uint64_t word = key >> KEY_SHIFT << KEY_SHIFT | (uint64_t)end << TIME_SHIFT | answer;

	return (atomic_exchange(&answers[key % PLACES], word) ^ word) >> KEY_SHIFT;
}

/*
 * Returns for how many seconds the answer still holds, with the answer; 0: there is none. Clears an ended one, as its time would come round
 * again.
 */
static uint32_t answer_kept(int index, enum question question, uint64_t hash, enum cache_answer *answer)
{
	const uint64_t key = key_of(index, question, hash);
	uint64_t word = atomic_load(&answers[key % PLACES]);
	const uint32_t left = ((uint32_t)(word >> TIME_SHIFT) - (uint32_t)clock_seconds()) & TIME_MASK;

	*answer = (enum cache_answer)(word & 3);
	if (!*answer || word >> KEY_SHIFT != key >> KEY_SHIFT)
		return 0;
	if (left <= LEFT_MAX)
		return left;
	atomic_compare_exchange_strong(&answers[key % PLACES], &word, word & ~UINT64_C(3)); /* the key stays, for answer_keep() */
	return 0;
}

/* Keeps an answer here and in the cache. Returns as answer_keep(). */
static bool answer_note(int index, enum question question, const union sockaddr_ip *about, enum cache_answer answer, int64_t seconds)
{
	cache_answer_put(user_cache(), about, source_of(index, question), answer, cache_now(), cache_in(seconds));
	return answer_keep(index, question, sockaddr_ip_hash(about), answer, seconds);
}

static enum cache_answer answer_of(int index, enum question question, const union sockaddr_ip *about)
{
	enum cache_answer answer;

	if (answer_kept(index, question, sockaddr_ip_hash(about), &answer))
		return answer;
	return cache_answer_get(user_cache(), about, source_of(index, question), cache_now());
}

void converters_destinations_forget(void)
{
	for (unsigned int i = 0; i < PLACES; i++)
		atomic_store(&answers[i], 0);
}

/* --- refused --- */

static union sockaddr_ip family_of(const union sockaddr_ip *destination)
{
	return (union sockaddr_ip){ .sa.sa_family = sockaddr_ip_is_v4(destination) ? AF_INET : AF_INET6 };
}

const char *converters_refusal(int index, const union sockaddr_ip *destination)
{
	const union sockaddr_ip family = family_of(destination);

	if (answer_of(index, REFUSES, destination) == CACHE_YES)
		return "the converter has refused this destination";
	return answer_of(index, REFUSES, &family) == CACHE_YES ? "the converter has refused several destinations of this address family" : NULL;
}

void converters_refused(int index, const union sockaddr_ip *destination, unsigned int seconds)
{
	_Atomic uint32_t *in_a_row = &refusals_in_a_row[index][sockaddr_ip_is_v4(destination)];
	const union sockaddr_ip family = family_of(destination);

	if (!answer_note(index, REFUSES, destination, CACHE_YES, seconds) || atomic_fetch_add(in_a_row, 1) + 1 < REFUSALS_IN_A_ROW)
		return;
	atomic_store(in_a_row, 0);
	answer_note(index, REFUSES, &family, CACHE_YES, REFUSALS_REST_SECONDS);
}

void converters_reached(int index, const union sockaddr_ip *destination)
{
	atomic_store(&refusals_in_a_row[index][sockaddr_ip_is_v4(destination)], 0);
}

void converters_unanswered(int index, const union sockaddr_ip *destination)
{
	const uint64_t hash = sockaddr_ip_hash(destination);
	struct cache_converter note;

	converters_noted(index, CACHE_SILENCE, &note);
	if (note.silence.destination != hash)
		note.silence.destinations++;
	note.silence.destination = hash;
	note.silence.until = cache_in(SILENCE_SECONDS);
	if (note.silence.destinations >= REFUSALS_IN_A_ROW)
		converters_rest(index, REFUSALS_REST_SECONDS);
	converters_note(index, CACHE_SILENCE, &note);
}

/* --- served --- */

static union sockaddr_ip host_of(const union sockaddr_ip *destination)
{
	union sockaddr_ip host = *destination;

	sockaddr_ip_set_port(&host, 0);
	return host;
}

/* Other processes need a private host's answer only: about others they ask in any case. */
void converters_admitted(int index, const union sockaddr_ip *destination)
{
	const union sockaddr_ip host = host_of(destination);
	const uint64_t hash = sockaddr_ip_hash(&host);
	enum cache_answer answer;

	if (answer_kept(index, ADMITS, hash, &answer) > ADMITTED_RENEWED_SECONDS)
		return;
	if (policy_is_private(destination))
		answer_note(index, ADMITS, &host, CACHE_YES, ADMITTED_SECONDS);
	else
		answer_keep(index, ADMITS, hash, CACHE_YES, ADMITTED_SECONDS);
}

bool converters_admits(int index, const union sockaddr_ip *destination)
{
	const union sockaddr_ip host = host_of(destination);
	enum cache_answer answer;

	if (policy_is_private(destination))
		return answer_of(index, ADMITS, &host) == CACHE_YES;
	return answer_kept(index, ADMITS, sockaddr_ip_hash(&host), &answer);
}

/* --- servers that speak Multipath TCP themselves --- */

enum handshake_server_mptcp servers_mptcp(int index, const union sockaddr_ip *server)
{
	const enum cache_answer answer = answer_of(index, MPTCP, server);

	return answer == CACHE_YES ? HANDSHAKE_SERVER_MPTCP : answer == CACHE_NO ? HANDSHAKE_SERVER_PLAIN : HANDSHAKE_SERVER_UNKNOWN;
}

bool servers_any_mptcp(const union sockaddr_ip *server)
{
	const int count = converters_count();

	for (int i = 0; i < count; i++)
		if (servers_mptcp(i, server) == HANDSHAKE_SERVER_MPTCP)
			return true;
	return false;
}

void servers_note_mptcp(int index, const union sockaddr_ip *server, enum handshake_server_mptcp mptcp)
{
	answer_note(index, MPTCP, server, mptcp == HANDSHAKE_SERVER_MPTCP ? CACHE_YES : CACHE_NO, MPTCP_SECONDS);
}

void servers_note_no_bypass(const union sockaddr_ip *server)
{
	const int count = converters_count();

	for (int i = 0; i < count; i++)
		if (servers_mptcp(i, server) == HANDSHAKE_SERVER_MPTCP)
			servers_note_mptcp(i, server, HANDSHAKE_SERVER_PLAIN);
}
