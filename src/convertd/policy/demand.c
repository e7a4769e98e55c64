/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * demand.c - demands cookies while too many clients haven't proved their addresses
 *
 * The problem. Without cookies, each forged SYN with a request makes convertd connect to a server. A cookie in every
 * request prevents that (--cookie-key), but costs a round trip at each client's first one, and keys have to be
 * managed. Most converters are under no attack most of the time.
 *
 * The solution is WireGuard's (its paper, 5.3): proof is demanded under load only. A client is unproven while its
 * SYN is withheld, and until its third ACK. Unproven clients are counted; when they reach a share of what
 * may be pending (an eighth, as in WireGuard), requests in SYNs need a cookie that was computed for their
 * address. A client without one gets it by a Missing Cookie error (RFC 8803 6.2.7), or is served after its
 * handshake: so no client is shut out, and no forged request gets to a server.
 *
 * If most of the unproven clients are of one prefix, only that prefix bears the consequence: while fewer than that share
 * are pending besides the prefix with the most (limits.c), cookies are demanded of its clients alone.
 *
 *     off ── unproven clients are as many as may be ──> in force
 *     in force ── half as many or fewer, for CALM_MS ──> off
 *
 * The keys are this process's own, the same for all workers, and kept over reloads. In
 * each epoch (--cookie-lifetime) a new key signs, and the one of the epoch before still verifies. After a
 * restart, the cookies that clients have aren't valid any more, and are replaced. Where several converters share an
 * address, cookies of the others arrive as well: such a client isn't given ours, which would alternate with theirs for
 * ever, but is served after its third ACK. A --cookie-key that all of them have makes that unnecessary.
 */
#include "config.h"

#include "convertd/policy/demand.h"

#include "convertd/base/clock.h"
#include "convertd/base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* For this long at most half as many clients must be unproven before cookies aren't demanded any more. */
#define CALM_MS 5000

/* The burst of errors that may be sent at once: as many as are allowed in this many seconds. */
#define ERRORS_BURST_SECONDS 1

struct demand {
	atomic_uint unproven;
	atomic_uint most, errors;
	atomic_bool in_force, shared;
	_Atomic uint64_t restless_ms; /* when more than half of @most were unproven for the last time */
	_Atomic uint64_t since_ms, begun; /* when the demand came into force, and how many times */
	struct log_limit error_limit;

	pthread_mutex_t lock; /* guards the members below */
	struct cookies *cookies;
	unsigned lifetime;
	uint64_t epoch; /* the epoch of the key that signs */
};

struct demand *demand_create(void)
{
	struct demand *demand = calloc(1, sizeof(*demand));

	if (!demand)
		return NULL;
	demand->cookies = cookies_create();
	if (!demand->cookies) {
		free(demand);
		return NULL;
	}
	pthread_mutex_init(&demand->lock, NULL);
	demand->lifetime = 1;
	return demand;
}

void demand_destroy(struct demand *demand)
{
	if (!demand)
		return;
	pthread_mutex_destroy(&demand->lock);
	cookies_destroy(demand->cookies);
	free(demand);
}

void demand_configure(struct demand *demand, const struct demand_settings *settings)
{
	atomic_store(&demand->most, settings->most);
	atomic_store(&demand->errors, settings->errors);
	atomic_store(&demand->shared, settings->shared);
	pthread_mutex_lock(&demand->lock);
	demand->lifetime = settings->lifetime;
	pthread_mutex_unlock(&demand->lock);
}

/* ----- when cookies are demanded ----- */

static void begin(struct demand *demand, unsigned unproven, unsigned most, uint64_t now_ms)
{
	bool off = false;

	if (!atomic_compare_exchange_strong(&demand->in_force, &off, true))
		return;
	atomic_store(&demand->since_ms, now_ms);
	atomic_fetch_add(&demand->begun, 1);
	log_warning("cookies are demanded: %u clients haven't proved their addresses, and %u is what "
		    "--cookie-demand allows of --max-pending; forged SYNs reach no server meanwhile, and "
		    "clients without a cookie take a round trip more",
		    unproven, most);
}

static void end(struct demand *demand, uint64_t now_ms)
{
	uint64_t since_ms = atomic_load(&demand->since_ms);
	bool on = true;

	if (atomic_compare_exchange_strong(&demand->in_force, &on, false))
		log_warning("cookies are no longer demanded, after %llu s",
			    (unsigned long long)(now_ms - since_ms) / 1000);
}

void demand_enter(struct demand *demand)
{
	unsigned unproven = atomic_fetch_add(&demand->unproven, 1) + 1;
	unsigned most = atomic_load_explicit(&demand->most, memory_order_relaxed);
	uint64_t now_ms;

	if (!most || unproven <= most / 2)
		return;
	now_ms = clock_now_ms();
	atomic_store(&demand->restless_ms, now_ms);
	if (unproven >= most)
		begin(demand, unproven, most, now_ms);
}

void demand_leave(struct demand *demand)
{
	unsigned unproven = atomic_fetch_sub(&demand->unproven, 1);
	unsigned most = atomic_load_explicit(&demand->most, memory_order_relaxed);

	if (most && unproven > most / 2)
		atomic_store(&demand->restless_ms, clock_now_ms());
}

bool demand_in_force(struct demand *demand)
{
	unsigned most = atomic_load(&demand->most);
	uint64_t now_ms;

	if (!atomic_load(&demand->in_force))
		return false;
	if (most && atomic_load(&demand->unproven) > most / 2)
		return true;
	now_ms = clock_now_ms();
	if (most && now_ms < atomic_load(&demand->restless_ms) + CALM_MS)
		return true;
	end(demand, now_ms);
	return false;
}

bool demand_is_for(struct demand *demand, struct limits *limits, const struct in6_addr *client)
{
	return demand_in_force(demand) &&
	       limits_pending_apart(limits, client) >= atomic_load(&demand->most);
}

bool demand_take_error(struct demand *demand)
{
	unsigned errors = atomic_load(&demand->errors);

	return !errors || log_limit_take(&demand->error_limit, 1000000 / errors,
					 errors * ERRORS_BURST_SECONDS, clock_now_us());
}

/* ----- cookies ----- */

/* Draws a key if a new epoch has begun. Returns the number of the epoch. The caller holds the lock. */
static uint64_t renew_key(struct demand *demand)
{
	uint64_t epoch = (uint64_t)time(NULL) / demand->lifetime;

	if (epoch != demand->epoch)
		cookies_add_random_key(demand->cookies);
	demand->epoch = epoch;
	return epoch;
}

bool demand_make(struct demand *demand, const struct in6_addr *client, const uint8_t *cookie,
		 size_t len, uint8_t out[static COOKIES_LEN])
{
	/* A cookie of the right length is taken for one that this converter made before a restart, and is replaced. */
	if (cookie && (len != COOKIES_LEN || atomic_load(&demand->shared)))
		return false;
	pthread_mutex_lock(&demand->lock);
	cookies_make(demand->cookies, client, renew_key(demand), out);
	pthread_mutex_unlock(&demand->lock);
	return true;
}

bool demand_check(struct demand *demand, const struct in6_addr *client, const uint8_t *cookie,
		  size_t len)
{
	bool valid;

	pthread_mutex_lock(&demand->lock);
	valid = cookies_prove(demand->cookies, client, renew_key(demand), cookie, len);
	pthread_mutex_unlock(&demand->lock);
	return valid;
}

void demand_read(struct demand *demand, struct demand_facts *facts)
{
	facts->in_force = demand_in_force(demand);
	facts->unproven = atomic_load(&demand->unproven);
	facts->most = atomic_load(&demand->most);
	facts->begun = atomic_load(&demand->begun);
}
