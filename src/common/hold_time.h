/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold_time.h - for how long the SYN of a far client may be withheld
 *
 * A Linux client whose SYN isn't answered within a second sends it again, and gives up Multipath TCP for that connection; one that
 * numbers its attempt makes its request again before that (doc/private-tlvs.md). Either makes another connection then, and the server,
 * which has been asked already, sees two. So the time for which a SYN is withheld and the round trip to its client have to be shorter
 * than that together. Clients, which say it by a Hold Time TLV, and convertd, which looks after those that don't, reckon alike.
 */
#ifndef COMMON_HOLD_TIME_H
#define COMMON_HOLD_TIME_H

/* When a Linux client sends its SYN again; and when one that numbers its attempt makes its request again. In milliseconds. */
#define HOLD_TIME_AGAIN_MS 1000
#define HOLD_TIME_REPEATED_MS 900

/*
 * What is left of that besides the round trip: an eighth of the round trip, by which it varies, and so much for the machines at both
 * ends, each of which may have its process wait for a CPU for some tens of milliseconds.
 */
#define HOLD_TIME_MARGIN_MS 100

/* No SYN is withheld for less than so many milliseconds on account of its client's round trip: most servers answer by then. */
#define HOLD_TIME_MIN_MS 50

/*
 * hold_time_left_ms() - for how many milliseconds a SYN may be withheld, so that its SYN+ACK comes in time
 * @rtt_ms: the round trip to its client
 * @until_ms: when the client does what the SYN+ACK has to come before, in milliseconds from its SYN on
 */
static inline unsigned int hold_time_left_ms(unsigned int rtt_ms, unsigned int until_ms)
{
	const unsigned int taken_ms = rtt_ms + rtt_ms / 8 + HOLD_TIME_MARGIN_MS;

	return taken_ms + HOLD_TIME_MIN_MS < until_ms ? until_ms - taken_ms : HOLD_TIME_MIN_MS;
}

#endif
