/* SPDX-License-Identifier: BSD-3-Clause */
/* cookies.h - cookies of clients (RFC 8803 6.2.7): computed for an address, or fixed */
#ifndef CONVERTD_COOKIES_H
#define CONVERTD_COOKIES_H

#include "common/problems.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define COOKIES_KEY_LEN 32
#define COOKIES_KEYS_MAX 8

/* Bytes of a computed cookie: a whole number of words, so that it has no padding on the wire. */
#define COOKIES_LEN 16

/* The longest fixed cookie in bytes: it has to fit behind a Connect TLV. */
#define COOKIES_FIXED_MAX 988

struct cookies;

/* Makes a set in which no cookie is valid yet. Returns it, for cookies_destroy(), or NULL without memory or random numbers. */
struct cookies *cookies_create(void);

/* Wipes the keys. NULL is fine. */
void cookies_destroy(struct cookies *cookies);

/*
 * cookies_add_keys() - add the keys in the text of a file: one per line, in hexadecimal digits
 * The first key signs, and all of them verify.
 * @text: @len bytes and room for a NUL behind them; it is changed
 * @place: the place of the option that names the file; errors in a line name @file
 * Errors are added to @problems.
 */
void cookies_add_keys(struct cookies *cookies, const char *file, char *text, size_t len,
		      const struct place *place, struct problems *problems);

/* cookies_add_fixed() - likewise add fixed cookies, each as text or "hex:" and digits; they are valid for any client */
void cookies_add_fixed(struct cookies *cookies, const char *file, char *text, size_t len,
		       const struct place *place, struct problems *problems);

/*
 * cookies_make() - compute the cookie of a client
 * @client: IPv4 as v4-mapped; all addresses of an IPv6 /64 have the same cookie
 * @epoch: the number of the current epoch
 * Returns false where there are fixed cookies only.
 */
bool cookies_make(const struct cookies *cookies, const struct in6_addr *client, uint64_t epoch,
		  uint8_t out[static COOKIES_LEN]);

/*
 * cookies_check() - tell whether a cookie is valid for a client
 * @cookie: as a Cookie TLV has it, with its padding
 * Computed cookies are valid in their own epoch and the next one, and also in the one before, for converters whose
 * clocks are behind.
 */
bool cookies_check(const struct cookies *cookies, const struct in6_addr *client, uint64_t epoch,
		   const uint8_t *cookie, size_t len);

/* Does what cookies_check() does for computed cookies alone: these prove that the client receives what is sent to its address. */
bool cookies_prove(const struct cookies *cookies, const struct in6_addr *client, uint64_t epoch,
		   const uint8_t *cookie, size_t len);

/* Draws a new key that signs from now on. The one that has signed so far still verifies; all others are dropped. */
void cookies_add_random_key(struct cookies *cookies);

/* Writes the text of a key file with one new key. Returns 0 or -errno. */
int cookies_write_key(FILE *out);

#endif
