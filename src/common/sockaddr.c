/* SPDX-License-Identifier: BSD-3-Clause */
/* sockaddr.c - IPv4 and IPv6 socket addresses: classify, convert, read and print */
#include "config.h"

#include "common/sockaddr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Linux accepts an AF_INET6 address without sin6_scope_id (SIN6_LEN_RFC2133). */
#define SIN6_LEN_MIN 24

bool sockaddr_ip_from(union sockaddr_ip *out, const struct sockaddr *sa, socklen_t len)
{
	union sockaddr_ip copy = { .in6 = { 0 } };
	sa_family_t family;
	size_t want;

	if (!sa || len < (socklen_t)sizeof(family))
		return false;
	/* Only memcpy() touches the caller's bytes: they may be misaligned, or @out itself. */
	memcpy(&family, sa, sizeof(family));
	if (family == AF_INET && len >= (socklen_t)sizeof(copy.in))
		want = sizeof(copy.in);
	else if (family == AF_INET6 && len >= SIN6_LEN_MIN)
		want = len < sizeof(copy.in6) ? len : sizeof(copy.in6);
	else
		return false;
	memcpy(&copy, sa, want);
	if (family == AF_INET)
		memset(copy.in.sin_zero, 0, sizeof(copy.in.sin_zero));
	*out = copy;
	return true;
}

socklen_t sockaddr_ip_len(const union sockaddr_ip *addr)
{
	return addr->sa.sa_family == AF_INET ? sizeof(addr->in) : sizeof(addr->in6);
}

uint16_t sockaddr_ip_port(const union sockaddr_ip *addr)
{
	return ntohs(addr->sa.sa_family == AF_INET ? addr->in.sin_port : addr->in6.sin6_port);
}

void sockaddr_ip_set_port(union sockaddr_ip *addr, uint16_t port)
{
	if (addr->sa.sa_family == AF_INET)
		addr->in.sin_port = htons(port);
	else
		addr->in6.sin6_port = htons(port);
}

struct in6_addr sockaddr_ip_in6(const union sockaddr_ip *addr)
{
	struct in6_addr address = { 0 };

	if (addr->sa.sa_family == AF_INET6)
		return addr->in6.sin6_addr;
	address.s6_addr[10] = 0xff;
	address.s6_addr[11] = 0xff;
	memcpy(&address.s6_addr[12], &addr->in.sin_addr, sizeof(addr->in.sin_addr));
	return address;
}

bool sockaddr_ip_set(union sockaddr_ip *out, int family, const struct in6_addr *address,
		     uint16_t port)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(address);

	if (family == AF_INET && !v4)
		return false;
	memset(out, 0, sizeof(*out));
	if (v4 && family != AF_INET6) {
		out->in.sin_family = AF_INET;
		memcpy(&out->in.sin_addr, &address->s6_addr[12], sizeof(out->in.sin_addr));
	} else {
		out->in6.sin6_family = AF_INET6;
		out->in6.sin6_addr = *address;
	}
	sockaddr_ip_set_port(out, port);
	return true;
}

bool sockaddr_ip_equal(const union sockaddr_ip *a, const union sockaddr_ip *b)
{
	struct in6_addr x = sockaddr_ip_in6(a), y = sockaddr_ip_in6(b);

	return sockaddr_ip_port(a) == sockaddr_ip_port(b) && IN6_ARE_ADDR_EQUAL(&x, &y);
}

uint64_t sockaddr_ip_hash(const union sockaddr_ip *addr)
{
	struct in6_addr address = sockaddr_ip_in6(addr);
	uint64_t words[2], hash;

	memcpy(words, &address, sizeof(words));
	hash = (words[0] ^ words[1] * UINT64_C(0x9e3779b97f4a7c15)) + sockaddr_ip_port(addr);
	hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
	hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return hash ^ hash >> 32;
}

bool sockaddr_ip_is_v4(const union sockaddr_ip *addr)
{
	return addr->sa.sa_family == AF_INET || IN6_IS_ADDR_V4MAPPED(&addr->in6.sin6_addr);
}

/*
 * Reads a decimal number of 1 to 5 digits up to @max at *@text, and moves *@text behind it; returns -1 if there is none. Not by strtol(),
 * which would write errno: only hooks may.
 */
static int number_parse(const char **text, const char *end, int max)
{
	const char *start = *text;
	int value = 0;

	while (*text < end && **text >= '0' && **text <= '9' && *text - start < 5)
		value = value * 10 + (*(*text)++ - '0');
	return *text == start || value > max ? -1 : value;
}

/* Reads a decimal port, 1 to 65535, with nothing behind it; returns 0 if it is none. */
static uint16_t port_parse(const char *text)
{
	const char *end = text + strlen(text);
	const int port = number_parse(&text, end, UINT16_MAX);

	return port > 0 && text == end ? (uint16_t)port : 0;
}

/*
 * Splits "HOST", "HOST:PORT", "[HOST]" or "[HOST]:PORT"; with two colons and no brackets all of it is an IPv6 address. Moves *@text to the
 * host, and sets @len, the host's bytes, and @port, NULL without one. Returns false for a bracket without its other half.
 */
static bool host_split(const char **text, size_t *len, const char **port)
{
	const char *bracket = strchr(*text, ']'), *colon = strchr(*text, ':');

	*port = NULL;
	*len = strlen(*text);
	if (**text == '[') {
		if (!bracket || (bracket[1] && bracket[1] != ':'))
			return false;
		*port = bracket[1] ? bracket + 2 : NULL;
		++*text;
		*len = (size_t)(bracket - *text);
	} else if (colon && !strchr(colon + 1, ':')) {
		*port = colon + 1;
		*len = (size_t)(colon - *text);
	}
	return true;
}

int sockaddr_ip_parse(union sockaddr_ip *out, const char *text, uint16_t default_port)
{
	char host[INET6_ADDRSTRLEN];
	uint16_t port = default_port;
	const char *port_text;
	struct in6_addr in6;
	struct in_addr in;
	size_t len;

	if (!host_split(&text, &len, &port_text) || len >= sizeof(host) || (port_text && !(port = port_parse(port_text))))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, host, &in) == 1) {
		out->in.sin_family = AF_INET;
		out->in.sin_addr = in;
	} else if (inet_pton(AF_INET6, host, &in6) == 1) {
		out->in6.sin6_family = AF_INET6;
		out->in6.sin6_addr = in6;
	} else {
		return -EINVAL;
	}
	sockaddr_ip_set_port(out, port);
	return 0;
}

const char *sockaddr_ip_format(const union sockaddr_ip *addr, char buf[static SOCKADDR_STRLEN])
{
	const struct prefix whole = { .address = sockaddr_ip_in6(addr), .length = 128 };
	char host[PREFIX_STRLEN];

	snprintf(buf, SOCKADDR_STRLEN, IN6_IS_ADDR_V4MAPPED(&whole.address) ? "%s:%u" : "[%s]:%u", prefix_format(&whole, host),
		 (unsigned)sockaddr_ip_port(addr));
	return buf;
}

/* --- sets of destinations: address prefixes, ports, or both --- */

#define V4_MAPPED_BITS 96

/* Clears the bits behind the length; returns whether there were none. */
static bool host_bits_clear(struct prefix *prefix)
{
	struct in6_addr before = prefix->address;
	unsigned int whole = prefix->length / 8u, rest = prefix->length % 8u;

	if (rest)
		prefix->address.s6_addr[whole++] &= (uint8_t)(0xff00u >> rest);
	memset(prefix->address.s6_addr + whole, 0, 16 - whole);
	return IN6_ARE_ADDR_EQUAL(&before, &prefix->address);
}

int prefix_parse(struct prefix *out, const char *text, size_t len)
{
	const char *slash = memchr(text, '/', len), *end = text + len;
	char host[INET6_ADDRSTRLEN];
	union sockaddr_ip addr;
	int bits, length;

	len = slash ? (size_t)(slash - text) : len;
	if (len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	if (strpbrk(host, "[]") || sockaddr_ip_parse(&addr, host, 1) < 0 ||
	    sockaddr_ip_port(&addr) != 1)
		return -EINVAL;
	bits = addr.sa.sa_family == AF_INET ? 32 : 128;
	length = bits;
	if (slash) {
		slash++;
		length = number_parse(&slash, end, bits);
		if (length < 0 || slash != end)
			return -EINVAL;
	}
	out->address = sockaddr_ip_in6(&addr);
	out->length = (uint8_t)(length + (bits == 32 ? V4_MAPPED_BITS : 0));
	return host_bits_clear(out) ? 0 : -ERANGE;
}

struct prefix prefix_of(const struct in6_addr *address, uint8_t length)
{
	struct prefix prefix = { .address = *address, .length = length };

	host_bits_clear(&prefix);
	return prefix;
}

const char *prefix_format(const struct prefix *prefix, char buf[static PREFIX_STRLEN])
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(&prefix->address) && prefix->length >= V4_MAPPED_BITS;
	char host[INET6_ADDRSTRLEN] = "?";

	if (v4)
		inet_ntop(AF_INET, &prefix->address.s6_addr[12], host, sizeof(host));
	else
		inet_ntop(AF_INET6, &prefix->address, host, sizeof(host));
	if (prefix->length == 128)
		snprintf(buf, PREFIX_STRLEN, "%s", host);
	else
		snprintf(buf, PREFIX_STRLEN, "%s/%d", host,
			 prefix->length - (v4 ? V4_MAPPED_BITS : 0));
	return buf;
}

/* Reads "443" or "8000-8999", all of @text. */
static int ports_parse(struct prefix_rule *out, const char *text)
{
	const char *end = text + strlen(text);
	int first = number_parse(&text, end, 65535), last = first;

	if (first >= 0 && *text == '-') {
		text++;
		last = number_parse(&text, end, 65535);
	}
	if (first < 1 || last < first || *text)
		return -EINVAL;
	out->port_first = (uint16_t)first;
	out->port_last = (uint16_t)last;
	return 0;
}

int prefix_rule_parse(struct prefix_rule *out, const char *text)
{
	const char *ports;
	size_t len;

	memset(out, 0, sizeof(*out));
	out->port_last = 65535;
	if (!host_split(&text, &len, &ports) || (ports && ports_parse(out, ports) < 0))
		return -EINVAL;
	if (!len && ports && text[0] == ':')
		return 0; /* ports of every address */
	return prefix_parse(&out->prefix, text, len);
}

bool prefix_contains(const struct prefix *prefix, const struct in6_addr *address)
{
	unsigned int whole = prefix->length / 8u, rest = prefix->length % 8u;

	if (memcmp(&prefix->address, address, whole) != 0)
		return false;
	return !rest || (prefix->address.s6_addr[whole] ^ address->s6_addr[whole]) >> (8 - rest) == 0;
}

bool prefix_rule_matches(const struct prefix_rule *rule, const union sockaddr_ip *addr)
{
	struct in6_addr address = sockaddr_ip_in6(addr);
	uint16_t port = sockaddr_ip_port(addr);

	return port >= rule->port_first && port <= rule->port_last &&
	       prefix_contains(&rule->prefix, &address);
}
