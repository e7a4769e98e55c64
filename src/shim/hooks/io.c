/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * io.c - sending and receiving while a connection is pending
 *
 * gate.c decides whether the application may send or receive now, and handles early data. The hooks here ask it. They let the kernel refuse
 * a call whenever it would do so before it looks at the socket's state. They keep no state.
 */
#include "config.h"

#include "shim/connect/gate.h"
#include "shim/hooks/hook.h"
#include "shim/process/process.h"
#include "shim/socket/conn.h"
#include "shim/system/next.h"
#include "shim/system/usermem.h"
#include "shim/system/waiting.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define GATED(gate_call, next_call)                                                                \
	do {                                                                                       \
		int gate = gate_call;                                                              \
                                                                                                   \
		return gate == GATE_OPEN ? (next_call) : hook_result(gate);                        \
	} while (0)

/*
 * @sound in the macros below: has the kernel nothing to refuse before it looks at the socket's state? If false, the hook calls the next
 * function, which refuses the call in any state, or has nothing to transfer. The macros evaluate it only for pending connections.
 */

/* gate_output() for a call that may be asked to connect (MSG_FASTOPEN), and then fails as connect(2) would. */
static int output_gate(int fd, int flags)
{
	int ret = gate_output(fd, flags);

	return ret == -EAGAIN && flags & MSG_FASTOPEN ? -EALREADY : ret;
}

/*
 * The body of a hook for output: sends a deferred SYN with the bytes that it waits for. For sockets that aren't pending it costs one look.
 * @iov, @count: a readable array; the buffers needn't be readable
 */
#define GATED_OUTPUT(fd, iov, count, flags, sound, next_call)                                      \
	do {                                                                                       \
		ssize_t early;                                                                     \
                                                                                                   \
		if (!conn_handled(fd) || !(sound))                                                 \
			return next_call;                                                          \
		if (output_take_early(fd, iov, count, flags, &early))                              \
			return hook_result(early);                                                 \
		GATED(output_gate(fd, flags), next_call);                                          \
	} while (0)

/*
 * The body of a hook for input: translates MPTCP's answers for a connection that is over into TCP's. At the end of the stream it falls
 * through to the code behind it, which returns 0.
 */
#define GATED_INPUT(fd, flags, sound, next_call)                                                   \
	do {                                                                                       \
		int gate = GATE_OPEN;                                                              \
		ssize_t got;                                                                       \
                                                                                                   \
		if (((flags)&MSG_OOB || conn_handled(fd)) && (sound))                              \
			gate = gate_input(fd, flags);                                              \
		if (gate < 0)                                                                      \
			return hook_result(gate);                                                  \
		got = gate == GATE_OPEN ? (next_call) : 0;                                         \
		if (gate == GATE_OPEN && (got >= 0 || input_failed(fd) < 0))                       \
			return got;                                                                \
	} while (0)

/*
 * Returns the application's result for a failed input on @fd: -1, or 0 at the end of the stream. errno then is 0, which is harmless even to
 * a program that reads it; saving the earlier one would cost a look-up in each call.
 */
HOOK_SLOW ssize_t input_failed(int fd)
{
	if (!input_has_ended(fd))
		return -1;
	errno = 0;
	return 0;
}

/* INPUT_HOOK(name, (parameters), (arguments), plain) is like HOOK_PASSING, for input from fd; the fast way is for @plain calls. */
#define INPUT_HOOK(name, params, args, plain)                                                      \
	HOOK_SLOW ssize_t slow_##name params;                                                      \
	HOOK(ssize_t, name, params)                                                                \
	{                                                                                          \
		ssize_t got;                                                                       \
                                                                                                   \
		if (!conn_none_handled() || !(plain))                                              \
			return slow_##name args;                                                   \
		got = next.name args;                                                              \
		return got >= 0 ? got : input_failed(fd);                                          \
	}                                                                                          \
	HOOK_SLOW ssize_t slow_##name params

/* Returns the application's result for a failed output on @fd: -1. */
HOOK_SLOW ssize_t output_failed(int fd)
{
	reset_told(fd, errno);
	return -1;
}

/* OUTPUT_HOOK(name, (parameters), (arguments)) is like HOOK_PASSING, for output to fd. */
#define OUTPUT_HOOK(name, params, args)                                                            \
	HOOK_SLOW ssize_t slow_##name params;                                                      \
	HOOK(ssize_t, name, params)                                                                \
	{                                                                                          \
		ssize_t sent = conn_none_handled() ? next.name args : slow_##name args;            \
                                                                                                   \
		return sent >= 0 ? sent : output_failed(fd);                                       \
	}                                                                                          \
	HOOK_SLOW ssize_t slow_##name params

/*
 * Does the kernel accept this count in read() and write()? A kernel of the program's own width sees one above SSIZE_MAX as negative, and
 * refuses it. A 64-bit kernel transfers what it can to a 32-bit program. Under a 32-bit kernel the call waits here like any other, and is
 * refused afterwards.
 */
static bool is_count(size_t count)
{
	return sizeof(count) < sizeof(uint64_t) || count <= SSIZE_MAX;
}

INPUT_HOOK(read, (int fd, void *buf, size_t count), (fd, buf, count), true)
{
	GATED_INPUT(fd, 0, count && is_count(count) && usermem_is_address(buf), next.read(fd, buf, count));
	return 0;
}

/* Do these buffers transfer any bytes, at the only offset that a socket has? */
static bool is_transfer(const struct iovec *iov, int count, off64_t offset)
{
	if (offset != -1 || count <= 0 || !usermem_has_vector(iov, (size_t)count))
		return false;
	for (int i = 0; i < count; i++)
		if (iov[i].iov_len)
			return true;
	return false;
}

INPUT_HOOK(readv, (int fd, const struct iovec *iov, int count), (fd, iov, count), true)
{
	GATED_INPUT(fd, 0, is_transfer(iov, count, -1), next.readv(fd, iov, count));
	return 0;
}

/* On a socket only offset -1 is valid, which means readv() with flags. */
#define PREADV2_HOOK(name, offset_type)                                                            \
	HOOK(ssize_t, name, (int fd, const struct iovec *iov, int count, offset_type offset, int flags))           \
	{                                                                                          \
		GATED_INPUT(fd, 0, is_transfer(iov, count, offset), next.preadv64v2(fd, iov, count, offset, flags)); \
		return 0;                                                                          \
	}

PREADV2_HOOK(preadv2, native_off_t)
PREADV2_HOOK(preadv64v2, off64_t)

/* Receives 0 bytes: TCP waits for data even then; MPTCP doesn't. */
static ssize_t recv_nothing(int fd, void *buf, int flags)
{
	char byte;

	if (!input_is_mptcp(fd))
		return next.recv(fd, buf, 0, flags);
	return next.recv(fd, &byte, 1, flags | MSG_PEEK) < 0 ? -1 : 0;
}

static ssize_t recv_bytes(int fd, void *buf, size_t len, int flags)
{
	if (!len)
		return recv_nothing(fd, buf, flags);
	return !(flags & MSG_PEEK) || peek_prepare(fd, len, &flags) ? next.recv(fd, buf, len, flags) : -1;
}

INPUT_HOOK(recv, (int fd, void *buf, size_t len, int flags), (fd, buf, len, flags),
	   len && !(flags & (MSG_OOB | MSG_PEEK)))
{
	GATED_INPUT(fd, flags, usermem_is_address(buf), recv_bytes(fd, buf, len, flags));
	return 0;
}

static ssize_t recv_from(int fd, void *buf, size_t len, int flags, struct sockaddr *addr, socklen_t *addrlen)
{
	if (!len && !addr)
		return recv_nothing(fd, buf, flags);
	return !(flags & MSG_PEEK) || peek_prepare(fd, len, &flags) ? next.recvfrom(fd, buf, len, flags, addr, addrlen) : -1;
}

HOOK(ssize_t, recvfrom, (int fd, void *buf, size_t len, int flags, struct sockaddr *addr,
			 socklen_t *addrlen))
{
	GATED_INPUT(fd, flags, usermem_is_address(buf), recv_from(fd, buf, len, flags, addr, addrlen));
	return addr ? hook_result(usermem_answer(addr, addrlen, NULL, 0, USERMEM_NAME)) : 0;
}

/* Has @msg no room for any byte? The kernel has just read @msg. */
static bool is_without_room(const struct msghdr *msg)
{
	/* musl counts by an int, as POSIX does, glibc by a size_t */
	for (size_t i = 0; i < (size_t)msg->msg_iovlen; i++)
		if (msg->msg_iov[i].iov_len)
			return false;
	return true;
}

/* Returns the number of bytes that fit; 0 for a message that the kernel won't accept. */
static size_t room_of(const struct msghdr *msg)
{
	struct msghdr copy;
	size_t room = 0;

	if (!usermem_has_message(msg, false, &copy))
		return 0;
	for (size_t i = 0; i < (size_t)copy.msg_iovlen; i++)
		room += copy.msg_iov[i].iov_len;
	return room;
}

static ssize_t receive(int fd, struct msghdr *msg, int flags)
{
	ssize_t got;

	if (flags & MSG_PEEK && !peek_prepare(fd, room_of(msg), &flags))
		return -1;
	got = next.recvmsg(fd, msg, flags);
	return got == 0 && input_is_mptcp(fd) && is_without_room(msg) ? recv_nothing(fd, NULL, flags) : got;
}

static bool is_message(const struct msghdr *msg, bool sent)
{
	struct msghdr copy;

	return usermem_has_message(msg, sent, &copy);
}

/* Makes @msg empty, at the end of the stream. The kernel has just read @msg, but may not have written it. */
static bool message_empty(struct msghdr *msg)
{
	struct msghdr copy;

	if (!usermem_read(&copy, msg, sizeof(copy)))
		return false;
	copy.msg_namelen = 0;
	copy.msg_controllen = 0;
	copy.msg_flags = 0;
	return usermem_write(msg, &copy, sizeof(copy));
}

HOOK(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags))
{
	GATED_INPUT(fd, flags, is_message(msg, false), receive(fd, msg, flags));
	return hook_result(message_empty(msg) ? 0 : -EFAULT);
}

/* Checks, like the kernel, first the time-out, then the socket's error, then the first header. */
static bool are_messages(int fd, const struct mmsghdr *msgs, unsigned int count, const struct timespec *timeout)
{
	const struct conn *conn = conn_handled(fd);
	struct timespec copy;

	if (timeout && (!usermem_read(&copy, timeout, sizeof(copy)) || !timeout_is_valid(&copy)))
		return false;
	return (conn && conn_has_failed(conn)) || (count && is_message(&msgs->msg_hdr, false));
}

/* Does as recvmmsg(2) at the end of the stream: messages without bytes, and the time-out written back unchanged. */
static int messages_empty(struct mmsghdr *msgs, unsigned int count, struct timespec *timeout)
{
	const unsigned int nothing = 0;
	struct timespec copy;
	unsigned int got = 0;

	while (got < count && message_empty(&msgs[got].msg_hdr) &&
	       usermem_write(&msgs[got].msg_len, &nothing, sizeof(nothing)))
		got++;
	if ((count && !got) || (timeout && (!usermem_read(&copy, timeout, sizeof(copy)) ||
					    !usermem_write(timeout, &copy, sizeof(copy)))))
		return hook_result(-EFAULT);
	return (int)got;
}

HOOK_TIMED(int, recvmmsg, (int fd, struct mmsghdr *msgs, unsigned int count, int flags,
			   struct timespec *timeout))
{
	GATED_INPUT(fd, flags, are_messages(fd, msgs, count, timeout), next.recvmmsg(fd, msgs, count, flags, timeout));
	return messages_empty(msgs, count, timeout);
}

/* For the names that _FORTIFY_SOURCE uses: an overflow ends the process, as in the C library. */
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

OUTPUT_HOOK(write, (int fd, const void *buf, size_t count), (fd, buf, count))
{
	/* in a vector the kernel refuses a longer length, whatever its width */
	const struct iovec iov = { (void *)(uintptr_t)buf, count <= SSIZE_MAX ? count : SSIZE_MAX };

	GATED_OUTPUT(fd, &iov, 1, 0, is_count(count) && usermem_is_address(buf), next.write(fd, buf, count));
}

OUTPUT_HOOK(writev, (int fd, const struct iovec *iov, int count), (fd, iov, count))
{
	GATED_OUTPUT(fd, iov, (size_t)count, 0, is_transfer(iov, count, -1), next.writev(fd, iov, count));
}

#define PWRITEV2_HOOK(name, offset_type)                                                           \
	HOOK(ssize_t, name, (int fd, const struct iovec *iov, int count, offset_type offset, int flags))           \
	{                                                                                          \
		GATED_OUTPUT(fd, iov, (size_t)count, 0, is_transfer(iov, count, offset),           \
			     next.pwritev64v2(fd, iov, count, offset, flags));                     \
	}

PWRITEV2_HOOK(pwritev2, native_off_t)
PWRITEV2_HOOK(pwritev64v2, off64_t)

OUTPUT_HOOK(send, (int fd, const void *buf, size_t len, int flags), (fd, buf, len, flags))
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };

	GATED_OUTPUT(fd, &iov, 1, flags, usermem_is_address(buf), next.send(fd, buf, len, flags));
}

/*
 * Checks Fast Open on a socket after connect(2), like tcp_sendmsg_fastopen(), which looks at the address, if there is one (@name), although
 * it doesn't use it. Returns 0 or -errno.
 */
static int fastopen_refused(int fd, int flags, const struct sockaddr_storage *name, socklen_t len)
{
	const struct conn *conn = flags & MSG_FASTOPEN ? conn_of(fd) : conn_handled(fd);
	enum conn_phase phase = conn ? conn_phase(conn) : CONN_FREE;

	if (phase != CONN_DEFERRED &&
	    (!(flags & MSG_FASTOPEN) || phase_in(phase, PHASE(FREE) | PHASE(IDLE) | PHASE(DIRECT))))
		return 0;
	if (name && len < sizeof(name->ss_family))
		return -EINVAL;
	if (name && name->ss_family == AF_UNSPEC)
		return -EOPNOTSUPP;
	return phase_in(phase, PHASE(DONE) | PHASES_CONFIRMED) ? -EISCONN : 0;
}

HOOK(ssize_t, sendto, (int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr,
		       socklen_t addrlen))
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct sockaddr_storage copy;
	ssize_t sent;
	int refused;

	if ((!(flags & MSG_FASTOPEN) && !conn_handled(fd)) || !usermem_is_address(buf) ||
	    (addr && !usermem_has_address(addr, addrlen, &copy))) {
		sent = next.sendto(fd, buf, len, flags, addr, addrlen);
		return sent >= 0 ? sent : output_failed(fd);
	}
	refused = fastopen_refused(fd, flags, addr ? &copy : NULL, addrlen);
	if (refused)
		return hook_result(refused);
	if (addr && output_connect_fastopen(fd, &iov, 1, flags, (const struct sockaddr *)&copy, addrlen, &sent))
		return hook_result(sent);
	GATED_OUTPUT(fd, &iov, 1, flags, true, next.sendto(fd, buf, len, flags, addr, addrlen));
}

/* sendmsg() while there are pending connections. Any socket may carry descriptors, which we prepare first (leave.c). */
HOOK_SLOW ssize_t slow_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct sockaddr_storage address, *name;
	struct msghdr copy;
	socklen_t len;
	ssize_t sent;
	int refused;

	if (!usermem_has_message(msg, true, &copy))
		return next.sendmsg(fd, msg, flags);
	scm_rights_leave(&copy);
	len = copy.msg_namelen < sizeof(address) ? copy.msg_namelen : sizeof(address);
	name = copy.msg_name && len && usermem_has_address(copy.msg_name, len, &address) ? &address : NULL;
	refused = fastopen_refused(fd, flags, name, len);
	if (refused)
		return hook_result(refused);
	if (output_connect_fastopen(fd, copy.msg_iov, copy.msg_iovlen, flags, (const struct sockaddr *)name, len, &sent))
		return hook_result(sent);
	GATED_OUTPUT(fd, copy.msg_iov, copy.msg_iovlen, flags, true, next.sendmsg(fd, msg, flags));
}

/*
 * Without pending connections, descriptors in the message need no preparation. So the kernel takes the message first, and has thereby shown
 * that it is readable.
 */
HOOK(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags))
{
	ssize_t sent;

	if (!conn_none_handled() || flags & MSG_FASTOPEN)
		return slow_sendmsg(fd, msg, flags);
	sent = next.sendmsg(fd, msg, flags);
	if (sent < 0)
		return output_failed(fd);
	scm_rights_leave(msg);
	return sent;
}

/* Prepares the descriptors in each readable message, of the 1024 at most that the kernel accepts. */
static void scm_rights_leave_several(const struct mmsghdr *msgs, unsigned int count)
{
	struct msghdr copy;

	for (unsigned int i = 0; i < count && i < IOV_MAX; i++) {
		if (!usermem_has_message(&msgs[i].msg_hdr, true, &copy))
			break;
		scm_rights_leave(&copy);
	}
}

/* Sends the first message alone, since it may begin the connection. Returns as sendmmsg(2). */
static int send_first(int fd, struct mmsghdr *msgs, int flags)
{
	ssize_t sent = slow_sendmsg(fd, &msgs->msg_hdr, flags);
	unsigned int len = (unsigned int)sent;

	if (sent < 0)
		return -1;
	return usermem_write(&msgs->msg_len, &len, sizeof(len)) ? 1 : hook_result(-EFAULT);
}

HOOK_SLOW int slow_sendmmsg(int fd, struct mmsghdr *msgs, unsigned int count, int flags)
{
	if (!count || !is_message(&msgs->msg_hdr, true))
		return next.sendmmsg(fd, msgs, count, flags);
	scm_rights_leave_several(msgs, count);
	if (flags & MSG_FASTOPEN || output_takes_early(fd))
		return send_first(fd, msgs, flags);
	GATED(output_gate(fd, flags), next.sendmmsg(fd, msgs, count, flags));
}

HOOK(int, sendmmsg, (int fd, struct mmsghdr *msgs, unsigned int count, int flags))
{
	int sent;

	if (!conn_none_handled() || flags & MSG_FASTOPEN)
		return slow_sendmmsg(fd, msgs, count, flags);
	sent = next.sendmmsg(fd, msgs, count, flags);
	for (int i = 0; i < sent; i++)
		scm_rights_leave(&msgs[i].msg_hdr);
	return sent;
}

/* The kernel copies the offset before it looks at the socket. */
#define SENDFILE_HOOK(name, offset_type)                                                           \
	HOOK_PASSING(ssize_t, name, (int out, int in, offset_type *offset, size_t count), (out, in, offset, count)) \
	{                                                                                          \
		if (!conn_handled(out) || (offset && !usermem_is_readable(offset, sizeof(*offset))))   \
			return next.name(out, in, offset, count);                                  \
		GATED(gate_output(out, 0), next.name(out, in, offset, count));                     \
	}

SENDFILE_HOOK(sendfile, native_off_t)
SENDFILE_HOOK(sendfile64, off64_t)

HOOK_PASSING(ssize_t, splice, (int in, off64_t *in_offset, int out, off64_t *out_offset, size_t len,
			       unsigned int flags),
	     (in, in_offset, out, out_offset, len, flags))
{
	int flags_as_recv = flags & SPLICE_F_NONBLOCK ? MSG_DONTWAIT : 0;
	int input;

	/* Neither a socket nor a pipe, which the other end must be, takes an offset. */
	if (!len || in_offset || out_offset)
		return next.splice(in, in_offset, out, out_offset, len, flags);
	input = gate_input(in, flags_as_recv);
	if (input != GATE_OPEN)
		return hook_result(input);
	GATED(gate_output(out, flags_as_recv),
	      next.splice(in, in_offset, out, out_offset, len, flags));
}

/*
 * Before the C library itself reads and writes, and before the process ends
 *
 * The operations of stdio on a socket bypass all hooks. So before a socket that the application believes to be connected becomes a stream,
 * we wait for the response and take it off. A connection that begins when there is a stream already is neither deferred for early data nor
 * confirmed by its SYN+ACK (conn.streamed). The standard descriptors have streams from the beginning: see dup2() in hooks/socket.c.
 */

HOOK(FILE *, fdopen, (int fd, const char *mode))
{
	leave_to_stdio(fd);
	return next.fdopen(fd, mode);
}

HOOK(int, vdprintf, (int fd, const char *format, va_list args))
{
	leave_to_stdio(fd);
	return next.vdprintf(fd, format, args);
}

HOOK(int, dprintf, (int fd, const char *format, ...))
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = hook_vdprintf(fd, format, args);
	va_end(args);
	return ret;
}

/* The names that _FORTIFY_SOURCE uses; @flag makes the C library check for "%n". */
HOOK(int, __vdprintf_chk, (int fd, int flag, const char *format, va_list args))
{
	leave_to_stdio(fd);
	return next.__vdprintf_chk(fd, flag, format, args);
}

HOOK(int, __dprintf_chk, (int fd, int flag, const char *format, ...))
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = hook___vdprintf_chk(fd, flag, format, args);
	va_end(args);
	return ret;
}

/* _exit() runs no destructor (init.c has one for exit(), which ends the process by a call that is no hook). */
HOOK(void, _exit, (int status))
{
	if (!conn_none_handled() && conn_is_owner())
		leave_all(LEAVE_ALL);
	next._exit(status);
	__builtin_unreachable();
}

HOOK(void, _Exit, (int status))
{
	hook__exit(status);
}
