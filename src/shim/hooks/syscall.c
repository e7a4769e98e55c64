/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syscall.c - syscall(2), the C library's way to any system call
 *
 * No program that we know of connects, reads or writes TCP sockets by syscall() (doc/decisions.md has the measurement); one that did would
 * have direct connections. But some calls matter:
 *
 * - libuv, and with it Node and others, closes all of its descriptors by syscall(). A close() before the response was read would cause a
 *   reset, which loses the application's last bytes: so we do the same here as the hook of close().
 * - A program that makes an io_uring calls hooks for connect(), and none for later operations (system/rings.h).
 * - A program restricts itself by Landlock (system/rights.h).
 * - mptcpize's library makes its sockets by syscall(). In front of ours it would hide them from us.
 *
 * We leave the system call itself to the C library, and never call another hook. So if a preloaded library behind our close() or socket()
 * ends in syscall(), it comes here a second time, which changes nothing, and no third time.
 */
#include "config.h"

#include "common/rawcall.h"
#include "shim/hooks/hook.h"
#include "shim/process/process.h"
#include "shim/system/next.h"
#include "shim/connect/conversion.h"
#include "shim/system/rights.h"
#include "shim/system/rings.h"

#include <netinet/in.h>
#include <pthread.h>

#if RAWCALL_OWN

/* syscall() isn't a cancellation point, but waiting for a response is. */
HOOK_SLOW long close_by_syscall(int fd)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	leave_by_close(fd);
	pthread_setcancelstate(cancel_state, NULL);
	return next.syscall(SYS_close, fd);
}

/* mptcpize asks for Multipath TCP although the program has asked for TCP: we decide which is better. */
HOOK_SLOW long socket_by_syscall(int domain, int type, int protocol)
{
	uint32_t generation = conn_generation();

	if (protocol == IPPROTO_MPTCP && beneath_is_behind_mptcpize)
		protocol = 0;
	return socket_made((int)next.syscall(SYS_socket, domain, type, protocol), domain, type, protocol, generation);
}

static bool any_handshake(const struct conn *conn)
{
	return !conn->follows;
}

/* The ring may read from any connection as soon as it is made, so we end all handshakes that await a response. */
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
 * Passes on all other calls, among them many of futex(2). Callers pass as many arguments as the call has, so the last parameters have
 * arbitrary contents: on some architectures a variable of the caller, on the stack. We may read it and must not write it, as a tail call
 * would; the empty statement prevents that.
 */
HOOK(long, syscall, (long number, long a, long b, long c, long d, long e, long f))
{
	long ret;

	if (number == SYS_close)
		return close_by_syscall((int)a);
	if (number == SYS_socket)
		return socket_by_syscall((int)a, (int)b, (int)c);
#ifdef SYS_landlock_restrict_self
	if (number == SYS_landlock_restrict_self)
		rights_note_restriction();
#endif
	if (number == SYS_io_uring_setup)
		return ring_by_syscall(a, b, __builtin_return_address(0));
	ret = next.syscall(number, a, b, c, d, e, f);
	__asm__ volatile("");
	return ret;
}

#endif
