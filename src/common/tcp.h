/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp.h - facts about TCP: is it Multipath TCP, the kinds of options, how long a SYN may be held
 *
 * Does the peer of a connected socket speak Multipath TCP? TCP_IS_MPTCP says so from Linux 6.12 on. Before, MPTCP_INFO (Linux 5.16) is
 * equivalent: the peer's key is known, and the connection hasn't fallen back. (A socket that has fallen back doesn't know MPTCP_INFO any
 * more.)
 */
#ifndef COMMON_TCP_H
#define COMMON_TCP_H

#include <linux/mptcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#define MULTIPATH_TCP_IS_MPTCP 43 /* TCP_IS_MPTCP of linux/tcp.h and netinet/tcp.h, which can't both be included */

/* Does the peer of @fd, a connected socket, speak Multipath TCP? */
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
 * How long a converter may withhold the SYN of a distant client
 *
 * A Linux client repeats a SYN that isn't answered within a second, and gives up Multipath TCP for that connection. A client that numbers
 * its attempt repeats its request before that (doc/private-tlvs.md). Both then make another connection, and the server, which has already
 * been asked, sees two. So the time of withholding plus the round trip to the client must be shorter than that. Clients, which send this
 * limit in a Hold Time TLV, and convertd, which computes it for clients that don't, use the same formula.
 */

/* When a Linux client repeats its SYN; and when a client that numbers its attempt repeats its request. In milliseconds. */
#define HOLD_TIME_AGAIN_MS 1000
#define HOLD_TIME_REPEATED_MS 900

/*
 * The margin besides the round trip: an eighth of the round trip for its variation, and this constant for the machines at both ends, where
 * a process may wait for a CPU for some tens of milliseconds.
 */
#define HOLD_TIME_MARGIN_MS 100

/* The shortest limit in milliseconds, whatever the client's round trip: most servers answer by then. */
#define HOLD_TIME_MIN_MS 50

/*
 * hold_time_left_ms() - return for how many milliseconds a SYN may be withheld, so that its SYN+ACK comes in time
 * @rtt_ms: the round trip to its client
 * @until_ms: when the SYN+ACK must be there, in milliseconds after the client's SYN
 */
static inline unsigned int hold_time_left_ms(unsigned int rtt_ms, unsigned int until_ms)
{
	const unsigned int taken_ms = rtt_ms + rtt_ms / 8 + HOLD_TIME_MARGIN_MS;

	return taken_ms + HOLD_TIME_MIN_MS < until_ms ? until_ms - taken_ms : HOLD_TIME_MIN_MS;
}

#endif
