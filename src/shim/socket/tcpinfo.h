/* SPDX-License-Identifier: BSD-3-Clause */
/* tcpinfo.h - asks the kernel about a connection; about an MPTCP socket's first subflow */
#ifndef SHIM_TCPINFO_H
#define SHIM_TCPINFO_H

#include "engine/dial.h"
#include "shim/system/next.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

/* Asks the kernel for TCP_INFO (tcp(7)). If there is none, all is zero, and tcpi_state TCPINFO_UNKNOWN. */
static inline struct tcp_info tcpinfo_of(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (next.getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		memset(&info, 0, sizeof(info));
	return info;
}

/* --- about a Multipath TCP connection as a whole --- */

#ifndef SOL_MPTCP
#define SOL_MPTCP 284
#endif
#define MPTCPINFO_OPTION 1   /* MPTCP_INFO */
#define MPTCPINFO_FALLBACK 1u /* MPTCP_INFO_FLAG_FALLBACK */

/* The kernel's struct mptcp_info as of Linux 6.5; older headers lack its last members. */
struct mptcpinfo {
	uint8_t counts[8];
	uint32_t flags, token;
	uint64_t write_seq, snd_una, rcv_nxt;
	uint8_t local_addresses, checksum;
	uint32_t retransmits;
	uint64_t bytes_retrans, bytes_sent, bytes_received, bytes_acked;
};

/* Asks the kernel. Returns false for TCP, for MPTCP that has fallen back to it, and before Linux 6.5. */
static inline bool mptcpinfo_of(int fd, struct mptcpinfo *out)
{
	socklen_t len = sizeof(*out);

	return next.getsockopt(fd, SOL_MPTCP, MPTCPINFO_OPTION, out, &len) == 0 && len >= sizeof(*out);
}

/*
 * mptcpinfo_gather() - make MSG_PEEK show all bytes that have arrived on the MPTCP socket @fd
 *
 * After a peek at the first segments, the kernel queues later ones separately, where MSG_PEEK doesn't look (Linux 6.1 and 6.12; 6.18 shows
 * all). FIONREAD joins them. Returns how many bytes can be read, -1 if the kernel doesn't say.
 */
static inline int mptcpinfo_gather(int fd)
{
	int readable;

	return next.ioctl(fd, FIONREAD, &readable) == 0 ? readable : -1;
}

/*
 * mptcpinfo_has_fallen_back() - has the connected MPTCP socket @fd fallen back to TCP?
 * Linux tells since 5.16; before that every socket looks as if it had fallen back, and we don't use any.
 */
static inline bool mptcpinfo_has_fallen_back(int fd)
{
	struct mptcpinfo info;
	socklen_t len = sizeof(info);

	/* After a fallback the kernel offers only TCP's options for the socket, and refuses those of this level. */
	return next.getsockopt(fd, SOL_MPTCP, MPTCPINFO_OPTION, &info, &len) != 0 ||
	       (info.flags & MPTCPINFO_FALLBACK);
}

#endif
