/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * through_syscall.h - makes a program's calls by syscall(2) instead of the C library's functions
 *
 * Include it last. It uses system calls that every architecture has: for poll() ppoll, and so on.
 */
#ifndef APPS_THROUGH_SYSCALL_H
#define APPS_THROUGH_SYSCALL_H

#include "common/rawcall.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SIGSET_BYTES (_NSIG / 8)

static inline struct timespec *ms_to_timespec(int ms, struct timespec *time)
{
	*time = (struct timespec){ ms / 1000, ms % 1000 * 1000000L };
	return ms < 0 ? NULL : time;
}

static inline int as_int(long result)
{
	return (int)result;
}

#define socket(domain, type, protocol) as_int(syscall(SYS_socket, domain, type, protocol))
#define connect(fd, addr, len) as_int(syscall(SYS_connect, fd, addr, len))
#define listen(fd, backlog) as_int(syscall(SYS_listen, fd, backlog))
#define accept(fd, addr, len) as_int(syscall(SYS_accept4, fd, addr, len, 0))
#define shutdown(fd, how) as_int(syscall(SYS_shutdown, fd, how))
#define close(fd) as_int(syscall(SYS_close, fd))
#define dup(fd) as_int(syscall(SYS_dup, fd))
#define getpeername(fd, addr, len) as_int(syscall(SYS_getpeername, fd, addr, len))
#define getsockopt(fd, level, name, value, len) as_int(syscall(SYS_getsockopt, fd, level, name, value, len))
#define setsockopt(fd, level, name, value, len) as_int(syscall(SYS_setsockopt, fd, level, name, value, len))
#define ioctl(fd, request, arg) as_int(syscall(SYS_ioctl, fd, request, arg))
#define accept4(fd, addr, len, flags) as_int(syscall(SYS_accept4, fd, addr, len, flags))
#define read(fd, buf, count) syscall(SYS_read, fd, buf, count)
#define readv(fd, iov, count) syscall(SYS_readv, fd, iov, count)
#define recv(fd, buf, len, flags) syscall(SYS_recvfrom, fd, buf, len, flags, NULL, NULL)
#define preadv2(fd, iov, count, offset, flags) syscall(SYS_preadv2, fd, iov, count, (long)(offset), 0, flags)
#define recvfrom(fd, buf, len, flags, addr, alen) syscall(SYS_recvfrom, fd, buf, len, flags, addr, alen)
#define recvmmsg(fd, msgs, count, flags, timeout)                                                  \
	as_int(syscall(SYS_WITH_TIME(recvmmsg), fd, msgs, count, flags, timeout))
#define recvmsg(fd, msg, flags) syscall(SYS_recvmsg, fd, msg, flags)
#define write(fd, buf, count) syscall(SYS_write, fd, buf, count)
#define writev(fd, iov, count) syscall(SYS_writev, fd, iov, count)
#define pwritev2(fd, iov, count, offset, flags) syscall(SYS_pwritev2, fd, iov, count, (long)(offset), 0, flags)
#define sendmsg(fd, msg, flags) syscall(SYS_sendmsg, fd, msg, flags)
#define sendmmsg(fd, msgs, count, flags) as_int(syscall(SYS_sendmmsg, fd, msgs, count, flags))
#define sendfile(out, in, offset, count) syscall(SYS_sendfile, out, in, offset, count)
#define splice(in, in_offset, out, out_offset, len, flags)                                         \
	syscall(SYS_splice, in, in_offset, out, out_offset, len, flags)
#define send(fd, buf, len, flags) syscall(SYS_sendto, fd, buf, len, flags, NULL, 0)
#define sendto(fd, buf, len, flags, addr, alen) syscall(SYS_sendto, fd, buf, len, flags, addr, alen)
#define epoll_ctl(epfd, op, fd, event) as_int(syscall(SYS_epoll_ctl, epfd, op, fd, event))
#define epoll_wait(epfd, events, max, ms)                                                          \
	as_int(syscall(SYS_epoll_pwait, epfd, events, max, ms, NULL, SIGSET_BYTES))
#define epoll_pwait(epfd, events, max, ms, mask)                                                   \
	as_int(syscall(SYS_epoll_pwait, epfd, events, max, ms, mask, SIGSET_BYTES))
#ifdef SYS_epoll_pwait2
#define epoll_pwait2(epfd, events, max, timeout, mask)                                             \
	as_int(syscall(SYS_epoll_pwait2, epfd, events, max, timeout, mask, SIGSET_BYTES))
#endif
#define ppoll(fds, count, timeout, mask)                                                           \
	as_int(syscall(SYS_WITH_TIME(ppoll), fds, count, timeout, mask, SIGSET_BYTES))
#define poll(fds, count, ms) ppoll(fds, count, ms_to_timespec(ms, &(struct timespec){ 0 }), NULL)
#define pselect(nfds, in, out, except, timeout, mask)                                              \
	as_int(syscall(SYS_WITH_TIME(pselect6), nfds, in, out, except, timeout, NULL))
#define select(nfds, in, out, except, timeout) pselect(nfds, in, out, except, timeout, NULL)

#endif
