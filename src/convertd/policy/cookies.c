/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cookies.c - cookies prove that a client receives the packets sent to its address (RFC 8803 6.2.7)
 *
 * A computed cookie is a MAC (BLAKE2b with a key, 16 bytes) over the client's address and the
 * number of an epoch, so nothing has to be kept for a client, and all converters that share the
 * keys accept each other's cookies. A client that can't receive packets at an address can't get its cookie.
 *
 *     BLAKE2b-128(key, "convert cookie 1" | address, 16 bytes | epoch, 8 bytes, network order)
 *
 * Of an IPv6 address only the first 64 bits count: a host changes the others as it likes (RFC 8981), and
 * would have to ask for a cookie each time. An attacker who can forge the other bits is on the same link, and
 * could receive its neighbours' packets as well. The prefix length is fixed, since converters that share
 * keys have to agree on it.
 *
 * The first key signs and all keys verify, so that the signing key can be changed while cookies that it has
 * signed are in use, and on one converter after the other.
 *
 * Fixed cookies (--cookie-list) are compared by their MAC under a key that is drawn when they are read: so they
 * can be found by binary search, in a time that reveals nothing about them. The true length
 * of a cookie isn't on the wire, so they are padded first, as their TLV is.
 */
#include "config.h"

#include "convertd/policy/cookies.h"

#include "common/problems.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define LABEL "convert cookie 1"
#define LABEL_LEN (sizeof(LABEL) - 1)

struct fixed {
	uint8_t mac[COOKIES_LEN];
};

struct cookies {
	uint8_t keys[COOKIES_KEYS_MAX][COOKIES_KEY_LEN];
	size_t key_count;
	uint8_t fixed_key[COOKIES_KEY_LEN];
	struct fixed *fixed; /* sorted */
	size_t fixed_count, fixed_room;
};

struct cookies *cookies_create(void)
{
	struct cookies *cookies = sodium_init() < 0 ? NULL : calloc(1, sizeof(*cookies));

	if (cookies)
		randombytes_buf(cookies->fixed_key, sizeof(cookies->fixed_key));
	return cookies;
}

void cookies_destroy(struct cookies *cookies)
{
	if (!cookies)
		return;
	free(cookies->fixed);
	sodium_memzero(cookies, sizeof(*cookies));
	free(cookies);
}

/* Reads exactly @len bytes in hexadecimal digits, or up to @len if @exact is false. Returns their number, or 0 on error. */
static size_t parse_hex(const char *text, uint8_t *out, size_t len, bool exact)
{
	const char *end;
	size_t parsed;

	if (sodium_hex2bin(out, len, text, strlen(text), NULL, &parsed, &end) != 0 || *end)
		return 0;
	return exact && parsed != len ? 0 : parsed;
}

/* Adds the key in a line. Messages don't quote the line, as it may be a secret with a typing error. */
static void add_key(struct cookies *cookies, const char *line, const struct place *place,
		    struct problems *problems)
{
	uint8_t *key = cookies->keys[cookies->key_count];

	if (cookies->key_count == COOKIES_KEYS_MAX)
		problems_add(problems, place,
			     "one key too many, %d are the most; remove the oldest",
			     COOKIES_KEYS_MAX);
	else if (!parse_hex(line, key, COOKIES_KEY_LEN, true))
		problems_add(problems, place,
			     "%zu characters that are no key, which has %d hexadecimal digits; make "
			     "one with convertd --make-key FILE",
			     strlen(line), 2 * COOKIES_KEY_LEN);
	else if (sodium_is_zero(key, COOKIES_KEY_LEN))
		problems_add(problems, place,
			     "a key of zeros is no secret; make one with convertd --make-key FILE");
	else
		cookies->key_count++;
}

/* Calls @add for each line of a file, with "" for one that has a NUL byte. Returns whether no line was wrong. */
static bool add_lines(struct cookies *cookies, const char *file, char *text, size_t len,
		      void (*add)(struct cookies *cookies, const char *line,
				  const struct place *place, struct problems *problems),
		      struct problems *problems)
{
	struct place at = { .file = file };
	struct lines lines;
	unsigned before = problems->count;
	bool has_nul;
	char *line;

	lines_first(&lines, text, len);
	while ((line = lines_next(&lines, &has_nul))) {
		at.line = lines.number;
		add(cookies, has_nul ? "" : line, &at, problems);
	}
	return problems->count == before;
}

void cookies_add_keys(struct cookies *cookies, const char *file, char *text, size_t len,
		      const struct place *place, struct problems *problems)
{
	if (add_lines(cookies, file, text, len, add_key, problems) && !cookies->key_count)
		problems_add(problems, place,
			     "no key in it; make one with convertd --make-key FILE");
}

static void mac_fixed(const struct cookies *cookies, const uint8_t *cookie, size_t len,
		      struct fixed *out)
{
	crypto_generichash(out->mac, sizeof(out->mac), cookie, len, cookies->fixed_key,
			   sizeof(cookies->fixed_key));
}

static int compare_fixed(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct fixed));
}

/* Adds a fixed cookie, padded as on the wire. Returns 0 or -ENOMEM. */
static int add_fixed(struct cookies *cookies, const uint8_t *cookie, size_t len)
{
	if (cookies->fixed_count == cookies->fixed_room) {
		size_t room = cookies->fixed_room ? 2 * cookies->fixed_room : 64;
		struct fixed *more = realloc(cookies->fixed, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		cookies->fixed = more;
		cookies->fixed_room = room;
	}
	mac_fixed(cookies, cookie, len, &cookies->fixed[cookies->fixed_count++]);
	return 0;
}

/* Adds the fixed cookie in a line, which messages don't quote, as it is a secret. */
static void add_fixed_line(struct cookies *cookies, const char *line, const struct place *place,
			   struct problems *problems)
{
	uint8_t cookie[COOKIES_FIXED_MAX + 4] = { 0 };
	size_t len = strlen(line);
	bool hex = strncmp(line, "hex:", 4) == 0;

	if (hex)
		len = parse_hex(line + 4, cookie, COOKIES_FIXED_MAX, false);
	else if (len <= COOKIES_FIXED_MAX)
		memcpy(cookie, line, len);
	if (!len)
		problems_add(problems, place,
			     "no cookie; write 1 to %d bytes as they are, or \"hex:\" and two digits "
			     "for each",
			     COOKIES_FIXED_MAX);
	else if (len > COOKIES_FIXED_MAX)
		problems_add(problems, place, "a cookie of %zu bytes; %d are the most", len,
			     COOKIES_FIXED_MAX);
	else if (add_fixed(cookies, cookie, (len + 3) / 4 * 4) < 0)
		problems_add(problems, place, "out of memory");
	sodium_memzero(cookie, sizeof(cookie));
}

void cookies_add_fixed(struct cookies *cookies, const char *file, char *text, size_t len,
		       const struct place *place, struct problems *problems)
{
	if (add_lines(cookies, file, text, len, add_fixed_line, problems) && !cookies->fixed_count)
		problems_add(problems, place, "no cookie in it; write one in each line");
	if (cookies->fixed_count)
		qsort(cookies->fixed, cookies->fixed_count, sizeof(*cookies->fixed), compare_fixed);
}

static void compute(const uint8_t key[static COOKIES_KEY_LEN], const struct in6_addr *client,
		    uint64_t epoch, uint8_t out[static COOKIES_LEN])
{
	uint8_t input[LABEL_LEN + 16 + 8] = LABEL;

	memcpy(input + LABEL_LEN, client, IN6_IS_ADDR_V4MAPPED(client) ? 16 : 8);
	for (int i = 0; i < 8; i++)
		input[LABEL_LEN + 16 + i] = (uint8_t)(epoch >> (56 - 8 * i));
	crypto_generichash(out, COOKIES_LEN, input, sizeof(input), key, COOKIES_KEY_LEN);
}

bool cookies_make(const struct cookies *cookies, const struct in6_addr *client, uint64_t epoch,
		  uint8_t out[static COOKIES_LEN])
{
	if (cookies->key_count)
		compute(cookies->keys[0], client, epoch, out);
	return cookies->key_count > 0;
}

void cookies_add_random_key(struct cookies *cookies)
{
	memcpy(cookies->keys[1], cookies->keys[0], COOKIES_KEY_LEN);
	randombytes_buf(cookies->keys[0], COOKIES_KEY_LEN);
	cookies->key_count = cookies->key_count ? 2 : 1;
}

bool cookies_prove(const struct cookies *cookies, const struct in6_addr *client, uint64_t epoch,
		   const uint8_t *cookie, size_t len)
{
	uint8_t expected[COOKIES_LEN];
	bool valid = false;

	for (size_t i = 0; len == COOKIES_LEN && i < cookies->key_count; i++)
		for (int shift = -1; shift <= 1; shift++) {
			compute(cookies->keys[i], client, epoch + (uint64_t)shift, expected);
			valid |= sodium_memcmp(expected, cookie, COOKIES_LEN) == 0;
		}
	return valid;
}

bool cookies_check(const struct cookies *cookies, const struct in6_addr *client, uint64_t epoch,
		   const uint8_t *cookie, size_t len)
{
	bool valid = cookies_prove(cookies, client, epoch, cookie, len);
	struct fixed fixed;

	if (!valid && cookies->fixed_count) {
		mac_fixed(cookies, cookie, len, &fixed);
		valid = bsearch(&fixed, cookies->fixed, cookies->fixed_count, sizeof(fixed),
				compare_fixed) != NULL;
	}
	return valid;
}

int cookies_write_key(FILE *out)
{
	uint8_t key[COOKIES_KEY_LEN];
	char text[2 * COOKIES_KEY_LEN + 1];

	if (sodium_init() < 0)
		return -ENOSYS;
	randombytes_buf(key, sizeof(key));
	sodium_bin2hex(text, sizeof(text), key, sizeof(key));
	fprintf(out, "# convertd's cookies: the first key signs, all verify\n%s\n", text);
	sodium_memzero(key, sizeof(key));
	sodium_memzero(text, sizeof(text));
	return fflush(out) == 0 ? 0 : -errno;
}
