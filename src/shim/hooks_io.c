/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hooks_io.c - sending and receiving while a connection is pending
 *
 * An application that was never told "writable" can still get here: it doesn't wait, it
 * waits where we can't see it, or it uses another thread. Input first takes the response
 * off the stream, or fails like a socket in SYN_SENT; output lets the rest of the
 * request go first, and then is the kernel's: the converter keeps the bytes for the
 * server.
 */
#include "config.h"

#include "shim/conn.h"
#include "shim/conversion.h"
#include "shim/hook.h"
#include "shim/next.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>

static bool may_block(int fd, int flags)
{
	int status;

	if (flags & MSG_DONTWAIT)
		return false;
	status = next.fcntl(fd, F_GETFL);
	return status >= 0 && !(status & O_NONBLOCK);
}

/* What a hook is to do: go on to the next function, or return this. */
struct gate {
	bool pass;
	int ret; /* if !pass: 0 or -errno */
};

static const struct gate gate_open = { .pass = true };

static struct gate gate_closed(int ret)
{
	return (struct gate){ .pass = false, .ret = ret };
}

/* Until the response is off the stream, @flags as in recv(2). */
static struct gate gate_input_slow(struct conn *conn, int fd, int flags)
{
	enum conn_state state = conversion_progress(conn, fd);
	int ret;

	if (state == CONN_PENDING) {
		if (!may_block(fd, flags))
			return gate_closed(-EAGAIN);
		ret = conversion_wait(conn, fd);
		if (ret)
			return gate_closed(ret == -EINPROGRESS ? -EAGAIN : ret);
		state = conn_state(conn);
	}
	/* The error once, then the end of the stream: as TCP after a refused connection. */
	return state == CONN_FAILED ? gate_closed(-conversion_take_error(conn)) : gate_open;
}

static inline struct gate gate_input(int fd, int flags)
{
	struct conn *conn = conn_attentive(fd);

	return conn ? gate_input_slow(conn, fd, flags) : gate_open;
}

static bool is_writable(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };

	return next.poll(&ready, 1, 0) > 0;
}

static struct gate gate_output_slow(struct conn *conn, int fd, int flags)
{
	enum conn_state state = conversion_progress(conn, fd);
	int error;

	if (state == CONN_PENDING && conn->want_output) {
		/* Nothing of the application's may overtake the request. */
		error = may_block(fd, flags) ? conversion_wait(conn, fd) : -EAGAIN;
		if (error)
			return gate_closed(error == -EINPROGRESS ? -EAGAIN : error);
		state = conn_state(conn);
	}
	if (state == CONN_PENDING) {
		if (!is_writable(fd) && !may_block(fd, flags))
			return gate_closed(-EAGAIN); /* in SYN_SENT: nothing was taken */
		conn->wrote = true;
	}
	error = state == CONN_FAILED ? conversion_take_error(conn) : 0;
	return error ? gate_closed(-error) : gate_open;
}

static inline struct gate gate_output(int fd, int flags)
{
	struct conn *conn = conn_attentive(fd);

	return conn ? gate_output_slow(conn, fd, flags) : gate_open;
}

#define GATED(gate_call, next_call)                                                                \
	do {                                                                                       \
		struct gate gate = gate_call;                                                      \
		return gate.pass ? (next_call) : hook_result(gate.ret);                            \
	} while (0)

HOOK(ssize_t, read, (int fd, void *buf, size_t count))
{
	GATED(gate_input(fd, 0), next.read(fd, buf, count));
}

HOOK(ssize_t, readv, (int fd, const struct iovec *iov, int count))
{
	GATED(gate_input(fd, 0), next.readv(fd, iov, count));
}

/* On a socket only offset -1 has a meaning, which is readv() with flags. */
HOOK(ssize_t, preadv2, (int fd, const struct iovec *iov, int count, native_off_t offset, int flags))
{
	GATED(gate_input(fd, 0), next.preadv64v2(fd, iov, count, offset, flags));
}

HOOK(ssize_t, preadv64v2, (int fd, const struct iovec *iov, int count, off64_t offset, int flags))
{
	GATED(gate_input(fd, 0), next.preadv64v2(fd, iov, count, offset, flags));
}

HOOK(ssize_t, recv, (int fd, void *buf, size_t len, int flags))
{
	GATED(gate_input(fd, flags), next.recv(fd, buf, len, flags));
}

HOOK(ssize_t, recvfrom, (int fd, void *buf, size_t len, int flags, struct sockaddr *addr,
			 socklen_t *addrlen))
{
	GATED(gate_input(fd, flags), next.recvfrom(fd, buf, len, flags, addr, addrlen));
}

HOOK(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags))
{
	GATED(gate_input(fd, flags), next.recvmsg(fd, msg, flags));
}

HOOK(int, recvmmsg, (int fd, struct mmsghdr *msgs, unsigned int count, int flags,
		     struct timespec *timeout))
{
	GATED(gate_input(fd, flags), next.recvmmsg(fd, msgs, count, flags, timeout));
}

/* The fortified names (_FORTIFY_SOURCE): an overflow ends the process, as in the C library. */
static void fortify_check(size_t wanted, size_t room)
{
	if (wanted > room)
		abort();
}

HOOK(ssize_t, __read_chk, (int fd, void *buf, size_t count, size_t room))
{
	fortify_check(count, room);
	GATED(gate_input(fd, 0), next.read(fd, buf, count));
}

HOOK(ssize_t, __recv_chk, (int fd, void *buf, size_t len, size_t room, int flags))
{
	fortify_check(len, room);
	GATED(gate_input(fd, flags), next.recv(fd, buf, len, flags));
}

HOOK(ssize_t, __recvfrom_chk, (int fd, void *buf, size_t len, size_t room, int flags,
			       struct sockaddr *addr, socklen_t *addrlen))
{
	fortify_check(len, room);
	GATED(gate_input(fd, flags), next.recvfrom(fd, buf, len, flags, addr, addrlen));
}

HOOK(ssize_t, write, (int fd, const void *buf, size_t count))
{
	GATED(gate_output(fd, 0), next.write(fd, buf, count));
}

HOOK(ssize_t, writev, (int fd, const struct iovec *iov, int count))
{
	GATED(gate_output(fd, 0), next.writev(fd, iov, count));
}

HOOK(ssize_t, pwritev2, (int fd, const struct iovec *iov, int count, native_off_t offset, int flags))
{
	GATED(gate_output(fd, 0), next.pwritev64v2(fd, iov, count, offset, flags));
}

HOOK(ssize_t, pwritev64v2, (int fd, const struct iovec *iov, int count, off64_t offset, int flags))
{
	GATED(gate_output(fd, 0), next.pwritev64v2(fd, iov, count, offset, flags));
}

HOOK(ssize_t, send, (int fd, const void *buf, size_t len, int flags))
{
	GATED(gate_output(fd, flags), next.send(fd, buf, len, flags));
}

HOOK(ssize_t, sendto, (int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr,
		       socklen_t addrlen))
{
	GATED(gate_output(fd, flags), next.sendto(fd, buf, len, flags, addr, addrlen));
}

HOOK(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags))
{
	GATED(gate_output(fd, flags), next.sendmsg(fd, msg, flags));
}

HOOK(int, sendmmsg, (int fd, struct mmsghdr *msgs, unsigned int count, int flags))
{
	GATED(gate_output(fd, flags), next.sendmmsg(fd, msgs, count, flags));
}

HOOK(ssize_t, sendfile, (int out, int in, native_off_t *offset, size_t count))
{
	GATED(gate_output(out, 0), next.sendfile(out, in, offset, count));
}

HOOK(ssize_t, sendfile64, (int out, int in, off64_t *offset, size_t count))
{
	GATED(gate_output(out, 0), next.sendfile64(out, in, offset, count));
}

HOOK(ssize_t, splice, (int in, off64_t *in_offset, int out, off64_t *out_offset, size_t len,
		       unsigned int flags))
{
	int flags_as_recv = flags & SPLICE_F_NONBLOCK ? MSG_DONTWAIT : 0;
	struct gate input = gate_input(in, flags_as_recv);

	if (!input.pass)
		return hook_result(input.ret);
	GATED(gate_output(out, flags_as_recv),
	      next.splice(in, in_offset, out, out_offset, len, flags));
}

/* How much can be read: nothing of ours is counted. */
HOOK(int, ioctl, (int fd, unsigned long request, ...))
{
	struct gate gate = gate_open;
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (request == FIONREAD && arg)
		gate = gate_input(fd, MSG_DONTWAIT);
	if (gate.pass)
		return next.ioctl(fd, request, arg);
	*(int *)arg = 0;
	return 0;
}
