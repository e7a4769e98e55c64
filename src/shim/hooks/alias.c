/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alias.c - hooks for other names of the same functions
 *
 * glibc exports some functions also under names with two underscores, which old programs and other libraries call. On 32-bit architectures
 * programs with 64-bit times call functions with names of their own, which differ only in the type of time-outs.
 */
#include "config.h"

#include "shim/hooks/hook.h"
#include "shim/system/next.h"
#include "shim/system/usermem.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Defines another name for @name. */
#define ALIAS(type, alias, params, args, name)                                                     \
	HOOK(type, alias, params)                                                                  \
	{                                                                                          \
		return name args;                                                                  \
	}

ALIAS(int, __connect, (int fd, const struct sockaddr *addr, socklen_t len), (fd, addr, len), connect)
ALIAS(int, __close, (int fd), (fd), close)
ALIAS(int, __dup2, (int fd, int to), (fd, to), dup2)
ALIAS(ssize_t, __read, (int fd, void *buf, size_t count), (fd, buf, count), read)
ALIAS(ssize_t, __write, (int fd, const void *buf, size_t count), (fd, buf, count), write)
ALIAS(ssize_t, __send, (int fd, const void *buf, size_t len, int flags), (fd, buf, len, flags), send)
ALIAS(int, __poll, (struct pollfd *fds, nfds_t count, int timeout_ms), (fds, count, timeout_ms), poll)
ALIAS(int, __select, (int nfds, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout),
      (nfds, in, out, except, timeout), select)
VARIADIC_HOOK(__fcntl, int, fcntl)

#if defined(__GLIBC__) && __TIMESIZE == 32
/* next.h's functions have the times of the names without "64". */
_Static_assert(sizeof(time_t) == sizeof(long), "to be compiled without _TIME_BITS=64");

/* The kernel's type; the upper half of the nanoseconds is padding. */
struct timespec_64 {
	int64_t tv_sec;
#if __BYTE_ORDER == __BIG_ENDIAN
	int32_t padding, tv_nsec;
#else
	int32_t tv_nsec, padding;
#endif
};

struct timeval_64 {
	int64_t tv_sec, tv_usec;
};

/* Cuts a time-out to 32 bits, which are 68 years. */
static struct timespec *timespec_narrow(const struct timespec_64 *wide, struct timespec *narrow)
{
	if (!wide)
		return NULL;
	narrow->tv_sec = wide->tv_sec > LONG_MAX ? LONG_MAX : wide->tv_sec < 0 ? -1 : (long)wide->tv_sec;
	narrow->tv_nsec = wide->tv_nsec;
	return narrow;
}

HOOK(int, __ppoll64, (struct pollfd *fds, nfds_t count, const struct timespec_64 *timeout,
		      const sigset_t *mask))
{
	struct timespec narrow;

	return ppoll(fds, count, timespec_narrow(timeout, &narrow), mask);
}

HOOK(int, __ppoll64_chk, (struct pollfd *fds, nfds_t count, const struct timespec_64 *timeout,
			  const sigset_t *mask, size_t bytes))
{
	if (bytes / sizeof(*fds) < count)
		abort();
	return hook___ppoll64(fds, count, timeout, mask);
}

HOOK(int, __pselect64, (int nfds, fd_set *in, fd_set *out, fd_set *except,
			const struct timespec_64 *timeout, const sigset_t *mask))
{
	struct timespec narrow;

	return pselect(nfds, in, out, except, timespec_narrow(timeout, &narrow), mask);
}

/* Narrows a time of select(), which accepts more than a second of microseconds. An invalid time stays invalid. */
static struct timeval timeval_narrow(const struct timeval_64 *wide)
{
	int64_t seconds = wide->tv_usec / 1000000;

	if (wide->tv_sec < 0 || wide->tv_usec < 0)
		return (struct timeval){ -1, 0 };
	if (wide->tv_sec > LONG_MAX - seconds)
		return (struct timeval){ LONG_MAX, 0 };
	return (struct timeval){ (long)(wide->tv_sec + seconds), (long)(wide->tv_usec % 1000000) };
}

HOOK(int, __select64, (int nfds, fd_set *in, fd_set *out, fd_set *except, struct timeval_64 *timeout))
{
	struct timeval narrow;
	int ret;

	if (!timeout)
		return select(nfds, in, out, except, NULL);
	narrow = timeval_narrow(timeout);
	ret = select(nfds, in, out, except, &narrow);
	if (narrow.tv_sec >= 0)
		*timeout = (struct timeval_64){ narrow.tv_sec, narrow.tv_usec };
	return ret;
}

/* In the next two the C library lets the kernel read and write the times, and report bad pointers. */
HOOK(int, __epoll_pwait2_time64, (int epfd, struct epoll_event *events, int max,
				  const struct timespec_64 *timeout, const sigset_t *mask))
{
	struct timespec_64 copy;
	struct timespec narrow;

	if (timeout && !usermem_read(&copy, timeout, sizeof(copy)))
		return hook_result(-EFAULT);
	return epoll_pwait2(epfd, events, max, timespec_narrow(timeout ? &copy : NULL, &narrow), mask);
}

HOOK(int, __recvmmsg64, (int fd, struct mmsghdr *msgs, unsigned int count, int flags,
			 struct timespec_64 *timeout))
{
	struct timespec_64 copy;
	struct timespec narrow;
	int ret;

	if (timeout && !usermem_read(&copy, timeout, sizeof(copy)))
		return hook_result(-EFAULT);
	ret = recvmmsg(fd, msgs, count, flags, timespec_narrow(timeout ? &copy : NULL, &narrow));
	if (ret <= 0 || !timeout)
		return ret;
	copy = (struct timespec_64){ .tv_sec = narrow.tv_sec, .tv_nsec = (int32_t)narrow.tv_nsec };
	return usermem_write(timeout, &copy, sizeof(copy)) ? ret : hook_result(-EFAULT);
}

ALIAS(ssize_t, __recvmsg64, (int fd, struct msghdr *msg, int flags), (fd, msg, flags), recvmsg)
ALIAS(ssize_t, __sendmsg64, (int fd, const struct msghdr *msg, int flags), (fd, msg, flags), sendmsg)
ALIAS(int, __sendmmsg64, (int fd, struct mmsghdr *msgs, unsigned int count, int flags), (fd, msgs, count, flags), sendmmsg)
/* Options that contain times have numbers of their own, which the kernel distinguishes. */
ALIAS(int, __getsockopt64, (int fd, int level, int name, void *value, socklen_t *len), (fd, level, name, value, len), getsockopt)
ALIAS(int, __setsockopt64, (int fd, int level, int name, const void *value, socklen_t len), (fd, level, name, value, len), setsockopt)
VARIADIC_HOOK(__fcntl_time64, int, fcntl)
VARIADIC_HOOK(__ioctl_time64, unsigned long, ioctl)
#endif
