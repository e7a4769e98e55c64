/* SPDX-License-Identifier: BSD-3-Clause */
/* sysctls.c - the sysctls that convertd wants, with the consequences of other values */
#include "config.h"

#include "convertd/process/sysctls.h"

#include "serve/listening.h"

#include <stddef.h>

const struct sysctl_wish sysctl_wishes[] = {
	{ "net.ipv4.tcp_fastopen", SYSCTL_BITS, LISTENER_SYSCTL_FASTOPEN,
	  "the kernel drops data in SYNs, each connection takes a round trip more and MPTCP clients "
	  "fall back to TCP" },
	{ "net.mptcp.enabled", SYSCTL_IS, 1, "clients use one path only" },
	/* Clients choose the servers, so a client could choose one that swallows SYNs. */
	{ "net.mptcp.blackhole_timeout", SYSCTL_IS, 0,
	  "one server that swallows SYNs switches MPTCP off towards all of them for so many seconds" },
	{ "net.core.somaxconn", SYSCTL_LEAST, LISTENER_BACKLOG,
	  "when many clients come at once, some have to send their SYN again" },
	/* Linux ignores the data of a SYN that it answers with a SYN cookie. */
	{ "net.ipv4.tcp_syncookies", SYSCTL_IS, 1,
	  "with 0 a flood of SYNs keeps clients out, with 2 the kernel drops data in SYNs" },
	/* This is about SYNs that convertd never sees, to which the kernel answers 40 bytes with 44 for each SYN+ACK. */
	{ "net.ipv4.tcp_synack_retries", SYSCTL_MOST, 1,
	  "for forged SYNs that are none of ours the kernel sends more than three times their bytes to "
	  "strangers" },
	{ .name = NULL },
};

bool sysctl_wish_met(const struct sysctl_wish *wish, int value)
{
	switch (wish->rule) {
	case SYSCTL_IS:
		return value == wish->value;
	case SYSCTL_LEAST:
		return value >= wish->value;
	case SYSCTL_MOST:
		return value <= wish->value;
	case SYSCTL_BITS:
		return (value & wish->value) == wish->value;
	}
	return false;
}

int sysctl_wish_remedy(const struct sysctl_wish *wish, int value)
{
	return wish->rule == SYSCTL_BITS ? value | wish->value : wish->value;
}
