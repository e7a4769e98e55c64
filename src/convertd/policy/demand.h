/* SPDX-License-Identifier: BSD-3-Clause */
/* demand.h - cookies that are demanded while too many clients haven't proved their addresses */
#ifndef CONVERTD_DEMAND_H
#define CONVERTD_DEMAND_H

#include "convertd/policy/cookies.h"
#include "convertd/policy/limits.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

struct demand;

struct demand_settings {
	unsigned most;     /* unproven clients, from which on cookies are demanded; 0: never */
	unsigned errors;   /* Missing Cookie errors a second at most, 0: no limit */
	unsigned lifetime; /* seconds of an epoch, in which one key signs */
	bool shared;       /* other converters have our address, and keys of their own */
};

/* What the status tells of it. */
struct demand_facts {
	unsigned unproven, most;
	bool in_force;
	uint64_t begun; /* how often it came into force */
};

/* Nothing is demanded yet. Returns NULL without memory or a source of random numbers. */
struct demand *demand_create(void);

/* Wipes the keys. NULL is fine. */
void demand_destroy(struct demand *demand);

/* ----- by all threads, at any time ----- */

/* Puts settings in force; keys stay as they are. */
void demand_configure(struct demand *demand, const struct demand_settings *settings);

/* Counts a client that hasn't proved its address; or counts it no more, as it has proved it or is gone. */
void demand_enter(struct demand *demand);
void demand_leave(struct demand *demand);

/* Are cookies demanded? Says on the log when that begins and ends; to be called now and then. */
bool demand_in_force(struct demand *demand);

/*
 * demand_is_for() - is a cookie demanded of this client?
 * While one prefix, which may be an attacker's, makes up what is too much, clients of other prefixes are served as ever.
 */
bool demand_is_for(struct demand *demand, struct limits *limits, const struct in6_addr *client);

/* May one more client be told now that a cookie is demanded? If so, that is counted. */
bool demand_take_error(struct demand *demand);

/*
 * demand_make() - this process's cookie for a client
 * @client: IPv4 as v4-mapped
 * @cookie, @len: what the client has sent instead, or NULL
 * Returns false where the client has somebody else's cookie: to wait for its third ACK is better than to replace it.
 */
bool demand_make(struct demand *demand, const struct in6_addr *client, const uint8_t *cookie,
		 size_t len, uint8_t out[static COOKIES_LEN]);

/* Is this cookie, as a Cookie TLV has it, one that demand_make() has made for the client? */
bool demand_check(struct demand *demand, const struct in6_addr *client, const uint8_t *cookie,
		  size_t len);

void demand_read(struct demand *demand, struct demand_facts *facts);

#endif
