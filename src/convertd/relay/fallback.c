/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fallback.c - bytes that are missing on an MPTCP socket which fell back to TCP
 *
 * Linux (6.18) loses the bytes by which a segment overlaps what such a socket has delivered before, silently
 * (doc/kernel-mptcp-fallback-overlap.md). The TCP connection below knows better: tcpi_bytes_received has what
 * was acknowledged to the peer, which is what was read and what can be read, unless some of it is gone.
 *
 * A converter can't do without such sockets. A client's SYN data that isn't taken makes its connection fall back, and
 * so does a middlebox that strips options behind the handshake; a server is asked whether it speaks Multipath TCP by
 * the connection that then carries its data. Most never meet the fault. So they are served, and reset where
 * bytes are missing, before what stands behind the gap is handed on.
 */
#include "config.h"

#include "convertd/relay/fallback.h"

#include <errno.h>
#include <linux/mptcp.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* tcpi_state, whose values linux/tcp.h doesn't have (include/net/tcp_states.h); those behind a FIN of the peer's. */
enum { STATE_TIME_WAIT = 6, STATE_CLOSE = 7, STATE_CLOSE_WAIT = 8, STATE_LAST_ACK = 9, STATE_CLOSING = 11 };

static bool has_fallen_back(int fd)
{
	struct mptcp_info info = { 0 };
	socklen_t len = sizeof(info);

	/* It hands SOL_MPTCP on then: EOPNOTSUPP over IPv4, ENOPROTOOPT over IPv6. Before Linux 5.16 none knows it. */
	return getsockopt(fd, SOL_MPTCP, MPTCP_INFO, &info, &len) < 0 ||
	       info.mptcpi_flags & MPTCP_INFO_FLAG_FALLBACK;
}

/* A FIN counts as a byte that was received. */
static bool may_have_fin(uint8_t state)
{
	return state == STATE_TIME_WAIT || state == STATE_CLOSE || state == STATE_CLOSE_WAIT ||
	       state == STATE_LAST_ACK || state == STATE_CLOSING;
}

/* Were more bytes acknowledged than were read and can be read? In this order: what comes meanwhile is readable. */
static bool has_more_than(int fd, uint64_t received)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	int readable = 0;

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
	       len >= offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received) &&
	       ioctl(fd, SIOCINQ, &readable) == 0 && readable == 0 &&
	       info.tcpi_bytes_received > received + may_have_fin(info.tcpi_state);
}

bool fallback_lost_bytes(int fd, uint64_t received)
{
	int saved_errno = errno;
	/*
	 * Linux reads tcpi_state before it locks the socket, and the bytes afterwards: a FIN that comes in between is
	 * counted, and not seen. What the second look says of the state is true of the bytes of the first.
	 */
	bool lost = has_fallen_back(fd) && has_more_than(fd, received) && has_more_than(fd, received);

	errno = saved_errno;
	return lost;
}
