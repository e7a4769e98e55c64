/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * access.c - decides which clients may use the converter, and which destinations they may reach
 *
 * The problem: a converter stands inside the operator's network and connects wherever clients tell it to. So destinations
 * that could be reached only from there are denied unless a rule of the operator (access.h) allows them:
 *
 * - Every prefix that IANA's registries of special-purpose addresses (RFC 6890) don't call
 *   globally reachable: private networks, shared address space, link-local addresses with the
 *   metadata services of clouds behind 169.254.169.254, and so on.
 * - This host's own addresses, which its services may trust, convertd among them: each is denied as if by a
 *   built-in rule for that single address, so that only a rule for that very address opens it. The routing tables don't
 *   have an address that a NAT in front of the host translates to it, so the operator names it (--own-address).
 * - IPv6 addresses that lead to such an IPv4 address: 6to4, NAT64's well-known prefix, ISATAP. The
 *   IPv4 address inside has to be allowed as well. A NAT64 prefix that the operator has chosen can't
 *   be recognized; it needs a rule.
 *
 * A request for a broadcast address is Malformed (RFC 8803 6.2.5). Those of this host's networks are known by the
 * routing table alone, so they are found here.
 */
#include "config.h"

#include "convertd/policy/access.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * ----- rules that allow or deny prefixes; the longest match wins -----
 *
 * The rules are sorted in the order in which they apply: long prefixes before short ones, and those of
 * one length by address. For each length, a binary search looks for the prefix of the address
 * with that length. There are at most 129 lengths, and seldom more than ten.
 */

static int ports_width(const struct access_rule *rule)
{
	return rule->match.port_last - rule->match.port_first;
}

static int compare_prefixes(const struct prefix *a, const struct prefix *b)
{
	if (a->length != b->length)
		return b->length - a->length;
	return memcmp(&a->address, &b->address, sizeof(a->address));
}

/* Compares two rules for qsort(); the one that applies first is less. */
static int compare_rules(const void *x, const void *y)
{
	const struct access_rule *a = x, *b = y;
	int order = compare_prefixes(&a->match.prefix, &b->match.prefix);

	if (order)
		return order;
	if (a->builtin != b->builtin)
		return a->builtin - b->builtin;
	if (ports_width(a) != ports_width(b))
		return ports_width(a) - ports_width(b);
	return a->match.port_first - b->match.port_first;
}

int access_rules_add(struct access_rules *rules, const struct access_rule *rule)
{
	if (rules->count == rules->room) {
		size_t room = rules->room ? rules->room * 2 : 16;
		struct access_rule *more = realloc(rules->rule, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		rules->rule = more;
		rules->room = room;
	}
	rules->rule[rules->count++] = *rule;
	rules->closed |= rule->allow && !rule->builtin;
	return 0;
}

/* Tells whether two rules decide the same destination in opposite ways, and neither has precedence. */
static bool contradict(const struct access_rule *a, const struct access_rule *b)
{
	return a->allow != b->allow && a->builtin == b->builtin &&
	       ports_width(a) == ports_width(b) && a->match.port_first <= b->match.port_last &&
	       b->match.port_first <= a->match.port_last &&
	       compare_prefixes(&a->match.prefix, &b->match.prefix) == 0;
}

static void tell_contradiction(const struct access_rule *a, const struct access_rule *b,
			       struct problems *problems)
{
	char text[PREFIX_STRLEN];

	if (b->place.line < a->place.line) {
		const struct access_rule *later = a;

		a = b;
		b = later;
	}
	prefix_format(&b->match.prefix, text);
	if (a->place.line)
		problems_add(problems, &b->place,
			     "\"%s\" has a rule that says the opposite, in line %u; remove one", text,
			     a->place.line);
	else
		problems_add(problems, &b->place,
			     "\"%s\" has a rule that says the opposite, on the command line; remove one",
			     text);
}

void access_rules_finish(struct access_rules *rules, struct problems *problems)
{
	if (rules->count)
		qsort(rules->rule, rules->count, sizeof(*rules->rule), compare_rules);
	/* Rules that could contradict each other are neighbours, or only such rules are between them. */
	for (size_t i = 0; i + 1 < rules->count; i++)
		if (contradict(&rules->rule[i], &rules->rule[i + 1]))
			tell_contradiction(&rules->rule[i], &rules->rule[i + 1], problems);
}

/* Returns the index of the first of @count rules at @rule that doesn't sort before @prefix; @count if all do. */
static size_t first_not_before(const struct access_rule *rule, size_t count, const struct prefix *prefix)
{
	size_t low = 0;

	while (count) {
		size_t half = count / 2;

		if (compare_prefixes(&rule[low + half].match.prefix, prefix) < 0) {
			low += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	return low;
}

const struct access_rule *access_rules_find(const struct access_rules *rules, const struct in6_addr *address,
			      uint16_t port)
{
	const struct access_rule *rule = rules->rule, *end = rule + rules->count;

	while (rule < end) {
		uint8_t length = rule->match.prefix.length;
		struct prefix prefix = prefix_of(address, length), shorter = { 0 };

		rule += first_not_before(rule, (size_t)(end - rule), &prefix);
		for (; rule < end && compare_prefixes(&rule->match.prefix, &prefix) == 0; rule++)
			if (port >= rule->match.port_first && port <= rule->match.port_last)
				return rule;
		if (length == 0)
			break;
		/* Skips the other rules of this length. */
		shorter.length = (uint8_t)(length - 1);
		rule += first_not_before(rule, (size_t)(end - rule), &shorter);
	}
	return NULL;
}

bool access_rules_allow(const struct access_rules *rules, const struct in6_addr *address, uint16_t port)
{
	const struct access_rule *rule = access_rules_find(rules, address, port);

	return rule ? rule->allow : !rules->closed;
}

void access_rules_fini(struct access_rules *rules)
{
	free(rules->rule);
	memset(rules, 0, sizeof(*rules));
}

/* ----- which clients may use the converter, and which destinations they may reach ----- */

/* These prefixes are denied unless a rule of the user that is as long or longer allows them. */
static const char *const builtin_denials[] = {
	"0.0.0.0/8",	   /* "this network", RFC 791 */
	"10.0.0.0/8",	   /* private, RFC 1918 */
	"100.64.0.0/10",   /* shared with a carrier's NAT, RFC 6598 */
	"127.0.0.0/8",	   /* loopback */
	"169.254.0.0/16",  /* link-local, RFC 3927 */
	"172.16.0.0/12",   /* private, RFC 1918 */
	"192.0.0.0/24",	   /* protocol assignments, DS-Lite among them, RFC 6890 */
	"192.0.2.0/24",	   /* documentation, RFC 5737 */
	"192.88.99.0/24",  /* relays of 6to4 and 6a44, RFC 7526, RFC 6751 */
	"192.168.0.0/16",  /* private, RFC 1918 */
	"198.18.0.0/15",   /* benchmarks, RFC 2544 */
	"198.51.100.0/24", /* documentation */
	"203.0.113.0/24",  /* documentation */
	"224.0.0.0/4",	   /* multicast */
	"240.0.0.0/4",	   /* reserved, and limited broadcast */
	"::/96",	   /* unspecified, loopback, IPv4-compatible (RFC 4291 2.5.5.1) */
	"::ffff:0:0:0/96", /* IPv4-translated, RFC 2765 */
	"64:ff9b:1::/48",  /* NAT64 prefixes of local use, RFC 8215 */
	"100::/63",	   /* discard-only, RFC 6666; dummy, RFC 9780 */
	"2001::/23",	   /* protocol assignments, Teredo and benchmarks among them */
	"2001:db8::/32",   /* documentation, RFC 3849 */
	"3fff::/20",	   /* documentation, RFC 9637 */
	"5f00::/16",	   /* segment identifiers, RFC 9602 */
	"fc00::/7",	   /* unique local, RFC 4193 */
	"fe80::/10",	   /* link-local */
	"fec0::/10",	   /* site-local, RFC 3879 */
	"ff00::/8",	   /* multicast */
};

/* The forms of IPv6 addresses that contain an IPv4 address: they have @bits where @mask is set. */
static const struct {
	uint8_t bits[16], mask[16];
	uint8_t offset; /* of the IPv4 address */
} embeddings[] = {
	/* 6to4, 2002::/16, RFC 3056 */
	{ { 0x20, 0x02 }, { 0xff, 0xff }, 2 },
	/* NAT64, 64:ff9b::/96, RFC 6052 */
	{ { 0x00, 0x64, 0xff, 0x9b },
	  { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
	  12 },
	/* ISATAP, interface identifier 0000:5efe or 0200:5efe, RFC 5214 */
	{ { [10] = 0x5e, [11] = 0xfe }, { [8] = 0xfd, [9] = 0xff, [10] = 0xff, [11] = 0xff }, 12 },
};

static bool embedded_v4(const struct in6_addr *address, struct in6_addr *v4)
{
	for (size_t form = 0; form < sizeof(embeddings) / sizeof(embeddings[0]); form++) {
		uint8_t difference = 0;

		for (int i = 0; i < 16; i++)
			difference |= (address->s6_addr[i] ^ embeddings[form].bits[i]) &
				      embeddings[form].mask[i];
		if (difference)
			continue;
		memset(v4, 0, sizeof(*v4));
		v4->s6_addr[10] = v4->s6_addr[11] = 0xff;
		memcpy(&v4->s6_addr[12], &address->s6_addr[embeddings[form].offset], 4);
		return true;
	}
	return false;
}

static int add_builtin(struct access_rules *rules)
{
	for (size_t i = 0; i < sizeof(builtin_denials) / sizeof(builtin_denials[0]); i++) {
		struct access_rule rule = { .builtin = true };
		int error = prefix_rule_parse(&rule.match, builtin_denials[i]);

		assert(error == 0);
		if (!error)
			error = access_rules_add(rules, &rule);
		if (error)
			return error;
	}
	return 0;
}

/* Adds errors for --no-hairpin with rules under which no destination is a client, or every one is. */
static void check_hairpin(const struct access *access, struct problems *problems)
{
	const struct place *place = &access->no_hairpin_place;

	if (!access->clients.closed)
		problems_add(problems, place,
			     "no rule names the clients; add allow-client PREFIX");
	for (size_t i = 0; i < access->clients.count; i++) {
		const struct access_rule *rule = &access->clients.rule[i];
		const struct prefix *prefix = &rule->match.prefix;
		bool v4 = prefix->length == 96 && IN6_IS_ADDR_V4MAPPED(&prefix->address);

		if (rule->allow && (prefix->length == 0 || v4))
			problems_add(problems, place,
				     "with allow-client %s every destination is a client; name "
				     "the clients' own prefixes",
				     v4 ? "0.0.0.0/0" : "::/0");
	}
}

int access_finish(struct access *access, struct problems *problems)
{
	int error = add_builtin(&access->destinations);

	if (error)
		return error;
	access_rules_finish(&access->clients, problems);
	access_rules_finish(&access->destinations, problems);
	if (access->no_hairpin)
		check_hairpin(access, problems);
	return 0;
}

void access_fini(struct access *access)
{
	access_rules_fini(&access->clients);
	access_rules_fini(&access->destinations);
}

bool access_client(const struct access *access, const struct in6_addr *client)
{
	return access_rules_allow(&access->clients, client, 0);
}

bool access_add_host(struct access *access, const struct prefix *prefix)
{
	if (access->host_count == ACCESS_HOST_MAX)
		return false;
	access->host[access->host_count++] = *prefix;
	return true;
}

static bool is_host(const struct access *access, const struct in6_addr *address)
{
	for (size_t i = 0; i < access->host_count; i++)
		if (prefix_contains(&access->host[i], address))
			return true;
	return false;
}

/* Judges the address itself, as access_destination() does, but no IPv4 address inside. */
static enum access_verdict check_address(const struct access *access,
					 const struct in6_addr *address, uint16_t port,
					 access_route_fn *route, void *arg, const char **reason)
{
	const struct access_rule *rule = access_rules_find(&access->destinations, address, port);

	if (rule ? !rule->allow : access->destinations.closed) {
		*reason = rule && rule->builtin ? "destination not public" : "destination denied";
		return ACCESS_DENIED;
	}
	if (access->no_hairpin && access_client(access, address)) {
		*reason = "destination is a client";
		return ACCESS_DENIED;
	}
	switch (is_host(access, address) ? ROUTE_OWN : route(arg, address)) {
	case ROUTE_ELSEWHERE:
		return ACCESS_ALLOWED;
	case ROUTE_OWN:
		if (rule && rule->match.prefix.length == 128)
			return ACCESS_ALLOWED;
		*reason = "destination is the converter";
		return ACCESS_DENIED;
	case ROUTE_BROADCAST:
		*reason = "destination is a broadcast address";
		return ACCESS_BROADCAST;
	case ROUTE_UNKNOWN:
		break;
	}
	*reason = "no answer from rtnetlink";
	return ACCESS_UNKNOWN;
}

enum access_verdict access_destination(const struct access *access, const struct in6_addr *address,
				       uint16_t port, access_route_fn *route, void *arg,
				       const char **reason)
{
	enum access_verdict verdict = check_address(access, address, port, route, arg, reason);
	struct in6_addr v4;

	if (verdict != ACCESS_ALLOWED || !embedded_v4(address, &v4))
		return verdict;
	verdict = check_address(access, &v4, port, route, arg, reason);
	/* An IPv6 address that contains a broadcast address is none itself: not Malformed. */
	return verdict == ACCESS_BROADCAST ? ACCESS_DENIED : verdict;
}
