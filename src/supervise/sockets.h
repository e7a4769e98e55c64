/* SPDX-License-Identifier: BSD-3-Clause */
/* sockets.h - the kernel's view of a program's socket, and the supervisor's memory of it */
#ifndef SUPERVISE_SOCKETS_H
#define SUPERVISE_SOCKETS_H

#include "engine/dial.h"

#include <linux/mptcp.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

/* Returns the value of an int option, or @fallback if the kernel refuses. */
static inline int kernel_get(int fd, int level, int name, int fallback)
{
	socklen_t len = sizeof(int);
	int value;

	return getsockopt(fd, level, name, &value, &len) == 0 ? value : fallback;
}

static inline bool kernel_set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

/* Returns SO_SNDTIMEO, how long a call may wait, in nanoseconds; 0: for ever. */
static inline int64_t kernel_send_timeout(int fd)
{
	struct timeval timeout = { 0 };
	socklen_t len = sizeof(timeout);

	if (getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, &len) != 0)
		return 0;
	return timeout.tv_sec * INT64_C(1000000000) + timeout.tv_usec * INT64_C(1000);
}

/* Returns SO_COOKIE: no other socket of this kernel has that number, or ever had it. */
static inline uint64_t kernel_cookie(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) == 0 ? cookie : 0;
}

/* Returns the network namespace of a socket, whatever namespace its process is in by now (Linux 5.14). */
static inline uint64_t kernel_network(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) == 0 ? cookie : 0;
}

/* Returns whether a socket that isn't connected was shut down for reading. shutdown(2) does that although it returns ENOTCONN. */
static inline bool kernel_is_shut(int fd)
{
	struct pollfd shut = { .fd = fd, .events = POLLRDHUP };

	return poll(&shut, 1, 0) == 1 && shut.revents & POLLRDHUP;
}

/* Returns TCP_INFO, for an MPTCP socket that of its first subflow; all zero if there is none. */
static inline struct tcp_info kernel_tcp_info(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		memset(&info, 0, sizeof(info));
	return info;
}

/* Returns whether a connected MPTCP socket has fallen back to TCP. Then the kernel has no MPTCP_INFO for it. */
static inline bool kernel_has_fallen_back(int fd)
{
	struct mptcp_info info = { 0 };
	socklen_t len = sizeof(info);

	return getsockopt(fd, SOL_MPTCP, MPTCP_INFO, &info, &len) != 0 || (info.mptcpi_flags & MPTCP_INFO_FLAG_FALLBACK);
}

/*
 * Ends a connection or an attempt, so that the socket can be connected again. Also clears the error of our own reset, and routers' errors
 * for our SYN: TCP queues those even without IP_RECVERR (seen on Linux 6.18), and poll() would report them.
 */
static inline void kernel_disconnect(int fd)
{
	struct sockaddr unspec = { .sa_family = AF_UNSPEC };

	connect(fd, &unspec, sizeof(unspec));
	kernel_get(fd, SOL_SOCKET, SO_ERROR, 0);
	while (recv(fd, NULL, 0, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0)
		;
}

/* --- memory: options that MPTCP refuses, and the servers behind converted connections --- */

/*
 * advice_set() - remember an option of socket_advice (common/socket_options.h) for the MPTCP socket @fd
 * Returns 0, or the errno with which TCP refuses the value.
 */
int advice_set(int fd, int index, const void *value, socklen_t len);

/*
 * advice_get() - answer getsockopt(2) as a TCP socket would
 * @len: the room in @value; on return, the bytes used. Returns 0 or an errno.
 */
int advice_get(int fd, int index, void *value, socklen_t *len);

/* Sets the options remembered for the socket @from on the TCP socket @to. */
void advice_copy(int from, int to);

/* Returns whether @fd may connect by Multipath TCP: not if the program set an option that MPTCP lacks and that changes the connection. */
bool advice_allows_mptcp(int fd);

/* Notes that the socket @fd, connected or connecting to @converter, leads to @server, the address that the program gave. */
void peers_note(int fd, const union sockaddr_ip *converter, const union sockaddr_ip *server);

/* Likewise, for the socket with that SO_COOKIE and the local address @local. */
void peers_note_at(const union sockaddr_ip *local, uint64_t cookie, const union sockaddr_ip *converter, const union sockaddr_ip *server);

/* Returns the server of the socket @fd, or NULL if its connection isn't converted. */
const union sockaddr_ip *peers_find(int fd);

#endif
