/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * own.c - knows the addresses that lead to this host through a NAT, both configured and learned ones
 *
 * The problem: behind a NAT that translates one-to-one, as in every cloud, the address by which
 * clients know the converter is on no interface and in no routing table. If the NAT also translates packets
 * from the inside (hairpinning, RFC 4787 REQ-9), a client could by that address have convertd connect to its
 * own host, where services trust connections from the host, and to convertd itself,
 * request within request.
 *
 * The operator can configure such addresses (--own-address). Others are learned in two ways. If a connection of ours
 * turns out to end on this host (own_look.c finds its other end among the host's own sockets), the whole address
 * is refused from then on. If a token that session_place.c sends to a server arrives at our own listener, only that
 * port of the address is refused, as a forwarder somewhere may have brought the token. What was learned is forgotten
 * OWN_LEARNED_SECONDS after the last sign, as addresses move; OWN_LEARNED_MAX entries are kept, and the oldest
 * gives way.
 *
 * A token is a MAC over the address and port that it was sent to, followed by these. A server
 * sees tokens for its own address only; by sending one to us it keeps us from connecting to itself.
 */
#include "config.h"

#include "convertd/policy/own.h"

#include "convertd/base/clock.h"
#include "convertd/base/log.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <string.h>

#define TAG_LEN 16
#define LABEL "convert own address"

/* Warnings are limited, to WARNING_BURST at once and one per WARNING_US: clients with forwarders can cause any number of them. */
#define WARNING_US 60000000
#define WARNING_BURST 8

static_assert(TAG_LEN + sizeof(struct in6_addr) + 4 == OWN_TOKEN_LEN, "all parts of a token");

static struct {
	pthread_mutex_t lock;
	uint8_t key[crypto_generichash_KEYBYTES];
	struct own_learned learned[OWN_LEARNED_MAX];
	_Atomic size_t count; /* used places of @learned; read without the lock, to find at once that there are none */
	_Atomic unsigned generation;
	struct log_limit warnings;
} own = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool own_add(struct own_told *told, const char *text, const struct place *place,
	     struct problems *problems)
{
	char quote[PROBLEM_QUOTE_MAX], meant[PREFIX_STRLEN];
	struct prefix prefix;
	int parsed = prefix_parse(&prefix, text, strlen(text));
	bool v4 = !parsed && IN6_IS_ADDR_V4MAPPED(&prefix.address) && prefix.length >= 96;

	problems_quote(text, quote);
	if (parsed == -ERANGE)
		problems_add(problems, place, "%s has bits behind its length; write %s if that is meant",
			     quote, prefix_format(&prefix, meant));
	else if (parsed < 0 || prefix.length == (v4 ? 96 : 0))
		problems_add(problems, place,
			     "%s is no address by which this host can be reached; write 192.0.2.1 or "
			     "2001:db8::/64",
			     quote);
	else if (told->count == OWN_TOLD_MAX)
		problems_add(problems, place, "%s is one too many, the limit is %d; prefixes take many "
			     "addresses at once", quote, OWN_TOLD_MAX);
	else {
		told->prefix[told->count++] = prefix;
		return true;
	}
	return false;
}

bool own_is_told(const struct own_told *told, const struct in6_addr *address)
{
	for (size_t i = 0; i < told->count; i++) {
		struct prefix its = prefix_of(address, told->prefix[i].length);

		if (IN6_ARE_ADDR_EQUAL(&its.address, &told->prefix[i].address))
			return true;
	}
	return false;
}

void own_init(void)
{
	randombytes_buf(own.key, sizeof(own.key));
}

/*
 * Returns the index of this address and port, with @known set; or of a place for them: a free one, or the one that would be
 * forgotten first. The caller holds the lock.
 */
static size_t find_place(const struct in6_addr *address, uint16_t port, bool *known)
{
	size_t oldest = 0, count = atomic_load(&own.count);

	*known = false;
	for (size_t i = 0; i < count; i++) {
		*known = own.learned[i].port == port &&
			 IN6_ARE_ADDR_EQUAL(&own.learned[i].address, address);
		if (*known)
			return i;
		if (own.learned[i].until_ms < own.learned[oldest].until_ms)
			oldest = i;
	}
	return count < OWN_LEARNED_MAX ? count : oldest;
}

static void tell(const struct in6_addr *address, uint16_t port)
{
	struct prefix single = prefix_of(address, 128);
	char text[PREFIX_STRLEN];

	if (!log_limit_take(&own.warnings, WARNING_US, WARNING_BURST, clock_now_us()))
		return;
	prefix_format(&single, text);
	if (port)
		log_warning("port %u of %s leads back to this converter: requests for it are refused "
			    "from now on; if %s is an address of this host's, behind a NAT, say so "
			    "with --own-address %s",
			    port, text, text, text);
	else
		log_warning("%s is an address of this host's, behind a NAT: a connection to it has "
			    "come back here; requests for it are refused from now on; say so with "
			    "--own-address %s, so that it is known from the start",
			    text, text);
}

void own_learn(const struct in6_addr *address, uint16_t port, uint64_t now_ms)
{
	bool known, fresh;
	size_t place;

	pthread_mutex_lock(&own.lock);
	place = find_place(address, port, &known);
	fresh = known && own.learned[place].until_ms > now_ms;
	own.learned[place] = (struct own_learned){
		.address = *address,
		.port = port,
		.until_ms = now_ms + OWN_LEARNED_SECONDS * UINT64_C(1000),
	};
	if (place == atomic_load(&own.count))
		atomic_store(&own.count, place + 1);
	if (!fresh)
		atomic_fetch_add(&own.generation, 1);
	pthread_mutex_unlock(&own.lock);
	/* An entry that has expired and is learned again needs no second warning. */
	if (!known)
		tell(address, port);
}

/* The caller holds the lock. */
static bool is_learned(const struct in6_addr *address, uint16_t port, uint64_t now_ms)
{
	bool known;
	size_t place = find_place(address, port, &known);

	return known && own.learned[place].until_ms > now_ms;
}

bool own_is_learned(const struct in6_addr *address, uint16_t port, uint64_t now_ms)
{
	bool known;

	if (!atomic_load_explicit(&own.count, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&own.lock);
	known = is_learned(address, 0, now_ms) || is_learned(address, port, now_ms);
	pthread_mutex_unlock(&own.lock);
	return known;
}

unsigned own_generation(void)
{
	return atomic_load_explicit(&own.generation, memory_order_relaxed);
}

size_t own_copy(struct own_learned learned[static OWN_LEARNED_MAX], uint64_t now_ms)
{
	size_t n = 0;

	pthread_mutex_lock(&own.lock);
	for (size_t i = 0; i < atomic_load(&own.count); i++)
		if (own.learned[i].until_ms > now_ms)
			learned[n++] = own.learned[i];
	pthread_mutex_unlock(&own.lock);
	return n;
}

static void make_tag(const uint8_t *text, uint8_t tag[static TAG_LEN])
{
	crypto_generichash_state state;

	crypto_generichash_init(&state, own.key, sizeof(own.key), TAG_LEN);
	crypto_generichash_update(&state, (const unsigned char *)LABEL, sizeof(LABEL));
	crypto_generichash_update(&state, text, OWN_TOKEN_LEN - TAG_LEN);
	crypto_generichash_final(&state, tag, TAG_LEN);
}

void own_make_token(const union sockaddr_ip *server, uint8_t token[static OWN_TOKEN_LEN])
{
	struct in6_addr address = sockaddr_ip_in6(server);
	uint16_t port = sockaddr_ip_port(server);
	uint8_t *text = token + TAG_LEN;

	memset(text, 0, OWN_TOKEN_LEN - TAG_LEN);
	memcpy(text, &address, sizeof(address));
	text[sizeof(address)] = (uint8_t)(port >> 8);
	text[sizeof(address) + 1] = (uint8_t)port;
	make_tag(text, token);
}

bool own_read_token(const uint8_t *cookie, size_t len, union sockaddr_ip *server)
{
	const uint8_t *text = cookie + TAG_LEN;
	struct in6_addr address;
	uint8_t tag[TAG_LEN];

	if (len != OWN_TOKEN_LEN)
		return false;
	make_tag(text, tag);
	if (sodium_memcmp(tag, cookie, TAG_LEN) != 0)
		return false;
	memcpy(&address, text, sizeof(address));
	return sockaddr_ip_set(server, AF_UNSPEC, &address,
			       (uint16_t)(text[sizeof(address)] << 8 | text[sizeof(address) + 1]));
}
