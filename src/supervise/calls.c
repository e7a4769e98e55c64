/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls.c - handles each call that the filter has stopped
 *
 * Another thread of the program may change the caller's memory and descriptors at any time. So the supervisor reads each pointer's target
 * once, and decides by that copy and by a duplicate of the caller's descriptor. On a TCP or MPTCP socket it makes the call itself. It lets
 * the kernel run calls on other sockets, where a changed call does no harm, and calls that it can't make itself (leave()). With
 * CONVERT_FALLBACK=none leave() refuses these, since they may be TCP's.
 */
#include "config.h"

#include "supervise/calls.h"

#include "client/client_log.h"
#include "client/converters.h"
#include "supervise/blind.h"
#include "supervise/connection.h"
#include "supervise/permission.h"
#include "supervise/sockets.h"
#include "supervise/stand_in.h"
#include "supervise/tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define IOVECS_MAX 16

#ifndef AF_SMC
#define AF_SMC 43
#endif

void call_continue(const struct call *call, int fd)
{
	if (fd >= 0)
		close(fd);
	listener_continue(supervision.listener, call);
}

void call_answer(const struct call *call, int fd, int error)
{
	if (fd >= 0)
		close(fd);
	listener_answer(supervision.listener, call, 0, error);
}

bool socket_is_tcp(int fd, int *domain, int *protocol)
{
	*domain = kernel_get(fd, SOL_SOCKET, SO_DOMAIN, -1);
	*protocol = kernel_get(fd, SOL_SOCKET, SO_PROTOCOL, -1);
	return (*domain == AF_INET || *domain == AF_INET6) && (*protocol == IPPROTO_TCP || *protocol == IPPROTO_MPTCP);
}

bool socket_is_ours(int fd)
{
	return kernel_get(fd, SOL_SOCKET, SO_PROTOCOL, 0) == IPPROTO_MPTCP && kernel_get(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 0);
}

/* Reads @count words of the program's memory, 6 at most, each as long as its pointers are. */
static bool words_read(const struct call *call, uint64_t at, uint64_t *out, size_t count)
{
	uint32_t narrow[6];

	if (!call->narrow)
		return tracee_read(call->tid, at, out, count * sizeof(*out));
	if (!tracee_read(call->tid, at, narrow, count * sizeof(*narrow)))
		return false;
	for (size_t i = 0; i < count; i++)
		out[i] = narrow[i];
	return true;
}

/* Replaces socketcall(2), whose arguments are in an array, by the call that it stands for. Returns false if we don't handle that. */
static bool unfold_socketcall(struct call *call)
{
	uint64_t args[6] = { 0 };
	int count;
	enum filter_call meant = filter_socketcall_of((unsigned int)call->args[0], &count);

	if (meant == FILTER_CALL_COUNT || !words_read(call, (uint32_t)call->args[1], args, (size_t)count))
		return false;
	memcpy(call->args, args, sizeof(args));
	call->call = meant;
	return true;
}

/*
 * Leaves a call to the kernel that the supervisor can't make itself, for this @reason. The program may change the call's arguments until
 * the kernel reads them. So with CONVERT_FALLBACK=none, where that might be a way around the converter, the call fails.
 */
static void leave(const struct call *call, int fd, const char *reason)
{
	if (!supervision.settings->fail_closed) {
		call_continue(call, fd);
		return;
	}
	log_line("refused: %s, and CONVERT_FALLBACK is none", reason);
	call_answer(call, fd, EACCES);
}

static const char hidden[] = "this process can't be examined (perhaps it isn't dumpable)";

/* Duplicates the call's socket. Returns -1 after it has answered the call, if it can't. */
static int open_socket(const struct call *call)
{
	const int fd = tracee_get_fd(call->tid, (int)call->args[0]);

	if (fd == -EBADF) {
		call_answer(call, -1, EBADF);
	} else if (fd == -EMFILE || fd == -ENFILE) {
		/* Don't leave it to the kernel: that would connect our MPTCP socket directly, which may fall back (stand_in.c). */
		log_line("failed: the supervisor has too many open files; raise the limit (ulimit -Hn)");
		call_answer(call, -1, ENOBUFS);
	} else if (fd < 0) {
		leave(call, -1, hidden);
	}
	return fd < 0 ? -1 : fd;
}

/*
 * Returns whether the socket is in the supervisor's network namespace. In another one, a container's or a sandbox's, we convert nothing: a
 * stand-in of the supervisor's would break out of it.
 */
static bool is_here(int fd)
{
	static uint64_t own;
	int made;

	if (!own && (made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0) {
		own = kernel_network(made);
		close(made);
	}
	return kernel_network(fd) == own;
}

/* Returns whether the socket can begin a connection. Otherwise the kernel has an errno for it, for any address. */
static bool is_fresh(int fd)
{
	return kernel_tcp_info(fd).tcpi_state == TCPINFO_CLOSE;
}

/*
 * Leaves a call on a TCP socket to the kernel if the supervisor may not act for the program, and says why. The kernel's rules for the
 * program may not know MPTCP sockets (Landlock's of Linux 6.18), so a TCP socket takes the place of ours. Returns true if the call has been
 * left or refused.
 */
static bool leave_forbidden(const struct call *call, int fd)
{
	const bool here = is_here(fd);
	const bool own = socket_is_ours(fd);
	const char *reason = here ? permission_denial(call->tid, own) : "it is in another network namespace";
	int made, ret = 0;

	if (!reason)
		return false;
	if (!here || supervision.settings->fail_closed) {
		leave(call, fd, reason);
		return true;
	}
	log_line("directly, left to the kernel: %s", reason);
	if (own && is_fresh(fd)) {
		made = stand_in_make(call, fd, kernel_get(fd, SOL_SOCKET, SO_DOMAIN, AF_INET), false, kernel_is_bound(fd), false);
		ret = made < 0 ? made : stand_in_put(supervision.listener, call, fd, made);
		if (made >= 0)
			close(made);
	}
	if (ret < 0)
		call_answer(call, fd, EACCES);
	else
		call_continue(call, fd);
	return true;
}

/* --- socket() --- */

/*
 * Answers with an MPTCP socket right away, since programs add sockets to epoll instances before they connect them. A process that we can't
 * examine, or that is in another network namespace, gets TCP, or with CONVERT_FALLBACK=none EACCES. One for which we may not act gets TCP.
 */
static void handle_socket(const struct call *call)
{
	const int domain = (int)call->args[0], type = (int)call->args[1], protocol = (int)call->args[2];
	static const char reason[] = "this process can't be examined (perhaps it isn't dumpable), or is in another network namespace";
	int fd;

	/* The filter hasn't checked the arguments of socketcall(2). */
	if ((domain != AF_INET && domain != AF_INET6) || (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) != SOCK_STREAM ||
	    (protocol != 0 && protocol != IPPROTO_TCP)) {
		call_continue(call, -1);
		return;
	}
	if (!tracee_is_accessible(call->tid)) {
		if (!supervision.settings->fail_closed)
			log_line("a socket that will connect directly: %s", reason);
		leave(call, -1, reason);
		return;
	}
	if (permission_denial(call->tid, false)) {
		call_continue(call, -1); /* connect() says why */
		return;
	}
	fd = permission_socket(call->tid, domain, (type & SOCK_NONBLOCK) | SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_MPTCP);
	/* This option marks our sockets; the SYN needs it anyway. */
	if (fd < 0 || !kernel_set(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)) {
		call_continue(call, fd);
		return;
	}
	listener_answer_fd(supervision.listener, call, fd, type & SOCK_CLOEXEC);
	close(fd);
}

/* --- connect() --- */

/* Makes the program's call on our duplicate, without waiting, and answers with the result. */
static void connect_natively(const struct call *call, int fd, const void *addr, socklen_t len)
{
	const bool unspec = len >= sizeof(sa_family_t) && ((const struct sockaddr *)addr)->sa_family == AF_UNSPEC;
	int flags = fcntl(fd, F_GETFL), ret;

	if (unspec)
		blind_requests_cancel(kernel_cookie(fd));
	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	ret = connect(fd, addr, len) == 0 ? 0 : errno;
	fcntl(fd, F_SETFL, flags);
	if (ret == 0 && unspec)
		kernel_get(fd, SOL_SOCKET, SO_ERROR, 0); /* clears TCP's ECONNRESET, which the next connection must not report */
	call_answer(call, fd, ret);
}

/* The call's data, to be sent with the request or once the server is reached. */
struct early {
	uint8_t *bytes;
	size_t len;
	uint64_t answer_at; /* as in struct connection */
	bool nonblocking;   /* MSG_DONTWAIT */
};

/* Begins a connection of the socket @fd. Takes ownership of @fd and of the early data. */
static void connection_begin(const struct call *call, int fd, enum connection_kind kind, const union sockaddr_ip *peer,
			     const struct early *early)
{
	struct connection *connection = calloc(1, sizeof(*connection)), *other;
	const uint64_t cookie = kernel_cookie(fd);
	int domain, protocol;

	if (connection)
		HASH_FIND(hh, supervision.connections, &cookie, sizeof(cookie), other);
	if (!connection || other) {
		free(early->bytes);
		call_answer(call, fd, connection ? EALREADY : ENOMEM);
		free(connection);
		return;
	}
	socket_is_tcp(fd, &domain, &protocol);
	*connection = (struct connection){
		.call = *call,
		.program_fd = (int)call->args[0],
		.kind = kind,
		.fd = fd,
		.cookie = cookie,
		.domain = domain,
		.mptcp = protocol == IPPROTO_MPTCP,
		.made_by_us = socket_is_ours(fd),
		.v6only = domain == AF_INET6 && kernel_get(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0),
		.bound = kernel_is_bound(fd),
		.shut = kernel_is_shut(fd),
		.nonblocking = early->nonblocking || fcntl(fd, F_GETFL) & O_NONBLOCK,
		.sock_domain = domain,
		.early = early->bytes,
		.dial = { .fd = fd, .early = early->bytes, .early_len = early->len },
		.answer_at = early->answer_at,
	};
	if (kind != CONNECTION_UNDER_WAY)
		blind_requests_cancel(cookie);
	HASH_ADD(hh, supervision.connections, cookie, sizeof(connection->cookie), connection);
	connection_operations_begin(connection, peer);
	progress_begin(connection);
}

/*
 * Sets @peer to an address that leads nowhere, for a call on a socket that isn't fresh: another thread may end its connection, and then
 * our call would begin one. Port 0 of this host refuses.
 */
static void set_nowhere(union sockaddr_ip *peer, int domain)
{
	*peer = (union sockaddr_ip){ .sa.sa_family = (sa_family_t)domain };
	if (domain == AF_INET)
		peer->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		peer->in6.sin6_addr = in6addr_loopback;
}

/* Returns whether an attempt of the socket is under way in the kernel, which a blocking call waits for. */
static bool is_under_way(int fd)
{
	const uint64_t cookie = kernel_cookie(fd);
	struct connection *ours;

	HASH_FIND(hh, supervision.connections, &cookie, sizeof(cookie), ours);
	return !ours && kernel_tcp_info(fd).tcpi_state == TCPINFO_SYN_SENT;
}

/* A program that asks a converter itself, with the library preloaded say, connects natively. */
static bool is_converter(const union sockaddr_ip *peer)
{
	for (int i = 0; i < converters_count(); i++)
		if (sockaddr_ip_equal(converters_address(i), peer))
			return true;
	return false;
}

/*
 * Handles connect() of a socket that isn't TCP's. The kernel has to resolve a Unix socket's path as the program. With CONVERT_FALLBACK=none
 * another thread could put a TCP socket in the place of a UDP one, so we connect UDP sockets ourselves. SMC sockets connect by TCP.
 */
static void connect_other(const struct call *call, int fd, const struct sockaddr_storage *addr, socklen_t len)
{
	const int domain = kernel_get(fd, SOL_SOCKET, SO_DOMAIN, AF_UNSPEC);

	if (domain == AF_UNSPEC)
		call_answer(call, fd, ENOTSOCK);
	else if (domain == AF_SMC)
		leave(call, fd, "an SMC socket isn't converted");
	else if (supervision.settings->fail_closed && (domain == AF_INET || domain == AF_INET6))
		connect_natively(call, fd, addr, len);
	else
		call_continue(call, fd);
}

/* Handles connect() of a TCP socket. */
static void connect_tcp(const struct call *call, int fd, int domain, const struct sockaddr_storage *addr, socklen_t len)
{
	union sockaddr_ip peer;
	int error;

	if (!is_fresh(fd) && addr->ss_family != AF_UNSPEC) {
		set_nowhere(&peer, domain);
		if (is_under_way(fd) && !(fcntl(fd, F_GETFL) & O_NONBLOCK))
			connection_begin(call, fd, CONNECTION_UNDER_WAY, &peer, &(struct early){ 0 });
		else
			connect_natively(call, fd, &peer, sockaddr_ip_len(&peer));
	} else if (!sockaddr_ip_from(&peer, (const struct sockaddr *)addr, len) || peer.sa.sa_family != domain ||
		   (domain == AF_INET6 && sockaddr_ip_is_v4(&peer) && kernel_get(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0))) {
		connect_natively(call, fd, addr, len); /* the kernel has an errno for that address */
	} else if ((error = kernel_get(fd, SOL_SOCKET, SO_ERROR, 0))) {
		/* report the previous attempt's error; then the program can connect the socket again, as after the kernel's answer */
		kernel_disconnect(fd);
		call_answer(call, fd, error);
	} else {
		connection_begin(call, fd, is_converter(&peer) ? CONNECTION_NATIVE : CONNECTION_CONVERTED, &peer, &(struct early){ 0 });
	}
}

static void handle_connect(const struct call *call)
{
	const socklen_t len = (socklen_t)call->args[2];
	struct sockaddr_storage addr = { 0 };
	int domain, protocol, fd = open_socket(call);
	bool tcp;

	if (fd < 0)
		return;
	tcp = socket_is_tcp(fd, &domain, &protocol);
	if (tcp && leave_forbidden(call, fd))
		return;
	if (len > sizeof(addr))
		call_answer(call, fd, EINVAL);
	else if (!tracee_read(call->tid, call->args[1], &addr, len))
		call_answer(call, fd, EFAULT);
	else if (!listener_is_waiting(supervision.listener, call))
		close(fd);
	else if (tcp)
		connect_tcp(call, fd, domain, &addr, len);
	else
		connect_other(call, fd, &addr, len);
}

/* --- output with MSG_FASTOPEN --- */

/* The parts of struct msghdr that we need, of 64-bit and 32-bit programs. */
struct message {
	uint64_t name, iov, iovlen;
	uint32_t namelen;
};

/* Copies the call's data, DIAL_EARLY_MAX bytes at most. Returns 0 or the errno. */
static int early_read(const struct call *call, const struct message *message, struct early *out)
{
	uint64_t part[2]; /* struct iovec */

	out->bytes = malloc(DIAL_EARLY_MAX);
	if (!out->bytes)
		return ENOMEM;
	for (unsigned int i = 0; i < message->iovlen && i < IOVECS_MAX && out->len < DIAL_EARLY_MAX; i++) {
		if (call->call == FILTER_SENDTO) {
			part[0] = call->args[1];
			part[1] = call->narrow ? (uint32_t)call->args[2] : call->args[2];
		} else if (!words_read(call, message->iov + i * (call->narrow ? 8 : 16), part, 2)) {
			return EFAULT;
		}
		if (part[1] > DIAL_EARLY_MAX - out->len)
			part[1] = DIAL_EARLY_MAX - out->len;
		if (part[1] && !tracee_read(call->tid, part[0], out->bytes + out->len, (size_t)part[1]))
			return EFAULT;
		out->len += (size_t)part[1];
	}
	return 0;
}

/*
 * Returns the output call's flags. Under its own number it has MSG_FASTOPEN, or the filter would not have stopped it; under socketcall(2)
 * the flags are in memory.
 */
static int output_flags(const struct call *call)
{
	return (int)call->args[call->call == FILTER_SENDMSG ? 2 : 3];
}

/* Reads the call's message header. sendto() has all of it in its arguments; early_read() takes its data from there. */
static bool output_read(const struct call *call, struct message *out)
{
	uint64_t words[4]; /* struct msghdr: msg_namelen has 32 bits, and padding behind them if pointers have 64 */
	uint32_t namelen;

	*out = (struct message){ .name = call->args[4], .namelen = (uint32_t)call->args[5], .iovlen = 1 };
	if (call->call == FILTER_SENDTO)
		return true;
	if (!words_read(call, call->args[1], words, 4))
		return false;
	memcpy(&namelen, &words[1], sizeof(namelen));
	*out = (struct message){ words[0], words[2], words[3], call->narrow ? (uint32_t)words[1] : namelen };
	return true;
}

/*
 * Handles output on a socket that isn't TCP's, or without MSG_FASTOPEN on one that isn't fresh. With CONVERT_FALLBACK=none we refuse it if
 * another thread could still set that flag in memory (socketcall(2)), or put another socket under the number.
 */
static void output_other(const struct call *call, int fd)
{
	if (!supervision.settings->fail_closed)
		call_continue(call, fd);
	else if (output_flags(call) & MSG_FASTOPEN)
		call_answer(call, fd, EOPNOTSUPP);
	else if (tracee_has_threads(call->tid))
		leave(call, fd, "another thread could change this output call");
	else
		call_continue(call, fd);
}

static void handle_output(const struct call *call)
{
	struct early early = { 0 };
	struct sockaddr_storage addr = { 0 };
	union sockaddr_ip peer;
	struct message message;
	int domain, protocol, error, fd = open_socket(call);
	bool fresh;

	if (fd < 0)
		return;
	if (!socket_is_tcp(fd, &domain, &protocol)) {
		output_other(call, fd);
		return;
	}
	if (leave_forbidden(call, fd))
		return;
	fresh = is_fresh(fd);
	if (!(output_flags(call) & MSG_FASTOPEN)) {
		if (fresh)
			call_answer(call, fd, EPIPE); /* as the kernel says of a socket that isn't connected */
		else
			output_other(call, fd);
		return;
	}
	error = !output_read(call, &message)	   ? EFAULT :
		message.namelen > sizeof(addr)	   ? EINVAL :
		!message.name || !message.namelen ? EINVAL :
		!tracee_read(call->tid, message.name, &addr, message.namelen) ? EFAULT :
		message.namelen >= sizeof(addr.ss_family) && addr.ss_family == AF_UNSPEC ? EOPNOTSUPP :
		!sockaddr_ip_from(&peer, (struct sockaddr *)&addr, message.namelen) ? EINVAL :
		peer.sa.sa_family == domain ? 0 :
		domain == AF_INET ? EAFNOSUPPORT : EINVAL;
	if (!error)
		error = early_read(call, &message, &early);
	if (error || !listener_is_waiting(supervision.listener, call)) {
		free(early.bytes);
		call_answer(call, fd, error);
		return;
	}
	if (call->call == FILTER_SENDMMSG)
		early.answer_at = call->args[1] + (call->narrow ? 28 : 56); /* msg_len of struct mmsghdr */
	early.nonblocking = output_flags(call) & MSG_DONTWAIT;
	if (!fresh)
		set_nowhere(&peer, domain);
	connection_begin(call, fd, !fresh ? CONNECTION_UNDER_WAY : is_converter(&peer) ? CONNECTION_NATIVE : CONNECTION_CONVERTED, &peer, &early);
}

static void (*const handlers[FILTER_CALL_COUNT])(const struct call *call) = {
	[FILTER_SOCKET] = handle_socket,
	[FILTER_CONNECT] = handle_connect,
	[FILTER_GETPEERNAME] = call_getpeername,
	[FILTER_SENDTO] = handle_output,
	[FILTER_SENDMSG] = handle_output,
	[FILTER_SENDMMSG] = handle_output,
	[FILTER_SETSOCKOPT] = call_setsockopt,
	[FILTER_GETSOCKOPT] = call_getsockopt,
	[FILTER_LISTEN] = call_listen,
};

void calls_handle(struct call *call)
{
	log_about(call->tid);
	if (call->call == FILTER_SOCKETCALL && !unfold_socketcall(call)) {
		leave(call, -1, hidden);
		return;
	}
	if (call->call < FILTER_CALL_COUNT && handlers[call->call]) {
		handlers[call->call](call);
	} else {
		permission_note(call);
		call_continue(call, -1);
	}
}
