/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths_facts.c - facts about each path to a converter, learned by this process and by the user's others
 *
 * Each usual path has a place of its own in the process's table; the others have places by hash, and of two with the same place we forget
 * the older. A path is one atomic word, so that the last writer wins, and a second one with its key: a reader that meets a writer may take
 * one path for the other once. In the user's cache each path is a record (CACHE_PATH) under the converter's address.
 *
 *	state      doubts                                               asked
 *	---------  ---------------------------------------------------  ----------------------------------------
 *	WORKS      SYNs in a row whose data was not taken               when the last of them was noted
 *	SILENT     good trials that restore it                          when it was last tried
 *	LOSES      the same                                             the same
 *	REFUSES    the same, where only a Convert response counts       the same
 *	DATALESS   the same; 0: no trials, since its SYNs may have been lost for their size; it becomes UNKNOWN in time
 */
#include "config.h"

#include "client/paths.h"

#include "client/cache.h"
#include "client/converters.h"
#include "common/clock.h"

#include <stdatomic.h>
#include <string.h>

#define WORKS_SECONDS 3600
#define FAILED_SECONDS 600 /* a path not asked for so long may be another one by now */
#define MPTCP_LOST_SECONDS 600 /* the path may soon be another one */
#define MPTCP_HOLDS_SECONDS 3600
#define DOUBTS_LOSES 3 /* trials in a row that restore it; other states need one */
#define RTT_MAX_MS UINT16_MAX
#define RTT_NEWS 8 /* a round trip that differs by less than an eighth isn't written */

#define PLACES 64u /* beside those of usual paths */
static struct {
	_Atomic uint64_t key;
	_Atomic uint64_t word;
	_Atomic int64_t asked;
	_Atomic int64_t heard; /* when it last answered this process */
	/* Multipath TCP; the ends of what is known in clock_seconds() */
	_Atomic int64_t mptcp_holds_until, mptcp_lost_until;
	_Atomic int64_t mptcp_doubted_at; /* of cache_now(): a connection fell back while MPTCP held; 0: none since the last success or loss */
} table[CONVERTERS_MAX + PLACES];

uint64_t path_fingerprint(const struct in6_addr *source)
{
	union sockaddr_ip address = { 0 };

	if (IN6_IS_ADDR_UNSPECIFIED(source))
		return 0;
	sockaddr_ip_set(&address, AF_INET6, source, 1);
	return sockaddr_ip_hash(&address) | 1;
}

/* 0 is the key of a free place. */
static uint64_t key_of(const struct path_id *id)
{
	uint64_t key = path_fingerprint(&id->source) ^ ((uint64_t)id->converter + 1) << 48;

	return (key ^ key >> 29) * 0x9e3779b97f4a7c15u | 1;
}

static unsigned int place_of(const struct path_id *id, uint64_t key)
{
	return IN6_IS_ADDR_UNSPECIFIED(&id->source) ? (unsigned int)id->converter : CONVERTERS_MAX + (unsigned int)(key >> 40) % PLACES;
}

/* Does only time end the state, and no trial? */
static bool entry_ages(const struct cache_path_fact *entry)
{
	return entry->state == CACHE_PATH_DATALESS && !entry->doubts;
}

static struct cache_path_fact entry_read(const struct path_id *id)
{
	uint64_t key = key_of(id), word;
	unsigned int place = place_of(id, key);
	struct cache_path_fact entry;
	int64_t now;

	if (atomic_load(&table[place].key) != key)
		return (struct cache_path_fact){ .state = CACHE_PATH_UNKNOWN };
	word = atomic_load(&table[place].word);
	entry = (struct cache_path_fact){
		.state = (enum cache_path)(word & 0xff),
		.doubts = (uint8_t)(word >> 8),
		.rtt_ms = (uint16_t)(word >> 16),
		.asked = atomic_load(&table[place].asked),
	};
	if (!entry_ages(&entry))
		return entry;
	now = cache_now();
	if (entry.asked > now || now - entry.asked >= FAILED_SECONDS * INT64_C(1000)) /* a future time isn't of this clock */
		entry.state = CACHE_PATH_UNKNOWN;
	return entry;
}

/* Returns the path's place, from which it removes another path's facts. */
static unsigned int place_claim(const struct path_id *id)
{
	uint64_t key = key_of(id);
	unsigned int place = place_of(id, key);

	if (atomic_load(&table[place].key) == key)
		return place;
	atomic_store(&table[place].key, 0);
	atomic_store(&table[place].word, 0);
	atomic_store(&table[place].asked, 0);
	atomic_store(&table[place].heard, 0);
	atomic_store(&table[place].mptcp_holds_until, 0);
	atomic_store(&table[place].mptcp_lost_until, 0);
	atomic_store(&table[place].mptcp_doubted_at, 0);
	atomic_store(&table[place].key, key);
	return place;
}

static void entry_keep(const struct path_id *id, const struct cache_path_fact *entry)
{
	unsigned int place = place_claim(id);

	atomic_store(&table[place].word, (uint64_t)entry->state | (uint64_t)entry->doubts << 8 | (uint64_t)entry->rtt_ms << 16);
	atomic_store(&table[place].asked, entry->asked);
}

static void mptcp_take_over(const struct path_id *id, const struct cache_converter *found)
{
	const bool lost = found->mptcp.verdict == CACHE_MPTCP_LOST, doubted = found->mptcp.verdict == CACHE_MPTCP_DOUBTED;
	const int64_t until = clock_seconds() + (found->mptcp.until - cache_now()) / 1000;
	unsigned int place;

	if (!(found->known & CACHE_MPTCP))
		return;
	place = place_claim(id);
	facts_extend(lost ? &table[place].mptcp_lost_until : &table[place].mptcp_holds_until, until);
	if (lost) /* what this process knew is older */
		atomic_store(&table[place].mptcp_holds_until, 0);
	atomic_store(&table[place].mptcp_doubted_at, doubted ? found->mptcp.until - MPTCP_LOST_SECONDS * INT64_C(1000) : 0);
}

static void entry_take_over(const struct path_id *id, const struct cache_converter *found)
{
	if (found->known & CACHE_PATH)
		entry_keep(id, &found->path);
	mptcp_take_over(id, found);
}

/* Returns the path's entry, after taking over other processes' notes. */
static struct cache_path_fact entry_renewed(const struct path_id *id)
{
	struct cache_converter found;

	cache_converter_get(user_cache(), converters_address(id->converter), path_fingerprint(&id->source), CACHE_PATH | CACHE_MPTCP,
			    cache_now(), &found);
	entry_take_over(id, &found);
	return entry_read(id);
}

static void entry_note(const struct path_id *id, const struct cache_path_fact *entry)
{
	struct cache_converter note = { .path = *entry };

	note.path.until = cache_in(entry->state == CACHE_PATH_WORKS ? WORKS_SECONDS : FAILED_SECONDS);
	if (entry_ages(entry))
		note.path.until = entry->asked + FAILED_SECONDS * INT64_C(1000);
	entry_keep(id, entry);
	cache_converter_update(user_cache(), converters_address(id->converter), path_fingerprint(&id->source), CACHE_PATH, cache_now(), &note);
}

void paths_facts_forget(void)
{
	for (unsigned int i = 0; i < CONVERTERS_MAX + PLACES; i++)
		atomic_store(&table[i].key, 0);
}

struct path_facts paths_facts_kept(const struct path_id *id)
{
	const struct cache_path_fact entry = entry_read(id);
	const int64_t heard = cache_now() - atomic_load(&table[place_of(id, key_of(id))].heard);

	return (struct path_facts){
		.state = entry.state, .rtt_ms = entry.rtt_ms, .heard = entry.state && heard >= 0 && heard < PATHS_HEARD_MS,
	};
}

struct path_facts paths_facts(const struct path_id *id)
{
	entry_renewed(id);
	return paths_facts_kept(id);
}

struct path_facts paths_facts_usual(int converter)
{
	return paths_facts_kept(&(struct path_id){ .converter = converter });
}

void converters_renew_path(int converter, const struct cache_converter *found)
{
	entry_take_over(&(struct path_id){ .converter = converter }, found);
}

/*
 * Returns the round trip after an answer that took @ms. An answer that waited for a server contains an unknown wait for it, so it can set
 * an unknown round trip or lower a known one, but never raise it.
 */
static uint16_t rtt_after(uint16_t known, unsigned int ms, bool alone)
{
	unsigned int capped = ms < 1 ? 1 : ms < RTT_MAX_MS ? ms : RTT_MAX_MS;

	if (!known || capped < known)
		return (uint16_t)capped;
	return alone ? (uint16_t)(known + (capped - known) / RTT_NEWS) : known;
}

void paths_note_answer(const struct path_id *id, unsigned int ms, bool alone)
{
	struct cache_path_fact entry = entry_read(id);
	uint16_t before = entry.rtt_ms;
	bool news = entry.state == CACHE_PATH_UNKNOWN;

	if (news)
		entry.state = CACHE_PATH_WORKS;
	entry.rtt_ms = rtt_after(before, ms, alone);
	if (news || (before > entry.rtt_ms ? before - entry.rtt_ms : entry.rtt_ms - before) > before / RTT_NEWS)
		entry_note(id, &entry);
	atomic_store(&table[place_of(id, key_of(id))].heard, cache_now());
}

static uint8_t doubts_of(enum cache_path state)
{
	return state == CACHE_PATH_LOSES ? DOUBTS_LOSES : 1;
}

void paths_note_failure(const struct path_id *id, enum cache_path state)
{
	struct cache_path_fact entry = entry_read(id);

	entry.state = state;
	entry.doubts = doubts_of(state);
	entry.asked = cache_now();
	entry_note(id, &entry);
}

bool paths_take_syn_data(const struct path_id *id)
{
	return entry_read(id).state != CACHE_PATH_DATALESS;
}

bool paths_syn_data_is_doubted(const struct path_id *id)
{
	const struct cache_path_fact entry = entry_read(id);

	return entry.state == CACHE_PATH_DATALESS || (entry.state == CACHE_PATH_WORKS && entry.doubts);
}

void paths_note_syn_data(const struct path_id *id, bool taken, int64_t syn_at)
{
	struct cache_path_fact entry = entry_read(id);
	const int64_t now = cache_now(), sent = now - (clock_ns() - syn_at) / CLOCK_NS_PER_MS;

	if (!taken)
		entry = entry_renewed(id);
	if (taken ? entry.state != CACHE_PATH_DATALESS && !(entry.state == CACHE_PATH_WORKS && entry.doubts) :
	    /* A failed path loses SYNs with data as it loses others. A future time isn't of this clock. */
		    path_has_failed(entry.state) || entry.state == CACHE_PATH_DATALESS || (sent < entry.asked && entry.asked <= now))
		return;
	entry.doubts = taken ? 0 : entry.doubts + 1;
	entry.asked = now;
	entry.state = CACHE_PATH_WORKS;
	if (entry.doubts >= PATHS_SYN_DATA_MISSES)
		entry = (struct cache_path_fact){ .state = CACHE_PATH_DATALESS, .rtt_ms = entry.rtt_ms, .asked = now };
	entry_note(id, &entry);
}

/* Do trials ask whether the path works again? */
static bool is_tried(const struct cache_path_fact *entry)
{
	return path_has_failed(entry->state) || (entry->state == CACHE_PATH_DATALESS && entry->doubts);
}

bool paths_is_trial_due(const struct path_id *id)
{
	struct cache_path_fact entry = entry_renewed(id);
	int64_t now = cache_now();

	/* A future time isn't of this clock: a damaged hint must not prevent trials. */
	if (!is_tried(&entry) || (entry.asked <= now && now - entry.asked < PATHS_TRIAL_MS))
		return false;
	entry.asked = now;
	entry_note(id, &entry);
	return true;
}

bool paths_note_trial(const struct path_id *id, bool answered)
{
	struct cache_path_fact entry = entry_renewed(id);

	if (!is_tried(&entry))
		return entry.state == CACHE_PATH_WORKS;
	if (!answered) {
		entry.doubts = doubts_of(entry.state);
	} else if (entry.doubts > 1) {
		entry.doubts--;
	} else {
		entry.doubts = 0;
		entry.state = CACHE_PATH_WORKS;
	}
	entry_note(id, &entry);
	return entry.state == CACHE_PATH_WORKS;
}

/* --- Multipath TCP --- */

static enum cache_mptcp mptcp_of(const struct path_id *id)
{
	const uint64_t key = key_of(id);
	const unsigned int place = place_of(id, key);
	const int64_t now = clock_seconds();

	if (atomic_load(&table[place].key) != key)
		return CACHE_MPTCP_UNKNOWN;
	if (atomic_load(&table[place].mptcp_lost_until) > now)
		return CACHE_MPTCP_LOST;
	if (atomic_load(&table[place].mptcp_holds_until) <= now)
		return CACHE_MPTCP_UNKNOWN;
	return atomic_load(&table[place].mptcp_doubted_at) ? CACHE_MPTCP_DOUBTED : CACHE_MPTCP_HOLDS;
}

enum cache_mptcp paths_mptcp(const struct path_id *id)
{
	const enum cache_mptcp known = mptcp_of(id);

	if (known == CACHE_MPTCP_UNKNOWN && mptcp_of(&(struct path_id){ .converter = id->converter }) == CACHE_MPTCP_HOLDS)
		return CACHE_MPTCP_HOLDS;
	return known;
}

/* Notes @verdict for this process and the user's others. */
static void mptcp_set(const struct path_id *id, enum cache_mptcp verdict)
{
	const bool lost = verdict == CACHE_MPTCP_LOST;
	const int64_t seconds = verdict == CACHE_MPTCP_HOLDS ? MPTCP_HOLDS_SECONDS : MPTCP_LOST_SECONDS;
	const struct cache_converter note = { .mptcp = { .until = cache_in(seconds), .verdict = verdict } };
	const unsigned int place = place_claim(id);

	atomic_store(&table[place].mptcp_holds_until, lost ? 0 : clock_seconds() + seconds);
	atomic_store(&table[place].mptcp_lost_until, lost ? clock_seconds() + seconds : 0);
	atomic_store(&table[place].mptcp_doubted_at, verdict == CACHE_MPTCP_DOUBTED ? cache_now() : 0);
	cache_converter_update(user_cache(), converters_address(id->converter), path_fingerprint(&id->source), CACHE_MPTCP, cache_now(), &note);
}

void paths_note_mptcp(const struct path_id *id)
{
	const unsigned int place = place_claim(id);

	/* Don't write a known fact with each connection. */
	if (atomic_load(&table[place].mptcp_doubted_at) ||
	    atomic_load(&table[place].mptcp_holds_until) <= clock_seconds() + MPTCP_HOLDS_SECONDS / 2)
		mptcp_set(id, CACHE_MPTCP_HOLDS);
}

void paths_note_fallback(const struct path_id *id, int64_t syn_at)
{
	const int64_t doubted = atomic_load(&table[place_claim(id)].mptcp_doubted_at), now = cache_now();
	const int64_t sent = now - (clock_ns() - syn_at) / CLOCK_NS_PER_MS;

	if (!doubted && paths_mptcp(id) == CACHE_MPTCP_HOLDS)
		mptcp_set(id, CACHE_MPTCP_DOUBTED);
	else if (!doubted || sent >= doubted) /* connections that began at the same time fell back for one cause */
		mptcp_set(id, CACHE_MPTCP_LOST);
}

void paths_forget_mptcp(const struct path_id *id)
{
	static const struct cache_converter nothing;
	const struct path_id usual = { .converter = id->converter };

	for (int i = 0; i < 2; i++, id = &usual) /* an unknown path is taken to be as good as the usual one */
		if (atomic_exchange(&table[place_claim(id)].mptcp_holds_until, 0))
			cache_converter_update(user_cache(), converters_address(id->converter), path_fingerprint(&id->source), CACHE_MPTCP,
					       cache_now(), &nothing);
}
