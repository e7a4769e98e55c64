/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cookies.c - cookies prove that a client receives the packets sent to its address (RFC 8803 6.2.7)
 *
 * A computed cookie is a MAC (BLAKE2b with a key, 16 bytes) over the client's address and the number of an epoch. So
 * convertd keeps nothing for a client, and all converters that share the keys accept each other's cookies. A client
 * that can't receive packets at an address can't get its cookie.
 *
 *     BLAKE2b-128(key, "convert cookie 1" | address, 16 bytes | epoch, 8 bytes, network order)
 *
 * Of an IPv6 address only the first 64 bits count: a host changes the others as it likes (RFC 8981), and would have
 * to ask for a cookie each time. An attacker who can forge the other bits is on the same link, and could receive its
 * neighbours' packets as well. The prefix length is fixed, since converters that share keys have to agree on it.
 *
 * The first key signs and all keys verify, so that the signing key can be changed while cookies that it has signed
 * are in use, and on one converter after the other.
 *
 * We compare fixed cookies (--cookie-list) by their MAC under a random key, new each time they are read: so we find
 * them by binary search, in a time that reveals nothing about them. The true length of a cookie isn't on the wire, so
 * we pad them first, as their TLV is padded.
 */
#include "config.h"

#include "convertd/policy/cookies.h"

#include "common/clock.h"
#include "common/problems.h"
#include "daemon/log.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LABEL "convert cookie 1"
#define LABEL_LEN (sizeof(LABEL) - 1)

struct fixed {
	uint8_t mac[COOKIES_LEN];
	struct cookies_client *client; /* NULL: it has no name */
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
static void add_key(struct cookies *cookies, const char *line, const char *end, const struct place *place,
		    struct problems *problems)
{
	uint8_t *key = cookies->keys[cookies->key_count];

	(void)end;
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
			     "a key of zeros isn't a secret; make one with convertd --make-key FILE");
	else
		cookies->key_count++;
}

/*
 * Calls @add for each line of a file, without its comment; "" stands for a line with a NUL byte. Returns whether all lines were right.
 */
static bool add_lines(struct cookies *cookies, const char *file, char *text, size_t len,
		      void (*add)(struct cookies *cookies, const char *line, const char *end,
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
		add(cookies, has_nul ? "" : line, has_nul ? NULL : lines.pos, &at, problems);
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
	return memcmp(((const struct fixed *)a)->mac, ((const struct fixed *)b)->mac, COOKIES_LEN);
}

bool cookies_name_is_right(const char *name)
{
	size_t len = strlen(name);

	return len && len <= COOKIES_NAME_MAX && name[0] != '.' && name[0] != '_' && name[0] != '-' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == len;
}

bool cookies_line_name(const char *line, const char *end, char name[static COOKIES_NAME_MAX + 1])
{
	const char *comment = line;
	size_t len;

	/* Where lines_next() has read the line, a NUL stands for the blank. */
	do
		comment = memchr(comment + 1, '#', comment + 1 < end ? (size_t)(end - comment - 1) : 0);
	while (comment && !memchr(" \t", comment[-1], sizeof(" \t")));
	if (!comment)
		return false;
	for (comment++; comment < end && (*comment == ' ' || *comment == '\t'); comment++)
		;
	while (end > comment && memchr(" \t\n\r", end[-1], sizeof(" \t\n\r")))
		end--;
	len = (size_t)(end - comment);
	if (len > COOKIES_NAME_MAX || memchr(comment, '\0', len))
		return false;
	memcpy(name, comment, len);
	name[len] = '\0';
	return cookies_name_is_right(name);
}

static struct cookies_client *named; /* all that were ever read; the main thread adds to them */

/* Returns the client of that name, which it makes if need be; NULL without memory. */
static struct cookies_client *get_client(const char *name)
{
	struct cookies_client *client = named;

	while (client && strcmp(client->name, name) != 0)
		client = client->next;
	if (client)
		return client;
	client = calloc(1, sizeof(*client));
	if (!client)
		return NULL;
	strcpy(client->name, name);
	client->next = named;
	named = client;
	return client;
}

const struct cookies_client *cookies_clients(void)
{
	return named;
}

static const struct fixed *find_fixed(const struct cookies *cookies, const uint8_t *cookie, size_t len)
{
	struct fixed fixed;

	if (!cookies->fixed_count)
		return NULL;
	mac_fixed(cookies, cookie, len, &fixed);
	return bsearch(&fixed, cookies->fixed, cookies->fixed_count, sizeof(fixed), compare_fixed);
}

struct cookies_client *cookies_client(const struct cookies *cookies, const uint8_t *cookie, size_t len)
{
	const struct fixed *fixed = find_fixed(cookies, cookie, len);

	return fixed ? fixed->client : NULL;
}

/* Adds a fixed cookie, padded as on the wire. Returns 0 or -ENOMEM. */
static int add_fixed(struct cookies *cookies, const uint8_t *cookie, size_t len, struct cookies_client *client)
{
	if (cookies->fixed_count == cookies->fixed_room) {
		size_t room = cookies->fixed_room ? 2 * cookies->fixed_room : 64;
		struct fixed *more = realloc(cookies->fixed, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		cookies->fixed = more;
		cookies->fixed_room = room;
	}
	cookies->fixed[cookies->fixed_count].client = client;
	mac_fixed(cookies, cookie, len, &cookies->fixed[cookies->fixed_count++]);
	return 0;
}

/* Adds the fixed cookie in a line, which messages don't quote, as it is a secret. */
static void add_fixed_line(struct cookies *cookies, const char *line, const char *end, const struct place *place,
			   struct problems *problems)
{
	char name[COOKIES_NAME_MAX + 1];
	uint8_t cookie[COOKIES_FIXED_MAX + 4] = { 0 };
	size_t len = strlen(line);
	bool hex = strncmp(line, "hex:", 4) == 0, has_name = end && cookies_line_name(line + len, end, name);

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
	else if (add_fixed(cookies, cookie, (len + 3) / 4 * 4, has_name ? get_client(name) : NULL) < 0)
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
	return cookies_prove(cookies, client, epoch, cookie, len) || find_fixed(cookies, cookie, len);
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

/*
 * ----- cookies demanded while too many clients haven't proved their addresses -----
 *
 * The problem. Without cookies, each forged SYN with a request makes convertd connect to a server. A cookie in every
 * request prevents that (--cookie-key), but costs a round trip at each client's first one, and keys have to be
 * managed. Most converters are under no attack most of the time.
 *
 * The solution is WireGuard's (its paper, 5.3): convertd demands proof under load only. A client is unproven while
 * its SYN is withheld, and until its third ACK. When the unproven clients reach a share of the limit of pending
 * requests (an eighth, as in WireGuard), requests in SYNs need a cookie that was computed for their address. A client
 * without one gets it by a Missing Cookie error (RFC 8803 6.2.7), or is served after its handshake: so no client is
 * shut out, and no forged request gets to a server.
 *
 * If most of the unproven clients are of one prefix, only that prefix bears the consequence: while fewer than that
 * share are pending besides the prefix with the most (limits.c), cookies are demanded of its clients alone.
 *
 *     off ── unproven clients are as many as may be ──> in force
 *     in force ── half as many or fewer, for CALM_MS ──> off
 *
 * The keys are this process's own, the same for all workers, and kept over reloads. In each epoch (--cookie-lifetime)
 * a new key signs, and the one of the epoch before still verifies. After a restart, the cookies that clients have
 * aren't valid any more, and are replaced. Where several converters share an address, cookies of the others arrive as
 * well. We don't give their clients ours, which would alternate with theirs for ever, but serve them after their
 * third ACK. A --cookie-key that all of them have makes that unnecessary.
 */

/* For this long at most half as many clients must be unproven before cookies aren't demanded any more. */
#define CALM_MS 5000

/* The burst of errors that may be sent at once: as many as are allowed in this many seconds. */
#define ERRORS_BURST_SECONDS 1

struct demand {
	atomic_uint unproven;
	atomic_uint most, errors;
	atomic_bool in_force, shared;
	_Atomic uint64_t restless_ms; /* when more than half of @most were unproven for the last time */
	_Atomic uint64_t since_ms, begun; /* when the demand came into force, and how many times */
	struct log_limit error_limit;

	pthread_mutex_t lock; /* guards the members below */
	struct cookies *cookies;
	unsigned lifetime;
	uint64_t epoch; /* the epoch of the key that signs */
};

struct demand *demand_create(void)
{
	struct demand *demand = calloc(1, sizeof(*demand));

	if (!demand)
		return NULL;
	demand->cookies = cookies_create();
	if (!demand->cookies) {
		free(demand);
		return NULL;
	}
	pthread_mutex_init(&demand->lock, NULL);
	demand->lifetime = 1;
	return demand;
}

void demand_destroy(struct demand *demand)
{
	if (!demand)
		return;
	pthread_mutex_destroy(&demand->lock);
	cookies_destroy(demand->cookies);
	free(demand);
}

void demand_configure(struct demand *demand, const struct demand_settings *settings)
{
	atomic_store(&demand->most, settings->most);
	atomic_store(&demand->errors, settings->errors);
	atomic_store(&demand->shared, settings->shared);
	pthread_mutex_lock(&demand->lock);
	demand->lifetime = settings->lifetime;
	pthread_mutex_unlock(&demand->lock);
}

/* ----- when cookies are demanded ----- */

static void begin_demand(struct demand *demand, unsigned unproven, unsigned most, uint64_t now_ms)
{
	bool off = false;

	if (!atomic_compare_exchange_strong(&demand->in_force, &off, true))
		return;
	atomic_store(&demand->since_ms, now_ms);
	atomic_fetch_add(&demand->begun, 1);
	log_warning("cookies are demanded: %u clients haven't proved their addresses, of %u that "
		    "--cookie-demand allows; forged SYNs reach no server meanwhile, and "
		    "clients without a cookie take one more round trip",
		    unproven, most);
}

static void end_demand(struct demand *demand, uint64_t now_ms)
{
	uint64_t since_ms = atomic_load(&demand->since_ms);
	bool on = true;

	if (atomic_compare_exchange_strong(&demand->in_force, &on, false))
		log_warning("cookies are no longer demanded, after %llu s",
			    (unsigned long long)(now_ms - since_ms) / 1000);
}

void demand_enter(struct demand *demand)
{
	unsigned unproven = atomic_fetch_add(&demand->unproven, 1) + 1;
	unsigned most = atomic_load_explicit(&demand->most, memory_order_relaxed);
	uint64_t now_ms;

	if (!most || unproven <= most / 2)
		return;
	now_ms = clock_now_ms();
	atomic_store(&demand->restless_ms, now_ms);
	if (unproven >= most)
		begin_demand(demand, unproven, most, now_ms);
}

void demand_leave(struct demand *demand)
{
	unsigned unproven = atomic_fetch_sub(&demand->unproven, 1);
	unsigned most = atomic_load_explicit(&demand->most, memory_order_relaxed);

	if (most && unproven > most / 2)
		atomic_store(&demand->restless_ms, clock_now_ms());
}

bool demand_in_force(struct demand *demand)
{
	unsigned most = atomic_load(&demand->most);
	uint64_t now_ms;

	if (!atomic_load(&demand->in_force))
		return false;
	if (most && atomic_load(&demand->unproven) > most / 2)
		return true;
	now_ms = clock_now_ms();
	if (most && now_ms < atomic_load(&demand->restless_ms) + CALM_MS)
		return true;
	end_demand(demand, now_ms);
	return false;
}

bool demand_is_for(struct demand *demand, struct limits *limits, const struct in6_addr *client)
{
	return demand_in_force(demand) &&
	       limits_pending_of_others(limits, client) >= atomic_load(&demand->most);
}

bool demand_take_error(struct demand *demand)
{
	unsigned errors = atomic_load(&demand->errors);

	return !errors || log_limit_take(&demand->error_limit, 1000000 / errors,
					 errors * ERRORS_BURST_SECONDS, clock_now_us());
}

/* ----- cookies ----- */

/*
 * Draws a key if a new epoch has begun; of the earlier ones, the last still verifies. Returns the number of the epoch.
 * The caller holds the lock.
 */
static uint64_t renew_key(struct demand *demand)
{
	uint64_t epoch = (uint64_t)time(NULL) / demand->lifetime;
	struct cookies *cookies = demand->cookies;

	if (epoch == demand->epoch)
		return epoch;
	memcpy(cookies->keys[1], cookies->keys[0], COOKIES_KEY_LEN);
	randombytes_buf(cookies->keys[0], COOKIES_KEY_LEN);
	cookies->key_count = cookies->key_count ? 2 : 1;
	demand->epoch = epoch;
	return epoch;
}

bool demand_make(struct demand *demand, const struct in6_addr *client, const uint8_t *cookie,
		 size_t len, uint8_t out[static COOKIES_LEN])
{
	/* A cookie of the right length is taken for one that this converter made before a restart, and is replaced. */
	if (cookie && (len != COOKIES_LEN || atomic_load(&demand->shared)))
		return false;
	pthread_mutex_lock(&demand->lock);
	cookies_make(demand->cookies, client, renew_key(demand), out);
	pthread_mutex_unlock(&demand->lock);
	return true;
}

bool demand_check(struct demand *demand, const struct in6_addr *client, const uint8_t *cookie,
		  size_t len)
{
	bool valid;

	pthread_mutex_lock(&demand->lock);
	valid = cookies_prove(demand->cookies, client, renew_key(demand), cookie, len);
	pthread_mutex_unlock(&demand->lock);
	return valid;
}

void demand_read(struct demand *demand, struct demand_facts *facts)
{
	facts->in_force = demand_in_force(demand);
	facts->unproven = atomic_load(&demand->unproven);
	facts->most = atomic_load(&demand->most);
	facts->begun = atomic_load(&demand->begun);
}
