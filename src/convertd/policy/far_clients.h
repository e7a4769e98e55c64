/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * far_clients.h - which clients are far, and for how long their SYNs may be withheld
 *
 * Any thread may call any function at any time, but for the first and the last. Times are those of clock_now_ms().
 */
#ifndef CONVERTD_FAR_CLIENTS_H
#define CONVERTD_FAR_CLIENTS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* A client with a round trip of so many milliseconds is far. It is less than what the usual --hold-time leaves of a second. */
#define FAR_CLIENTS_MS 150

/* What is known of a client is forgotten so long after the last sign: later than when a client asks anew whether SYNs are withheld. */
#define FAR_CLIENTS_SECONDS 4000

struct far_clients;

/* Returns a table in which nobody is known, for far_clients_destroy(), or NULL without memory or random numbers. */
struct far_clients *far_clients_create(void);

/* NULL is fine. */
void far_clients_destroy(struct far_clients *clients);

/*
 * far_clients_concern() - has a round trip of @rtt_us microseconds to be noted?
 * @known: the client is known to be far
 */
static inline bool far_clients_concern(uint32_t rtt_us, bool known)
{
	return rtt_us >= FAR_CLIENTS_MS * 1000 || (known && rtt_us);
}

/*
 * far_clients_note() - note the round trip that was measured to a client, @rtt_us microseconds
 * One that is nearer than what is known takes effect by a quarter: a client that was far for a moment is near again after a few
 * connections, and one that shares its address with nearer ones stays far.
 */
void far_clients_note(struct far_clients *clients, const struct in6_addr *client, uint32_t rtt_us, uint64_t now_ms);

/* Returns the client's round trip in milliseconds, or 0 where it isn't known to be far. */
unsigned far_clients_rtt_ms(const struct far_clients *clients, const struct in6_addr *client, uint64_t now_ms);

/*
 * far_clients_hold_ms() - for how many milliseconds a client's SYN may be withheld
 * @hold_ms: for so long if the client is near
 * @rtt_ms: what far_clients_rtt_ms() has returned
 * @until_ms: when the client does what the SYN+ACK has to come before, in milliseconds from its SYN on
 */
unsigned far_clients_hold_ms(unsigned hold_ms, unsigned rtt_ms, unsigned until_ms);

#endif
