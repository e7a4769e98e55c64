/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cache.c - what is stored is found again: by which users, for how long, and what is evicted */
#include "config.h"

#include "client/cache.h"
#include "client/cache_file.h"

#include "cache_open.h"
#include "run.h"
#include "tempdir.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define NOW INT64_C(1000000)
#define LATER (NOW + 60000)
#define PATH UINT64_C(0x1122334455667788)

static char directory[PATH_MAX];
static struct cache cache;

static void setup(void)
{
	tempdir_make(directory);
	ck_assert_int_eq(cache_open(&cache, directory), 0);
	errno = 12345; /* no function of the cache changes it */
}

static void teardown(void)
{
	ck_assert_int_eq(errno, 12345);
	cache_close(&cache);
	tempdir_remove(directory);
}

static union sockaddr_ip address(const char *text)
{
	union sockaddr_ip addr;

	ck_assert_int_eq(sockaddr_ip_parse(&addr, text, 1234), 0);
	return addr;
}

/* The server number @i. */
static union sockaddr_ip server(uint32_t i)
{
	union sockaddr_ip addr = { .in = { .sin_family = AF_INET, .sin_port = htons(443) } };

	addr.in.sin_addr.s_addr = htonl(0x0a000000 + i);
	return addr;
}

/* Everything known, in ranges that are all used. */
static struct cache_converter everything(void)
{
	struct cache_converter all = {
		.known = CACHE_FACTS_ALL,
		.rest = { .learned = NOW, .until = LATER },
		.info = { .until = LATER + 2, .learned = NOW, .flags = 0xf00dcafe,
			  .count = CACHE_KINDS_MAX },
		.cookie = { .learned = NOW, .until = LATER + 3, .len = CACHE_COOKIE_MAX },
		.mptcp = { .learned = NOW, .until = LATER, .verdict = CACHE_MPTCP_LOST },
		.silence = { .until = LATER + 4, .learned = NOW, .destination = UINT64_MAX - 7,
			     .destinations = UINT32_MAX },
		.path = { .learned = NOW, .until = LATER + 5, .asked = INT64_MAX, .state = CACHE_PATH_SILENT, .rtt_ms = UINT16_MAX,
			  .doubts = UINT8_MAX },
	};

	for (unsigned int i = 0; i < CACHE_KINDS_MAX; i++)
		all.info.kinds[i] = (uint8_t)(255 - i);
	for (unsigned int i = 0; i < CACHE_COOKIE_MAX; i++)
		all.cookie.bytes[i] = (uint8_t)(i * 7);
	return all;
}

static void update(const char *converter, unsigned int facts, const struct cache_converter *in)
{
	union sockaddr_ip addr = address(converter);

	ck_assert_int_eq(cache_converter_update(&cache, &addr, PATH, facts, NOW, in), 0);
}

static struct cache_converter get(const char *converter, uint64_t path, unsigned int facts,
				  int64_t now)
{
	union sockaddr_ip addr = address(converter);
	struct cache_converter out;

	memset(&out, 0xa5, sizeof(out));
	ck_assert_uint_eq(cache_converter_get(&cache, &addr, path, facts, now, &out), out.known);
	return out;
}

static unsigned int known(const char *converter, int64_t now)
{
	return get(converter, PATH, CACHE_FACTS_ALL, now).known;
}

START_TEST(off)
{
	struct cache none = { 0 };
	union sockaddr_ip addr = address("192.0.2.1");
	struct cache_converter all = everything();

	ck_assert_int_eq(cache_converter_update(&none, &addr, 0, CACHE_REST, NOW, &all), -ENOENT);
	ck_assert_uint_eq(cache_converter_get(&none, &addr, 0, CACHE_REST, NOW, &all), 0);
	ck_assert_uint_eq(all.rest.until, 0);
	ck_assert_int_eq(cache_answer_put(&none, &addr, 0, CACHE_YES, NOW, LATER), -ENOENT);
	ck_assert_int_eq(cache_answer_get(&none, &addr, 0, NOW), CACHE_UNKNOWN);
	cache_close(&none);
}
END_TEST

static const char *const converters[] = { "192.0.2.1", "[2001:db8::1]:9", "[::ffff:192.0.2.9]" };

START_TEST(everything_comes_back)
{
	struct cache_converter all = everything(), out;

	ck_assert_uint_eq(known(converters[_i], NOW), 0);
	update(converters[_i], CACHE_FACTS_ALL, &all);
	out = get(converters[_i], PATH, CACHE_FACTS_ALL, NOW);
	ck_assert_mem_eq(&out, &all, sizeof(all));
	/* another process, or this one later */
	cache_close(&cache);
	ck_assert_int_eq(cache_open(&cache, directory), 0);
	out = get(converters[_i], PATH, CACHE_FACTS_ALL, NOW);
	ck_assert_mem_eq(&out, &all, sizeof(all));
}
END_TEST

START_TEST(the_key_is_address_and_port)
{
	struct cache_converter all = everything();
	union sockaddr_ip scoped = address("2001:db8::1");

	update("192.0.2.1", CACHE_FACTS_ALL, &all);
	update("2001:db8::1", CACHE_FACTS_ALL, &all);
	ck_assert_uint_eq(known("[::ffff:192.0.2.1]:1234", NOW), CACHE_FACTS_ALL);
	scoped.in6.sin6_scope_id = 3;
	ck_assert_uint_eq(cache_converter_get(&cache, &scoped, 0, CACHE_REST, NOW, &all), CACHE_REST);
	ck_assert_uint_eq(known("192.0.2.1:1235", NOW), 0);
	ck_assert_uint_eq(known("192.0.2.2", NOW), 0);
	ck_assert_uint_eq(known("[2001:db8::1]:1235", NOW), 0);
	ck_assert_uint_eq(known("2001:db8::2", NOW), 0);
	scoped.sa.sa_family = AF_UNIX;
	ck_assert_uint_eq(cache_converter_get(&cache, &scoped, 0, CACHE_REST, NOW, &all), 0);
	ck_assert_int_eq(cache_converter_update(&cache, &scoped, 0, CACHE_REST, NOW, &all), -EINVAL);
	ck_assert_int_eq(cache_answer_put(&cache, &scoped, 0, CACHE_YES, NOW, LATER), -EINVAL);
}
END_TEST

START_TEST(facts_are_independent)
{
	struct cache_converter all = everything(), one = all, out;

	update("192.0.2.1", CACHE_FACTS_ALL, &all);
	for (unsigned int fact = 1; fact <= CACHE_PATH; fact <<= 1) {
		out = get("192.0.2.1", PATH, fact, NOW);
		ck_assert_uint_eq(out.known, fact);
		ck_assert_int_eq(out.rest.until != 0, fact == CACHE_REST);
		ck_assert_int_eq(out.info.until != 0, fact == CACHE_INFO);
		ck_assert_int_eq(out.cookie.until != 0, fact == CACHE_COOKIE);
		ck_assert_int_eq(out.mptcp.until != 0, fact == CACHE_MPTCP);
		ck_assert_int_eq(out.mptcp.verdict == CACHE_MPTCP_LOST, fact == CACHE_MPTCP);
		ck_assert_int_eq(out.silence.until != 0, fact == CACHE_SILENCE);
		ck_assert_int_eq(out.path.until != 0, fact == CACHE_PATH);
		ck_assert_int_eq(out.path.state == CACHE_PATH_SILENT, fact == CACHE_PATH);
		ck_assert_int_eq(out.path.asked == INT64_MAX && out.path.rtt_ms == UINT16_MAX && out.path.doubts == UINT8_MAX,
				 fact == CACHE_PATH);
	}
	one.rest.until = LATER + 9;
	one.cookie.until = 0;
	update("192.0.2.1", CACHE_REST | CACHE_COOKIE, &one);
	out = get("192.0.2.1", PATH, CACHE_FACTS_ALL, NOW);
	ck_assert_uint_eq(out.known, CACHE_FACTS_ALL & ~(unsigned int)CACHE_COOKIE);
	ck_assert_int_eq(out.rest.until, LATER + 9);
	ck_assert_uint_eq(out.cookie.len, 0);
}
END_TEST

START_TEST(paths_are_told_apart)
{
	struct cache_converter all = everything(), out;
	union sockaddr_ip addr = address("192.0.2.1");

	update("192.0.2.1", CACHE_FACTS_ALL, &all);
	out = get("192.0.2.1", PATH + 1, CACHE_FACTS_ALL, NOW);
	ck_assert_uint_eq(out.known, CACHE_FACTS_ALL & ~(unsigned int)(CACHE_PATH | CACHE_MPTCP));
	all.path.state = CACHE_PATH_WORKS;
	ck_assert_int_eq(cache_converter_update(&cache, &addr, 0, CACHE_PATH, NOW, &all), 0);
	ck_assert_int_eq(get("192.0.2.1", 0, CACHE_PATH, NOW).path.state, CACHE_PATH_WORKS);
	ck_assert_int_eq(get("192.0.2.1", PATH, CACHE_PATH, NOW).path.state, CACHE_PATH_SILENT);
}
END_TEST

/* What was learned in a container's network is found there, and the host's is left alone. */
START_TEST(network_namespaces_are_told_apart)
{
	static const uint64_t networks[] = { 1, 2, UINT64_C(1) << 32, UINT64_MAX };
	struct cache_converter all = everything();
	union sockaddr_ip addr = server(1);

	for (size_t i = 0; i < ARRAY_SIZE(networks); i++) {
		cache.network = networks[i];
		ck_assert_uint_eq(known("192.0.2.1", NOW), 0);
		ck_assert_int_eq(cache_answer_get(&cache, &addr, 0, NOW), CACHE_UNKNOWN);
		all.rest.until = LATER + (int64_t)i;
		update("192.0.2.1", CACHE_REST | CACHE_PATH, &all); /* few, so that all stay wherever their buckets are */
		ck_assert_int_eq(cache_answer_put(&cache, &addr, 0, CACHE_YES, NOW, LATER), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(networks); i++) {
		cache.network = networks[i];
		ck_assert_int_eq(get("192.0.2.1", PATH, CACHE_REST, NOW).rest.until, LATER + (int64_t)i);
		ck_assert_int_eq(cache_answer_get(&cache, &addr, 0, NOW), CACHE_YES);
	}
}
END_TEST

START_TEST(sources_are_told_apart)
{
	union sockaddr_ip addr = server(1);

	ck_assert_int_eq(cache_answer_put(&cache, &addr, 1, CACHE_YES, NOW, LATER), 0);
	ck_assert_int_eq(cache_answer_get(&cache, &addr, 2, NOW), CACHE_UNKNOWN);
	ck_assert_int_eq(cache_answer_put(&cache, &addr, 2, CACHE_NO, NOW, LATER), 0);
	ck_assert_int_eq(cache_answer_get(&cache, &addr, 1, NOW), CACHE_YES);
	ck_assert_int_eq(cache_answer_get(&cache, &addr, 2, NOW), CACHE_NO);
}
END_TEST

START_TEST(every_length_of_cookies_and_kinds)
{
	struct cache_converter all = everything(), out;

	for (uint16_t len = 1; len <= CACHE_COOKIE_MAX; len++) {
		all.cookie.len = len;
		all.info.count = (uint8_t)(len % (CACHE_KINDS_MAX + 1));
		update("192.0.2.1", CACHE_COOKIE | CACHE_INFO, &all);
		out = get("192.0.2.1", 0, CACHE_COOKIE | CACHE_INFO, NOW);
		ck_assert_uint_eq(out.cookie.len, len);
		ck_assert_mem_eq(out.cookie.bytes, all.cookie.bytes, len);
		ck_assert(len == CACHE_COOKIE_MAX || out.cookie.bytes[len] == 0);
		ck_assert_uint_eq(out.info.count, all.info.count);
		ck_assert(!memcmp(out.info.kinds, all.info.kinds, out.info.count));
		ck_assert(out.info.count == CACHE_KINDS_MAX || out.info.kinds[out.info.count] == 0);
	}
}
END_TEST

START_TEST(values_out_of_range_are_refused)
{
	struct cache_converter all = everything(), wrong;
	union sockaddr_ip addr = address("192.0.2.1");

	for (int i = 1; i < 12; i++) {
		wrong = all;
		wrong.silence.destinations = i == 8 ? 0 : 1;
		wrong.path.asked = i == 9 ? -1 : NOW;
		wrong.path.state = i == 10 ? CACHE_PATH_UNKNOWN : i == 11 ? CACHE_PATH_COUNT : CACHE_PATH_LOSES;
		wrong.info.count = i == 1 ? CACHE_KINDS_MAX + 1 : i == 2 ? 255 : 2;
		wrong.info.kinds[1] = i == 3 ? 0 : 30;
		wrong.mptcp.verdict = i == 6 ? CACHE_MPTCP_UNKNOWN : i == 7 ? CACHE_MPTCP_COUNT : CACHE_MPTCP_HOLDS;
		wrong.cookie.len = i == 4 ? 0 : i == 5 ? CACHE_COOKIE_MAX + 1 : 1;
		ck_assert_int_eq(cache_converter_update(&cache, &addr, PATH, CACHE_FACTS_ALL, NOW,
							&wrong), -EINVAL);
		ck_assert_uint_eq(known("192.0.2.1", NOW), 0);
		/* to be forgotten, it need not be right */
		wrong.info.until = wrong.cookie.until = wrong.silence.until = 0;
		wrong.mptcp.until = wrong.path.until = 0;
		update("192.0.2.1", CACHE_FACTS_ALL, &wrong);
		ck_assert_uint_eq(known("192.0.2.1", NOW), CACHE_REST);
		wrong.rest.until = 0;
		update("192.0.2.1", CACHE_REST, &wrong);
	}
	ck_assert_int_eq(cache_converter_update(&cache, &addr, 0, CACHE_PATH << 1, NOW, &all), -EINVAL);
	ck_assert_int_eq(cache_converter_update(&cache, &addr, 0, 0, NOW, &all), 0);
	ck_assert_int_eq(cache_answer_put(&cache, &addr, 0, CACHE_ANSWER_COUNT, NOW, LATER),
			 -EINVAL);
	ck_assert_int_eq(cache_answer_put(&cache, &addr, 0, (enum cache_answer)-1, NOW, LATER),
			 -EINVAL);
}
END_TEST

START_TEST(each_fact_has_its_end)
{
	struct cache_converter all = everything();

	update("192.0.2.1", CACHE_FACTS_ALL, &all);
	ck_assert_uint_eq(known("192.0.2.1", LATER - 1), CACHE_FACTS_ALL);
	ck_assert_uint_eq(known("192.0.2.1", LATER), CACHE_INFO | CACHE_COOKIE | CACHE_SILENCE | CACHE_PATH);
	ck_assert_uint_eq(known("192.0.2.1", LATER + 1), CACHE_INFO | CACHE_COOKIE | CACHE_SILENCE | CACHE_PATH);
	ck_assert_uint_eq(known("192.0.2.1", LATER + 2), CACHE_COOKIE | CACHE_SILENCE | CACHE_PATH);
	ck_assert_uint_eq(known("192.0.2.1", LATER + 3), CACHE_SILENCE | CACHE_PATH);
	ck_assert_uint_eq(known("192.0.2.1", LATER + 4), CACHE_PATH);
	ck_assert_uint_eq(known("192.0.2.1", LATER + 5), 0);
	/* to remove facts stores nothing for an unknown converter, and removes those of a known one */
	all.rest.until = NOW;
	all.cookie.until = INT64_MIN;
	update("192.0.2.1", CACHE_REST | CACHE_COOKIE, &all);
	update("192.0.2.2", CACHE_REST | CACHE_COOKIE, &all);
	ck_assert_uint_eq(known("192.0.2.1", NOW),
			  CACHE_INFO | CACHE_MPTCP | CACHE_SILENCE | CACHE_PATH);
	ck_assert_uint_eq(known("192.0.2.2", NOW), 0);
}
END_TEST

START_TEST(nothing_outlives_a_day)
{
	struct cache_converter all = everything();

	all.rest.until = all.cookie.until = all.silence.until = all.path.until = INT64_MAX;
	all.info.until = NOW + CACHE_LIFETIME_MAX;
	all.mptcp.until = NOW + CACHE_LIFETIME_MAX + 1;
	update("192.0.2.1", CACHE_FACTS_ALL, &all);
	ck_assert_uint_eq(known("192.0.2.1", NOW + CACHE_LIFETIME_MAX - 1), CACHE_FACTS_ALL);
	ck_assert_uint_eq(known("192.0.2.1", NOW + CACHE_LIFETIME_MAX), 0);
	ck_assert_int_eq(get("192.0.2.1", PATH, CACHE_REST, NOW).rest.until,
			 NOW + CACHE_LIFETIME_MAX);
}
END_TEST

/* A record may be a little younger than the reader's clock, but one from the future is not believed. */
START_TEST(clocks)
{
	static const int64_t senseless[] = { 0, -1, INT64_MIN, INT64_MAX, INT64_MAX / 2 };
	struct cache_converter all = everything();
	union sockaddr_ip addr = address("192.0.2.1");
	int64_t first = cache_now();

	update("192.0.2.1", CACHE_INFO, &all);
	ck_assert_uint_eq(known("192.0.2.1", NOW - CACHE_CLOCK_SLACK), CACHE_INFO);
	ck_assert_uint_eq(known("192.0.2.1", NOW - CACHE_CLOCK_SLACK - 1), 0);
	for (size_t i = 0; i < ARRAY_SIZE(senseless); i++) {
		int64_t now = senseless[i];

		ck_assert_uint_eq(known("192.0.2.1", now), 0);
		ck_assert_int_eq(cache_answer_get(&cache, &addr, 0, now), CACHE_UNKNOWN);
		ck_assert_int_eq(cache_converter_update(&cache, &addr, 0, CACHE_REST, now, &all),
				 -EINVAL);
		ck_assert_int_eq(cache_answer_put(&cache, &addr, 0, CACHE_YES, now, now),
				 -EINVAL);
	}
	ck_assert_int_gt(first, 0);
	ck_assert_int_ge(cache_now(), first);
}
END_TEST

START_TEST(answers)
{
	union sockaddr_ip v6 = address("[2001:db8::1]:443"), v4 = address("192.0.2.1:443");
	union sockaddr_ip mapped = address("[::ffff:192.0.2.1]:443");

	ck_assert_int_eq(cache_answer_get(&cache, &v6, 0, NOW), CACHE_UNKNOWN);
	ck_assert_int_eq(cache_answer_put(&cache, &v6, 0, CACHE_YES, NOW, LATER), 0);
	ck_assert_int_eq(cache_answer_put(&cache, &v4, 0, CACHE_NO, NOW, INT64_MAX), 0);
	ck_assert_int_eq(cache_answer_get(&cache, &v6, 0, LATER - 1), CACHE_YES);
	ck_assert_int_eq(cache_answer_get(&cache, &mapped, 0, LATER), CACHE_NO);
	ck_assert_int_eq(cache_answer_get(&cache, &mapped, 0, NOW + CACHE_LIFETIME_MAX - 1), CACHE_NO);
	ck_assert_int_eq(cache_answer_get(&cache, &mapped, 0, NOW + CACHE_LIFETIME_MAX), CACHE_UNKNOWN);
	ck_assert_int_eq(cache_answer_get(&cache, &v6, 0, LATER), CACHE_UNKNOWN);
	/* the last verdict counts, an earlier clock or not */
	ck_assert_int_eq(cache_answer_put(&cache, &v4, 0, CACHE_YES, NOW - 5, LATER), 0);
	ck_assert_int_eq(cache_answer_get(&cache, &v4, 0, NOW), CACHE_YES);
	ck_assert_int_eq(cache_answer_put(&cache, &v4, 0, CACHE_UNKNOWN, NOW, LATER), 0);
	ck_assert_int_eq(cache_answer_get(&cache, &v4, 0, NOW), CACHE_UNKNOWN);
	/* a converter at the same address is something else */
	ck_assert_uint_eq(known("192.0.2.1:443", NOW), 0);
}
END_TEST

/* Of the records that share a bucket the youngest stay, and a server is found right after it was stored. */
START_TEST(the_oldest_makes_room)
{
	enum { COUNT = 4000 };
	const struct cache_table *table = cache_table_of(CACHE_KIND_ANSWER);
	unsigned int kept = 0, younger[COUNT] = { 0 };
	uint32_t bucket[COUNT];

	for (uint32_t i = 0; i < COUNT; i++) {
		union sockaddr_ip addr = server(i);
		struct cache_key key;

		cache_key_set(&key, CACHE_KIND_ANSWER, &addr, 0, 0);
		bucket[i] = cache_bucket_offset(&key);
		ck_assert_int_eq(cache_answer_put(&cache, &addr, 0, CACHE_YES, NOW + i,
						  INT64_MAX), 0);
		ck_assert_int_eq(cache_answer_get(&cache, &addr, 0, NOW + i), CACHE_YES);
		for (uint32_t older = 0; older < i; older++)
			younger[older] += bucket[older] == bucket[i];
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		union sockaddr_ip addr = server(i);
		bool found = cache_answer_get(&cache, &addr, 0, NOW + COUNT) == CACHE_YES;

		ck_assert_int_eq(found, younger[i] < table->ways);
		kept += found;
	}
	ck_assert_uint_eq(kept, table->buckets * table->ways); /* so the hash spreads them */
}
END_TEST

/* Servers that share a bucket with the first one. */
static void bucket_fill(union sockaddr_ip *out, size_t count)
{
	struct cache_key key;
	uint32_t offset = 0;

	for (uint32_t i = 0, found = 0; found < count; i++) {
		union sockaddr_ip addr = server(i);

		cache_key_set(&key, CACHE_KIND_ANSWER, &addr, 0, 0);
		if (found == 0)
			offset = cache_bucket_offset(&key);
		if (cache_bucket_offset(&key) == offset)
			out[found++] = addr;
	}
}

START_TEST(what_has_ended_makes_room_first)
{
	union sockaddr_ip same[9]; /* one more than a bucket holds */

	bucket_fill(same, ARRAY_SIZE(same));
	for (size_t i = 0; i < 8; i++)
		cache_answer_put(&cache, &same[i], 0, CACHE_YES, NOW + (int64_t)i,
				 i == 5 ? NOW + 50 : LATER);
	cache_answer_put(&cache, &same[8], 0, CACHE_YES, NOW + 50, LATER);
	for (size_t i = 0; i < 9; i++)
		ck_assert_int_eq(cache_answer_get(&cache, &same[i], 0, NOW + 50),
				 i == 5 ? CACHE_UNKNOWN : CACHE_YES);
	/* the same again takes no other's place */
	for (int again = 0; again < 20; again++)
		cache_answer_put(&cache, &same[8], 0, CACHE_YES, NOW + 60, LATER);
	ck_assert_int_eq(cache_answer_get(&cache, &same[0], 0, NOW + 60), CACHE_YES);
}
END_TEST

START_TEST(a_child_and_its_parent)
{
	struct cache_converter all = everything(), out;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		union sockaddr_ip addr = address("192.0.2.1");

		_exit(-cache_converter_update(&cache, &addr, PATH, CACHE_FACTS_ALL, NOW, &all));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	out = get("192.0.2.1", PATH, CACHE_FACTS_ALL, NOW);
	ck_assert_mem_eq(&out, &all, sizeof(all));
}
END_TEST

static volatile sig_atomic_t handled, wrong;

/* The cookie names its writer, so that a mixture of two records would be noticed. */
static void write_and_read(uint8_t who)
{
	union sockaddr_ip addr = { .in = { .sin_family = AF_INET, .sin_port = htons(1) } };
	struct cache_converter facts = { .cookie = { .until = LATER, .len = 900 } };

	memset(facts.cookie.bytes, who, facts.cookie.len);
	if (cache_converter_update(&cache, &addr, 0, CACHE_COOKIE, NOW, &facts) < 0 ||
	    !cache_converter_get(&cache, &addr, 0, CACHE_COOKIE, NOW, &facts))
		wrong++;
	for (int i = 1; i < 900; i++)
		wrong += facts.cookie.bytes[i] != facts.cookie.bytes[0];
}

static void on_alarm(int signal)
{
	(void)signal;
	write_and_read(2);
	handled++;
}

START_TEST(signal_handlers)
{
	const struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { 0 };
	struct sigaction action = { .sa_handler = on_alarm };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (handled < 1000)
		write_and_read(1);
	setitimer(ITIMER_REAL, &never, NULL);
	ck_assert_int_eq(wrong, 0);
}
END_TEST

/* Tells whether the process's first thread, whose ID is that of the process, has ended. */
static bool main_is_over(void)
{
	char path[64], text[256] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
	file = fopen(path, "r");
	if (file) {
		(void)!fgets(text, sizeof(text), file);
		fclose(file);
	}
	return strstr(text, ") Z ") != NULL;
}

static void *survivor(void *unused)
{
	(void)unused;
	while (!main_is_over())
		;
	write_and_read(3);
	_exit(wrong ? EXIT_FAILURE : EXIT_SUCCESS);
}

START_TEST(main_thread_has_ended)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, survivor, NULL) == 0)
			pthread_exit(NULL);
		_exit(EXIT_FAILURE);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

enum { REFUSED = 42, NOT_PRIVILEGED };

/* Runs in the copy of this program. It doesn't call exit(), since a leak check is impossible there. */
static _Noreturn void open_privileged(const char *where)
{
	struct cache secure;

	if (!getauxval(AT_SECURE))
		_exit(NOT_PRIVILEGED); /* a file system without setuid */
	_exit(cache_open(&secure, where) == -EPERM ? REFUSED : EXIT_FAILURE);
}

/* A copy of this program that is setuid to nobody uses no cache, although the directory would be right for nobody. */
START_TEST(setuid_programs_have_none)
{
	char copy[sizeof(directory) + sizeof("/copy")], buf[65536];
	int in, out, status;
	ssize_t len;
	pid_t pid;

	if (!test_is_root())
		return;
	if (chown(directory, 65534, 65534) < 0) {
		test_skip("root can't give a directory to nobody");
		return;
	}
	snprintf(copy, sizeof(copy), "%s/copy", directory);
	in = open("/proc/self/exe", O_RDONLY);
	out = open(copy, O_WRONLY | O_CREAT, 0700);
	while ((len = read(in, buf, sizeof(buf))) > 0)
		ck_assert_int_eq(write(out, buf, (size_t)len), len);
	close(in);
	ck_assert_int_eq(fchown(out, 65534, 65534), 0);
	ck_assert_int_eq(fchmod(out, 04755), 0);
	close(out);
	snprintf(buf, sizeof(buf), "%s/" CACHE_FILE, directory);
	unlink(buf); /* root's */
	pid = fork();
	if (pid == 0) {
		execl(copy, copy, directory, NULL);
		_exit(EXIT_FAILURE);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == NOT_PRIVILEGED)
		test_skip("the temporary directory's file system has no set-user-ID programs; set TMPDIR to another one");
	else
		ck_assert_int_eq(WEXITSTATUS(status), REFUSED);
	errno = 12345;
}
END_TEST

/*
 * Two processes that note the same at the same time may leave two records of one key. The youngest counts, wherever it stands, and
 * the next note leaves one.
 */
START_TEST(the_youngest_of_two)
{
	union sockaddr_ip addr = server(1);
	const struct cache_table *table = cache_table_of(CACHE_KIND_ANSWER);
	struct cache_bucket bucket;
	struct cache_record record = { .learned = 0 };
	struct cache_key key;
	uint32_t first;

	ck_assert(cache_key_set(&key, CACHE_KIND_ANSWER, &addr, 0, 0));
	ck_assert_int_eq(cache_answer_put(&cache, &addr, 0, CACHE_YES, NOW, LATER), 0);
	ck_assert(cache_bucket_begin(&bucket, &cache));
	ck_assert(cache_bucket_find(&bucket, &key, NOW, &record));
	first = cache_bucket_offset(&key);
	for (uint32_t way = 0; way < 2; way++) {
		record.learned = NOW - (way == (uint32_t)_i ? 0 : 10);
		cache_record_seal(&record);
		ck_assert_int_eq(cache_bucket_write(&bucket, first + way * table->record_size, &record, table->record_size), 0);
	}
	bucket.offset = 0;
	ck_assert(cache_bucket_find(&bucket, &key, NOW, &record));
	ck_assert_int_eq(record.learned, NOW);

	ck_assert_int_eq(cache_answer_put(&cache, &addr, 0, CACHE_NO, NOW + 1, LATER), 0);
	for (uint32_t way = 0, whole = 0; way < table->ways; way++) {
		ck_assert_int_eq(cache_bucket_read(&bucket, first + way * table->record_size, &record, table->record_size), 0);
		whole += cache_record_is_whole(&record, table);
		ck_assert_uint_le(whole, 1);
	}
	cache_bucket_end(&bucket);
}
END_TEST

/* A record that can't be read isn't found, however often it is looked up and whatever the bucket held before. */
START_TEST(a_file_that_has_shrunk)
{
	union sockaddr_ip addr = server(1);
	struct cache_bucket bucket;
	struct cache_record record;
	struct cache_key key;
	char path[PATH_MAX + sizeof(CACHE_FILE)];

	ck_assert(cache_key_set(&key, CACHE_KIND_ANSWER, &addr, 0, 0));
	ck_assert_int_eq(cache_answer_put(&cache, &addr, 0, CACHE_YES, NOW, LATER), 0);
	ck_assert(cache_bucket_begin(&bucket, &cache));
	ck_assert(cache_bucket_find(&bucket, &key, NOW, &record));
	snprintf(path, sizeof(path), "%s/" CACHE_FILE, directory);
	ck_assert_int_eq(truncate(path, 0), 0);
	bucket.offset = 0;
	for (int again = 0; again < 3; again++)
		ck_assert(!cache_bucket_find(&bucket, &key, NOW, &record));
	cache_bucket_end(&bucket);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite;
	TCase *tcase;

	if (argc == 2)
		open_privileged(argv[1]);
	suite = suite_create("cache");
	tcase = tcase_create("cache");
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, off);
	tcase_add_loop_test(tcase, everything_comes_back, 0, (int)ARRAY_SIZE(converters));
	tcase_add_test(tcase, the_key_is_address_and_port);
	tcase_add_test(tcase, facts_are_independent);
	tcase_add_test(tcase, paths_are_told_apart);
	tcase_add_test(tcase, network_namespaces_are_told_apart);
	tcase_add_test(tcase, sources_are_told_apart);
	tcase_add_test(tcase, every_length_of_cookies_and_kinds);
	tcase_add_test(tcase, values_out_of_range_are_refused);
	tcase_add_test(tcase, each_fact_has_its_end);
	tcase_add_test(tcase, nothing_outlives_a_day);
	tcase_add_test(tcase, clocks);
	tcase_add_test(tcase, answers);
	tcase_add_test(tcase, the_oldest_makes_room);
	tcase_add_test(tcase, what_has_ended_makes_room_first);
	tcase_add_test(tcase, a_child_and_its_parent);
	tcase_add_test(tcase, signal_handlers);
	tcase_add_test(tcase, main_thread_has_ended);
	tcase_add_test(tcase, setuid_programs_have_none);
	tcase_add_loop_test(tcase, the_youngest_of_two, 0, 2);
	tcase_add_test(tcase, a_file_that_has_shrunk);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
