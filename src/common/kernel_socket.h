/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_socket.h - the kernel's view of a TCP or MPTCP socket, and the calls of an engine's front end on one that it owns */
#ifndef COMMON_KERNEL_SOCKET_H
#define COMMON_KERNEL_SOCKET_H

#include "common/sockaddr.h"

#include <errno.h>
#include <linux/mptcp.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

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

/*
 * kernel_send() - send @iov without blocking, in the SYN to @to unless NULL
 * Returns the number of bytes that were taken, or -errno.
 */
static inline ssize_t kernel_send(int fd, const struct iovec iov[static 2], const union sockaddr_ip *to)
{
	struct iovec parts[2] = { iov[0], iov[1] };
	struct msghdr header = { .msg_iov = parts, .msg_iovlen = 2 };
	union sockaddr_ip addr;
	ssize_t sent;

	if (to) {
		addr = *to;
		header.msg_name = &addr;
		header.msg_namelen = sockaddr_ip_len(to);
	}
	sent = sendmsg(fd, &header, (to ? MSG_FASTOPEN : 0) | MSG_DONTWAIT | MSG_NOSIGNAL);
	return sent < 0 ? -errno : sent;
}

/*
 * kernel_peek() - read without taking
 * @ended: if not NULL, reads all that has come, and sets whether the end of the stream follows. Returns bytes or -errno.
 */
static inline ssize_t kernel_peek(int fd, uint8_t *buffer, size_t size, bool *ended)
{
	struct pollfd end = { .fd = fd, .events = POLLRDHUP };
	int readable;
	ssize_t got;

	if (ended) {
		*ended = poll(&end, 1, 0) > 0 && end.revents & (POLLRDHUP | POLLHUP | POLLERR);
		/* merges segments of which MSG_PEEK would show only the first (Linux 6.1 and 6.12) */
		ioctl(fd, FIONREAD, &readable);
	}
	got = recv(fd, buffer, size, MSG_PEEK | MSG_DONTWAIT);
	return got < 0 ? -errno : got;
}

/* Takes @bytes, a Convert response at most, off the stream. Returns false if the kernel gives fewer. */
static inline bool kernel_take(int fd, size_t bytes)
{
	uint8_t taken[1024];

	while (bytes) {
		ssize_t got = recv(fd, taken, bytes < sizeof(taken) ? bytes : sizeof(taken), MSG_DONTWAIT);

		if (got <= 0)
			return false;
		bytes -= (size_t)got;
	}
	return true;
}

/* The owner's keepalive, while the engine's probes a silent peer. */
#define KERNEL_KEEPALIVES 4

struct kernel_keepalive {
	bool probing;                /* the engine's values are set */
	int kept[KERNEL_KEEPALIVES]; /* the owner's */
};

/* In this order: setting the last one sends a probe that is due. */
#define KERNEL_KEEPALIVE_OPTIONS \
	{ { IPPROTO_TCP, TCP_KEEPINTVL }, { IPPROTO_TCP, TCP_KEEPCNT }, { SOL_SOCKET, SO_KEEPALIVE }, { IPPROTO_TCP, TCP_KEEPIDLE } }

/* Probes the peer each @seconds, at once if that time is over. Returns whether the kernel does so. */
static inline bool kernel_probe(int fd, struct kernel_keepalive *keepalive, int seconds)
{
	static const int options[KERNEL_KEEPALIVES][2] = KERNEL_KEEPALIVE_OPTIONS;
	const int ours[KERNEL_KEEPALIVES] = { seconds, 100, 1, seconds };
	bool set = true;

	for (int i = 0; i < KERNEL_KEEPALIVES && !keepalive->probing; i++)
		keepalive->kept[i] = kernel_get(fd, options[i][0], options[i][1], -1);
	keepalive->probing = true;
	for (int i = 0; i < KERNEL_KEEPALIVES; i++)
		set &= kernel_set(fd, options[i][0], options[i][1], ours[i]);
	return set;
}

static inline void kernel_probe_end(int fd, struct kernel_keepalive *keepalive)
{
	static const int options[KERNEL_KEEPALIVES][2] = KERNEL_KEEPALIVE_OPTIONS;

	for (int i = KERNEL_KEEPALIVES - 1; i >= 0 && keepalive->probing; i--)
		kernel_set(fd, options[i][0], options[i][1], keepalive->kept[i]);
	keepalive->probing = false;
}

#endif
