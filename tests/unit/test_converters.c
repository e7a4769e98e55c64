/* SPDX-License-Identifier: BSD-3-Clause */
/* test_converters.c - which converter is asked, and when one is left alone: for a destination, and altogether */
#include "config.h"

#include "client/cache.h"
#include "client/converters.h"
#include "client/exchange.h"
#include "common/clock.h"

#include "run.h"
#include "tempdir.h"

#include <check.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define IN_A_ROW 3 /* refusals of different destinations before a converter is left alone */
#define SECONDS 600
#define UP_S 7200 /* so much longer the machine has been up, to converters.c: it may have started just now, and there are old records */

static char directory[PATH_MAX];
static struct settings settings;

int64_t clock_read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (now.tv_sec + UP_S) * CLOCK_NS_PER_S + now.tv_nsec;
}

static union sockaddr_ip address(const char *text)
{
	union sockaddr_ip addr;

	ck_assert_int_eq(sockaddr_ip_parse(&addr, text, 1234), 0);
	return addr;
}

static const char *lookup(const char *name)
{
	if (strcmp(name, "CONVERT_CACHE") == 0)
		return directory;
	return strcmp(name, "CONVERT_ADDR") == 0 ? "192.0.2.1,192.0.2.2" : NULL;
}

static void setup(void)
{
	tempdir_make(directory);
	settings_read(&settings, lookup);
	ck_assert(settings.enabled);
	user_cache_init(&settings);
	user_cache_open(-1);
	ck_assert(cache_is_on(user_cache()));
	converters_init(&settings);
}

static void teardown(void)
{
	tempdir_remove(directory);
}

/* The destination number @i. */
static union sockaddr_ip destination(unsigned int i)
{
	char text[32];

	snprintf(text, sizeof(text), "203.0.113.%u:443", i);
	return address(text);
}

/* The index of the converter for destination @i. */
static int chosen(unsigned int i)
{
	union sockaddr_ip where = destination(i), out;
	struct converters_query query = { .destination = &where, .family = AF_INET };
	enum policy_verdict verdict = POLICY_CONVERT;
	const char *reason;

	return converters_choose(&settings, &query, &out, &verdict, &reason);
}

static void refuse(int index, unsigned int i)
{
	union sockaddr_ip where = destination(i);

	converters_refused(index, &where, SECONDS);
}

static void serve(int index)
{
	union sockaddr_ip where = destination(1);

	converters_reached(index, &where);
}

START_TEST(a_refusal_is_about_one_destination)
{
	ck_assert_int_eq(chosen(1), 0);
	refuse(0, 1);
	ck_assert_int_eq(chosen(1), 1);
	ck_assert_int_eq(chosen(2), 0);
	refuse(1, 1);
	ck_assert_int_eq(chosen(1), CONVERTERS_NONE);
}
END_TEST

START_TEST(refusals_in_a_row)
{
	for (unsigned int i = 1; i < IN_A_ROW; i++)
		refuse(0, i);
	ck_assert_int_eq(chosen(9), 0);
	refuse(0, IN_A_ROW);
	ck_assert_int_eq(chosen(9), 1);
	/* the other one's count is its own */
	refuse(1, 1);
	refuse(1, 2);
	ck_assert_int_eq(chosen(9), 1);
	refuse(1, 3);
	ck_assert_int_eq(chosen(9), CONVERTERS_NONE);
}
END_TEST

START_TEST(one_that_is_served_breaks_the_row)
{
	for (unsigned int round = 0; round < 4; round++) {
		for (unsigned int i = 1; i < IN_A_ROW; i++)
			refuse(0, round * 10 + i);
		serve(0);
	}
	ck_assert_int_eq(chosen(99), 0);
}
END_TEST

START_TEST(the_same_destination_again_is_no_news)
{
	for (unsigned int i = 0; i < 3 * IN_A_ROW; i++)
		refuse(0, 1);
	ck_assert_int_eq(chosen(2), 0);
	ck_assert_int_eq(chosen(1), 1);
}
END_TEST

/* Another process of the user's is refused by converter 0 for @count destinations, from the number @first on. */
static void refuse_elsewhere(unsigned int first, unsigned int count)
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		for (unsigned int i = 0; i < count; i++)
			refuse(0, first + i);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

/* Each process counts for itself; what it comes to is told to the others. */
START_TEST(a_rest_is_shared)
{
	refuse_elsewhere(1, IN_A_ROW - 1);
	refuse(0, IN_A_ROW);
	ck_assert_int_eq(chosen(9), 0);
	refuse_elsewhere(10, IN_A_ROW);
	ck_assert_int_eq(chosen(9), 1);
}
END_TEST

/* A converter may have no way to servers of one family: it is asked for the other one. */
START_TEST(a_rest_is_about_one_family)
{
	union sockaddr_ip where = address("[2001:db8::9]:443"), out;
	struct converters_query query = { .destination = &where, .family = AF_INET };
	enum policy_verdict verdict = POLICY_CONVERT;
	const char *reason;

	for (unsigned int i = 1; i <= IN_A_ROW; i++)
		refuse(0, i);
	ck_assert_int_eq(chosen(9), 1);
	ck_assert_int_eq(converters_choose(&settings, &query, &out, &verdict, &reason), 0);
}
END_TEST

/* Silence of one destination, however often, may be that server's; that of three isn't. */
START_TEST(silence_about_several)
{
	union sockaddr_ip where = destination(1);

	for (int i = 0; i < 3 * IN_A_ROW; i++)
		converters_unanswered(0, &where);
	ck_assert_int_eq(chosen(9), 0);
	for (unsigned int i = 2; i <= IN_A_ROW; i++) {
		ck_assert_int_eq(chosen(9), 0);
		where = destination(i);
		converters_unanswered(0, &where);
	}
	ck_assert_int_eq(chosen(9), 1);
}
END_TEST

/* What another process of the user's has noted counts here, from the next choice on. */
START_TEST(what_others_have_learned)
{
	union sockaddr_ip addr = address("192.0.2.1"), where = destination(1);
	const int64_t now = cache_now();
	const struct cache_converter learned = {
		.mptcp = { .until = now + 60000, .verdict = CACHE_MPTCP_LOST },
		.cookie = { .until = now + 60000, .len = 3, .bytes = "one" },
	};
	const struct cache_converter tired = { .rest.until = now + 60000 };

	/* a refusal, about that destination only */
	converters_refused(0, &where, SECONDS);
	converters_forget();
	ck_assert_int_eq(chosen(1), 1);
	ck_assert_int_eq(chosen(2), 0);

	ck_assert_int_eq(cache_converter_update(user_cache(), &addr, 0, CACHE_MPTCP | CACHE_COOKIE, now, &learned), 0);
	ck_assert_int_eq(chosen(2), 0);
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_LOST);
	ck_assert_mem_eq(converters_cookie(&settings, 0, converters_cookie_current(0)).data, "one", 3);

	ck_assert_int_eq(cache_converter_update(user_cache(), &addr, 0, CACHE_REST, now, &tired), 0);
	ck_assert_int_eq(chosen(2), 1);
}
END_TEST

static void answer_of(int index, bool silent, bool blind, bool repeats)
{
	static const uint8_t kinds[] = { 30 };
	const struct handshake_step told = {
		.verdict = HANDSHAKE_DONE, .has_supported = true, .supported = { kinds, sizeof(kinds) },
		.withholding = { .withheld = true, .limit_ms = 700, .silent = silent, .blind = blind, .repeats = repeats },
	};

	converters_answered(index, &told);
}

static void answer(int index, bool silent, bool blind)
{
	answer_of(index, silent, blind, false);
}

START_TEST(silence_is_offered_or_not)
{
	ck_assert_int_eq(converters_silence(&settings, 0), CONVERTERS_ANSWERS);
	answer(0, true, false);
	ck_assert_int_eq(converters_silence(&settings, 0), CONVERTERS_SILENT);
	ck_assert_int_eq(converters_silence(&settings, 1), CONVERTERS_ANSWERS);
	answer(0, true, true);
	ck_assert_int_eq(converters_silence(&settings, 0), CONVERTERS_BLIND);
	settings.silence = false;
	ck_assert_int_eq(converters_silence(&settings, 0), CONVERTERS_ANSWERS);
	settings.silence = true;
	answer(0, false, false);
	ck_assert_int_eq(converters_silence(&settings, 0), CONVERTERS_ANSWERS);
}
END_TEST

/* As the rest of what is said of silence, in the user's cache as well. */
START_TEST(repeats_are_known_or_not)
{
	ck_assert(!converters_takes_repeats(0));
	answer_of(0, true, true, true);
	ck_assert(converters_takes_repeats(0) && !converters_takes_repeats(1));
	ck_assert_int_eq(chosen(1), 0);
	ck_assert(converters_takes_repeats(0));
	answer(0, true, true);
	ck_assert(!converters_takes_repeats(0));
}
END_TEST

/* A time without the flag: a converter that could withhold SYNs, and doesn't. */
START_TEST(a_time_alone_withholds_nothing)
{
	static const struct handshake_step told = { .has_supported = true, .withholding.limit_ms = 700 };

	converters_answered(0, &told);
	ck_assert_uint_eq(converters_withholds_ms(&settings, 0), 0);
}
END_TEST

static void answer_hold_times(int index, bool hold_times)
{
	static const uint8_t kinds[] = { 30 };
	const struct handshake_step told = {
		.verdict = HANDSHAKE_DONE, .has_supported = true, .supported = { kinds, sizeof(kinds) },
		.withholding = { .withheld = true, .limit_ms = 700, .hold_times = hold_times },
	};

	converters_answered(index, &told);
}

/* For as long as it is known that SYNs are withheld, in the user's cache as well. */
START_TEST(hold_times_are_understood_or_not)
{
	static void (*const ends[])(int) = { converters_forget_hold_times, converters_withholds_nothing };

	ck_assert(!converters_takes_hold_times(0));
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		answer_hold_times(0, true);
		ck_assert(converters_takes_hold_times(0) && !converters_takes_hold_times(1));
		ck_assert_int_eq(chosen(1), 0);
		ck_assert(converters_takes_hold_times(0));
		ends[i](0);
		ck_assert_int_eq(chosen(1), 0);
		ck_assert(!converters_withholds_ms(&settings, 0) || !converters_takes_hold_times(0));
	}
	answer_hold_times(0, true);
	answer_hold_times(0, false);
	ck_assert_int_eq(chosen(1), 0);
	ck_assert(!converters_takes_hold_times(0));
}
END_TEST

/* Each of these ends it here, and in the cache, from which it would come back. */
START_TEST(silence_is_forgotten)
{
	static void (*const ends[])(int) = { converters_forget_silence, converters_doubt, converters_withholds_nothing };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		answer(0, true, true);
		ck_assert_int_eq(chosen(1), 0);
		ck_assert_int_eq(converters_silence(&settings, 0), CONVERTERS_BLIND);
		ends[i](0);
		ck_assert_int_eq(chosen(1), 0);
		ck_assert_int_eq(converters_silence(&settings, 0), CONVERTERS_ANSWERS);
	}
}
END_TEST

/* A doubted converter is asked again, by other processes as well, and believed from its answer on; one that was never silent isn't. */
START_TEST(silence_is_doubted)
{
	answer(0, false, false);
	converters_doubt_silence(0);
	ck_assert_int_eq(converters_silence(&settings, 0), CONVERTERS_ANSWERS);
	for (int i = 0; i < 2; i++) {
		answer(0, true, true);
		ck_assert_int_eq(chosen(1), 0);
		ck_assert_int_eq(converters_silence(&settings, 0), CONVERTERS_BLIND);
		converters_doubt_silence(0);
		ck_assert_int_eq(converters_silence(&settings, 0), CONVERTERS_OUTDATED);
		ck_assert_int_eq(chosen(1), 0); /* which takes over what the cache has */
		ck_assert_int_eq(converters_silence(&settings, 0), CONVERTERS_OUTDATED);
	}
}
END_TEST

/* What another process has learned is good for ten minutes from then on. */
START_TEST(silence_is_remembered_for_ten_minutes)
{
	static const struct {
		int64_t age; /* seconds */
		uint32_t flags;
		enum converters_silence silence;
	} records[] = {
		{ 0, 700 | 0x20000, CONVERTERS_SILENT },
		{ 598, 700 | 0x60000, CONVERTERS_BLIND },
		{ 600, 700 | 0x60000, CONVERTERS_OUTDATED },
		{ 3599, 700 | 0x20000, CONVERTERS_OUTDATED },
		{ 0, 700, CONVERTERS_ANSWERS },
		{ 0, 700 | 0x40000, CONVERTERS_ANSWERS }, /* blind alone means nothing */
		{ 0, 0x60000, CONVERTERS_ANSWERS },	  /* nor does silence where no SYN is withheld */
		{ 0, 700 | 0x260000, CONVERTERS_OUTDATED }, /* doubted since */
		{ 0, UINT32_MAX & ~UINT32_C(0x200000), CONVERTERS_BLIND },
	};
	union sockaddr_ip addr = address("192.0.2.1");

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		const int64_t then = cache_now() - records[i].age * 1000;
		const struct cache_converter info = {
			.info = { .until = then + 24 * 3600 * 1000, .flags = records[i].flags, .count = 1, .kinds = { 30 } },
		};

		ck_assert_int_eq(cache_converter_update(user_cache(), &addr, 0, CACHE_INFO, then, &info), 0);
		ck_assert_int_eq(chosen(1), 0);
		ck_assert_msg(converters_silence(&settings, 0) == records[i].silence, "record %zu: %d", i,
			      (int)converters_silence(&settings, 0));
	}
}
END_TEST

/* In its last minute, and not before, a request that renews it saves a later one the wait. */
START_TEST(the_end_of_silence_is_foreseen)
{
	static const struct {
		int64_t age; /* seconds */
		bool soon;
	} records[] = { { 0, false }, { 530, false }, { 550, true }, { 590, true } };
	union sockaddr_ip addr = address("192.0.2.1");

	ck_assert(!converters_silence_ends_soon(0));
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		const int64_t then = cache_now() - records[i].age * 1000;
		const struct cache_converter info = {
			.info = { .until = then + 24 * 3600 * 1000, .flags = 700 | 0x60000, .count = 1, .kinds = { 30 } },
		};

		ck_assert_int_eq(cache_converter_update(user_cache(), &addr, 0, CACHE_INFO, then, &info), 0);
		ck_assert_int_eq(chosen(1), 0);
		ck_assert_int_eq(converters_silence_ends_soon(0), records[i].soon);
	}
}
END_TEST

/* The log says why the first one, which is the preferred one, isn't asked. */
START_TEST(why_there_is_none)
{
	union sockaddr_ip where = destination(1), out;
	struct converters_query query = { .destination = &where, .family = AF_INET };
	enum policy_verdict verdict = POLICY_CONVERT;
	const char *reason;

	refuse(0, 1);
	converters_rest(1, SECONDS);
	ck_assert_int_eq(converters_choose(&settings, &query, &out, &verdict, &reason), CONVERTERS_NONE);
	ck_assert_str_eq(reason, "the converter has refused this destination");
	converters_rest(0, SECONDS);
	ck_assert_int_eq(converters_choose(&settings, &query, &out, &verdict, &reason), CONVERTERS_NONE);
	ck_assert_str_eq(reason, "the converter is left alone for a while");
	ck_assert_int_eq(verdict, POLICY_CONVERT);
	/* a converter isn't a destination to be converted */
	where = address("192.0.2.2");
	ck_assert_int_eq(converters_choose(&settings, &query, &out, &verdict, &reason), CONVERTERS_NONE);
	ck_assert_int_eq(verdict, POLICY_DIRECT_CONVERTER);
}
END_TEST

START_TEST(fallback_none_asks_one_that_rests)
{
	converters_rest(0, SECONDS);
	converters_rest(1, SECONDS);
	ck_assert_int_eq(chosen(1), CONVERTERS_NONE);
	settings.fail_closed = true;
	ck_assert_int_eq(chosen(1), 0);
}
END_TEST

/* A SYN's time, so many milliseconds from now. */
static int64_t after(int64_t ms)
{
	return clock_ns() + ms * CLOCK_NS_PER_MS;
}

START_TEST(mptcp_that_gets_through_or_not)
{
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_UNKNOWN);
	paths_note_mptcp(&(struct path_id){ .converter = 0 });
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_HOLDS);
	paths_note_fallback(&(struct path_id){ .converter = 0 }, after(0));
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_DOUBTED);
	paths_note_fallback(&(struct path_id){ .converter = 0 }, after(1));
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_LOST);
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 1 }), CACHE_MPTCP_UNKNOWN);
	paths_note_fallback(&(struct path_id){ .converter = 1 }, after(0)); /* where nothing is known, one is enough */
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 1 }), CACHE_MPTCP_LOST);
	paths_note_mptcp(&(struct path_id){ .converter = 0 });
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_HOLDS);
}
END_TEST

/* As lost packets make them: not in a row, or of connections that began at once. */
START_TEST(fallbacks_by_chance)
{
	for (int i = 0; i < 3; i++) {
		paths_note_mptcp(&(struct path_id){ .converter = 0 });
		ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_HOLDS);
		paths_note_fallback(&(struct path_id){ .converter = 0 }, after(1));
		ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_DOUBTED);
	}
	for (int i = 0; i < 3; i++)
		paths_note_fallback(&(struct path_id){ .converter = 0 }, after(-300));
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_DOUBTED);
}
END_TEST

/* Another process has seen the first one. */
START_TEST(fallbacks_of_all_processes_are_in_a_row)
{
	const int64_t now = cache_now();
	const struct cache_converter one = { .mptcp = { .until = cache_in(600) - 100, .verdict = CACHE_MPTCP_DOUBTED } };

	paths_note_mptcp(&(struct path_id){ .converter = 0 }); /* for longer than the other one's doubt */
	ck_assert_int_eq(cache_converter_update(user_cache(), converters_address(0), 0, CACHE_MPTCP, now, &one), 0);
	ck_assert_int_eq(chosen(1), 0);
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_DOUBTED);
	paths_note_fallback(&(struct path_id){ .converter = 0 }, after(-300)); /* on its way before */
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_DOUBTED);
	paths_note_mptcp(&(struct path_id){ .converter = 0 });
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_HOLDS);
	paths_note_fallback(&(struct path_id){ .converter = 0 }, after(0));
	paths_note_fallback(&(struct path_id){ .converter = 0 }, after(1));
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_LOST);
}
END_TEST

START_TEST(cookies)
{
	static const struct convert_span one = { (const uint8_t *)"one", 3 }, two = { (const uint8_t *)"two", 3 };
	converters_cookie_number number = converters_cookie_current(0);

	ck_assert_uint_eq(converters_cookie(&settings, 0, number).len, 0);
	ck_assert(!converters_forget_cookie(0, number));
	ck_assert(converters_learn_cookie(0, one));
	number = converters_cookie_current(0);
	ck_assert_uint_eq(converters_cookie(&settings, 0, number).len, 3);
	/* a request that is under way keeps its own */
	ck_assert(converters_learn_cookie(0, two));
	ck_assert_mem_eq(converters_cookie(&settings, 0, number).data, "one", 3);
	ck_assert_mem_eq(converters_cookie(&settings, 0, converters_cookie_current(0)).data, "two", 3);
	/* and its refusal says nothing of the other */
	ck_assert(converters_forget_cookie(0, number));
	ck_assert_mem_eq(converters_cookie(&settings, 0, converters_cookie_current(0)).data, "two", 3);
	ck_assert(converters_forget_cookie(0, converters_cookie_current(0)));
	ck_assert_uint_eq(converters_cookie(&settings, 0, converters_cookie_current(0)).len, 0);
	ck_assert_uint_eq(converters_cookie(&settings, 1, converters_cookie_current(1)).len, 0);
}
END_TEST

/* A converter that lies about a server takes no connection away from another one, and none goes directly where none may. */
START_TEST(a_word_about_a_server_counts_for_who_said_it)
{
	const union sockaddr_ip server = destination(1);

	ck_assert(!exchange_bypasses(&settings, &server));
	servers_note_mptcp(1, &server, HANDSHAKE_SERVER_MPTCP);
	ck_assert_int_eq(servers_mptcp(0, &server), HANDSHAKE_SERVER_UNKNOWN);
	ck_assert(!exchange_bypasses(&settings, &server));
	converters_rest(0, SECONDS);
	ck_assert_int_eq(chosen(1), 1);
	ck_assert(exchange_bypasses(&settings, &server));
	settings.fail_closed = true;
	ck_assert(!exchange_bypasses(&settings, &server));
	settings.fail_closed = false;
	servers_note_no_bypass(&server);
	ck_assert(!exchange_bypasses(&settings, &server));
}
END_TEST

/* A firewall in a container's network teaches nothing about the host's network. */
START_TEST(another_network_is_another_world)
{
	union sockaddr_ip where = destination(2);

	converters_rest(0, SECONDS);
	converters_refused(1, &where, SECONDS);
	ck_assert_int_eq(chosen(2), CONVERTERS_NONE);
	((struct cache *)(uintptr_t)user_cache())->network++;
	converters_forget();
	ck_assert_int_eq(chosen(2), 0);
	((struct cache *)(uintptr_t)user_cache())->network--;
	ck_assert_int_eq(chosen(2), CONVERTERS_NONE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("converters");
	TCase *tcase = tcase_create("converters");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_refusal_is_about_one_destination);
	tcase_add_test(tcase, refusals_in_a_row);
	tcase_add_test(tcase, one_that_is_served_breaks_the_row);
	tcase_add_test(tcase, the_same_destination_again_is_no_news);
	tcase_add_test(tcase, a_rest_is_shared);
	tcase_add_test(tcase, a_rest_is_about_one_family);
	tcase_add_test(tcase, silence_about_several);
	tcase_add_test(tcase, what_others_have_learned);
	tcase_add_test(tcase, silence_is_offered_or_not);
	tcase_add_test(tcase, repeats_are_known_or_not);
	tcase_add_test(tcase, hold_times_are_understood_or_not);
	tcase_add_test(tcase, a_time_alone_withholds_nothing);
	tcase_add_test(tcase, silence_is_forgotten);
	tcase_add_test(tcase, silence_is_doubted);
	tcase_add_test(tcase, silence_is_remembered_for_ten_minutes);
	tcase_add_test(tcase, the_end_of_silence_is_foreseen);
	tcase_add_test(tcase, why_there_is_none);
	tcase_add_test(tcase, fallback_none_asks_one_that_rests);
	tcase_add_test(tcase, mptcp_that_gets_through_or_not);
	tcase_add_test(tcase, fallbacks_by_chance);
	tcase_add_test(tcase, fallbacks_of_all_processes_are_in_a_row);
	tcase_add_test(tcase, cookies);
	tcase_add_test(tcase, a_word_about_a_server_counts_for_who_said_it);
	tcase_add_test(tcase, another_network_is_another_world);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
