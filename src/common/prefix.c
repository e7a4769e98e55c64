/* SPDX-License-Identifier: BSD-3-Clause */
/* prefix.c - sets of destinations: address prefixes, ports, or both */
#include "config.h"

#include "common/prefix.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define V4_MAPPED_BITS 96

/* A decimal number of 1 to 5 digits up to @max at *@text, which is moved behind it; -1 if there is none. */
static int number_parse(const char **text, const char *end, int max)
{
	const char *start = *text;
	int value = 0;

	while (*text < end && **text >= '0' && **text <= '9' && *text - start < 5)
		value = value * 10 + (*(*text)++ - '0');
	return *text == start || value > max ? -1 : value;
}

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

/* "443" or "8000-8999", all of it. */
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
	const char *ports = strrchr(text, ':');
	size_t len = strlen(text);

	memset(out, 0, sizeof(*out));
	out->port_last = 65535;
	if (text[0] == '[') {
		const char *bracket = strchr(text, ']');

		if (!bracket || (bracket[1] && bracket[1] != ':'))
			return -EINVAL;
		ports = bracket[1] ? bracket + 1 : NULL;
		text++;
		len = (size_t)(bracket - text);
	} else if (ports && strchr(text, ':') == ports) {
		len = (size_t)(ports - text);
	} else {
		ports = NULL; /* no colon, or a bare IPv6 prefix */
	}
	if (ports && ports_parse(out, ports + 1) < 0)
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
