/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp.h - facts about TCP: is it Multipath TCP, the states of a connection, the kinds of options
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

/* --- the states of a connection, which linux/tcp.h doesn't define (include/net/tcp_states.h) --- */

enum tcpinfo_state {
	TCPINFO_UNKNOWN = 0,
	TCPINFO_ESTABLISHED = 1,
	TCPINFO_SYN_SENT = 2,
	TCPINFO_SYN_RECV = 3,
	TCPINFO_FIN_WAIT1 = 4,
	TCPINFO_FIN_WAIT2 = 5,
	TCPINFO_TIME_WAIT = 6,
	TCPINFO_CLOSE = 7,
	TCPINFO_CLOSE_WAIT = 8,
	TCPINFO_LAST_ACK = 9,
	TCPINFO_CLOSING = 11,
};

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
};

#endif
