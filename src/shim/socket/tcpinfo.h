/* SPDX-License-Identifier: BSD-3-Clause */
/* tcpinfo.h - what the kernel knows of a connection: of an MPTCP socket, its first subflow's */
#ifndef SHIM_TCPINFO_H
#define SHIM_TCPINFO_H

#include "engine/dial.h"
#include "shim/system/next.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>

/* Asks the kernel for TCP_INFO (tcp(7)). Where it has none all is zero, and tcpi_state TCPINFO_UNKNOWN. */
static inline struct tcp_info tcpinfo_of(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (next.getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		memset(&info, 0, sizeof(info));
	return info;
}

#endif
