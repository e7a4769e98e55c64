/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * converters_destinations.c - the destinations that a converter refuses or serves, and the servers that speak Multipath TCP
 *
 * A small hash table has the refused destinations. If two have the same place, we forget the older, and ask the converter for it again. A
 * place is two atomic words: a reader that meets a writer finds, at worst, a refusal with the end of another. The cache keeps refusals for
 * other processes under addresses that no converter has.
 *
 * A second such table has the hosts that a converter serves: a client that can't take a response off a stream asks only for those.
 */
#include "config.h"

#include "client/converters.h"

#include "client/cache.h"
#include "client/settings.h"
#include "common/clock.h"

#include <stdatomic.h>
#include <string.h>

#define REFUSALS_IN_A_ROW 3 /* before nobody asks it for that address family */
#define REFUSALS_REST_SECONDS 30
#define SILENCE_SECONDS 600 /* how long silences of other processes count */

/* A converter may have no way to servers of the one address family and serve those of the other. */
enum { IPV4, IPV6, FAMILIES };

static struct {
	_Atomic uint32_t in_a_row;
	_Atomic int64_t until; /* clock_seconds() */
} families[CONVERTERS_MAX][FAMILIES];

#define DESTINATION_PLACES 64u
struct destination {
	_Atomic uint64_t key;
	_Atomic int64_t until; /* clock_seconds() */
};
static struct destination refused[DESTINATION_PLACES], admitted[DESTINATION_PLACES];

#define ADMITTED_SECONDS 600
#define ADMITTED_RENEWED_SECONDS 300 /* renewed with so much left, so that not every connection writes it */

/* Returns a key that differs from the family numbers above. */
static uint64_t destination_key(const union sockaddr_ip *destination)
{
	return sockaddr_ip_hash(destination) | UINT64_C(1) << 63;
}

/* Returns a key that is the same for all ports, and differs from that of any destination. */
static uint64_t host_key(const union sockaddr_ip *destination)
{
	const struct in6_addr in6 = sockaddr_ip_in6(destination);
	union sockaddr_ip host = { 0 };

	sockaddr_ip_set(&host, AF_INET6, &in6, 0);
	return destination_key(&host) ^ UINT64_C(1) << 62;
}

static unsigned int family_of(const union sockaddr_ip *destination)
{
	return sockaddr_ip_is_v4(destination) ? IPV4 : IPV6;
}

/* --- in the cache --- */

/*
 * In the cache a refusal is the rest of a converter at a multicast address, which no converter has. We derive this address from the
 * converter's address and the refused destination. @what: destination_key(), or family_of() for the whole family. A served host is noted in
 * the same way, with host_key().
 */
static union sockaddr_ip note_address(int index, uint64_t what)
{
	uint64_t key = sockaddr_ip_hash(converters_address(index)) ^ what * 0xff51afd7ed558ccdu;
	struct in6_addr in6 = { .s6_addr = "\xff\0refuse" };
	union sockaddr_ip address = { 0 };

	key = (key ^ key >> 32) * 0x9e3779b97f4a7c15u;
	memcpy(&in6.s6_addr[8], &key, sizeof(key));
	sockaddr_ip_set(&address, AF_INET6, &in6, 1);
	return address;
}

static void cache_note_destination(int index, uint64_t what, unsigned int seconds)
{
	const union sockaddr_ip address = note_address(index, what);
	struct cache_converter note = { .rest.until = cache_in(seconds) };

	cache_converter_update(user_cache(), &address, 0, CACHE_REST, cache_now(), &note);
}

static bool cache_has_destination(int index, uint64_t what)
{
	const union sockaddr_ip address = note_address(index, what);
	struct cache_converter found;

	return cache_converter_get(user_cache(), &address, 0, CACHE_REST, cache_now(), &found) != 0;
}

/* --- in this process --- */

/* 0 is the key of a free place. */
static uint64_t note_key(int index, uint64_t destination)
{
	destination ^= (uint64_t)index << 8;
	return (destination ^ destination >> 29) * 0x9e3779b97f4a7c15u | 1;
}

static unsigned int note_place(uint64_t key)
{
	return (unsigned int)(key >> 40) % DESTINATION_PLACES;
}

/* Adds a destination. @destination: destination_key(), or host_key(). Returns whether it is new. */
static bool destination_set(struct destination table[static DESTINATION_PLACES], int index, uint64_t destination, int64_t until)
{
	uint64_t key = note_key(index, destination);
	unsigned int place = note_place(key);

	atomic_store(&table[place].until, until);
	return atomic_exchange(&table[place].key, key) != key;
}

/* Returns the end of the entry; 0: there is none. */
static int64_t destination_until(const struct destination table[static DESTINATION_PLACES], int index, uint64_t destination)
{
	uint64_t key = note_key(index, destination);
	unsigned int place = note_place(key);

	return atomic_load(&table[place].key) == key ? atomic_load(&table[place].until) : 0;
}

bool converters_has_refused(int index, const union sockaddr_ip *destination, int64_t now)
{
	uint64_t what = destination_key(destination);

	return destination_until(refused, index, what) > now || (now < INT64_MAX && cache_has_destination(index, what));
}

bool converters_has_refused_family(int index, const union sockaddr_ip *destination, int64_t now)
{
	unsigned int family = family_of(destination);

	return atomic_load(&families[index][family].until) > now || (now < INT64_MAX && cache_has_destination(index, family));
}

void converters_refused(int index, const union sockaddr_ip *destination, unsigned int seconds)
{
	uint64_t what = destination_key(destination);
	bool news = destination_set(refused, index, what, clock_seconds() + (int64_t)seconds);
	unsigned int family = family_of(destination);

	cache_note_destination(index, what, seconds);
	if (!news || atomic_fetch_add(&families[index][family].in_a_row, 1) + 1 < REFUSALS_IN_A_ROW)
		return;
	atomic_store(&families[index][family].in_a_row, 0);
	atomic_store(&families[index][family].until, clock_seconds() + REFUSALS_REST_SECONDS);
	cache_note_destination(index, family, REFUSALS_REST_SECONDS);
}

void converters_served(int index, const union sockaddr_ip *destination, const struct handshake_step *told)
{
	converters_answered(index, told);
	converters_reached(index, destination);
}

void converters_reached(int index, const union sockaddr_ip *destination)
{
	atomic_store(&families[index][family_of(destination)].in_a_row, 0);
}

void converters_silent(int index, const union sockaddr_ip *destination)
{
	uint64_t key = destination_key(destination);
	struct cache_converter note;

	converters_noted(index, CACHE_SILENCE, &note);
	if (note.silence.destination != key)
		note.silence.destinations++;
	note.silence.destination = key;
	note.silence.until = cache_in(SILENCE_SECONDS);
	if (note.silence.destinations >= REFUSALS_IN_A_ROW)
		converters_rest(index, REFUSALS_REST_SECONDS);
	converters_note(index, CACHE_SILENCE, &note);
}

void converters_admitted(int index, const union sockaddr_ip *destination)
{
	const uint64_t host = host_key(destination);
	const int64_t now = clock_seconds();

	if (destination_until(admitted, index, host) > now + ADMITTED_RENEWED_SECONDS)
		return;
	destination_set(admitted, index, host, now + ADMITTED_SECONDS);
	if (policy_is_private(destination))
		cache_note_destination(index, host, ADMITTED_SECONDS);
}

bool converters_admits(int index, const union sockaddr_ip *destination)
{
	const uint64_t host = host_key(destination);

	return destination_until(admitted, index, host) > clock_seconds() ||
	       (policy_is_private(destination) && cache_has_destination(index, host));
}

void converters_renew_refusals(int index, const struct cache_converter *found, int64_t now)
{
	int64_t left = found->silence.learned + HANDSHAKE_REST_SECONDS * 1000 - cache_now();

	if ((found->known & CACHE_SILENCE) && left > 0)
		destination_set(refused, index, found->silence.destination, now + (left + 999) / 1000);
}

/*
 * --- which servers speak Multipath TCP themselves ---
 *
 * We believe a converter about a server for its own connections only: one that lies must not take connections away from the others. A small
 * hash table has this process's knowledge; the newer of two servers with the same place replaces the older. Key and value are one atomic
 * word, so that no reader sees half of an entry. The cache has the knowledge of the user's other processes.
 */

#define PLACES 256u
#define FRESH_SECONDS 3600 /* a server may lose its Multipath TCP, or get it */

/* 40 bits of the key, 22 of the time in seconds (48 days go around), 2 of the value. */
static _Atomic uint64_t places[PLACES];

#define KEY_SHIFT 24
#define TIME_SHIFT 2
#define TIME_MASK 0x3fffffu

/* Returns the fingerprint of the converter, under which the cache has its verdicts. */
static uint64_t source_of(int index)
{
	return sockaddr_ip_hash(converters_address(index));
}

static uint64_t server_key(int index, const union sockaddr_ip *server)
{
	const uint64_t key = sockaddr_ip_hash(server) ^ (uint64_t)(index + 1) * 0x9e3779b97f4a7c15u;

	return key ^ key >> 29;
}

static enum handshake_server_mptcp table_find(int index, const union sockaddr_ip *server)
{
	uint64_t key = server_key(index, server), entry = atomic_load(&places[key % PLACES]);
	uint32_t age = ((uint32_t)clock_seconds() - (uint32_t)(entry >> TIME_SHIFT)) & TIME_MASK;

	if (!entry || entry >> KEY_SHIFT != key >> KEY_SHIFT || age > FRESH_SECONDS)
		return HANDSHAKE_SERVER_UNKNOWN;
	return (enum handshake_server_mptcp)(entry & 3);
}

static void server_note(int index, const union sockaddr_ip *server, enum handshake_server_mptcp mptcp, enum cache_server_verdict verdict)
{
	uint64_t key = server_key(index, server);

	atomic_store(&places[key % PLACES],
		     (key >> KEY_SHIFT) << KEY_SHIFT |
			     (uint64_t)((uint32_t)clock_seconds() & TIME_MASK) << TIME_SHIFT | mptcp);
	cache_server_put(user_cache(), server, source_of(index), verdict, cache_now(), cache_in(FRESH_SECONDS));
}

enum handshake_server_mptcp servers_mptcp(int index, const union sockaddr_ip *server)
{
	enum handshake_server_mptcp known = table_find(index, server);
	struct cache_server found;

	if (known != HANDSHAKE_SERVER_UNKNOWN)
		return known;
	switch (cache_server_get(user_cache(), server, source_of(index), cache_now(), &found)) {
	case CACHE_SERVER_MPTCP:
		return HANDSHAKE_SERVER_MPTCP;
	case CACHE_SERVER_PLAIN:
	case CACHE_SERVER_NO_BYPASS:
		return HANDSHAKE_SERVER_PLAIN;
	default:
		return HANDSHAKE_SERVER_UNKNOWN;
	}
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
	server_note(index, server, mptcp, mptcp == HANDSHAKE_SERVER_MPTCP ? CACHE_SERVER_MPTCP : CACHE_SERVER_PLAIN);
}

void servers_note_no_bypass(const union sockaddr_ip *server)
{
	const int count = converters_count();

	for (int i = 0; i < count; i++)
		if (servers_mptcp(i, server) == HANDSHAKE_SERVER_MPTCP)
			server_note(i, server, HANDSHAKE_SERVER_PLAIN, CACHE_SERVER_NO_BYPASS);
}

void converters_destinations_forget(void)
{
	for (unsigned int i = 0; i < DESTINATION_PLACES; i++) {
		atomic_store(&refused[i].key, 0);
		atomic_store(&admitted[i].key, 0);
	}
	for (unsigned int i = 0; i < PLACES; i++)
		atomic_store(&places[i], 0);
	for (unsigned int i = 0; i < CONVERTERS_MAX * FAMILIES; i++)
		atomic_store(&families[i / FAMILIES][i % FAMILIES].until, 0);
}
