/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * far_clients.h - knows which clients are far, and for how long their SYNs may be withheld
 *
 * Any thread may call any function at any time, except the first and the last. Times are those of clock_now_ms().
 */
#ifndef DAEMON_FAR_CLIENTS_H
#define DAEMON_FAR_CLIENTS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* A client is far if its round trip takes this many milliseconds: less than the usual --hold-time leaves of a second. */
#define FAR_CLIENTS_MS 150

/* An entry expires this long after it was last noted: later than when a client asks anew whether SYNs are withheld. */
#define FAR_CLIENTS_SECONDS 4000

struct far_clients;

/* Returns an empty table, for far_clients_destroy(), or NULL without memory or random numbers. */
struct far_clients *far_clients_create(void);

/* NULL is fine. */
void far_clients_destroy(struct far_clients *clients);

/*
 * far_clients_concern() - tell whether a round trip of @rtt_us microseconds is to be noted
 * @known: the client is known to be far
 */
static inline bool far_clients_concern(uint32_t rtt_us, bool known)
{
	return rtt_us >= FAR_CLIENTS_MS * 1000 || (known && rtt_us);
}

/*
 * far_clients_note() - note the measured round trip to a client, @rtt_us microseconds
 * If it is shorter than the known one, that shrinks by a quarter of the difference only. So a client that was far for
 * a moment is near again after a few connections, and a client that shares its address with nearer ones stays far.
 */
void far_clients_note(struct far_clients *clients, const struct in6_addr *client, uint32_t rtt_us, uint64_t now_ms);

/* Returns the client's round trip in milliseconds, or 0 if it isn't known to be far. */
unsigned far_clients_rtt_ms(const struct far_clients *clients, const struct in6_addr *client, uint64_t now_ms);

/*
 * far_clients_hold_ms() - return for how many milliseconds a client's SYN may be withheld
 * @hold_ms: the time for a near client
 * @rtt_ms: as returned by far_clients_rtt_ms()
 * @until_ms: when the client takes the step that the SYN+ACK has to precede, in milliseconds after its SYN
 */
unsigned far_clients_hold_ms(unsigned hold_ms, unsigned rtt_ms, unsigned until_ms);

#endif
