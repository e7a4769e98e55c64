/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * converters_facts.c - facts about each converter as a whole, learned by this process and by the user's others
 *
 * Each fact is one atomic word, and the last writer wins: facts are hints, and none depends on another. We note each fact in the cache as
 * well, and take over other processes' facts from there before we consider a converter for a connection (converters_choose()). Paths and
 * converters change, so all facts but no_mptcp expire, or are replaced by the next answer to Info.
 */
#include "config.h"

#include "client/converters.h"

#include "common/clock.h"
#include "common/tcp.h"

#include <stdatomic.h>
#include <string.h>

#define PROOF_SECONDS 3600        /* until a request asks it again for the supported extensions */

/* A converter's answer to Info, as the cache keeps it: for how many ms it withholds SYNs at most (0: it doesn't), and: */
#define INFO_WITHHELD_MS 0xffffu
#define INFO_CORRECTS 0x10000u
#define INFO_SILENT 0x20000u
#define INFO_BLIND 0x40000u
#define INFO_REPEATS 0x80000u
#define INFO_HOLD_TIMES 0x100000u
#define INFO_DOUBTED 0x200000u /* it took silent requests, and must offer them again */
#define INFO_SILENCE (INFO_SILENT | INFO_BLIND | INFO_REPEATS | INFO_DOUBTED)
/*
 * An answer to Info is good for PROOF_SECONDS, but INFO_CORRECTS for a day. Otherwise a process that begins with an older answer would
 * pay an extra round trip each hour; its first request asks again, which corrects the flag.
 */
#define CORRECTS_SECONDS (24 * 3600)

#define SILENCE_SECONDS 600 /* how long we believe that a converter takes silent requests */
#define SILENCE_SOON_SECONDS 60
#define SILENCE_DOUBTED 1 /* the end of that time, long past, for a doubted converter */

/* Times are in clock_seconds(). */
static struct facts {
	_Atomic int64_t rest_until;
	_Atomic int64_t proven_until;
	_Atomic int64_t silent_until; /* it takes silent requests; 0: it never said so, or we forgot it */
	_Atomic uint32_t info;        /* INFO_… */
	_Atomic bool no_mptcp;
} learned[CONVERTERS_MAX];

void facts_extend(_Atomic int64_t *until, int64_t seconds)
{
	if (atomic_load(until) < seconds)
		atomic_store(until, seconds);
}

void converters_rest_here(int index, unsigned int seconds)
{
	atomic_store(&learned[index].rest_until, clock_seconds() + (int64_t)seconds);
}

void converters_rest(int index, unsigned int seconds)
{
	struct cache_converter note = { .rest.until = cache_in(seconds) };

	converters_rest_here(index, seconds);
	converters_note(index, CACHE_REST, &note);
}

bool converters_rests(int index, int64_t now)
{
	return atomic_load(&learned[index].rest_until) > now;
}

/* --- its answers --- */

void converters_proved(int index)
{
	facts_extend(&learned[index].proven_until, clock_seconds() + PROOF_SECONDS);
}

bool converters_is_proven(int index)
{
	return atomic_load(&learned[index].proven_until) > clock_seconds();
}

void converters_doubt(int index)
{
	static const struct cache_converter nothing;

	atomic_store(&learned[index].proven_until, 0);
	atomic_store(&learned[index].silent_until, 0);
	converters_note(index, CACHE_INFO, &nothing);
}

/* Keeps an answer to Info that is good until @until. A converter that withholds no SYNs can't take silent requests. */
static void info_keep(struct facts *facts, uint32_t info, int64_t until)
{
	const bool silent = (info & INFO_SILENT) && (info & INFO_WITHHELD_MS);

	atomic_store(&facts->info, info);
	atomic_store(&facts->silent_until, !silent ? 0 : info & INFO_DOUBTED ? SILENCE_DOUBTED : until);
}

static uint32_t info_of(const struct handshake_step *told)
{
	const struct convert_withholding *syns = &told->withholding;
	uint32_t info = syns->withheld ? syns->limit_ms : 0;

	info |= syns->corrects ? INFO_CORRECTS : 0;
	info |= syns->hold_times ? INFO_HOLD_TIMES : 0;
	if (syns->silent)
		info |= INFO_SILENT | (syns->blind ? INFO_BLIND : 0) | (syns->repeats ? INFO_REPEATS : 0);
	return info;
}

void converters_answered(int index, const struct handshake_step *told)
{
	struct cache_converter note = { .info.until = cache_in(CORRECTS_SECONDS), .info.flags = info_of(told) };
	const struct convert_span *supported = &told->supported;

	converters_proved(index);
	if (!told->has_supported)
		return;
	info_keep(&learned[index], note.info.flags, clock_seconds() + SILENCE_SECONDS);
	for (size_t i = 0; i < supported->len && note.info.count < CACHE_KINDS_MAX; i++)
		if (supported->data[i])
			note.info.kinds[note.info.count++] = supported->data[i];
	if (!memchr(note.info.kinds, TCP_KIND_MPTCP, note.info.count))
		converters_note_no_mptcp(index);
	converters_note(index, CACHE_INFO | CACHE_SILENCE, &note); /* this forgets an earlier silence */
}

static bool info_has(int index, uint32_t flag)
{
	return atomic_load(&learned[index].info) & flag;
}

unsigned int converters_withholds_ms(const struct settings *settings, int index)
{
	if (settings->withheld_ms != SETTINGS_WITHHELD_LEARNED)
		return (unsigned int)settings->withheld_ms;
	return atomic_load(&learned[index].info) & INFO_WITHHELD_MS;
}

/* Clears flags @out and sets flags @in in the answer to Info, here and in the cache. */
static void info_change(int index, uint32_t out, uint32_t in)
{
	struct cache_converter found;

	atomic_fetch_and(&learned[index].info, ~out);
	if (!(converters_noted(index, CACHE_INFO, &found) & CACHE_INFO))
		return;
	found.info.flags = (found.info.flags & ~out) | in;
	converters_note(index, CACHE_INFO, &found);
}

void converters_withholds_nothing(int index)
{
	atomic_store(&learned[index].silent_until, 0);
	info_change(index, INFO_WITHHELD_MS | INFO_SILENCE | INFO_HOLD_TIMES, 0);
}

enum converters_silence converters_silence(const struct settings *settings, int index)
{
	const int64_t until = atomic_load(&learned[index].silent_until);

	if (!settings->silence || !until || !converters_withholds_ms(settings, index))
		return CONVERTERS_ANSWERS;
	if (until <= clock_seconds())
		return CONVERTERS_OUTDATED;
	return info_has(index, INFO_BLIND) ? CONVERTERS_BLIND : CONVERTERS_SILENT;
}

bool converters_silence_ends_soon(int index)
{
	const int64_t until = atomic_load(&learned[index].silent_until);

	return until && until < clock_seconds() + SILENCE_SOON_SECONDS;
}

bool converters_takes_repeats(int index)
{
	return info_has(index, INFO_REPEATS);
}

bool converters_takes_hold_times(int index)
{
	return info_has(index, INFO_HOLD_TIMES);
}

void converters_forget_hold_times(int index)
{
	info_change(index, INFO_HOLD_TIMES, 0);
}

void converters_forget_silence(int index)
{
	atomic_store(&learned[index].silent_until, 0);
	info_change(index, INFO_SILENCE, 0);
}

void converters_doubt_silence(int index)
{
	if (!atomic_load(&learned[index].silent_until))
		return;
	atomic_store(&learned[index].silent_until, SILENCE_DOUBTED);
	info_change(index, 0, INFO_DOUBTED);
}

bool converters_corrects_windows(const struct settings *settings, int index)
{
	return settings->withheld_ms > 0 || info_has(index, INFO_CORRECTS);
}

/* --- Multipath TCP --- */

void converters_note_no_mptcp(int index)
{
	atomic_store(&learned[index].no_mptcp, true);
}

bool converters_takes_mptcp(int index)
{
	return !atomic_load(&learned[index].no_mptcp);
}

/* --- facts that other processes have learned --- */

void converters_facts_forget(void)
{
	for (int i = 0; i < CONVERTERS_MAX; i++) {
		struct facts *facts = &learned[i];

		atomic_store(&facts->rest_until, 0);
		atomic_store(&facts->proven_until, 0);
		atomic_store(&facts->silent_until, 0);
		atomic_store(&facts->info, 0);
		atomic_store(&facts->no_mptcp, false);
	}
}

/* @now, @boot: clock_seconds() and cache_now() */
static void renew_info(struct facts *facts, const struct cache_converter *found, int64_t now, int64_t boot)
{
	const int64_t age = boot - found->info.learned;

	if (age >= PROOF_SECONDS * INT64_C(1000)) {
		atomic_fetch_and(&facts->info, ~INFO_CORRECTS);
		atomic_fetch_or(&facts->info, found->info.flags & INFO_CORRECTS);
		return;
	}
	facts_extend(&facts->proven_until, now + (PROOF_SECONDS * INT64_C(1000) - age) / 1000);
	if (!memchr(found->info.kinds, TCP_KIND_MPTCP, found->info.count))
		atomic_store(&facts->no_mptcp, true);
	info_keep(facts, found->info.flags, now + (SILENCE_SECONDS * INT64_C(1000) - age) / 1000);
}

void converters_renew_facts(int index, const struct cache_converter *found, int64_t now)
{
	struct facts *facts = &learned[index];
	int64_t boot = cache_now();

	if (found->known & CACHE_REST)
		facts_extend(&facts->rest_until, now + (found->rest.until - boot + 999) / 1000);
	if (found->known & CACHE_INFO)
		renew_info(facts, found, now, boot);
}
