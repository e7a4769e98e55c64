/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hooks_io.c - sending and receiving while a connection is pending
 *
 * What may pass is decided in gate.c, and by output.c for early data.
 */
#include "config.h"

#include "shim/conn.h"
#include "shim/gate.h"
#include "shim/hook.h"
#include "shim/input.h"
#include "shim/next.h"
#include "shim/output.h"
#include "shim/rights.h"

#include <fcntl.h>
#include <stdlib.h>

#define GATED(gate_call, next_call)                                                                \
	do {                                                                                       \
		struct gate gate = gate_call;                                                      \
                                                                                                   \
		return gate.pass ? (next_call) : hook_result(gate.ret);                            \
	} while (0)

/*
 * Output: what a held SYN waits for goes with it. One look is enough for sockets that are not on
 * their way.
 */
#define GATED_OUTPUT(fd, iov, count, flags, next_call)                                             \
	do {                                                                                       \
		ssize_t early;                                                                     \
                                                                                                   \
		if (!conn_attentive(fd))                                                           \
			return next_call;                                                          \
		if (output_is_early(fd, iov, count, flags, &early))                                \
			return hook_result_long(early);                                            \
		GATED(gate_output(fd, flags), next_call);                                          \
	} while (0)

/*
 * Input: what MPTCP says of a connection that is over becomes what TCP says. Falls through, with 0
 * to be returned, at the end of the stream.
 */
#define GATED_INPUT(fd, flags, next_call)                                                          \
	do {                                                                                       \
		struct gate gate = input_gate(fd, flags);                                          \
		ssize_t got;                                                                       \
                                                                                                   \
		if (!gate.pass)                                                                    \
			return hook_result(gate.ret);                                              \
		got = next_call;                                                                   \
		if (got >= 0 || input_failed(fd) < 0)                                              \
			return got;                                                                \
	} while (0)

/*
 * What a failed input on @fd is for the application: -1, or 0 at the end of the stream. The errno from
 * before isn't worth a look-up in each call; 0 is no error to whoever reads it all the same.
 */
HOOK_SLOW ssize_t input_failed(int fd)
{
	if (!input_has_ended(fd))
		return -1;
	errno = 0;
	return 0;
}

/*
 * INPUT_HOOK(name, (parameters), (arguments), plain) is as HOOK_PASSING, for input from fd that is
 * gated unless it is @plain.
 */
#define INPUT_HOOK(name, params, args, plain)                                                      \
	HOOK_SLOW ssize_t slow_##name params;                                                      \
	HOOK(ssize_t, name, params)                                                                \
	{                                                                                          \
		ssize_t got;                                                                       \
                                                                                                   \
		if (!conn_none_attentive() || !(plain))                                            \
			return slow_##name args;                                                   \
		got = next.name args;                                                              \
		return got >= 0 ? got : input_failed(fd);                                          \
	}                                                                                          \
	HOOK_SLOW ssize_t slow_##name params

INPUT_HOOK(read, (int fd, void *buf, size_t count), (fd, buf, count), true)
{
	GATED_INPUT(fd, 0, next.read(fd, buf, count));
	return 0;
}

INPUT_HOOK(readv, (int fd, const struct iovec *iov, int count), (fd, iov, count), true)
{
	GATED_INPUT(fd, 0, next.readv(fd, iov, count));
	return 0;
}

/* On a socket only offset -1 has a meaning, which is readv() with flags. */
HOOK(ssize_t, preadv2, (int fd, const struct iovec *iov, int count, native_off_t offset, int flags))
{
	GATED_INPUT(fd, 0, next.preadv64v2(fd, iov, count, offset, flags));
	return 0;
}

HOOK(ssize_t, preadv64v2, (int fd, const struct iovec *iov, int count, off64_t offset, int flags))
{
	GATED_INPUT(fd, 0, next.preadv64v2(fd, iov, count, offset, flags));
	return 0;
}

/* TCP waits for data even if none is wanted; MPTCP doesn't. */
static ssize_t recv_nothing(int fd, void *buf, int flags)
{
	char byte;

	if (!input_is_mptcp(fd))
		return next.recv(fd, buf, 0, flags);
	return next.recv(fd, &byte, 1, flags | MSG_PEEK) < 0 ? -1 : 0;
}

INPUT_HOOK(recv, (int fd, void *buf, size_t len, int flags), (fd, buf, len, flags),
	   len && !(flags & MSG_OOB))
{
	GATED_INPUT(fd, flags,
		    len ? next.recv(fd, buf, len, flags) : recv_nothing(fd, buf, flags));
	return 0;
}

HOOK(ssize_t, recvfrom, (int fd, void *buf, size_t len, int flags, struct sockaddr *addr,
			 socklen_t *addrlen))
{
	GATED_INPUT(fd, flags,
		    len || addr ? next.recvfrom(fd, buf, len, flags, addr, addrlen) :
				  recv_nothing(fd, buf, flags));
	if (addr && addrlen)
		*addrlen = 0;
	return 0;
}

HOOK(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags))
{
	GATED_INPUT(fd, flags, next.recvmsg(fd, msg, flags));
	msg->msg_namelen = 0;
	msg->msg_controllen = 0;
	msg->msg_flags = 0;
	return 0;
}

HOOK(int, recvmmsg, (int fd, struct mmsghdr *msgs, unsigned int count, int flags,
		     struct timespec *timeout))
{
	GATED(input_gate(fd, flags), next.recvmmsg(fd, msgs, count, flags, timeout));
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
	return hook_read(fd, buf, count);
}

HOOK(ssize_t, __recv_chk, (int fd, void *buf, size_t len, size_t room, int flags))
{
	fortify_check(len, room);
	return hook_recv(fd, buf, len, flags);
}

HOOK(ssize_t, __recvfrom_chk, (int fd, void *buf, size_t len, size_t room, int flags,
			       struct sockaddr *addr, socklen_t *addrlen))
{
	fortify_check(len, room);
	return hook_recvfrom(fd, buf, len, flags, addr, addrlen);
}

HOOK_PASSING(ssize_t, write, (int fd, const void *buf, size_t count), (fd, buf, count))
{
	const struct iovec iov = { (void *)(uintptr_t)buf, count };

	GATED_OUTPUT(fd, &iov, 1, 0, next.write(fd, buf, count));
}

HOOK_PASSING(ssize_t, writev, (int fd, const struct iovec *iov, int count), (fd, iov, count))
{
	GATED_OUTPUT(fd, iov, (size_t)count, 0, next.writev(fd, iov, count));
}

HOOK(ssize_t, pwritev2, (int fd, const struct iovec *iov, int count, native_off_t offset, int flags))
{
	GATED_OUTPUT(fd, iov, (size_t)count, 0, next.pwritev64v2(fd, iov, count, offset, flags));
}

HOOK(ssize_t, pwritev64v2, (int fd, const struct iovec *iov, int count, off64_t offset, int flags))
{
	GATED_OUTPUT(fd, iov, (size_t)count, 0, next.pwritev64v2(fd, iov, count, offset, flags));
}

HOOK_PASSING(ssize_t, send, (int fd, const void *buf, size_t len, int flags), (fd, buf, len, flags))
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };

	GATED_OUTPUT(fd, &iov, 1, flags, next.send(fd, buf, len, flags));
}

HOOK(ssize_t, sendto, (int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr,
		       socklen_t addrlen))
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };
	ssize_t sent;

	if (output_is_fastopen(fd, &iov, 1, flags, addr, addrlen, &sent))
		return hook_result_long(sent);
	GATED_OUTPUT(fd, &iov, 1, flags, next.sendto(fd, buf, len, flags, addr, addrlen));
}

HOOK(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags))
{
	ssize_t sent;

	rights_leave(msg);
	if (msg && output_is_fastopen(fd, msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name,
				      msg->msg_namelen, &sent))
		return hook_result_long(sent);
	GATED_OUTPUT(fd, msg ? msg->msg_iov : NULL, msg ? msg->msg_iovlen : 0, flags,
		     next.sendmsg(fd, msg, flags));
}

HOOK(int, sendmmsg, (int fd, struct mmsghdr *msgs, unsigned int count, int flags))
{
	for (unsigned int i = 0; msgs && i < count; i++)
		rights_leave(&msgs[i].msg_hdr);
	/* With the first of them a connection may begin. */
	if (count && (flags & MSG_FASTOPEN || output_takes_early(fd))) {
		ssize_t sent = hook_sendmsg(fd, &msgs->msg_hdr, flags);

		if (sent >= 0)
			msgs->msg_len = (unsigned int)sent;
		return sent < 0 ? -1 : 1;
	}
	GATED(gate_output(fd, flags), next.sendmmsg(fd, msgs, count, flags));
}

HOOK_PASSING(ssize_t, sendfile, (int out, int in, native_off_t *offset, size_t count),
	     (out, in, offset, count))
{
	GATED(gate_output(out, 0), next.sendfile(out, in, offset, count));
}

HOOK_PASSING(ssize_t, sendfile64, (int out, int in, off64_t *offset, size_t count),
	     (out, in, offset, count))
{
	GATED(gate_output(out, 0), next.sendfile64(out, in, offset, count));
}

HOOK_PASSING(ssize_t, splice, (int in, off64_t *in_offset, int out, off64_t *out_offset, size_t len,
			       unsigned int flags),
	     (in, in_offset, out, out_offset, len, flags))
{
	int flags_as_recv = flags & SPLICE_F_NONBLOCK ? MSG_DONTWAIT : 0;
	struct gate input = gate_input(in, flags_as_recv);

	if (!input.pass)
		return hook_result(input.ret);
	GATED(gate_output(out, flags_as_recv),
	      next.splice(in, in_offset, out, out_offset, len, flags));
}
