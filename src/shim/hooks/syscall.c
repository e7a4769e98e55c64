/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syscall.c - syscall(2), the C library's way to any system call
 *
 * No program that we know of connects, reads or writes TCP sockets by syscall() (doc/decisions.md has the measurement); one that
 * did would have direct connections. Three calls matter all the same:
 *
 * - libuv closes all of its descriptors so, and with it Node and others. A close() before the response was read would be
 *   a reset, which takes the application's last bytes with it: what close() does beforehand is done here, too.
 * - A program that makes an io_uring has hooks in front of connect(), and none in front of what follows (system/rings.h).
 * - mptcpize's library makes its sockets so. In front of ours it would keep us from knowing them.
 *
 * The system call itself is left to the C library, and never goes through another hook. So a preloaded library behind our
 * close() or socket() whose function ends in syscall() comes here a second time, which changes nothing, and no third time.
 */
#include "config.h"

#include "common/rawcall.h"
#include "shim/hooks/hook.h"
#include "shim/process/leave.h"
#include "shim/system/next.h"
#include "shim/connect/conversion.h"
#include "shim/system/rings.h"

#include <netinet/in.h>
#include <pthread.h>

#if RAWCALL_OWN

/* syscall() is no cancellation point, and to wait for a response is one. */
HOOK_SLOW long close_by_syscall(int fd)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	leave_by_close(fd);
	pthread_setcancelstate(cancel_state, NULL);
	return next.syscall(SYS_close, fd);
}

/* mptcpize asks for Multipath TCP where the program has asked for TCP: which of them is best is for us to say. */
HOOK_SLOW long socket_by_syscall(int domain, int type, int protocol)
{
	uint32_t generation = conn_generation();

	if (protocol == IPPROTO_MPTCP && beneath_is_behind_mptcpize())
		protocol = 0;
	return socket_made((int)next.syscall(SYS_socket, domain, type, protocol), domain, type, protocol, generation);
}

static bool any_handshake(const struct conn *conn)
{
	return !conn->call.follows;
}

/* The ring may read from any connection as soon as it is there: none is left that has a response to come. */
HOOK_SLOW long ring_by_syscall(long entries, long params, const void *caller)
{
	long fd = next.syscall(SYS_io_uring_setup, entries, params);
	int saved_errno = errno;

	if (fd >= 0 && rings_note_setup((int)fd, caller))
		conversion_conclude_all(any_handshake);
	errno = saved_errno;
	return fd;
}

/*
 * All other calls, among them many of futex(2), go on as they are. Callers pass as many arguments as the call has, so that behind
 * them the last parameters are whatever is there: on some architectures a variable of the caller's, on the stack. It is read and
 * must not be written, as it would be for a tail call, which the empty statement prevents.
 */
HOOK(long, syscall, (long number, long a, long b, long c, long d, long e, long f))
{
	long ret;

	if (number == SYS_close)
		return close_by_syscall((int)a);
	if (number == SYS_socket)
		return socket_by_syscall((int)a, (int)b, (int)c);
	if (number == SYS_io_uring_setup)
		return ring_by_syscall(a, b, __builtin_return_address(0));
	ret = next.syscall(number, a, b, c, d, e, f);
	__asm__ volatile("");
	return ret;
}

#endif
