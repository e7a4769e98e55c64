/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fallback.c - detects bytes that the kernel has lost on an MPTCP socket which fell back to TCP
 *
 * The problem: if a segment overlaps data that such a socket has delivered before, Linux (6.18) silently loses bytes
 * of it (doc/kernel-mptcp-fallback-overlap.md). The TCP connection below shows the loss: tcpi_bytes_received counts
 * the bytes acknowledged to the peer. Unless some are lost, these are the bytes that we have read and those that we
 * can read.
 *
 * A converter can't do without such sockets. A client's connection falls back if its SYN data isn't taken, or if a middlebox strips the
 * options behind the handshake; and only the connection that then carries a server's data shows whether that server speaks Multipath TCP.
 * Most connections never meet the fault. So we serve them, and reset one when bytes are missing, before we hand on the bytes behind the
 * gap.
 */
#include "config.h"

#include "relay/relay.h"

#include "common/tcp.h"

#include <errno.h>
#include <linux/mptcp.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

void fallback_look(int fd, struct fallback_look *look)
{
	struct mptcp_info info = { 0 };
	socklen_t len = sizeof(info);

	/*
	 * After a fallback the MPTCP socket passes SOL_MPTCP on to TCP, which fails: EOPNOTSUPP over IPv4, ENOPROTOOPT
	 * over IPv6. Before Linux 5.16 no socket knows the option.
	 */
	look->fallen = getsockopt(fd, SOL_MPTCP, MPTCP_INFO, &info, &len) < 0 || info.mptcpi_flags & MPTCP_INFO_FLAG_FALLBACK;
	/* The kernel doesn't count the first one. */
	look->subflows = (uint8_t)(info.mptcpi_subflows + 1);
}

/* Tells whether tcpi_bytes_received may include the peer's FIN, which the kernel counts as a byte. */
static bool may_have_fin(uint8_t state)
{
	return state == TCPINFO_TIME_WAIT || state == TCPINFO_CLOSE || state == TCPINFO_CLOSE_WAIT ||
	       state == TCPINFO_LAST_ACK || state == TCPINFO_CLOSING;
}

/*
 * Tells whether more bytes were acknowledged than were read, while none can be read. It asks for TCP_INFO first: if
 * bytes come after that, the second question finds them readable, and we conclude nothing.
 */
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

bool fallback_lost_bytes(int fd, uint64_t received, struct fallback_look *look)
{
	int saved_errno = errno;
	bool lost;

	fallback_look(fd, look);
	/*
	 * Linux reads tcpi_state before it locks the socket, and the bytes afterwards: a FIN that comes in between is
	 * counted as a byte, but isn't in the state yet. The second look then sees it in the state.
	 */
	lost = look->fallen && has_more_than(fd, received) && has_more_than(fd, received);
	errno = saved_errno;
	return lost;
}
