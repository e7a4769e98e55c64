/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cookies.c - computed and fixed cookies: which are valid, and what is wrong with their files */
#include "bytes.h"
#include "run.h"

#include "convertd/policy/cookies.h"

#include "common/sockaddr.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define KEY_A "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define KEY_B "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
#define KEY_C "C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0"

#define EPOCH 20000

typedef void add_fn(struct cookies *cookies, const char *file, char *text, size_t len,
		    const struct place *place, struct problems *problems);

static void add(struct cookies *cookies, add_fn *fn, const char *text, size_t len,
		struct problems *problems)
{
	const struct place place = { .name = "cookie-file" };
	char *copy = malloc(len + 1);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, text, len);
	copy[len] = '\0';
	fn(cookies, "file", copy, len, &place, problems);
	free(copy);
}

/* With these keys and fixed cookies; either may be NULL. */
static struct cookies *cookies_of(const char *keys, const char *fixed)
{
	struct cookies *cookies = cookies_create();
	struct problems problems = { 0 };

	ck_assert_ptr_nonnull(cookies);
	if (keys)
		add(cookies, cookies_add_keys, keys, strlen(keys), &problems);
	if (fixed)
		add(cookies, cookies_add_fixed, fixed, strlen(fixed), &problems);
	ck_assert_msg(!problems.count, "%s", problems.first);
	return cookies;
}

static struct in6_addr address(const char *text)
{
	union sockaddr_ip addr;

	ck_assert_msg(sockaddr_ip_parse(&addr, text, 1) == 0, "%s", text);
	return sockaddr_ip_in6(&addr);
}

/* These were computed by another implementation of BLAKE2b, as other converters have to compute the same. */
static const struct {
	const char *client;
	uint64_t epoch;
	const char *cookie;
} known[] = {
	{ "192.0.2.1", 20000, "6240cd2515e2bdf2c1ef542a961eaef7" },
	{ "2001:db8:1:2:3:4:5:6", 20000, "53536b0d60ca88a56cef7192e21b63dc" },
	{ "192.0.2.1", 0, "f2a564c115570042a6dda1246aac2c7d" },
};

START_TEST(known_cookies)
{
	struct cookies *cookies = cookies_of(KEY_A "\n" KEY_B, NULL);
	struct in6_addr client = address(known[_i].client);
	uint8_t cookie[COOKIES_LEN];

	ck_assert(cookies_make(cookies, &client, known[_i].epoch, cookie));
	bytes_assert_hex(cookie, sizeof(cookie), known[_i].cookie);
	cookies_destroy(cookies);
}
END_TEST

/* The cookie of one client is shown by another client, later, and to a converter with other keys. */
static const struct {
	const char *signer, *verifier;
	const char *from, *by;
	int later;
	bool valid;
} uses[] = {
	{ KEY_A, KEY_A, "192.0.2.1", "192.0.2.1", 0, true },
	{ KEY_A, KEY_A, "192.0.2.1", "192.0.2.2", 0, false },
	{ KEY_A, KEY_A, "192.0.2.1", "192.0.2.1", 1, true },
	{ KEY_A, KEY_A, "192.0.2.1", "192.0.2.1", 2, false },
	{ KEY_A, KEY_A, "192.0.2.1", "192.0.2.1", -1, true },
	{ KEY_A, KEY_A, "192.0.2.1", "192.0.2.1", -2, false },
	{ KEY_A, KEY_A, "2001:db8::1", "2001:db8::ffff:1", 0, true },
	{ KEY_A, KEY_A, "2001:db8::1", "2001:db8:0:1::1", 0, false },
	{ KEY_A, KEY_A, "::c000:201", "192.0.2.1", 0, false },
	{ KEY_A, KEY_B, "192.0.2.1", "192.0.2.1", 0, false },
	{ KEY_A, KEY_B "\n" KEY_A, "192.0.2.1", "192.0.2.1", 0, true },
	{ KEY_A, KEY_B "\n" KEY_C "\n" KEY_A, "192.0.2.1", "192.0.2.1", 1, true },
	{ KEY_B "\n" KEY_A, KEY_A, "192.0.2.1", "192.0.2.1", 0, false },
	{ "# of now\n" KEY_A " # and what it was\n\n", KEY_A, "192.0.2.1", "192.0.2.1", 0, true },
	{ KEY_C, "c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0", "192.0.2.1",
	  "192.0.2.1", 0, true },
};

START_TEST(shown_cookies)
{
	struct cookies *signer = cookies_of(uses[_i].signer, NULL);
	struct cookies *verifier = cookies_of(uses[_i].verifier, NULL);
	struct in6_addr from = address(uses[_i].from), by = address(uses[_i].by);
	uint8_t cookie[COOKIES_LEN + 4] = { 0 };
	uint64_t epoch = (uint64_t)(EPOCH + uses[_i].later);

	ck_assert(cookies_make(signer, &from, EPOCH, cookie));
	ck_assert_int_eq(cookies_check(verifier, &by, epoch, cookie, COOKIES_LEN), uses[_i].valid);
	/* Neither a part of it nor more than it. */
	for (size_t len = 4; len <= sizeof(cookie); len += 4)
		if (len != COOKIES_LEN)
			ck_assert(!cookies_check(verifier, &by, epoch, cookie, len));
	for (size_t bit = 0; bit < 8 * COOKIES_LEN; bit++) {
		cookie[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert(!cookies_check(verifier, &by, epoch, cookie, COOKIES_LEN));
		cookie[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	cookies_destroy(signer);
	cookies_destroy(verifier);
}
END_TEST

#define FIXED "secret\n12345678 # eight\nhex:00112233445566778899aabb\nhex:ff\nof two words\n"

/* On the wire each is padded to whole words. */
static const struct {
	const char *cookie;
	bool valid;
} shown[] = {
	{ "7365 6372 6574 0000", true },	       /* secret */
	{ "7365 6372 6574 0000 0000 0000", false },    /* padded more than it needs */
	{ "7365 6372", false },
	{ "5345 4352 4554 0000", false },	       /* SECRET */
	{ "3132 3334 3536 3738", true },	       /* 12345678 */
	{ "3132 3334 3536 3738 0000 0000", false },
	{ "3132 3334", false },
	{ "0011 2233 4455 6677 8899 aabb", true },
	{ "ff00 0000", true },
	{ "ff00 0001", false },
	{ "6f66 2074 776f 2077 6f72 6473", true },     /* of two words */
	{ "0000 0000", false },
};

START_TEST(fixed_cookies)
{
	struct cookies *cookies = cookies_of(NULL, FIXED);
	struct in6_addr client = address("192.0.2.1");
	struct bytes cookie = bytes_hex(shown[_i].cookie);
	uint8_t computed[COOKIES_LEN];

	ck_assert_int_eq(cookies_check(cookies, &client, EPOCH, cookie.data, cookie.len),
			 shown[_i].valid);
	ck_assert(!cookies_make(cookies, &client, EPOCH, computed));
	bytes_fini(&cookie);
	cookies_destroy(cookies);
}
END_TEST

/* With both files, one of either kind will do. */
START_TEST(both_kinds)
{
	struct cookies *cookies = cookies_of(KEY_A, "0123456789abcdef");
	struct in6_addr client = address("192.0.2.1");
	uint8_t computed[COOKIES_LEN];

	ck_assert(cookies_make(cookies, &client, EPOCH, computed));
	ck_assert(cookies_check(cookies, &client, EPOCH, computed, COOKIES_LEN));
	ck_assert(cookies_check(cookies, &client, EPOCH, (const uint8_t *)"0123456789abcdef",
				COOKIES_LEN));
	ck_assert(!cookies_check(cookies, &client, EPOCH, (const uint8_t *)"0123456789abcdeg",
				 COOKIES_LEN));
	cookies_destroy(cookies);
}
END_TEST

START_TEST(many_fixed_cookies)
{
	static char text[5000 * 8 + 1];
	struct in6_addr client = address("192.0.2.1");
	struct cookies *cookies;

	for (int i = 0; i < 5000; i++)
		snprintf(text + 8 * i, 9, "c%06d\n", 2 * i);
	cookies = cookies_of(NULL, text);
	for (int i = 0; i < 10000; i++) {
		uint8_t cookie[9];

		snprintf((char *)cookie, sizeof(cookie), "c%06d", i);
		ck_assert_int_eq(cookies_check(cookies, &client, EPOCH, cookie, 8), i % 2 == 0);
	}
	cookies_destroy(cookies);
}
END_TEST

static const struct {
	add_fn *fn;
	const char *text;
	const char *says[2];
} wrong[] = {
	{ cookies_add_keys, "", { "--cookie-file: no key", "--make-key" } },
	{ cookies_add_keys, "# none\n\n", { "--cookie-file: no key", "--make-key" } },
	{ cookies_add_keys, "\n" KEY_A "0\n", { "file:2: 65 characters", "64 hexadecimal" } },
	{ cookies_add_keys, "0011\n", { "file:1: 4 characters", "--make-key" } },
	{ cookies_add_keys, KEY_A " " KEY_B, { "file:1: 129 characters" } },
	{ cookies_add_keys, "g00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
	  { "file:1: 64 characters" } },
	{ cookies_add_keys, "0000000000000000000000000000000000000000000000000000000000000000",
	  { "file:1:", "zeros" } },
	{ cookies_add_keys,
	  KEY_A "\n" KEY_A "\n" KEY_A "\n" KEY_A "\n" KEY_A "\n" KEY_A "\n" KEY_A "\n" KEY_A "\n" KEY_B,
	  { "file:9:", "8 are the most" } },
	{ cookies_add_fixed, "", { "--cookie-file: no cookie", "each line" } },
	{ cookies_add_fixed, "hex:\n", { "file:1: no cookie", "hex:" } },
	{ cookies_add_fixed, "good\nhex:0g\n", { "file:2: no cookie" } },
	{ cookies_add_fixed, "hex:001\n", { "file:1: no cookie" } },
};

START_TEST(wrong_file_is_told)
{
	struct cookies *cookies = cookies_create();
	struct problems problems = { 0 };

	add(cookies, wrong[_i].fn, wrong[_i].text, strlen(wrong[_i].text), &problems);
	ck_assert_uint_eq(problems.count, 1);
	for (int n = 0; n < 2 && wrong[_i].says[n]; n++)
		ck_assert_msg(strstr(problems.first, wrong[_i].says[n]) != NULL, "%s",
			      problems.first);
	/* Nothing of a secret gets into a log. */
	ck_assert_msg(!strstr(problems.first, "00112") && !strstr(problems.first, "0001"), "%s",
		      problems.first);
	cookies_destroy(cookies);
}
END_TEST

START_TEST(fixed_cookie_of_any_length)
{
	char text[COOKIES_FIXED_MAX + 2];
	uint8_t padded[COOKIES_FIXED_MAX + 4];
	struct in6_addr client = address("192.0.2.1");

	for (size_t len = 1; len <= COOKIES_FIXED_MAX + 1; len++) {
		struct cookies *cookies = cookies_create();
		struct problems problems = { 0 };

		memset(text, 'x', len);
		memset(padded, 0, sizeof(padded));
		memset(padded, 'x', len);
		add(cookies, cookies_add_fixed, text, len, &problems);
		ck_assert_int_eq(problems.count == 0, len <= COOKIES_FIXED_MAX);
		ck_assert_int_eq(cookies_check(cookies, &client, EPOCH, padded, (len + 3) / 4 * 4),
				 len <= COOKIES_FIXED_MAX);
		cookies_destroy(cookies);
	}
}
END_TEST

#define TEN "1234567890"

static const struct {
	const char *line, *cookie, *name;
} names[] = {
	{ "cookie # laptop", "cookie", "laptop" },
	{ "cookie  #\tLap.top-2_x \t", "cookie", "Lap.top-2_x" },
	{ "hex:6162 #a", "ab", "a" },
	{ "two words # laptop", "two words", "laptop" },
	{ "coo#kie # laptop", "coo#kie", "laptop" },
	{ "co # kie#x", "co", NULL },
	{ "cookie#laptop", "cookie#laptop", NULL },
	{ "cookie", "cookie", NULL },
	{ "cookie #", "cookie", NULL },
	{ "cookie # two words", "cookie", NULL },
	{ "cookie # -dash", "cookie", NULL },
	{ "cookie # quote\"", "cookie", NULL },
	{ "cookie # 12345678901234567890123456789012", "cookie", "12345678901234567890123456789012" },
	{ "cookie # 123456789012345678901234567890123", "cookie", NULL },
	{ "cookie # " TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN, "cookie", NULL },
};

/* A name is the only word of a comment, whether the line is raw or was read from a file, and the last line as well. */
START_TEST(names_of_clients)
{
	static const char *const ends[] = { "", "\n", "\nother # neighbour\n" };
	const char *line = names[_i].line;
	char name[COOKIES_NAME_MAX + 1], text[256];

	ck_assert(cookies_name_is_right(TEN TEN TEN "12") && !cookies_name_is_right(TEN TEN TEN "123") && !cookies_name_is_right(""));
	ck_assert_int_eq(cookies_line_name(line, line + strlen(line), name), names[_i].name != NULL);
	if (names[_i].name)
		ck_assert_str_eq(name, names[_i].name);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		uint8_t cookie[64] = { 0 };
		const struct cookies_client *client;
		struct cookies *cookies;

		snprintf(text, sizeof(text), "%s%s", line, ends[i]);
		cookies = cookies_of(NULL, text);
		memcpy(cookie, names[_i].cookie, strlen(names[_i].cookie));
		client = cookies_client(cookies, cookie, (strlen(names[_i].cookie) + 3) / 4 * 4);
		ck_assert_int_eq(client != NULL, names[_i].name != NULL);
		if (client)
			ck_assert_str_eq(client->name, names[_i].name);
		cookies_destroy(cookies);
	}
}
END_TEST

/* A client keeps its count when its file is read again. */
START_TEST(clients_outlive_their_cookies)
{
	struct cookies *first = cookies_of(NULL, "one # lasting\ntwo");
	struct cookies_client *client = cookies_client(first, (const uint8_t *)"one", 4);
	struct cookies *second = cookies_of(NULL, "three # lasting\n");

	ck_assert_ptr_nonnull(client);
	ck_assert_ptr_null(cookies_client(first, (const uint8_t *)"two", 4));
	ck_assert_ptr_eq(cookies_client(second, (const uint8_t *)"three\0\0", 8), client);
	ck_assert_ptr_null(cookies_client(second, (const uint8_t *)"one", 4));
	cookies_destroy(first);
	cookies_destroy(second);
	ck_assert_str_eq(client->name, "lasting");
}
END_TEST

START_TEST(new_key_is_a_key)
{
	char *text[2] = { NULL };

	for (int i = 0; i < 2; i++) {
		struct cookies *cookies;
		size_t len;
		FILE *file = open_memstream(&text[i], &len);

		ck_assert_int_eq(cookies_write_key(file), 0);
		fclose(file);
		cookies = cookies_of(text[i], NULL);
		cookies_destroy(cookies);
	}
	ck_assert_str_ne(text[0], text[1]);
	free(text[0]);
	free(text[1]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cookies");
	TCase *tcase = tcase_create("cookies");

	tcase_add_loop_test(tcase, known_cookies, 0, (int)ARRAY_SIZE(known));
	tcase_add_loop_test(tcase, shown_cookies, 0, (int)ARRAY_SIZE(uses));
	tcase_add_loop_test(tcase, fixed_cookies, 0, (int)ARRAY_SIZE(shown));
	tcase_add_test(tcase, both_kinds);
	tcase_add_loop_test(tcase, names_of_clients, 0, (int)ARRAY_SIZE(names));
	tcase_add_test(tcase, clients_outlive_their_cookies);
	tcase_add_test(tcase, many_fixed_cookies);
	tcase_add_loop_test(tcase, wrong_file_is_told, 0, (int)ARRAY_SIZE(wrong));
	tcase_add_test(tcase, fixed_cookie_of_any_length);
	tcase_add_test(tcase, new_key_is_a_key);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
