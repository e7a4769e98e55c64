/* SPDX-License-Identifier: BSD-3-Clause */
/* cookies.h - cookies of clients (RFC 8803 6.2.7): computed for an address, or fixed */
#ifndef CONVERTD_COOKIES_H
#define CONVERTD_COOKIES_H

#include "convertd/base/problems.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define COOKIES_KEY_LEN 32
#define COOKIES_KEYS_MAX 8

/* Bytes of a computed cookie: a whole number of words, so that it has no padding on the wire. */
#define COOKIES_LEN 16

/* Bytes of a fixed cookie at most: what fits behind a Connect TLV. */
#define COOKIES_FIXED_MAX 988

struct cookies;

/* No cookie is valid yet. Returns NULL without memory or a source of random numbers. */
struct cookies *cookies_create(void);

/* Wipes the keys. NULL is fine. */
void cookies_destroy(struct cookies *cookies);

/*
 * cookies_add_keys() - from the text of a file: one in a line, in hexadecimal digits
 * The first signs, all verify.
 * @text: changed, @len bytes and room for a NUL behind them
 * @place: of the option that names the file; problems of a line name @file
 */
void cookies_add_keys(struct cookies *cookies, const char *file, char *text, size_t len,
		      const struct place *place, struct problems *problems);

/* cookies_add_fixed() - likewise fixed cookies, as text or "hex:" and digits; any is valid */
void cookies_add_fixed(struct cookies *cookies, const char *file, char *text, size_t len,
		       const struct place *place, struct problems *problems);

/*
 * cookies_make() - the cookie for a client
 * @client: IPv4 as v4-mapped; all of an IPv6 /64 get the same
 * @epoch: the number of the current one
 * Returns false where there are fixed cookies only.
 */
bool cookies_make(const struct cookies *cookies, const struct in6_addr *client, uint64_t epoch,
		  uint8_t out[static COOKIES_LEN]);

/*
 * cookies_check() - is this cookie valid for that client?
 * @cookie: as a Cookie TLV has it, with its padding
 * Computed ones are valid in their own epoch and the next, and for converters whose clocks are
 * behind, in the one before.
 */
bool cookies_check(const struct cookies *cookies, const struct in6_addr *client, uint64_t epoch,
		   const uint8_t *cookie, size_t len);

/* As cookies_check(), for computed ones alone: such a cookie proves that the client gets what is sent to it. */
bool cookies_prove(const struct cookies *cookies, const struct in6_addr *client, uint64_t epoch,
		   const uint8_t *cookie, size_t len);

/* A new key signs from now on; the one that did verifies, and no other. */
void cookies_add_random_key(struct cookies *cookies);

/* Writes a file of one new key. Returns 0 or -errno. */
int cookies_write_key(FILE *out);

#endif
