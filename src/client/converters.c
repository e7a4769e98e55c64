/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * converters.c - the addresses of the configured converters, and what was learned of each
 *
 * A table that only grows: an address is a converter of its own here, whatever name it came
 * from, and its index stays valid. The first threads that need a name may each ask the
 * resolver; no lock is held meanwhile, and a connection that the resolver makes itself is left
 * alone. What is learned is kept in single atomic words, where the last one wins, and in the
 * cache, from which a converter's entry is renewed before it is considered for a connection.
 */
#include "config.h"

#include "client/converters.h"

#include "client/resolve.h"
#include "common/clock.h"
#include "common/patience.h"
#include "common/quiet.h"
#include "client/user_cache.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#define TCP_KIND_MPTCP 30 /* RFC 8684 */
#define RESOLVE_AGAIN_SECONDS 30
#define PROOF_SECONDS 3600        /* until it is asked again what it supports */
#define SYN_DATA_MISS_SECONDS 600 /* the path may be another one soon */
#define MPTCP_LOST_SECONDS 600   /* the same */
#define MPTCP_HOLDS_SECONDS 3600
#define COOKIE_SECONDS (24 * 3600) /* CACHE_LIFETIME_MAX; an old one is refused, and replaced */
#define REFUSALS_IN_A_ROW 3    /* before it isn't asked for that address family any more */
#define REFUSALS_REST_SECONDS 30
#define SILENCE_SECONDS 600    /* those of other processes count for so long */

/* What the cache keeps of private-use TLVs: converters_withholds_ms(), converters_corrects_windows(). */
#define INFO_WITHHELD_MS 0xffffu
#define INFO_CORRECTS 0x10000u
/*
 * An answer to Info is good for PROOF_SECONDS, but this part of it for a day: a process that began with an
 * older one would pay a round trip more each hour, and what it asks for in its first request corrects that.
 */
#define CORRECTS_SECONDS (24 * 3600)

#define SETTING_NONE UINT8_MAX
static_assert(SETTINGS_CONVERTERS_MAX < SETTING_NONE, "not an index");

/* A converter may have no way to servers of the one and serve those of the other. */
#define FAMILIES 2

/* Learned cookies in turn: a reader of one is done long before its place is used again. */
#define COOKIE_PLACES 4u

static struct converter {
	union sockaddr_ip addr;
	uint8_t setting; /* which part of CONVERT_ADDR it comes from, or SETTING_NONE */
	_Atomic converters_cookie_number cookie_number; /* 0: the configured one */
	struct {
		uint16_t len;
		uint8_t bytes[CONVERTERS_COOKIE_MAX];
	} cookies[COOKIE_PLACES]; /* number n is in n % COOKIE_PLACES */
	_Atomic int64_t rest_until; /* clock_seconds() */
	_Atomic uint32_t syn_data_misses;
	struct {
		_Atomic uint32_t in_a_row;
		_Atomic int64_t until; /* clock_seconds() */
	} refusals[FAMILIES]; /* of servers: IPv4, IPv6 */
	_Atomic int64_t proven_until; /* clock_seconds() */
	_Atomic bool no_mptcp;
	_Atomic int64_t mptcp_holds_until, mptcp_lost_until; /* clock_seconds() */
	_Atomic uint32_t withheld_ms; /* SYNs, until the server has answered; 0: they aren't */
	_Atomic bool corrects_windows;
} converters[CONVERTERS_MAX];
static _Atomic int converter_count;

/* When a name may be asked for again; 0: it never was. */
static _Atomic int64_t resolve_at[SETTINGS_CONVERTERS_MAX];

/* Destinations that a converter won't serve, by hash; a collision forgets the older one. */
#define REFUSED_PLACES 64u
static struct {
	_Atomic uint64_t key;
	_Atomic int64_t until;
} refused[REFUSED_PLACES];

static atomic_flag writing = ATOMIC_FLAG_INIT;

/* A writer in another thread was the parent's; nothing of what it did is to be seen yet. */
void converters_repair_in_child(void)
{
	atomic_flag_clear(&writing);
}

/* One writer at a time, with signals blocked; readers see entries below converter_count only. */
static void table_add(uint8_t setting, const union sockaddr_ip *addr)
{
	unsigned int turn = 0;
	struct quiet quiet;
	int count;

	quiet_all(&quiet);
	while (atomic_flag_test_and_set(&writing))
		patience(&turn);
	count = atomic_load(&converter_count);
	for (int i = 0; i < count; i++)
		if (converters[i].setting == setting && sockaddr_ip_equal(&converters[i].addr, addr))
			goto out;
	if (count < CONVERTERS_MAX) {
		converters[count].addr = *addr;
		converters[count].setting = setting;
		atomic_store(&converter_count, count + 1);
	}
out:
	atomic_flag_clear(&writing);
	quiet_end(&quiet);
}

static void resolve(const struct settings *settings, uint8_t index, const char **reason)
{
	const struct settings_converter *setting = &settings->converters[index];
	union sockaddr_ip found[CONVERTERS_MAX];
	size_t count = resolve_converter(setting->name, setting->port, settings->timeout_ms, found,
					 CONVERTERS_MAX, reason);

	for (size_t i = 0; i < count; i++)
		table_add(index, &found[i]);
}

void converters_init(const struct settings *settings)
{
	for (size_t i = 0; i < settings->converter_count; i++)
		if (!settings->converters[i].name[0])
			table_add((uint8_t)i, &settings->converters[i].addr);
}

/* --- what is learned, here and in the cache --- */

static void cache_note(int index, unsigned int facts, const struct cache_converter *value)
{
	cache_converter_update(user_cache(), &converters[index].addr, 0, facts, cache_now(), value);
}

static int64_t cache_until(int64_t seconds)
{
	return cache_now() + seconds * 1000;
}

static void later(_Atomic int64_t *until, int64_t seconds)
{
	if (atomic_load(until) < seconds)
		atomic_store(until, seconds);
}

static bool cookie_is_current(int index, const uint8_t *bytes, size_t len)
{
	converters_cookie_number number = converters_cookie_current(index);
	const struct converter *converter = &converters[index];
	unsigned int place = number % COOKIE_PLACES;

	return number && converter->cookies[place].len == len &&
	       memcmp(converter->cookies[place].bytes, bytes, len) == 0;
}

static bool cookie_keep(int index, const uint8_t *bytes, size_t len)
{
	struct converter *converter = &converters[index];
	converters_cookie_number number = atomic_load(&converter->cookie_number);
	unsigned int place;

	if (len > CONVERTERS_COOKIE_MAX)
		return false;
	number = (converters_cookie_number)(number == UINT8_MAX ? 1 : number + 1);
	place = number % COOKIE_PLACES;
	converter->cookies[place].len = (uint16_t)len;
	if (len)
		memcpy(converter->cookies[place].bytes, bytes, len);
	atomic_store(&converter->cookie_number, number);
	return true;
}

static uint32_t syn_data_misses(int index)
{
	return atomic_load(&converters[index].syn_data_misses);
}

/* @now, @boot: clock_seconds() and cache_now() */
static void info_renew(struct converter *converter, const struct cache_converter *found, int64_t now,
		       int64_t boot)
{
	int64_t proven = found->info.learned + PROOF_SECONDS * INT64_C(1000) - boot;

	atomic_store(&converter->corrects_windows, (found->info.flags & INFO_CORRECTS) != 0);
	if (proven <= 0)
		return;
	later(&converter->proven_until, now + proven / 1000);
	if (!memchr(found->info.kinds, TCP_KIND_MPTCP, found->info.count))
		atomic_store(&converter->no_mptcp, true);
	atomic_store(&converter->withheld_ms, found->info.flags & INFO_WITHHELD_MS);
}

static uint64_t destination_key(const union sockaddr_ip *destination)
{
	struct in6_addr address = sockaddr_ip_in6(destination);
	uint64_t words[2], key;

	memcpy(words, &address, sizeof(words));
	key = (words[0] ^ (words[1] * 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
	key ^= sockaddr_ip_port(destination);
	return (key ^ key >> 29) * 0x9e3779b97f4a7c15u | 1;
}

static int family_of(const union sockaddr_ip *destination)
{
	return sockaddr_ip_is_v4(destination) ? 0 : 1;
}

/*
 * In the cache a refusal is a rest of a converter with an address that none has: of this one's, and of what is
 * refused. @what: destination_key(), or a number of family_of() for all of that family
 */
static union sockaddr_ip refusal_address(int index, uint64_t what)
{
	uint64_t key = destination_key(&converters[index].addr) ^ what * 0xff51afd7ed558ccdu;
	struct in6_addr in6 = { .s6_addr = "\xff\0refuse" }; /* multicast */
	union sockaddr_ip address = { 0 };

	key = (key ^ key >> 32) * 0x9e3779b97f4a7c15u;
	memcpy(&in6.s6_addr[8], &key, sizeof(key));
	sockaddr_ip_set(&address, AF_INET6, &in6, 1);
	return address;
}

/* For other processes. */
static void cache_note_refusal(int index, uint64_t what, unsigned int seconds)
{
	const union sockaddr_ip address = refusal_address(index, what);
	struct cache_converter note = { .rest.until = cache_until(seconds) };

	cache_converter_update(user_cache(), &address, 0, CACHE_REST, cache_now(), &note);
}

static bool cache_has_refusal(int index, uint64_t what)
{
	const union sockaddr_ip address = refusal_address(index, what);
	struct cache_converter found;

	return cache_converter_get(user_cache(), &address, 0, CACHE_REST, cache_now(), &found) != 0;
}

static uint64_t refusal_key(int index, uint64_t destination)
{
	destination ^= (uint64_t)index << 8;
	return (destination ^ destination >> 29) * 0x9e3779b97f4a7c15u | 1;
}

static unsigned int refusal_place(uint64_t key)
{
	return (unsigned int)(key >> 40) % REFUSED_PLACES;
}

/* @destination: destination_key(). Returns whether that is news. */
static bool refused_set(int index, uint64_t destination, int64_t until)
{
	uint64_t key = refusal_key(index, destination);
	unsigned int place = refusal_place(key);

	atomic_store(&refused[place].until, until);
	return atomic_exchange(&refused[place].key, key) != key;
}

/* What other processes have learned of it meanwhile. */
static void cache_renew(int index)
{
	struct converter *converter = &converters[index];
	int64_t boot = cache_now(), now = clock_seconds();
	struct cache_converter found;
	unsigned int known = cache_converter_get(user_cache(), &converter->addr, 0,
						 CACHE_FACTS_ALL, boot, &found);

	if (known & CACHE_REST)
		later(&converter->rest_until, now + (found.rest.until - boot + 999) / 1000);
	if ((known & CACHE_SYN_DATA) && !syn_data_misses(index))
		atomic_store(&converter->syn_data_misses, found.syn_data.misses);
	if (known & CACHE_INFO)
		info_renew(converter, &found, now, boot);
	if (known & CACHE_MPTCP)
		later(found.mptcp.verdict == CACHE_MPTCP_HOLDS ? &converter->mptcp_holds_until :
								 &converter->mptcp_lost_until,
		      now + (found.mptcp.until - boot) / 1000);
	if ((known & CACHE_SILENCE) && found.silence.learned + HANDSHAKE_REST_SECONDS * 1000 > boot)
		refused_set(index, found.silence.destination,
			    now + (found.silence.learned + HANDSHAKE_REST_SECONDS * 1000 - boot + 999) / 1000);
	if ((known & CACHE_COOKIE) && !cookie_is_current(index, found.cookie.bytes, found.cookie.len))
		cookie_keep(index, found.cookie.bytes, found.cookie.len);
}


static bool is_refused(int index, const union sockaddr_ip *destination, int64_t now)
{
	uint64_t what = destination_key(destination), key = refusal_key(index, what);
	unsigned int place = refusal_place(key);

	/* All of them are asked at the end of time: converters_choose(). */
	return (atomic_load(&refused[place].key) == key && atomic_load(&refused[place].until) > now) ||
	       (now < INT64_MAX && cache_has_refusal(index, what));
}

static bool is_family_refused(int index, const union sockaddr_ip *destination, int64_t now)
{
	int family = family_of(destination);

	return atomic_load(&converters[index].refusals[family].until) > now ||
	       (now < INT64_MAX && cache_has_refusal(index, (uint64_t)family));
}

/*
 * An address of the converter that the socket can be connected to. An IPv6 socket that was once
 * connected to a v4-mapped address can't be connected to an IPv6 address any more, in Linux 6.18
 * (the SYN is lost), so that for an IPv6 destination native addresses come first.
 */
static bool address_for(const union sockaddr_ip *addr, const struct converters_query *query,
			union sockaddr_ip *out)
{
	struct in6_addr in6 = sockaddr_ip_in6(addr);

	if (addr->sa.sa_family == query->family) {
		*out = *addr;
		return true;
	}
	if (query->native)
		return false;
	if (addr->sa.sa_family != AF_INET || query->v6only) {
		*out = *addr;
		return query->any;
	}
	return sockaddr_ip_set(out, query->family, &in6, sockaddr_ip_port(addr));
}

/* Why converter @i must not be asked, or NULL. @out: its address for the socket */
static const char *obstacle(int i, const struct converters_query *query, int64_t now,
			    union sockaddr_ip *out)
{
	if (atomic_load(&converters[i].rest_until) > now)
		return "the converter is left alone for a while";
	if (is_refused(i, query->destination, now))
		return "the converter has refused this destination";
	if (is_family_refused(i, query->destination, now))
		return "the converter has refused several destinations of this address family";
	if (!address_for(&converters[i].addr, query, out))
		return "the converter has no address of the socket's family";
	return NULL;
}

/* The first usable one of a part of CONVERT_ADDR. */
static int choose_of(uint8_t setting, const struct converters_query *query, int64_t now,
		     union sockaddr_ip *out, const char **reason)
{
	int count = atomic_load(&converter_count);

	for (int i = 0; i < count; i++) {
		const char *why;

		if (converters[i].setting != setting || query->tried >> i & 1)
			continue;
		cache_renew(i);
		why = obstacle(i, query, now, out);
		if (!why)
			return i;
		if (!*reason) /* the first one's says most */
			*reason = why;
	}
	return CONVERTERS_NONE;
}

static bool is_converter(const union sockaddr_ip *destination)
{
	int count = atomic_load(&converter_count);

	for (int i = 0; i < count; i++)
		if (policy_is_converter(&converters[i].addr, destination))
			return true;
	return false;
}

/* In the order of CONVERT_ADDR, as of the time @now. */
static int choose(const struct settings *settings, const struct converters_query *query,
		  int64_t now, union sockaddr_ip *out, const char **reason)
{
	for (uint8_t i = 0; i < settings->converter_count; i++) {
		const struct settings_converter *setting = &settings->converters[i];
		int index = choose_of(i, query, now, out, reason);

		if (index >= 0)
			return index;
		if (!setting->name[0] || atomic_load(&resolve_at[i]) > now)
			continue;
		if (!query->may_resolve)
			return CONVERTERS_UNRESOLVED;
		resolve(settings, i, reason);
		atomic_store(&resolve_at[i], clock_seconds() + RESOLVE_AGAIN_SECONDS);
		index = choose_of(i, query, now, out, reason);
		if (index >= 0)
			return index;
	}
	return CONVERTERS_NONE;
}

static int choose_best(const struct settings *settings, const struct converters_query *query,
		       union sockaddr_ip *out, const char **reason)
{
	struct converters_query native = *query, own = *query;
	int64_t now = clock_seconds();
	int index = CONVERTERS_NONE;

	native.native = true;
	own.any = false;
	if (query->family == AF_INET6 && !sockaddr_ip_is_v4(query->destination))
		index = choose(settings, &native, now, out, reason);
	if (index == CONVERTERS_NONE)
		index = choose(settings, &own, now, out, reason);
	if (index == CONVERTERS_NONE && query->any)
		index = choose(settings, query, now, out, reason);
	if (index == CONVERTERS_NONE && settings->fail_closed)
		index = choose(settings, query, INT64_MAX, out, reason);
	return index;
}

int converters_choose(const struct settings *settings, const struct converters_query *query,
		      union sockaddr_ip *out, enum policy_verdict *verdict, const char **reason)
{
	int index;

	*reason = NULL;
	if (resolve_is_running()) {
		*verdict = POLICY_DIRECT_RESOLVER;
		*reason = policy_reason(*verdict);
		return CONVERTERS_NONE;
	}
	index = choose_best(settings, query, out, reason);
	if (!*reason)
		*reason = "the converter's name has no address";
	if (!is_converter(query->destination))
		return index;
	*verdict = POLICY_DIRECT_CONVERTER;
	*reason = policy_reason(*verdict);
	return CONVERTERS_NONE;
}

int converters_index(const union sockaddr_ip *addr)
{
	for (int round = 0; round < 2; round++) {
		int count = atomic_load(&converter_count);

		for (int i = 0; i < count; i++)
			if (sockaddr_ip_equal(&converters[i].addr, addr))
				return i;
		table_add(SETTING_NONE, addr);
	}
	return CONVERTERS_NONE;
}

void converters_rest(int index, unsigned int seconds)
{
	struct cache_converter note = { .rest.until = cache_until(seconds) };

	atomic_store(&converters[index].rest_until, clock_seconds() + (int64_t)seconds);
	cache_note(index, CACHE_REST, &note);
}

void converters_refused(int index, const union sockaddr_ip *destination, unsigned int seconds)
{
	uint64_t what = destination_key(destination);
	bool news = refused_set(index, what, clock_seconds() + (int64_t)seconds);
	int family = family_of(destination);

	cache_note_refusal(index, what, seconds);
	if (!news || atomic_fetch_add(&converters[index].refusals[family].in_a_row, 1) + 1 < REFUSALS_IN_A_ROW)
		return;
	atomic_store(&converters[index].refusals[family].in_a_row, 0);
	atomic_store(&converters[index].refusals[family].until, clock_seconds() + REFUSALS_REST_SECONDS);
	cache_note_refusal(index, (uint64_t)family, REFUSALS_REST_SECONDS);
}

void converters_silent(int index, const union sockaddr_ip *destination)
{
	const union sockaddr_ip *addr = &converters[index].addr;
	struct cache_converter note;
	uint64_t key = destination_key(destination);

	cache_converter_get(user_cache(), addr, 0, CACHE_SILENCE, cache_now(), &note);
	if (note.silence.destination != key)
		note.silence.destinations++;
	note.silence.destination = key;
	note.silence.until = cache_until(SILENCE_SECONDS);
	if (note.silence.destinations >= REFUSALS_IN_A_ROW)
		converters_rest(index, REFUSALS_REST_SECONDS);
	cache_note(index, CACHE_SILENCE, &note);
}

void converters_proved(int index)
{
	later(&converters[index].proven_until, clock_seconds() + PROOF_SECONDS);
}

void converters_served(int index, const union sockaddr_ip *destination, const struct handshake_step *told)
{
	struct cache_converter note = { .info.until = cache_until(CORRECTS_SECONDS) };
	const struct convert_span *supported = &told->supported;

	converters_proved(index);
	atomic_store(&converters[index].refusals[family_of(destination)].in_a_row, 0);
	if (!told->has_supported)
		return;
	note.info.flags = told->withheld_ms & INFO_WITHHELD_MS;
	atomic_store(&converters[index].withheld_ms, note.info.flags);
	atomic_store(&converters[index].corrects_windows, told->corrects_windows);
	if (told->corrects_windows)
		note.info.flags |= INFO_CORRECTS;
	for (size_t i = 0; i < supported->len && note.info.count < CACHE_KINDS_MAX; i++)
		if (supported->data[i])
			note.info.kinds[note.info.count++] = supported->data[i];
	if (!memchr(note.info.kinds, TCP_KIND_MPTCP, note.info.count))
		converters_note_no_mptcp(index);
	cache_note(index, CACHE_INFO | CACHE_SILENCE, &note); /* of silence there is nothing more to be said */
}

unsigned int converters_withholds_ms(const struct settings *settings, int index)
{
	if (settings->withheld_ms != SETTINGS_WITHHELD_LEARNED)
		return (unsigned int)settings->withheld_ms;
	return atomic_load(&converters[index].withheld_ms);
}

void converters_withholds_nothing(int index)
{
	struct cache_converter found;

	atomic_store(&converters[index].withheld_ms, 0);
	if (!(cache_converter_get(user_cache(), &converters[index].addr, 0, CACHE_INFO, cache_now(),
				  &found) &
	      CACHE_INFO))
		return;
	found.info.flags &= ~INFO_WITHHELD_MS;
	cache_note(index, CACHE_INFO, &found);
}

bool converters_corrects_windows(const struct settings *settings, int index)
{
	return settings->withheld_ms > 0 || atomic_load(&converters[index].corrects_windows);
}

bool converters_is_proven(int index)
{
	return atomic_load(&converters[index].proven_until) > clock_seconds();
}

void converters_doubt(int index)
{
	static const struct cache_converter nothing;

	atomic_store(&converters[index].proven_until, 0);
	cache_note(index, CACHE_INFO, &nothing);
}

void converters_note_no_mptcp(int index)
{
	atomic_store(&converters[index].no_mptcp, true);
}

bool converters_take_mptcp(int index)
{
	return !atomic_load(&converters[index].no_mptcp);
}

enum cache_mptcp converters_mptcp(int index)
{
	const struct converter *converter = &converters[index];
	int64_t now = clock_seconds();

	if (atomic_load(&converter->mptcp_lost_until) > now)
		return CACHE_MPTCP_LOST;
	return atomic_load(&converter->mptcp_holds_until) > now ? CACHE_MPTCP_HOLDS :
								  CACHE_MPTCP_UNKNOWN;
}

void converters_note_mptcp(int index, enum cache_mptcp verdict)
{
	struct converter *converter = &converters[index];
	const bool holds = verdict == CACHE_MPTCP_HOLDS;
	const int64_t seconds = holds ? MPTCP_HOLDS_SECONDS : MPTCP_LOST_SECONDS;
	struct cache_converter note = { .mptcp = { cache_until(seconds), verdict } };
	int64_t now = clock_seconds();

	/* What is known already need not be told with each connection. */
	if (holds && atomic_load(&converter->mptcp_holds_until) > now + MPTCP_HOLDS_SECONDS / 2)
		return;
	atomic_store(&converter->mptcp_holds_until, holds ? now + seconds : 0);
	atomic_store(&converter->mptcp_lost_until, holds ? 0 : now + seconds);
	cache_note(index, CACHE_MPTCP, &note);
}

bool converters_take_syn_data(int index)
{
	return syn_data_misses(index) < CONVERTERS_SYN_DATA_MISSES;
}

void converters_note_syn_data(int index, bool taken)
{
	struct cache_converter note = { .known = 0 };

	if (taken && !syn_data_misses(index))
		return;
	if (taken) {
		atomic_store(&converters[index].syn_data_misses, 0);
	} else {
		note.syn_data.misses = atomic_fetch_add(&converters[index].syn_data_misses, 1) + 1;
		note.syn_data.until = cache_until(SYN_DATA_MISS_SECONDS);
	}
	cache_note(index, CACHE_SYN_DATA, &note);
}

converters_cookie_number converters_cookie_current(int index)
{
	return atomic_load(&converters[index].cookie_number);
}

struct convert_span converters_cookie(const struct settings *settings, int index,
				      converters_cookie_number number)
{
	struct converter *converter = &converters[index];

	if (!number || !converter->cookies[number % COOKIE_PLACES].len)
		return (struct convert_span){ settings->cookie, settings->cookie_len };
	return (struct convert_span){ converter->cookies[number % COOKIE_PLACES].bytes,
				      converter->cookies[number % COOKIE_PLACES].len };
}

bool converters_use_cookie(const struct settings *settings, int index, struct convert_span cookie)
{
	struct convert_span current =
		converters_cookie(settings, index, converters_cookie_current(index));

	if (current.len == cookie.len && (!cookie.len || !memcmp(current.data, cookie.data, cookie.len)))
		return true;
	return cookie_keep(index, cookie.data, cookie.len);
}

bool converters_learn_cookie(int index, struct convert_span cookie)
{
	struct cache_converter note = { .cookie.until = cache_until(COOKIE_SECONDS) };

	if (!cookie.len || !cookie_keep(index, cookie.data, cookie.len))
		return false;
	note.cookie.len = (uint16_t)cookie.len;
	memcpy(note.cookie.bytes, cookie.data, cookie.len);
	cache_note(index, CACHE_COOKIE, &note);
	return true;
}

bool converters_forget_cookie(int index, converters_cookie_number number)
{
	static const struct cache_converter nothing;
	const struct converter *converter = &converters[index];

	if (!number || !converter->cookies[number % COOKIE_PLACES].len)
		return false;
	if (converters_cookie_current(index) != number)
		return true; /* another connection was first */
	cookie_keep(index, NULL, 0);
	cache_note(index, CACHE_COOKIE, &nothing);
	return true;
}
