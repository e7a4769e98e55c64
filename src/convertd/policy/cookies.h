/* SPDX-License-Identifier: BSD-3-Clause */
/* cookies.h - cookies of clients (RFC 8803 6.2.7): computed for an address, or fixed */
#ifndef CONVERTD_COOKIES_H
#define CONVERTD_COOKIES_H

#include "common/problems.h"
#include "daemon/limits.h"

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

/* Checks computed cookies alone, as cookies_check() does: these prove that the client receives packets at its address. */
bool cookies_prove(const struct cookies *cookies, const struct in6_addr *client, uint64_t epoch,
		   const uint8_t *cookie, size_t len);

/*
 * ----- names of clients -----
 *
 * A fixed cookie with one word in the comment behind it is the cookie of the client of that name. Names are for the log and for metrics.
 */

#define COOKIES_NAME_MAX 32

/* A client with a name. It stays until the process ends, and keeps its count over reloads. */
struct cookies_client {
	struct cookies_client *next;
	_Atomic uint64_t connections; /* that it was granted */
	char name[COOKIES_NAME_MAX + 1];
};

/* Tells whether @name has 1 to COOKIES_NAME_MAX letters, digits, dots, underscores and dashes, and begins with a letter or digit. */
bool cookies_name_is_right(const char *name);

/* Reads the name in a line of a file, of the bytes from @line to @end, to @name. Returns false if its cookie has none. */
bool cookies_line_name(const char *line, const char *end, char name[static COOKIES_NAME_MAX + 1]);

/* Returns the client with this valid fixed cookie, or NULL if the cookie isn't valid or has no name. */
struct cookies_client *cookies_client(const struct cookies *cookies, const uint8_t *cookie, size_t len);

/* Returns the first of all clients with a name; for the thread that reads settings. */
const struct cookies_client *cookies_clients(void);

/* Writes the text of a key file with one new key. Returns 0 or -errno. */
int cookies_write_key(FILE *out);

/* ----- demands cookies while too many clients haven't proved their addresses ----- */

struct demand;

struct demand_settings {
	unsigned most;     /* cookies are demanded once this many clients are unproven; 0: never */
	unsigned errors;   /* the most Missing Cookie errors per second; 0: no limit */
	unsigned lifetime; /* the seconds of an epoch, in which one key signs */
	bool shared;       /* other converters, with keys of their own, share our address */
};

/* The facts that the status page shows. */
struct demand_facts {
	unsigned unproven, most;
	bool in_force;
	uint64_t begun; /* how many times the demand came into force */
};

/* Makes a demand that isn't in force. Returns it, for demand_destroy(), or NULL without memory or random numbers. */
struct demand *demand_create(void);

/* Wipes the keys. NULL is fine. */
void demand_destroy(struct demand *demand);

/* ----- any thread may call the following at any time ----- */

/* Puts settings in force; keys stay as they are. */
void demand_configure(struct demand *demand, const struct demand_settings *settings);

/*
 * demand_enter() counts a client that hasn't proved its address; demand_leave() stops counting it, when it has proved
 * it or is gone.
 */
void demand_enter(struct demand *demand);
void demand_leave(struct demand *demand);

/* Tells whether cookies are demanded. This also ends the demand when its time has come, so call it now and then. */
bool demand_in_force(struct demand *demand);

/*
 * demand_is_for() - tell whether a cookie is demanded of this client
 * If one prefix, which may be an attacker's, has most of the unproven clients, clients of other prefixes need no cookie.
 */
bool demand_is_for(struct demand *demand, struct limits *limits, const struct in6_addr *client);

/* Tells whether one more Missing Cookie error may be sent now, and counts it if so. */
bool demand_take_error(struct demand *demand);

/*
 * demand_make() - compute this process's cookie for a client
 * @client: IPv4 as v4-mapped
 * @cookie, @len: the invalid cookie that the client has sent, or NULL
 * Returns false where the client has another converter's cookie: it is better to wait for the third ACK than to replace it.
 */
bool demand_make(struct demand *demand, const struct in6_addr *client, const uint8_t *cookie,
		 size_t len, uint8_t out[static COOKIES_LEN]);

/* Tells whether demand_make() has made this cookie, as a Cookie TLV has it, for the client. */
bool demand_check(struct demand *demand, const struct in6_addr *client, const uint8_t *cookie,
		  size_t len);

/* Fills @facts for the status page. */
void demand_read(struct demand *demand, struct demand_facts *facts);

#endif
