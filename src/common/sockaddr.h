/* SPDX-License-Identifier: BSD-3-Clause */
/* sockaddr.h - IPv4 and IPv6 socket addresses: classify, convert, read and print */
#ifndef COMMON_SOCKADDR_H
#define COMMON_SOCKADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Room for "[address]:port" and the NUL; the scope isn't printed. */
#define SOCKADDR_STRLEN 80

/* An address of either family; in6 is the largest member. */
union sockaddr_ip {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/*
 * sockaddr_ip_from() - copy an address of AF_INET or AF_INET6
 * @len: bytes of @sa. Returns false, with @out untouched, for another family or if @len is too short for the family (24 bytes suffice for
 * AF_INET6, as for the kernel: the scope is then 0). @sa need not be aligned, and may be @out.
 */
bool sockaddr_ip_from(union sockaddr_ip *out, const struct sockaddr *sa, socklen_t len);

/* Returns the length of the address that the kernel expects for its family. */
socklen_t sockaddr_ip_len(const union sockaddr_ip *addr);

/* Returns the port in host byte order. */
uint16_t sockaddr_ip_port(const union sockaddr_ip *addr);
void sockaddr_ip_set_port(union sockaddr_ip *addr, uint16_t port);

/* Returns the address as IPv6, IPv4 as v4-mapped (RFC 4291 2.5.5.2). */
struct in6_addr sockaddr_ip_in6(const union sockaddr_ip *addr);

/*
 * sockaddr_ip_set() - make an address for a socket of @family
 * @address: v4-mapped for IPv4. With AF_INET such an address becomes a sockaddr_in; with AF_INET6 it stays v4-mapped; with AF_UNSPEC the
 * family follows the address. Returns false for AF_INET with an IPv6 address.
 */
bool sockaddr_ip_set(union sockaddr_ip *out, int family, const struct in6_addr *address,
		     uint16_t port);

/* Are address and port the same? Ignores the scope; an IPv4 address equals its v4-mapped form. */
bool sockaddr_ip_equal(const union sockaddr_ip *a, const union sockaddr_ip *b);

/* Returns a hash of address and port for tables; equal addresses have the same. It isn't keyed: anybody can make addresses that collide. */
uint64_t sockaddr_ip_hash(const union sockaddr_ip *addr);

/* Is it IPv4, as AF_INET or as v4-mapped AF_INET6? */
bool sockaddr_ip_is_v4(const union sockaddr_ip *addr);

/*
 * sockaddr_ip_parse() - read "ADDR", "ADDR:PORT", "[ADDR]:PORT", "[ADDR]"
 * Numeric addresses only, without scope; an IPv6 address with a port needs its brackets. errno stays as it was.
 * @default_port: for a text without a port. Returns 0, or -EINVAL.
 */
int sockaddr_ip_parse(union sockaddr_ip *out, const char *text, uint16_t default_port);

/* Writes "192.0.2.1:80" or "[2001:db8::1]:80"; v4-mapped as IPv4. Returns @buf. */
const char *sockaddr_ip_format(const union sockaddr_ip *addr, char buf[static SOCKADDR_STRLEN]);

/* --- sets of destinations: address prefixes, ports, or both --- */

/* An address prefix; IPv4 as v4-mapped, so 10.0.0.0/8 has length 104. */
struct prefix {
	struct in6_addr address; /* zeros behind the length */
	uint8_t length;          /* bits, 0-128 */
};

/* A rule: a prefix and an inclusive range of ports. */
struct prefix_rule {
	struct prefix prefix; /* length 0: every address of both families */
	uint16_t port_first, port_last; /* host byte order */
};

/*
 * prefix_parse() - read "10.0.0.0/8", "192.0.2.1", "2001:db8::/32"
 * @len: bytes of @text to read. Returns 0; -EINVAL for any other text; -ERANGE if there are bits behind the length ("10.1.0.0/8"), as the
 * prefix would match more than it seems to: @out is then the prefix that may be meant.
 */
int prefix_parse(struct prefix *out, const char *text, size_t len);

/*
 * prefix_rule_parse() - read a prefix, ":PORT", ":FIRST-LAST", or both behind one another
 * An IPv6 prefix needs brackets if ports follow: "[2001:db8::/32]:443". Returns as prefix_parse().
 */
int prefix_rule_parse(struct prefix_rule *out, const char *text);

/* Returns the prefix of @length bits (0-128) that contains @address. */
struct prefix prefix_of(const struct in6_addr *address, uint8_t length);

/* Room for the output of prefix_format(). */
#define PREFIX_STRLEN (INET6_ADDRSTRLEN + 4)

/* Writes "10.0.0.0/8" or "2001:db8::/32"; a single address without length. Returns @buf. */
const char *prefix_format(const struct prefix *prefix, char buf[static PREFIX_STRLEN]);

bool prefix_contains(const struct prefix *prefix, const struct in6_addr *address);
bool prefix_rule_matches(const struct prefix_rule *rule, const union sockaddr_ip *addr);

#endif
