/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sources.c - chooses the source address of a client's connections to servers, and binds sockets to it (RFC 8803 4.4)
 *
 * All connections of a client come from the same one of a set of addresses: "paired" pooling, as RFC 8803 4.3 has it
 * (RFC 6888 REQ-2, RFC 4787 REQ-2). No table is needed for that. Prefixes are chosen by weighted
 * rendezvous hashing: each prefix draws a number from a keyed hash of itself and the client, and the
 * one with the best number gets the client. So the choice is the same after a reload, after a restart, and on another
 * converter with the same set and key. When a prefix is added or removed, only those clients move that get the new one
 * or had the old one. All addresses have the same share of clients, as a prefix's weight is its number of
 * addresses. The same hash chooses the address within the prefix.
 *
 * A client is an IPv4 address, or the first 64 bits of an IPv6 one: hosts change the other bits as they
 * like (RFC 8981). The hash is keyed so that no attacker can choose client addresses that are given the same address as
 * a victim, to use up its ports.
 */
#include "config.h"

#include "convertd/net/downstream.h"

#include "daemon/warden_message.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LABEL "convert source address"

static_assert(SOURCES_KEY_LEN == crypto_shorthash_KEYBYTES, "a key for SipHash");

void sources_set_key(struct sources *sources, const char *secret)
{
	crypto_generichash_state state;

	crypto_generichash_init(&state, NULL, 0, sizeof(sources->key));
	crypto_generichash_update(&state, (const unsigned char *)LABEL, sizeof(LABEL));
	crypto_generichash_update(&state, (const unsigned char *)secret, strlen(secret));
	crypto_generichash_final(&state, sources->key, sizeof(sources->key));
}

/* Tells whether the prefix has an address from which no connection can come. */
static bool is_unusable(const struct prefix *prefix)
{
	const uint8_t *bytes = prefix->address.s6_addr;

	if (IN6_IS_ADDR_V4MAPPED(&prefix->address))
		return prefix->length < 96 || bytes[12] == 0 || bytes[12] == 127 || bytes[12] >= 224;
	return prefix->length == 0 || IN6_IS_ADDR_UNSPECIFIED(&prefix->address) ||
	       IN6_IS_ADDR_LOOPBACK(&prefix->address) || IN6_IS_ADDR_MULTICAST(&prefix->address) ||
	       IN6_IS_ADDR_LINKLOCAL(&prefix->address);
}

bool sources_add(struct sources *sources, const char *text, const struct place *place,
		 struct problems *problems)
{
	struct source *source = &sources->source[sources->count];
	char quote[PROBLEM_QUOTE_MAX], meant[PREFIX_STRLEN];
	struct prefix prefix;
	int parsed = prefix_parse(&prefix, text, strlen(text));

	problems_quote(text, quote);
	if (parsed == -ERANGE)
		problems_add(problems, place, "%s has bits set beyond its length; write %s if that is meant",
			     quote, prefix_format(&prefix, meant));
	else if (parsed < 0 || is_unusable(&prefix))
		problems_add(problems, place,
			     "%s isn't an address or prefix of this host's; write 192.0.2.1, 192.0.2.16/28 "
			     "or 2001:db8::/64",
			     quote);
	else if (sources->count == SOURCES_MAX)
		problems_add(problems, place, "%s is one too many, the limit is %d; prefixes take many "
			     "addresses at once", quote, SOURCES_MAX);
	else {
		*source = (struct source){ .prefix = prefix, .place = *place };
		sources->count++;
		return true;
	}
	return false;
}

/* Hashes a client and a prefix to 64 bits; @salt makes several independent hashes of the same pair. */
static uint64_t hash_client(const struct sources *sources, const struct prefix *prefix,
			    const struct in6_addr *client, uint8_t salt)
{
	uint8_t text[sizeof(*client) + sizeof(prefix->address) + 2], hash[crypto_shorthash_BYTES];
	uint64_t result;

	memcpy(text, client, sizeof(*client));
	memcpy(text + sizeof(*client), &prefix->address, sizeof(prefix->address));
	text[sizeof(text) - 2] = prefix->length;
	text[sizeof(text) - 1] = salt;
	crypto_shorthash(hash, text, sizeof(text), sources->key);
	memcpy(&result, hash, sizeof(result));
	return result;
}

/*
 * Returns the score of a prefix for a client; the lowest wins. If each prefix of weight w gets the score -ln(number) / w
 * with a random number from 0 to 1, it wins with the probability of w's part in the sum of all weights.
 */
static double score(const struct sources *sources, const struct prefix *prefix,
		    const struct in6_addr *client)
{
	double number = ldexp((double)(hash_client(sources, prefix, client, 0) >> 11) + 0.5, -53);

	return ldexp(-log(number), prefix->length - 128);
}

static struct in6_addr pick_address(const struct sources *sources, const struct prefix *prefix,
				    const struct in6_addr *client)
{
	struct in6_addr address = prefix->address;
	uint64_t bits[2] = { hash_client(sources, prefix, client, 1), hash_client(sources, prefix, client, 2) };
	uint8_t bytes[sizeof(address)];

	memcpy(bytes, bits, sizeof(bytes));
	for (unsigned i = 0; i < sizeof(address); i++) {
		unsigned kept = prefix->length > i * 8 ? prefix->length - i * 8 : 0;
		uint8_t mask = kept >= 8 ? 0 : (uint8_t)(0xff >> kept);

		address.s6_addr[i] |= bytes[i] & mask;
	}
	return address;
}

/* Tells whether the server should see the client's own address. */
static bool is_preserved(const struct sources *sources, const union sockaddr_ip *client,
			 const union sockaddr_ip *server)
{
	struct in6_addr address = sockaddr_ip_in6(client);
	struct prefix own = prefix_of(&address, 128);

	return sources->preserve && sockaddr_ip_is_v4(client) == sockaddr_ip_is_v4(server) &&
	       !is_unusable(&own);
}

enum sources_choice sources_choose(const struct sources *sources, const union sockaddr_ip *client,
				   const union sockaddr_ip *server, union sockaddr_ip *out)
{
	bool v4 = sockaddr_ip_is_v4(server);
	struct in6_addr address = sockaddr_ip_in6(client);
	const struct prefix *best = NULL;
	double best_score = 0;

	memset(out, 0, sizeof(*out));
	if (is_preserved(sources, client, server)) {
		sockaddr_ip_set(out, AF_UNSPEC, &address, sockaddr_ip_port(client));
		return SOURCES_CLIENT;
	}
	if (!sockaddr_ip_is_v4(client))
		memset(&address.s6_addr[8], 0, 8);
	for (size_t i = 0; i < sources->count; i++) {
		const struct prefix *prefix = &sources->source[i].prefix;
		double mine;

		if (!!IN6_IS_ADDR_V4MAPPED(&prefix->address) != v4)
			continue;
		mine = score(sources, prefix, &address);
		if (best && mine >= best_score)
			continue;
		best = prefix;
		best_score = mine;
	}
	if (!best)
		return SOURCES_ANY;
	address = pick_address(sources, best, &address);
	sockaddr_ip_set(out, AF_UNSPEC, &address, 0);
	return !v4 && best->length < 128 ? SOURCES_ROUTED : SOURCES_SHARED;
}

size_t source_range(const struct source *source, struct in6_addr *first, struct in6_addr *last)
{
	unsigned host_bits = 128 - source->prefix.length;

	*first = *last = source->prefix.address;
	for (unsigned bit = source->prefix.length; bit < 128; bit++)
		last->s6_addr[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	return host_bits >= sizeof(size_t) * 8 ? SIZE_MAX : (size_t)1 << host_bits;
}

/*
 * ----- the socket bound to the source address that was chosen for a connection -----
 *
 * Ports: bind() without a port would take one that is free towards all servers, so one address could have 28,000
 * connections at most. With IP_BIND_ADDRESS_NO_PORT connect() takes a port that is free towards its server, and
 * connections to other servers share it. With --preserve-client-address, the socket gets the client's own port if it
 * is free; by SO_REUSEADDR connections of other clients may have it too, each towards another server.
 */

/* Of a prefix with more addresses than this, only the first and the last one are checked at the start. */
#define CHECK_MAX 256

static const int on = 1;

/*
 * Tells whether the local route of @source's prefix has gone. With IPV6_FREEBIND neither bind() nor connect() would fail
 * then, and the server's packets would get lost.
 */
static bool is_gone(const union sockaddr_ip *source, struct route *route)
{
	struct in6_addr address = sockaddr_ip_in6(source);

	return route && route_find(route, &address) == ROUTE_ELSEWHERE;
}

int source_bind(int fd, const union sockaddr_ip *source, enum sources_choice choice,
		struct route *route)
{
	union sockaddr_ip portless = *source;
	int error = 0;

	if (choice == SOURCES_ANY)
		return 0;
	if (choice == SOURCES_CLIENT)
		error = rights_set_transparent(fd, sockaddr_ip_is_v4(source));
	/* For IPv6, bind() accepts addresses of interfaces only; for IPv4 a local route is enough. */
	if (choice == SOURCES_ROUTED) {
		setsockopt(fd, SOL_IPV6, IPV6_FREEBIND, &on, sizeof(on));
		error = is_gone(source, route) ? -EADDRNOTAVAIL : 0;
	}
	if (error)
		return error;
	if (sockaddr_ip_port(source)) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (bind(fd, &source->sa, sockaddr_ip_len(source)) == 0)
			return 0;
		/* The port is taken, say by a listener of this host, or is below 1024 and needs a capability: any port will do. */
		if (errno != EADDRINUSE && errno != EACCES)
			return -errno;
	}
	sockaddr_ip_set_port(&portless, 0);
	setsockopt(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	return bind(fd, &portless.sa, sockaddr_ip_len(&portless)) < 0 ? -errno : 0;
}

/* Increments an address. */
static void step(struct in6_addr *address)
{
	for (int i = 15; i >= 0 && ++address->s6_addr[i] == 0; i--)
		;
}

/* Tells whether the addresses of @source are this host's. If not, sets @wrong to one that isn't. */
static bool all_are_own(struct route *route, const struct source *source, struct in6_addr *wrong)
{
	struct in6_addr address, last;
	size_t count = source_range(source, &address, &last);

	*wrong = last;
	if (count > CHECK_MAX) {
		if (route_find(route, &last) != ROUTE_OWN)
			return false;
		count = 1;
	}
	for (; count; count--, step(&address)) {
		*wrong = address;
		if (route_find(route, &address) != ROUTE_OWN)
			return false;
	}
	return true;
}

static bool check_source(const struct source *source, struct route *route,
			 struct problems *problems)
{
	char text[PREFIX_STRLEN], single[PREFIX_STRLEN];
	struct in6_addr wrong;
	struct prefix prefix;

	if (all_are_own(route, source, &wrong))
		return true;
	prefix = prefix_of(&wrong, 128);
	prefix_format(&source->prefix, text);
	problems_add(problems, &source->place,
		     "%s isn't an address of this host; add it: \"ip address add %s dev lo\", or the "
		     "whole of a prefix: \"ip route add local %s dev lo\"",
		     prefix_format(&prefix, single), single, text);
	return false;
}

static bool check_transparent(const struct sources *sources, struct problems *problems)
{
	static const int families[] = { AF_INET, AF_INET6 };

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		int fd = socket(families[i], SOCK_STREAM | SOCK_CLOEXEC, 0), error;

		/* A host without this family has no clients of it. */
		if (fd < 0)
			continue;
		error = rights_set_transparent(fd, families[i] == AF_INET);
		close(fd);
		if (!error)
			continue;
		problems_add(problems, &sources->preserve_place,
			     "IP_TRANSPARENT: %s; it needs CAP_NET_ADMIN (AmbientCapabilities=, or "
			     "start as root)",
			     strerror(-error));
		return false;
	}
	return true;
}

static bool check_sources(const struct sources *sources, struct problems *problems)
{
	struct route *route = sources->count ? route_create() : NULL;
	bool right = true;

	if (sources->count && !route) {
		problems_add(problems, &sources->source[0].place, "no rtnetlink socket: %s",
			     strerror(errno));
		return false;
	}
	for (size_t i = 0; i < sources->count; i++)
		right &= check_source(&sources->source[i], route, problems);
	route_destroy(route);
	return right;
}

bool source_check(const struct sources *sources, struct problems *problems)
{
	if (sources->preserve && !check_transparent(sources, problems))
		return false;
	return check_sources(sources, problems);
}
