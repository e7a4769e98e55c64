/* SPDX-License-Identifier: BSD-3-Clause */
/* prefix.h - sets of destinations: address prefixes, ports, or both */
#ifndef COMMON_PREFIX_H
#define COMMON_PREFIX_H

#include "common/sockaddr.h"

/* An address prefix; IPv4 as v4-mapped, so 10.0.0.0/8 has length 104. */
struct prefix {
	struct in6_addr address; /* zeros behind the length */
	uint8_t length;          /* bits, 0-128 */
};

/* What a rule matches: a prefix and an inclusive range of ports. */
struct prefix_rule {
	struct prefix prefix; /* length 0: every address of both families */
	uint16_t port_first, port_last; /* host byte order */
};

/*
 * prefix_parse() - read "10.0.0.0/8", "192.0.2.1", "2001:db8::/32"
 * @len: bytes of @text that belong to it. Returns 0; -EINVAL for what is none of these; -ERANGE
 * where there are bits behind the length ("10.1.0.0/8"), which would match more than it seems to:
 * @out is the prefix that was meant, perhaps.
 */
int prefix_parse(struct prefix *out, const char *text, size_t len);

/*
 * prefix_rule_parse() - read a prefix, ":PORT", ":FIRST-LAST", or both behind one another
 * An IPv6 prefix needs brackets if ports follow: "[2001:db8::/32]:443". Returns as prefix_parse().
 */
int prefix_rule_parse(struct prefix_rule *out, const char *text);

/* The prefix of @length bits (0-128) that @address is in. */
struct prefix prefix_of(const struct in6_addr *address, uint8_t length);

/* Room for what prefix_format() prints. */
#define PREFIX_STRLEN (INET6_ADDRSTRLEN + 4)

/* "10.0.0.0/8", "2001:db8::/32"; a single address without length. Returns @buf. */
const char *prefix_format(const struct prefix *prefix, char buf[static PREFIX_STRLEN]);

bool prefix_contains(const struct prefix *prefix, const struct in6_addr *address);
bool prefix_rule_matches(const struct prefix_rule *rule, const union sockaddr_ip *addr);

#endif
