/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_faults.c - the errors with which a call may fail, by its man page (man-pages 6.03) */
#include "config.h"

#include "fake_kernel.h"

#include <errno.h>
#include <stddef.h>

/*
 * Left out are errors that tell of a state which the model would have to have (EINPROGRESS, EALREADY, EISCONN of connect(2)), and
 * EFAULT, since the shim's own buffers are always valid.
 */
static const int errors[FAKE_CALL_COUNT][16] = {
	[FAKE_socket] = { EACCES, EAFNOSUPPORT, EINVAL, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPROTONOSUPPORT },
	[FAKE_connect] = { EACCES, EPERM, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, EBADF, ECONNREFUSED, EINTR,
			   ENETUNREACH, ENOTSOCK, EPROTOTYPE, ETIMEDOUT },
	[FAKE_bind] = { EACCES, EADDRINUSE, EBADF, EINVAL, ENOTSOCK, EADDRNOTAVAIL, ENOMEM },
	[FAKE_getpeername] = { EBADF, EINVAL, ENOBUFS, ENOTCONN, ENOTSOCK },
	[FAKE_getsockname] = { EBADF, EINVAL, ENOBUFS, ENOTSOCK },
	[FAKE_getsockopt] = { EBADF, EINVAL, ENOPROTOOPT, ENOTSOCK },
	[FAKE_setsockopt] = { EBADF, EINVAL, ENOPROTOOPT, ENOTSOCK },
	[FAKE_shutdown] = { EBADF, EINVAL, ENOTCONN, ENOTSOCK },
	[FAKE_close] = { EBADF, EINTR, EIO, ENOSPC, EDQUOT },
	[FAKE_dup] = { EBADF, EMFILE, ENOMEM },
	[FAKE_dup2] = { EBADF, EBUSY, EINTR, EMFILE, ENOMEM },
	[FAKE_dup3] = { EBADF, EBUSY, EINTR, EINVAL, EMFILE, ENOMEM },
	[FAKE_fcntl] = { EACCES, EAGAIN, EBADF, EDEADLK, EINTR, EINVAL, EMFILE, ENOLCK, EPERM },
	[FAKE_ioctl] = { EBADF, EINVAL, ENOTTY },
	[FAKE_read] = { EAGAIN, EBADF, EINTR, EINVAL, EIO },
	[FAKE_recv] = { EAGAIN, EBADF, ECONNREFUSED, EINTR, EINVAL, ENOMEM, ENOTCONN, ENOTSOCK },
	[FAKE_write] = { EAGAIN, EBADF, EINTR, EIO, ENOSPC, EPERM, EPIPE },
	[FAKE_send] = { EACCES, EAGAIN, EBADF, ECONNRESET, EINTR, EINVAL, EMSGSIZE, ENOBUFS, ENOMEM, ENOTCONN, ENOTSOCK,
			EOPNOTSUPP, EPIPE },
	[FAKE_sendto] = { EACCES, EAGAIN, EBADF, ECONNRESET, EINTR, EINVAL, EMSGSIZE, ENOBUFS, ENOMEM, ENOTCONN, ENOTSOCK,
			  EOPNOTSUPP, EPIPE },
	[FAKE_sendmsg] = { EACCES, EAGAIN, EBADF, ECONNRESET, EINTR, EINVAL, EMSGSIZE, ENOBUFS, ENOMEM, ENOTCONN, ENOTSOCK,
			   EOPNOTSUPP, EPIPE, ENETUNREACH, ECONNREFUSED },
	[FAKE_poll] = { EINTR, EINVAL, ENOMEM },
	[FAKE_ppoll] = { EINTR, EINVAL, ENOMEM },
	[FAKE_epoll_ctl] = { EBADF, EEXIST, EINVAL, ELOOP, ENOENT, ENOMEM, ENOSPC, EPERM },
	[FAKE_epoll_wait] = { EBADF, EINTR, EINVAL },
	[FAKE_epoll_pwait] = { EBADF, EINTR, EINVAL },
};

const int *fake_errors_of(enum fake_call call)
{
	return errors[call];
}
