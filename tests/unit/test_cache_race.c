/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cache_race.c - processes that write the same records and are killed at any moment, threads that open the cache together
 *
 * All that a writer notes follows from a number, the same way for each of them, so that a reader
 * can tell a record that was written from one that never was. Few keys, all in one bucket: they
 * write over each other, evict each other, and forget.
 */
#include "config.h"

#include "client/cache.h"
#include "client/cache_file.h"

#include "cache_open.h"
#include "run.h"
#include "tempdir.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define WRITERS 3
#define DURATION 1500 /* ms, at least */
#define READS_LEAST 200
#define READS 300     /* of everything, between two deaths */
#define WRITTEN (CACHE_REST | CACHE_INFO | CACHE_COOKIE)
#define CONVERTERS 12 /* more than fit into a bucket for facts, or for cookies */
#define STANDS 4 /* if this many reads in a row find nothing, the record is missing for a while */
#define OPENERS 8
#define OPENINGS 60
#define NOW INT64_C(1000000)
#define LATER (NOW + 60000)

static char directory[PATH_MAX];
static struct cache cache;
static union sockaddr_ip keys[CONVERTERS];

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1d;
}

/* Makes what a writer stores for @seed; the reader finds the seed in info.flags, or in the cookie. */
static struct cache_converter facts_of(uint32_t seed)
{
	struct cache_converter facts = { .info = { .flags = seed } };
	uint64_t state = UINT64_C(0x9e3779b97f4a7c15) ^ seed;

	facts.rest.until = LATER + (int64_t)(random_next(&state) % 50000);
	facts.info.until = LATER + (int64_t)(random_next(&state) % 50000);
	facts.info.count = (uint8_t)(random_next(&state) % (CACHE_KINDS_MAX + 1));
	for (unsigned int i = 0; i < facts.info.count; i++)
		facts.info.kinds[i] = (uint8_t)(1 + random_next(&state) % 255);
	facts.cookie.until = LATER + (int64_t)(random_next(&state) % 50000);
	facts.cookie.len = (uint16_t)(900 + random_next(&state) % (CACHE_COOKIE_MAX - 900 + 1));
	memcpy(facts.cookie.bytes, &seed, sizeof(seed));
	for (unsigned int i = sizeof(seed); i < facts.cookie.len; i++)
		facts.cookie.bytes[i] = (uint8_t)random_next(&state);
	return facts;
}

static _Noreturn void writer(uint64_t state)
{
	for (;;) {
		const union sockaddr_ip *key = &keys[random_next(&state) % CONVERTERS];
		struct cache_converter facts = facts_of((uint32_t)random_next(&state));
		unsigned int which = random_next(&state) & WRITTEN;
		int ret;

		if (random_next(&state) % 16 == 0)
			facts.rest.until = facts.info.until = facts.cookie.until = 0;
		ret = cache_converter_update(&cache, key, 0, which, NOW, &facts);
		if (ret < 0)
			_exit(-ret);
	}
}

static pid_t writer_start(uint64_t number)
{
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves nobody behind */
	if (getppid() != parent)
		_exit(0);
	writer(number * UINT64_C(0x9e3779b97f4a7c15) + 1);
}

/* Returns how many facts of a converter were found; each must be one that a writer wrote. */
static unsigned int check(const union sockaddr_ip *key, int64_t written)
{
	struct cache_converter found, want;
	unsigned int count = 0;
	uint32_t seed;

	cache_converter_get(&cache, key, 0, CACHE_FACTS_ALL, NOW, &found);
	ck_assert(!(found.known & CACHE_PATH));
	if (found.known & CACHE_REST) {
		ck_assert(found.rest.until >= LATER && found.rest.until < LATER + 50000);
		count++;
	}
	if (found.known & CACHE_INFO) {
		want = facts_of(found.info.flags);
		want.info.learned = written;
		ck_assert_mem_eq(&found.info, &want.info, sizeof(want.info));
		count++;
	}
	if (found.known & CACHE_COOKIE) {
		memcpy(&seed, found.cookie.bytes, sizeof(seed));
		want = facts_of(seed);
		want.cookie.learned = written;
		ck_assert_mem_eq(&found.cookie, &want.cookie, sizeof(want.cookie));
		count++;
	}
	return count;
}

/* Converters whose facts share a bucket. */
static void choose_keys(void)
{
	struct cache_key key;
	uint32_t offset = 0, found = 0;

	for (uint32_t i = 0; found < CONVERTERS; i++) {
		union sockaddr_ip addr = { .in = { .sin_family = AF_INET,
						   .sin_addr.s_addr = htonl(0x0a000000 + i) } };

		cache_key_set(&key, CACHE_KIND_REST, &addr, 0, 0);
		if (found == 0)
			offset = cache_bucket_offset(&key);
		if (cache_bucket_offset(&key) == offset)
			keys[found++] = addr;
	}
}

static void setup(void)
{
	tempdir_make(directory);
	choose_keys();
	ck_assert_int_eq(cache_open(&cache, directory), 0);
}

static void teardown(void)
{
	cache_close(&cache);
	tempdir_remove(directory);
}

/* The reader is this process; after each round it kills a writer, and starts another. */
START_TEST(readers_see_what_was_written)
{
	int64_t end = cache_now() + DURATION;
	unsigned int found = 0, killed = 0;
	pid_t writers[WRITERS];
	int status;

	for (unsigned int i = 0; i < WRITERS; i++)
		writers[i] = writer_start(i);
	while (cache_now() < end || found == 0) {
		pid_t *victim = &writers[killed % WRITERS];

		for (unsigned int i = 0; i < READS; i++)
			found += check(&keys[i % CONVERTERS], NOW);
		ck_assert_int_eq(kill(*victim, SIGKILL), 0);
		ck_assert_int_eq(waitpid(*victim, &status, 0), *victim);
		ck_assert(WIFSIGNALED(status)); /* none has met an error */
		*victim = writer_start(WRITERS + ++killed);
	}
	for (unsigned int i = 0; i < WRITERS; i++) {
		kill(writers[i], SIGKILL);
		waitpid(writers[i], &status, 0);
	}
	/* whatever they left, it makes room for what is younger */
	for (unsigned int i = 0; i < CONVERTERS; i++) {
		struct cache_converter facts = facts_of(i);

		ck_assert_int_eq(cache_converter_update(&cache, &keys[i], 0, WRITTEN, NOW + 1 + i,
							&facts), 0);
		ck_assert_uint_eq(check(&keys[i], NOW + 1 + i), 3);
	}
	if (getenv("CACHE_RACE_VERBOSE"))
		printf("%u found, %u killed\n", found, killed);
}
END_TEST

/* Returns how often the kernel has given this process's CPU to another one. */
static unsigned int preemptions(void)
{
	struct rusage usage;

	ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
	return (unsigned int)usage.ru_nivcsw;
}

static _Noreturn void writer_of_one(void)
{
	for (uint32_t seed = 1;; seed++) {
		struct cache_converter facts = facts_of(seed);
		int ret = cache_converter_update(&cache, &keys[0], 0, WRITTEN, NOW, &facts);

		if (ret < 0)
			_exit(-ret);
	}
}

/* A fact that is known, and that another process notes anew at this moment, is known at this moment as well. */
START_TEST(rewritten_records_are_found)
{
	const struct cache_converter facts = facts_of(0);
	const int64_t end = cache_now() + DURATION;
	const pid_t parent = getpid();
	const unsigned int before = preemptions();
	unsigned int reads = 0, missing = 0, in_a_row = 0;
	struct rusage writers;
	pid_t pid;

	ck_assert_int_eq(cache_converter_update(&cache, &keys[0], 0, WRITTEN, NOW, &facts), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
		writer_of_one();
	}
	for (; reads <= READS_LEAST || cache_now() < end; reads++) {
		if (check(&keys[0], NOW) < 3) {
			in_a_row++;
			continue;
		}
		missing += in_a_row && in_a_row < STANDS; /* many: the writer has to wait for a CPU in the middle of it */
		in_a_row = 0;
	}
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(wait4(pid, NULL, 0, &writers), pid);
	if (getenv("CACHE_RACE_VERBOSE"))
		printf("%u of %u missing\n", missing, reads);
	/* a row of reads is also short where either has to wait for a CPU in the middle of it */
	ck_assert_uint_le(missing, 1 + reads / 10000 + preemptions() - before + (unsigned int)writers.ru_nivcsw);
}
END_TEST

static void *opener(void *together)
{
	pthread_barrier_wait(together);
	user_cache_open(-1);
	return cache_is_on(user_cache()) ? together : NULL;
}

/* Returns how many of a new process's threads, which connect at the same time, have no cache. */
static int open_together(void)
{
	struct settings settings = { 0 };
	pthread_barrier_t together;
	pthread_t threads[OPENERS];
	int without = 0;
	void *found;

	snprintf(settings.cache, sizeof(settings.cache), "%s", directory);
	user_cache_init(&settings);
	pthread_barrier_init(&together, NULL, OPENERS);
	for (int i = 0; i < OPENERS; i++)
		if (pthread_create(&threads[i], NULL, opener, &together) != 0)
			return OPENERS;
	for (int i = 0; i < OPENERS; i++) {
		pthread_join(threads[i], &found);
		without += !found;
	}
	return without;
}

/* Each would take one more round trip, as if nothing were known of the converter. */
START_TEST(all_threads_have_the_cache)
{
	for (int i = 0; i < OPENINGS; i++) {
		const pid_t pid = fork();
		int status;

		if (pid == 0)
			_exit(open_together());
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFEXITED(status));
		ck_assert_msg(WEXITSTATUS(status) == 0, "%d threads of %d have no cache", WEXITSTATUS(status), OPENERS);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cache_race");
	TCase *tcase = tcase_create("race");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, readers_see_what_was_written);
	tcase_add_test(tcase, rewritten_records_are_found);
	tcase_add_test(tcase, all_threads_have_the_cache);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
