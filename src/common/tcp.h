/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp.h - what is asked and reckoned of TCP: Multipath TCP, the kinds of options, for how long a SYN may be held
 *
 * Does the peer of a connected socket speak Multipath TCP?
 * TCP_IS_MPTCP says so from Linux 6.12 on. Before, MPTCP_INFO (Linux 5.16) comes to the same: the peer's key is known,
 * and the connection hasn't fallen back. (A socket that has fallen back doesn't know MPTCP_INFO any more.)
 */
#ifndef COMMON_TCP_H
#define COMMON_TCP_H

#include <linux/mptcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#define MULTIPATH_TCP_IS_MPTCP 43 /* TCP_IS_MPTCP of linux/tcp.h and netinet/tcp.h, which can't both be included */

/* Tells whether the peer of @fd, a socket that has connected, speaks Multipath TCP. */
static inline bool multipath_is_spoken(int fd)
{
	const unsigned int flags = MPTCP_INFO_FLAG_FALLBACK | MPTCP_INFO_FLAG_REMOTE_KEY_RECEIVED;
	struct mptcp_info info = { 0 };
	socklen_t info_len = sizeof(info);
	int value = 0;
	socklen_t len = sizeof(value);

	if (getsockopt(fd, IPPROTO_TCP, MULTIPATH_TCP_IS_MPTCP, &value, &len) == 0)
		return value;
	return getsockopt(fd, SOL_MPTCP, MPTCP_INFO, &info, &info_len) == 0 &&
	       (info.mptcpi_flags & flags) == MPTCP_INFO_FLAG_REMOTE_KEY_RECEIVED;
}

/* --- the kinds of TCP options (IANA "TCP Option Kind Numbers") --- */

enum tcp_option_kind {
	TCP_KIND_EOL = 0,
	TCP_KIND_NOP = 1,
	TCP_KIND_MSS = 2,
	TCP_KIND_WINDOW_SCALE = 3,
	TCP_KIND_SACK_PERMITTED = 4,
	TCP_KIND_SACK = 5,
	TCP_KIND_TIMESTAMPS = 8,
	TCP_KIND_MPTCP = 30,
	TCP_KIND_FASTOPEN = 34,
};

/*
 * For how long the SYN of a far client may be withheld
 *
 * A Linux client whose SYN isn't answered within a second sends it again, and gives up Multipath TCP for that connection; one that
 * numbers its attempt makes its request again before that (doc/private-tlvs.md). Either makes another connection then, and the server,
 * which has been asked already, sees two. So the time for which a SYN is withheld and the round trip to its client have to be shorter
 * than that together. Clients, which say it by a Hold Time TLV, and convertd, which looks after those that don't, reckon alike.
 */

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
