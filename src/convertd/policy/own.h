/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * own.h - knows the addresses that lead to this host through a NAT, both configured and learned ones
 *
 * After own_init() any thread may call any function at any time, except own_add(). Times are those of clock_now_ms().
 */
#ifndef CONVERTD_OWN_H
#define CONVERTD_OWN_H

#include "common/prefix.h"
#include "common/sockaddr.h"
#include "common/problems.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OWN_TOLD_MAX 64
#define OWN_LEARNED_MAX 32
#define OWN_LEARNED_SECONDS 3600 /* after this time without a further sign, an address is forgotten */

/* The length of a token, which is the content of a Cookie TLV, in bytes: a whole number of words. */
#define OWN_TOKEN_LEN 36

/* The addresses of --own-address. */
struct own_told {
	struct prefix prefix[OWN_TOLD_MAX];
	size_t count;
};

/* Adds an address or prefix of --own-address to @told. Returns false after adding the error to @problems. */
bool own_add(struct own_told *told, const char *text, const struct place *place,
	     struct problems *problems);

/* Tells whether @address (IPv4 as v4-mapped) is one of --own-address. */
bool own_is_told(const struct own_told *told, const struct in6_addr *address);

/* Draws the key of tokens. To be called once, after sodium_init() and before all other functions but own_add(). */
void own_init(void);

/* An address that was learned. */
struct own_learned {
	struct in6_addr address;
	uint16_t port; /* only this port of the address leads here; 0: all ports do */
	uint64_t until_ms; /* when it is forgotten */
};

/*
 * own_learn() - note that a connection to @address has come back to this host, and warn of it on the log
 * @port: the only port of @address that is known to lead here; 0: the whole address is this host's
 * It is kept for OWN_LEARNED_SECONDS.
 */
void own_learn(const struct in6_addr *address, uint16_t port, uint64_t now_ms);

/* Tells whether this address, or that port of it, was learned. It takes no lock while nothing was learned. */
bool own_is_learned(const struct in6_addr *address, uint16_t port, uint64_t now_ms);

/* Returns a number that changes whenever a new address is learned, as decisions that were made before may be wrong then. */
unsigned own_generation(void);

/* Copies the entries that are in force at @now_ms. Returns their number. */
size_t own_copy(struct own_learned learned[static OWN_LEARNED_MAX], uint64_t now_ms);

/*
 * own_make_token() - make the token that is sent to @server in a Cookie TLV, to see whether it comes back to us
 * Only this process can make one.
 */
void own_make_token(const union sockaddr_ip *server, uint8_t token[static OWN_TOKEN_LEN]);

/* Tells whether the content of a Cookie TLV is a token of ours. If so, sets @server to where it was sent. */
bool own_read_token(const uint8_t *cookie, size_t len, union sockaddr_ip *server);

#endif
