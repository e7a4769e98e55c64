/* SPDX-License-Identifier: BSD-3-Clause */
/* socket_options.c - the options that TCP and MPTCP sockets have in common, for copies of a socket; and those that MPTCP lacks */
#include "config.h"

#include "common/socket_options.h"

/* Only the kernel's headers: musl's lack SO_RCVTIMEO_OLD, whose number depends on the architecture, and can't be mixed with them. */
#include <asm/socket.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/tcp.h>
#include <time.h>

/* Missing in older headers. */
#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51
#endif
#ifndef SO_PREFER_BUSY_POLL
#define SO_PREFER_BUSY_POLL 69
#endif

const struct socket_option socket_options[SOCKET_OPTIONS_COUNT] = {
	{ SOL_SOCKET, SO_DEBUG },
	{ SOL_SOCKET, SO_REUSEADDR },
	{ SOL_SOCKET, SO_DONTROUTE },
	{ SOL_SOCKET, SO_BROADCAST },
	{ SOL_SOCKET, SO_SNDBUF },
	{ SOL_SOCKET, SO_RCVBUF },
	{ SOL_SOCKET, SO_SNDBUFFORCE },
	{ SOL_SOCKET, SO_RCVBUFFORCE },
	{ SOL_SOCKET, SO_KEEPALIVE },
	{ SOL_SOCKET, SO_PRIORITY },
	{ SOL_SOCKET, SO_LINGER },
	{ SOL_SOCKET, SO_REUSEPORT },
	{ SOL_SOCKET, SO_RCVLOWAT },
	{ SOL_SOCKET, SO_RCVTIMEO_OLD },
	{ SOL_SOCKET, SO_SNDTIMEO_OLD },
	{ SOL_SOCKET, SO_RCVTIMEO_NEW }, /* used by 32-bit programs with 64-bit times */
	{ SOL_SOCKET, SO_SNDTIMEO_NEW },
	{ SOL_SOCKET, SO_BINDTODEVICE },
	{ SOL_SOCKET, SO_MARK },
	{ SOL_SOCKET, SO_BUSY_POLL },
	{ SOL_SOCKET, SO_PREFER_BUSY_POLL },
	{ SOL_SOCKET, SO_INCOMING_CPU },
	{ SOL_SOCKET, SO_TIMESTAMP },
	{ SOL_SOCKET, SO_TIMESTAMPNS },
	{ IPPROTO_IP, IP_TOS },
	{ IPPROTO_IP, IP_FREEBIND },
	{ IPPROTO_IP, IP_TRANSPARENT },
	{ IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT },
	{ IPPROTO_IP, IP_LOCAL_PORT_RANGE },
	{ IPPROTO_IPV6, IPV6_V6ONLY },
	{ IPPROTO_IPV6, IPV6_TRANSPARENT },
	{ IPPROTO_IPV6, IPV6_FREEBIND },
	{ IPPROTO_TCP, TCP_NODELAY },
	{ IPPROTO_TCP, TCP_MAXSEG },
	{ IPPROTO_TCP, TCP_CORK },
	{ IPPROTO_TCP, TCP_KEEPIDLE },
	{ IPPROTO_TCP, TCP_KEEPINTVL },
	{ IPPROTO_TCP, TCP_KEEPCNT },
	{ IPPROTO_TCP, TCP_DEFER_ACCEPT },
	{ IPPROTO_TCP, TCP_CONGESTION },
	{ IPPROTO_TCP, TCP_FASTOPEN },
	{ IPPROTO_TCP, TCP_FASTOPEN_KEY },
	{ IPPROTO_TCP, TCP_FASTOPEN_CONNECT },
	{ IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE },
	{ IPPROTO_TCP, TCP_NOTSENT_LOWAT },
	{ IPPROTO_TCP, TCP_INQ },
};

int socket_option_buffer(const struct socket_option *option)
{
	if (option->level != SOL_SOCKET)
		return 0;
	if (option->name == SO_SNDBUF || option->name == SO_SNDBUFFORCE)
		return SO_SNDBUF;
	return option->name == SO_RCVBUF || option->name == SO_RCVBUFFORCE ? SO_RCVBUF : 0;
}

/* The list lacks options that change the connection for the application, and those whose refusal applications expect (SO_ZEROCOPY). */
const struct socket_advice socket_advice[SOCKET_ADVICE_COUNT] = {
	{ { IPPROTO_TCP, TCP_SYNCNT }, false },
	{ { IPPROTO_TCP, TCP_LINGER2 }, false },
	{ { IPPROTO_TCP, TCP_WINDOW_CLAMP }, false },
	{ { IPPROTO_TCP, TCP_QUICKACK }, false },
	{ { IPPROTO_TCP, TCP_USER_TIMEOUT }, false },
	{ { IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS }, false },
	{ { IPPROTO_TCP, TCP_THIN_DUPACK }, false },
	{ { SOL_SOCKET, SO_MAX_PACING_RATE }, false },
	{ { SOL_SOCKET, SO_TXREHASH }, false },
	{ { SOL_SOCKET, SO_OOBINLINE }, true }, /* urgent data, which on MPTCP is always in line */
	{ { IPPROTO_IP, IP_MTU_DISCOVER }, false },
	{ { IPPROTO_IP, IP_TTL }, true },
	{ { IPPROTO_IPV6, IPV6_TCLASS }, false },
	{ { IPPROTO_IPV6, IPV6_MTU_DISCOVER }, false },
	{ { IPPROTO_IPV6, IPV6_AUTOFLOWLABEL }, false },
	{ { IPPROTO_IPV6, IPV6_UNICAST_HOPS }, true },
};

int socket_advice_index(int level, int name)
{
	for (int i = 0; i < SOCKET_ADVICE_COUNT; i++)
		if (socket_advice[i].option.level == level && socket_advice[i].option.name == name)
			return i;
	return -1;
}

bool socket_advice_is_default(int index, int value)
{
	const struct socket_option *option = &socket_advice[index].option;

	if (option->level == SOL_SOCKET)
		return option->name == SO_OOBINLINE && !value;
	return ((option->level == IPPROTO_IP && option->name == IP_TTL) ||
		(option->level == IPPROTO_IPV6 && option->name == IPV6_UNICAST_HOPS)) &&
	       value == -1;
}
