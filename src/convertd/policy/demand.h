/* SPDX-License-Identifier: BSD-3-Clause */
/* demand.h - demands cookies while too many clients haven't proved their addresses */
#ifndef CONVERTD_DEMAND_H
#define CONVERTD_DEMAND_H

#include "convertd/policy/cookies.h"
#include "convertd/policy/limits.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

struct demand;

struct demand_settings {
	unsigned most;     /* cookies are demanded once this many clients are unproven; 0: never */
	unsigned errors;   /* the most Missing Cookie errors per second; 0: no limit */
	unsigned lifetime; /* the seconds of an epoch, in which one key signs */
	bool shared;       /* other converters, with keys of their own, share our address */
};

/* What the status page shows. */
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

/* demand_enter() counts a client that hasn't proved its address; demand_leave() ends that, when it has proved it or is gone. */
void demand_enter(struct demand *demand);
void demand_leave(struct demand *demand);

/* Tells whether cookies are demanded. It ends the demand when its time has come, so it is to be called now and then. */
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
