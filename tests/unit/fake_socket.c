/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_socket.c - the fake kernel's sockets: connecting, sending, receiving
 *
 * It does what Linux 6.18 does, as far as the shim uses it; tests/lab/test_platform*.py proves these assumptions on the real kernel.
 */
#include "config.h"

#include "fake_private.h"

#include "shim/system/next.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

#define SYN_ROOM 1400 /* bytes of data that a SYN takes */
#define FIRST_PORT 40000

static uint64_t cookies = 7000;
static uint16_t ports = FIRST_PORT;
static bool fastopen_allowed = true;

void fake_allow_fastopen(bool allowed)
{
	fastopen_allowed = allowed;
}

static bool option_on(struct fake_socket *socket, int name)
{
	return fake_option_of(socket, IPPROTO_TCP, name)->value != 0;
}

static bool is_mptcp(const struct fake_socket *socket)
{
	return socket->protocol == IPPROTO_MPTCP;
}

/* Sets errno, and returns -1, as most functions below do. */
static int fail(int error)
{
	errno = error;
	return -1;
}

int fake_socket_call(int domain, int type, int protocol)
{
	struct fake_file *file;
	int fd;

	if (fake_enter(FAKE_socket))
		return -1;
	if (domain != AF_INET && domain != AF_INET6)
		return fail(EAFNOSUPPORT);
	fd = fake_file_make(type & SOCK_CLOEXEC ? FD_CLOEXEC : 0, &file);
	if (type & SOCK_NONBLOCK)
		file->flags |= O_NONBLOCK;
	file->socket.domain = domain;
	file->socket.type = type & 0xf;
	file->socket.protocol = protocol ? protocol : IPPROTO_TCP;
	file->socket.cookie = ++cookies;
	file->socket.local.sa.sa_family = file->socket.peer.sa.sa_family = (sa_family_t)domain;
	file->socket.host = -1;
	return fd;
}

/* Leaves the socket as it is after a connection, or after a failed attempt. */
void fake_socket_reset(struct fake_socket *socket)
{
	socket->connection++;
	socket->state = FAKE_CLOSED;
	socket->deferred = socket->fin = socket->shut_in = socket->shut_out = false;
	socket->syn_taken = socket->fallen_back = socket->timestamps = false;
	socket->in_len = socket->in_total = socket->out_len = socket->syn_len = 0;
	socket->segments = 0;
	socket->host = -1;
	memset(&socket->peer, 0, sizeof(socket->peer));
	socket->peer.sa.sa_family = (sa_family_t)socket->domain;
	if (!socket->bound)
		sockaddr_ip_set_port(&socket->local, 0);
}

void fake_established(struct fake_socket *socket)
{
	socket->state = FAKE_ESTABLISHED;
	socket->heard = fake_now();
	if (!socket->syn_taken)
		socket->syn_len = 0; /* it is sent again behind the handshake */
	fake_network_sent(socket);
	fake_epoll_wake(socket);
}

void fake_refused(struct fake_socket *socket, int error)
{
	fake_socket_reset(socket);
	socket->was_open = socket->aborted = true;
	socket->error = error;
	socket->queued += !is_mptcp(socket) && error != ECONNREFUSED && error != ECONNRESET;
	fake_epoll_wake(socket);
}

/* Returns 0 or a positive errno. */
static int syn_leave(struct fake_socket *socket)
{
	int error;

	socket->state = FAKE_SYN_SENT;
	socket->deferred = false;
	socket->was_open = socket->aborted = false;
	socket->segments = 1;
	if (!sockaddr_ip_port(&socket->local))
		sockaddr_ip_set_port(&socket->local, ports++);
	error = fake_network_syn(socket);
	if (error)
		fake_socket_reset(socket);
	return error;
}

/* TCP leaves an error behind if there was a connection, or an attempt; MPTCP doesn't. */
static int disconnect(struct fake_socket *socket)
{
	if (socket->state != FAKE_CLOSED && !is_mptcp(socket))
		socket->error = ECONNRESET;
	fake_socket_reset(socket);
	socket->was_open = socket->aborted = false;
	fake_epoll_wake(socket);
	return 0;
}

static bool is_decided(void *arg)
{
	const struct fake_socket *socket = arg;

	return socket->state != FAKE_SYN_SENT;
}

static int take_error(struct fake_socket *socket, int otherwise)
{
	int error = socket->error ? socket->error : otherwise;

	socket->error = 0;
	return error;
}

static int connect_finish(struct fake_file *file)
{
	if (file->flags & O_NONBLOCK)
		return fail(EINPROGRESS);
	fake_wait(is_decided, &file->socket, FAKE_NEVER, !fake_signals_are_blocked());
	if (file->socket.state == FAKE_ESTABLISHED)
		return 0;
	file->socket.aborted = false;
	return fail(take_error(&file->socket, ECONNABORTED));
}

static int connect_datagram(struct fake_socket *socket, const union sockaddr_ip *to)
{
	struct in6_addr own = { .s6_addr = { [10] = 0xff, 0xff, 10, 0, 0, 1 } };

	socket->peer = *to;
	return sockaddr_ip_set(&socket->local, socket->domain, &own, ports++) ? 0 : fail(EAFNOSUPPORT);
}

/* As inet_stream_connect() and tcp_v4_connect(). */
int fake_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct fake_file *file;
	struct fake_socket *socket;
	union sockaddr_ip to;
	int error;

	if (fake_enter(FAKE_connect))
		return -1;
	file = fake_socket_file(fd);
	if (!file)
		return -1;
	socket = &file->socket;
	if (addr->sa_family == AF_UNSPEC)
		return disconnect(socket);
	if (!sockaddr_ip_from(&to, addr, len))
		return fail(EAFNOSUPPORT);
	if (socket->type == SOCK_DGRAM && to.sa.sa_family == socket->domain)
		return connect_datagram(socket, &to);
	if (socket->state == FAKE_ESTABLISHED)
		return fail(EISCONN);
	if (socket->state == FAKE_SYN_SENT)
		return socket->deferred ? fail(EISCONN) :
		       file->flags & O_NONBLOCK ? fail(EALREADY) : connect_finish(file);
	if (socket->aborted || socket->error) {
		socket->aborted = false;
		return fail(take_error(socket, ECONNABORTED));
	}
	if (to.sa.sa_family != socket->domain) /* where the state has decided, the address doesn't matter */
		return fail(socket->domain == AF_INET ? EAFNOSUPPORT : EINVAL);
	fake_socket_reset(socket);
	socket->peer = to;
	error = fake_network_route(socket);
	if (error) {
		fake_socket_reset(socket);
		return fail(error);
	}
	if (option_on(socket, TCP_FASTOPEN_CONNECT) && option_on(socket, TCP_FASTOPEN_NO_COOKIE) && fastopen_allowed) {
		socket->state = FAKE_SYN_SENT;
		socket->deferred = true;
		fake_epoll_wake(socket);
		return 0;
	}
	error = syn_leave(socket);
	return error ? fail(error) : connect_finish(file);
}

int fake_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct fake_file *file;

	if (fake_enter(FAKE_bind))
		return -1;
	file = fake_socket_file(fd);
	if (!file)
		return -1;
	if (file->socket.bound || !sockaddr_ip_from(&file->socket.local, addr, len))
		return fail(EINVAL);
	file->socket.bound = true;
	return 0;
}

int fake_listen(int fd, int backlog)
{
	(void)fd, (void)backlog;
	fake_die("listen() isn't modelled");
}

static int name_tell(const union sockaddr_ip *name, struct sockaddr *addr, socklen_t *len)
{
	socklen_t full = sockaddr_ip_len(name);

	memcpy(addr, name, full < *len ? full : *len);
	*len = full;
	return 0;
}

int fake_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct fake_file *file;

	if (fake_enter(FAKE_getpeername))
		return -1;
	file = fake_socket_file(fd);
	if (!file)
		return -1;
	return file->socket.state == FAKE_ESTABLISHED ? name_tell(&file->socket.peer, addr, len) : fail(ENOTCONN);
}

int fake_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct fake_file *file;

	if (fake_enter(FAKE_getsockname))
		return -1;
	file = fake_socket_file(fd);
	return file ? name_tell(&file->socket.local, addr, len) : -1;
}

int fake_shutdown(int fd, int how)
{
	struct fake_file *file;
	struct fake_socket *socket;

	if (fake_enter(FAKE_shutdown))
		return -1;
	file = fake_socket_file(fd);
	if (!file)
		return -1;
	socket = &file->socket;
	if (socket->state == FAKE_CLOSED)
		return fail(ENOTCONN);
	if (socket->state == FAKE_SYN_SENT)
		return disconnect(socket);
	socket->shut_in |= how != SHUT_WR;
	socket->shut_out |= how != SHUT_RD;
	fake_epoll_wake(socket);
	return 0;
}

/* --- receiving --- */

static bool is_readable(void *arg)
{
	const struct fake_socket *socket = arg;

	return socket->in_len || socket->fin || socket->shut_in || socket->error || socket->state == FAKE_CLOSED;
}

static ssize_t receive_nothing(struct fake_socket *socket)
{
	if (socket->fin || socket->shut_in)
		return 0;
	if (socket->error)
		return fail(take_error(socket, 0));
	return socket->was_open && !is_mptcp(socket) ? 0 : fail(ENOTCONN);
}

static ssize_t receive(int fd, void *buf, size_t len, int flags)
{
	struct fake_file *file = fake_socket_file(fd);
	struct fake_socket *socket;

	if (!file)
		return -1;
	if (flags == (MSG_ERRQUEUE | MSG_DONTWAIT) && !len) {
		if (!file->socket.queued)
			return fail(EAGAIN);
		file->socket.queued--;
		return 0;
	}
	if (flags & ~(MSG_PEEK | MSG_DONTWAIT))
		fake_die("recv() with flags %#x isn't modelled", (unsigned int)flags);
	socket = &file->socket;
	/* Linux 6.12 would wait in a busy loop for the rest of SO_RCVLOWAT, and loop for ever once that is there. */
	if (flags == MSG_PEEK && !(file->flags & O_NONBLOCK) && is_mptcp(socket) && socket->in_len &&
	    socket->in_len < (size_t)fake_option_of(socket, SOL_SOCKET, SO_RCVLOWAT)->value)
		fake_die("MSG_PEEK waits on MPTCP for what is behind bytes that it has seen");
	if (!is_readable(socket)) {
		if (flags & MSG_DONTWAIT || file->flags & O_NONBLOCK)
			return fail(EAGAIN);
		fake_wait(is_readable, socket, FAKE_NEVER, !fake_signals_are_blocked());
	}
	if (!socket->in_len)
		return receive_nothing(socket);
	len = len < socket->in_len ? len : socket->in_len;
	memcpy(buf, socket->in, len);
	if (!(flags & MSG_PEEK)) {
		memmove(socket->in, socket->in + len, socket->in_len - len);
		socket->in_len -= len;
	}
	return (ssize_t)len;
}

ssize_t fake_recv(int fd, void *buf, size_t len, int flags)
{
	return fake_enter(FAKE_recv) ? -1 : receive(fd, buf, len, flags);
}

ssize_t fake_read(int fd, void *buf, size_t count)
{
	return fake_enter(FAKE_read) ? -1 : receive(fd, buf, count, 0);
}

/* --- sending --- */

static size_t bytes_append(struct fake_socket *socket, const struct msghdr *msg, size_t room)
{
	size_t before = socket->out_len;

	for (size_t i = 0; i < (size_t)msg->msg_iovlen; i++) {
		size_t part = msg->msg_iov[i].iov_len < room ? msg->msg_iov[i].iov_len : room;

		if (socket->out_len + part > FAKE_BYTES)
			fake_die("too many bytes are sent");
		if (part)
			memcpy(socket->out + socket->out_len, msg->msg_iov[i].iov_base, part);
		socket->out_len += part;
		room -= part;
	}
	return socket->out_len - before;
}

/* A SYN with data: MSG_FASTOPEN, or the first output after TCP_FASTOPEN_CONNECT. */
static ssize_t send_with_syn(struct fake_file *file, const struct msghdr *msg)
{
	struct fake_socket *socket = &file->socket;
	size_t sent;
	int error = syn_leave(socket);

	if (error)
		return fail(error);
	sent = socket->syn_len = bytes_append(socket, msg, SYN_ROOM);
	return sent ? (ssize_t)sent : fail(EINPROGRESS);
}

static ssize_t send_fastopen(struct fake_file *file, const struct msghdr *msg)
{
	static const struct msghdr nothing;
	struct fake_socket *socket = &file->socket;

	if (!fastopen_allowed)
		return fail(EOPNOTSUPP);
	if (socket->state == FAKE_ESTABLISHED)
		return fail(EISCONN);
	if (socket->state == FAKE_SYN_SENT)
		return fail(EALREADY);
	if (socket->aborted || socket->error) {
		socket->aborted = false;
		return fail(take_error(socket, ECONNABORTED));
	}
	fake_socket_reset(socket);
	if (!sockaddr_ip_from(&socket->peer, msg->msg_name, msg->msg_namelen) || socket->peer.sa.sa_family != socket->domain)
		return fail(EINVAL);
	/* There is no Fast Open cookie: the SYN asks for one. */
	return option_on(socket, TCP_FASTOPEN_NO_COOKIE) ? send_with_syn(file, msg) : send_with_syn(file, &nothing);
}

static ssize_t send_message(int fd, const struct msghdr *msg, int flags)
{
	struct fake_file *file = fake_socket_file(fd);
	struct fake_socket *socket;
	size_t sent;

	if (!file)
		return -1;
	if (flags & ~(MSG_FASTOPEN | MSG_DONTWAIT | MSG_NOSIGNAL))
		fake_die("sendmsg() with flags %#x isn't modelled", (unsigned int)flags);
	socket = &file->socket;
	if (flags & MSG_FASTOPEN)
		return send_fastopen(file, msg);
	if (socket->deferred)
		return send_with_syn(file, msg);
	if (socket->state == FAKE_SYN_SENT) {
		if (flags & MSG_DONTWAIT || file->flags & O_NONBLOCK)
			return fail(EAGAIN);
		fake_wait(is_decided, socket, FAKE_NEVER, !fake_signals_are_blocked());
	}
	if (socket->error)
		return fail(take_error(socket, 0));
	if (socket->state != FAKE_ESTABLISHED || socket->shut_out)
		return fail(EPIPE);
	sent = bytes_append(socket, msg, SIZE_MAX);
	socket->segments++;
	fake_network_sent(socket);
	return (ssize_t)sent;
}

ssize_t fake_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return fake_enter(FAKE_sendmsg) ? -1 : send_message(fd, msg, flags);
}

ssize_t fake_send(int fd, const void *buf, size_t len, int flags)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return fake_enter(FAKE_send) ? -1 : send_message(fd, &msg, flags);
}

ssize_t fake_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr, socklen_t addrlen)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct msghdr msg = { .msg_name = (void *)(uintptr_t)addr, .msg_namelen = addrlen, .msg_iov = &iov, .msg_iovlen = 1 };

	return fake_enter(FAKE_sendto) ? -1 : send_message(fd, &msg, flags);
}

ssize_t fake_write(int fd, const void *buf, size_t count)
{
	struct iovec iov = { (void *)(uintptr_t)buf, count };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return fake_enter(FAKE_write) ? -1 : send_message(fd, &msg, 0);
}

int fake_ioctl(int fd, unsigned long request, ...)
{
	struct fake_file *file;
	va_list args;
	int *answer;

	va_start(args, request);
	answer = va_arg(args, int *);
	va_end(args);
	if (fake_enter(FAKE_ioctl))
		return -1;
	file = fake_socket_file(fd);
	if (!file)
		return -1;
	if (request != FIONREAD)
		fake_die("ioctl() %#lx isn't modelled", request);
	*answer = (int)file->socket.in_len;
	return 0;
}

/* As tcp_poll(). */
short fake_socket_poll(const struct fake_socket *socket)
{
	int lowat = fake_option_of((struct fake_socket *)(uintptr_t)socket, SOL_SOCKET, SO_RCVLOWAT)->value;
	short events = socket->error || socket->queued ? POLLERR : 0;

	if (socket->state == FAKE_CLOSED)
		return (short)(events | POLLHUP | POLLOUT | POLLWRNORM |
			       (socket->was_open ? POLLIN | POLLRDNORM | POLLRDHUP : 0));
	if (socket->state == FAKE_SYN_SENT)
		return (short)(events | (socket->deferred ? POLLOUT | POLLWRNORM : 0));
	if ((socket->in_len && socket->in_len >= (size_t)lowat) || socket->fin || socket->shut_in)
		events |= POLLIN | POLLRDNORM;
	if (socket->fin || socket->shut_in)
		events |= POLLRDHUP;
	if (socket->fin && socket->shut_out)
		events |= POLLHUP;
	return (short)(events | POLLOUT | POLLWRNORM);
}
