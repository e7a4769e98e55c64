/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rights.c - may this thread connect to an address, by the kernel's security modules?
 *
 * Landlock lets a program give up the right to connect to TCP ports. Linux 6.18 checks connect(2) of TCP sockets, and neither Multipath TCP
 * sockets nor MSG_FASTOPEN. So we ask for the right before we use one of these.
 *
 * The security modules judge a connect(2) before TCP looks at the socket's state. A listening socket can't connect: EISCONN, if the modules
 * don't refuse. So nothing leaves the host.
 *
 * Without the capability CAP_SYS_ADMIN, Landlock needs no_new_privs (prctl(2)), which stays for ever and in all children. So we ask only
 * threads with it, and processes that have called landlock_restrict_self(2) by the C library's syscall(). We miss a restriction that a
 * privileged program has inherited from another one without no_new_privs.
 */
#include "config.h"

#include "shim/system/rights.h"

#include "common/rawcall.h"
#include "shim/system/next.h"
#include "shim/system/waiting.h"

#include <stdatomic.h>
#include <sys/prctl.h>

static _Atomic bool was_restricted;

void rights_note_restriction(void)
{
	atomic_store(&was_restricted, true);
}

static bool may_be_restricted(void)
{
	return atomic_load_explicit(&was_restricted, memory_order_relaxed) || RAWCALL(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0L, 0L, 0L, 0L) == 1;
}

int rights_ask(const union sockaddr_ip *to)
{
	ERRNO_KEPT;
	int fd, ret = 0;

	if (!may_be_restricted())
		return 0;
	fd = next_socket_now(to->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
	if (fd < 0)
		return 0;
	if (RAWCALL(SYS_listen, fd, 0) == 0 && RAWCALL(SYS_connect, fd, &to->sa, sockaddr_ip_len(to)) < 0 &&
	    (errno == EACCES || errno == EPERM))
		ret = -errno;
	next_close_now(fd);
	return ret;
}
