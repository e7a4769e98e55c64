/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_socket.h - the kernel's view of a TCP or MPTCP socket, and the calls of an engine's front end on one
 *
 * In the shim the C library's names are hooks. So its files include shim/system/next.h first, which lets these functions call the functions
 * behind the hooks.
 */
#ifndef COMMON_KERNEL_SOCKET_H
#define COMMON_KERNEL_SOCKET_H

#include "common/clock.h"
#include "common/sockaddr.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mptcp.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#ifndef KERNEL
#define KERNEL(call) call
#define KERNEL_POLL_NOW(fds, count) poll(fds, count, 0)
#endif

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef SOL_MPTCP
#define SOL_MPTCP 284
#endif
#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

/* --- options --- */

/* Returns the value of an int option. If the kernel refuses, returns @fallback, with the kernel's errno. */
static inline int kernel_get(int fd, int level, int name, int fallback)
{
	socklen_t len = sizeof(int);
	int value;

	return KERNEL(getsockopt)(fd, level, name, &value, &len) == 0 ? value : fallback;
}

/* Returns whether the kernel has accepted the value. */
static inline bool kernel_set(int fd, int level, int name, int value)
{
	return KERNEL(setsockopt)(fd, level, name, &value, sizeof(value)) == 0;
}

/* Returns the end of a call that begins at @start, by @option, SO_SNDTIMEO or SO_RCVTIMEO; both in nanoseconds. 0: it has no limit. */
static inline int64_t kernel_deadline(int fd, int option, int64_t start)
{
	struct timeval limit = { 0 };
	socklen_t len = sizeof(limit);

	KERNEL(getsockopt)(fd, SOL_SOCKET, option, &limit, &len);
	if (!limit.tv_sec && !limit.tv_usec)
		return 0;
	return start + limit.tv_sec * CLOCK_NS_PER_S + limit.tv_usec * INT64_C(1000);
}

static inline uint64_t kernel_get_u64(int fd, int name)
{
	uint64_t value = 0;
	socklen_t len = sizeof(value);

	return KERNEL(getsockopt)(fd, SOL_SOCKET, name, &value, &len) == 0 ? value : 0;
}

/* Returns SO_COOKIE: no other socket of this kernel has that number, or ever had it. 0: @fd isn't a socket. */
static inline uint64_t kernel_cookie(int fd)
{
	return kernel_get_u64(fd, SO_COOKIE);
}

/* Returns the network namespace of a socket, which stays when its process enters another one (Linux 5.14). */
static inline uint64_t kernel_network(int fd)
{
	return kernel_get_u64(fd, SO_NETNS_COOKIE);
}

/* Returns whether a socket that isn't connected was shut down for reading. shutdown(2) does that although it returns ENOTCONN. */
static inline bool kernel_is_shut(int fd)
{
	struct pollfd shut = { .fd = fd, .events = POLLRDHUP };

	return KERNEL_POLL_NOW(&shut, 1) == 1 && shut.revents & POLLRDHUP;
}

/* --- the state of a connection --- */

/* Returns TCP_INFO (tcp(7)), for an MPTCP socket that of its first subflow; all zero if there is none. */
static inline struct tcp_info kernel_tcp_info(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (KERNEL(getsockopt)(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		memset(&info, 0, sizeof(info));
	return info;
}

/* The kernel's struct mptcp_info as of Linux 6.5; older headers lack its last members. */
struct kernel_mptcp_info {
	uint8_t counts[8];
	uint32_t flags, token;
	uint64_t write_seq, snd_una, rcv_nxt;
	uint8_t local_addresses, local_addresses_max, checksum;
	uint32_t retransmits;
	uint64_t bytes_retrans, bytes_sent, bytes_received, bytes_acked;
	uint8_t all_subflows, reserved[3]; /* counts[0], and the first one if it is there */
};

/* Returns whether the connection goes on without the subflow on which it began. Before Linux 6.5 the kernel doesn't tell. */
static inline bool kernel_has_outlived(const struct kernel_mptcp_info *info)
{
	return info->counts[0] && info->counts[0] == info->all_subflows;
}

/*
 * Returns whether the connected MPTCP socket @fd has fallen back to TCP. Then the kernel offers only TCP's options for it. Before Linux
 * 5.16 every socket looks as if it had fallen back, and we don't use any.
 */
static inline bool kernel_has_fallen_back(int fd)
{
	struct kernel_mptcp_info info = { .flags = 0 };
	socklen_t len = sizeof(info);

	return KERNEL(getsockopt)(fd, SOL_MPTCP, MPTCP_INFO, &info, &len) != 0 || (info.flags & MPTCP_INFO_FLAG_FALLBACK);
}

/* --- input, output, the end --- */

/*
 * Disconnects the socket, by a reset if it is connected, so that it can be connected again. Also clears the error of our own reset, and
 * routers' errors for our SYN: TCP queues those even without IP_RECVERR (seen on Linux 6.18), and poll() would report them.
 */
static inline void kernel_disconnect(int fd)
{
	struct sockaddr unspec = { .sa_family = AF_UNSPEC };

	KERNEL(connect)(fd, &unspec, sizeof(unspec));
	kernel_get(fd, SOL_SOCKET, SO_ERROR, 0);
	while (KERNEL(recv)(fd, NULL, 0, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0)
		;
}

/*
 * kernel_send() - send @iov without blocking; with @to, in the SYN to that address
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
	sent = KERNEL(sendmsg)(fd, &header, (to ? MSG_FASTOPEN : 0) | MSG_DONTWAIT | MSG_NOSIGNAL);
	return sent < 0 ? -errno : sent;
}

/*
 * kernel_gather() - make MSG_PEEK show all bytes that have arrived on the MPTCP socket @fd
 * After a peek at the first segments, the kernel queues later ones separately, where MSG_PEEK doesn't look (Linux 6.1 and 6.12; 6.18 shows
 * all). FIONREAD joins them. Returns how many bytes can be read, -1 if the kernel doesn't say.
 */
static inline int kernel_gather(int fd)
{
	int readable;

	return KERNEL(ioctl)(fd, FIONREAD, &readable) == 0 ? readable : -1;
}

/*
 * kernel_peek() - read without taking
 * @ended: if not NULL, reads all that has come, and sets whether the end of the stream follows. Returns bytes or -errno.
 */
static inline ssize_t kernel_peek(int fd, uint8_t *buffer, size_t size, bool *ended)
{
	struct pollfd end = { .fd = fd, .events = POLLRDHUP };
	ssize_t got;

	if (ended) {
		*ended = KERNEL_POLL_NOW(&end, 1) > 0 && end.revents & (POLLRDHUP | POLLHUP | POLLERR);
		kernel_gather(fd);
	}
	got = KERNEL(recv)(fd, buffer, size, MSG_PEEK | MSG_DONTWAIT);
	return got < 0 ? -errno : got;
}

/* Takes @bytes, a Convert response at most, off the stream. Returns false if the kernel gives fewer. */
static inline bool kernel_take(int fd, size_t bytes)
{
	uint8_t taken[1024];

	while (bytes) {
		ssize_t got = KERNEL(recv)(fd, taken, bytes < sizeof(taken) ? bytes : sizeof(taken), MSG_DONTWAIT);

		if (got <= 0)
			return false;
		bytes -= (size_t)got;
	}
	return true;
}

/* --- keepalive: the socket's own, while the engine's probes a silent peer --- */

#define KERNEL_KEEPALIVES 4
#define KERNEL_PROBES 100 /* Linux must not end the connection before us; 127 at most */

struct kernel_keepalive {
	_Atomic bool probing;                /* the engine's values are set */
	_Atomic int kept[KERNEL_KEEPALIVES]; /* the socket's own, in the order of the options */
	int seconds;                         /* the engine's interval */
};

struct kernel_option {
	int level, name;
};

/* Setting the last one sends a probe that is due. */
static const struct kernel_option kernel_keepalive_options[KERNEL_KEEPALIVES] = {
	{ IPPROTO_TCP, TCP_KEEPINTVL }, { IPPROTO_TCP, TCP_KEEPCNT }, { SOL_SOCKET, SO_KEEPALIVE }, { IPPROTO_TCP, TCP_KEEPIDLE },
};

/* Sets the engine's values, again if they are set: so we can send several probes a second. Returns whether the kernel accepts them. */
static inline bool kernel_keepalive_again(int fd, const struct kernel_keepalive *keepalive)
{
	const int ours[KERNEL_KEEPALIVES] = { keepalive->seconds, KERNEL_PROBES, 1, keepalive->seconds };

	for (int i = 0; i < KERNEL_KEEPALIVES; i++)
		if (!kernel_set(fd, kernel_keepalive_options[i].level, kernel_keepalive_options[i].name, ours[i]))
			return false;
	return true;
}

/* Restores the socket's own keepalive. */
static inline void kernel_keepalive_end(int fd, struct kernel_keepalive *keepalive)
{
	for (int i = KERNEL_KEEPALIVES - 1; i >= 0 && keepalive->probing; i--)
		kernel_set(fd, kernel_keepalive_options[i].level, kernel_keepalive_options[i].name, keepalive->kept[i]);
	keepalive->probing = false;
}

/*
 * kernel_keepalive_set() - probe the peer each @seconds, at once if that time is over
 * Returns false, with nothing changed, if the kernel refuses: MPTCP sockets have keepalive since Linux 6.10.
 */
static inline bool kernel_keepalive_set(int fd, struct kernel_keepalive *keepalive, int seconds)
{
	for (int i = 0; i < KERNEL_KEEPALIVES && !keepalive->probing; i++) {
		keepalive->kept[i] = kernel_get(fd, kernel_keepalive_options[i].level, kernel_keepalive_options[i].name, -1);
		if (keepalive->kept[i] < 0)
			return false;
	}
	keepalive->seconds = seconds;
	keepalive->probing = true;
	if (kernel_keepalive_again(fd, keepalive))
		return true;
	kernel_keepalive_end(fd, keepalive);
	return false;
}

/* --- another socket in its place --- */

/* Gets the socket's own address. Returns false if that isn't an IP address. */
static inline bool kernel_address(int fd, union sockaddr_ip *out)
{
	union sockaddr_ip addr = { 0 };
	socklen_t len = sizeof(addr);

	return KERNEL(getsockname)(fd, &addr.sa, &len) == 0 && sockaddr_ip_from(out, &addr.sa, len);
}

/* Returns whether the socket is bound to an address or a port. */
static inline bool kernel_is_bound(int fd)
{
	union sockaddr_ip addr;
	struct in6_addr in6;

	if (!kernel_address(fd, &addr))
		return false;
	in6 = sockaddr_ip_in6(&addr);
	return sockaddr_ip_port(&addr) || !(IN6_IS_ADDR_UNSPECIFIED(&in6) || (IN6_IS_ADDR_V4MAPPED(&in6) && !in6.s6_addr32[3]));
}

/*
 * kernel_copy_address() - bind @to to the address that @from is bound to
 * Linux lets two sockets have the same one while both have SO_REUSEADDR and neither listens, so no other process can take it in between.
 * Returns 0 or -errno.
 */
static inline int kernel_copy_address(int from, int to)
{
	union sockaddr_ip addr;
	socklen_t len = sizeof(addr);
	const int reuse = kernel_get(from, SOL_SOCKET, SO_REUSEADDR, -1);
	int ret;

	if (reuse < 0 || KERNEL(getsockname)(from, &addr.sa, &len) != 0)
		return -EADDRNOTAVAIL;
	if (!reuse && (!kernel_set(from, SOL_SOCKET, SO_REUSEADDR, 1) || !kernel_set(to, SOL_SOCKET, SO_REUSEADDR, 1)))
		return -EADDRINUSE;
	ret = KERNEL(bind)(to, &addr.sa, len) == 0 ? 0 : -errno;
	if (!reuse && (!kernel_set(from, SOL_SOCKET, SO_REUSEADDR, 0) || !kernel_set(to, SOL_SOCKET, SO_REUSEADDR, 0)))
		return -EADDRINUSE;
	return ret;
}

/* Copies the process that the kernel signals events of the socket (F_SETOWN), and by which signal. Returns whether it could. */
static inline bool kernel_copy_owner(int from, int to)
{
	struct f_owner_ex owner = { .pid = 0 };
	const int number = KERNEL(fcntl)(from, F_GETSIG);

	return number >= 0 && KERNEL(fcntl)(from, F_GETOWN_EX, &owner) == 0 && (!owner.pid || KERNEL(fcntl)(to, F_SETOWN_EX, &owner) == 0) &&
	       (!number || KERNEL(fcntl)(to, F_SETSIG, number) == 0);
}

#endif
