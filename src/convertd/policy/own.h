/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * own.h - addresses that lead to this host without being on it: those that are told, and those learned
 *
 * After own_init() all threads may call all of these at any time, but for own_add().
 */
#ifndef CONVERTD_OWN_H
#define CONVERTD_OWN_H

#include "common/prefix.h"
#include "common/sockaddr.h"
#include "convertd/base/problems.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OWN_TOLD_MAX 64
#define OWN_LEARNED_MAX 32
#define OWN_LEARNED_SECONDS 3600 /* without a further sign that it is ours */

/* A token is the content of a Cookie TLV, a whole number of words. */
#define OWN_TOKEN_LEN 36

/* The addresses of --own-address. */
struct own_told {
	struct prefix prefix[OWN_TOLD_MAX];
	size_t count;
};

/* own_add() - @text: an address or a prefix. Returns false after telling @problems. */
bool own_add(struct own_told *told, const char *text, const struct place *place,
	     struct problems *problems);

bool own_is_told(const struct own_told *told, const struct in6_addr *address);

/* Draws the key of tokens. Once, before all others; sodium_init() must have been called. */
void own_init(void);

/* An address that was learned. */
struct own_learned {
	struct in6_addr address;
	uint16_t port; /* only this port of it is known to lead here; 0: all of them */
	uint64_t until_ms;
};

/*
 * own_learn() - a connection to @address has come back to this host
 * @port: it need not be more than this port of it that leads here; 0: the whole address is ours
 * Keeps it for OWN_LEARNED_SECONDS, and warns of it. @now_ms: clock_now_ms()
 */
void own_learn(const struct in6_addr *address, uint16_t port, uint64_t now_ms);

/* Has this address, or that port of it, been learned? Costs next to nothing while nothing was learned. */
bool own_is_learned(const struct in6_addr *address, uint16_t port, uint64_t now_ms);

/* A number that changes whenever an address is learned that wasn't known: what was decided before may be wrong. */
unsigned own_generation(void);

/* Copies what is known now. Returns how many. */
size_t own_copy(struct own_learned learned[static OWN_LEARNED_MAX], uint64_t now_ms);

/*
 * own_make_token() - what is sent to @server in a Cookie TLV, to see whether it comes back to us
 * Nobody else can make one for another server.
 */
void own_make_token(const union sockaddr_ip *server, uint8_t token[static OWN_TOKEN_LEN]);

/* Is this a token of ours? Then the server that it was sent to is in @server. */
bool own_read_token(const uint8_t *cookie, size_t len, union sockaddr_ip *server);

#endif
