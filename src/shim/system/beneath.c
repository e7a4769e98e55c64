/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * beneath.c - other preloaded libraries that stand between our hooks and the C library
 *
 * A thread is "inside" from its call of another library's function until that function returns. What is remembered is the
 * place on the stack where the call was made, and not a counter: a signal handler may leave a function that waits
 * by siglongjmp(), after which a counter would stay too high. A remembered place that is further down the stack than the thread is
 * now belongs to a call that was left in this way, and counts no more.
 */
#include "config.h"

#include "shim/system/beneath.h"

#include "common/proxies.h"
#include "common/rawcall.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if RAWCALL_OWN /* elsewhere syscall() is no hook, so that nothing can come back */

/* X(return type, name, parameters, arguments): the functions whose system calls hooks/syscall.c sends to a hook */
#define BENEATH_FUNCTIONS(X)                                                                       \
	X(int, socket, (int domain, int type, int protocol), (domain, type, protocol))             \
	X(int, connect, (int fd, const struct sockaddr *addr, socklen_t len), (fd, addr, len))     \
	X(int, bind, (int fd, const struct sockaddr *addr, socklen_t len), (fd, addr, len))        \
	X(int, listen, (int fd, int backlog), (fd, backlog))                                       \
	X(int, getpeername, (int fd, struct sockaddr *addr, socklen_t *len), (fd, addr, len))      \
	X(int, getsockname, (int fd, struct sockaddr *addr, socklen_t *len), (fd, addr, len))      \
	X(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len),             \
	  (fd, level, name, value, len))                                                           \
	X(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len),        \
	  (fd, level, name, value, len))                                                           \
	X(int, shutdown, (int fd, int how), (fd, how))                                             \
	X(int, close, (int fd), (fd))                                                              \
	X(int, close_range, (unsigned int first, unsigned int last, int flags), (first, last, flags)) \
	X(int, dup, (int fd), (fd))                                                                \
	X(int, dup2, (int fd, int to), (fd, to))                                                   \
	X(int, dup3, (int fd, int to, int flags), (fd, to, flags))                                 \
	X(ssize_t, read, (int fd, void *buf, size_t count), (fd, buf, count))                      \
	X(ssize_t, readv, (int fd, const struct iovec *iov, int count), (fd, iov, count))          \
	X(ssize_t, preadv64v2,                                                                     \
	  (int fd, const struct iovec *iov, int count, off64_t offset, int flags),                 \
	  (fd, iov, count, offset, flags))                                                         \
	X(ssize_t, recv, (int fd, void *buf, size_t len, int flags), (fd, buf, len, flags))        \
	X(ssize_t, recvfrom,                                                                       \
	  (int fd, void *buf, size_t len, int flags, struct sockaddr *addr, socklen_t *addrlen),   \
	  (fd, buf, len, flags, addr, addrlen))                                                    \
	X(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags), (fd, msg, flags))             \
	X(int, recvmmsg,                                                                           \
	  (int fd, struct mmsghdr *msgs, unsigned int count, int flags, struct timespec *timeout), \
	  (fd, msgs, count, flags, timeout))                                                       \
	X(ssize_t, write, (int fd, const void *buf, size_t count), (fd, buf, count))               \
	X(ssize_t, writev, (int fd, const struct iovec *iov, int count), (fd, iov, count))         \
	X(ssize_t, pwritev64v2,                                                                    \
	  (int fd, const struct iovec *iov, int count, off64_t offset, int flags),                 \
	  (fd, iov, count, offset, flags))                                                         \
	X(ssize_t, send, (int fd, const void *buf, size_t len, int flags), (fd, buf, len, flags))  \
	X(ssize_t, sendto,                                                                         \
	  (int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr,            \
	   socklen_t addrlen),                                                                     \
	  (fd, buf, len, flags, addr, addrlen))                                                    \
	X(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags), (fd, msg, flags))       \
	X(int, sendmmsg, (int fd, struct mmsghdr *msgs, unsigned int count, int flags),            \
	  (fd, msgs, count, flags))                                                                \
	X(ssize_t, sendfile, (int out, int in, native_off_t *offset, size_t count),                \
	  (out, in, offset, count))                                                                \
	X(ssize_t, sendfile64, (int out, int in, off64_t *offset, size_t count),                   \
	  (out, in, offset, count))                                                                \
	X(ssize_t, splice,                                                                         \
	  (int in, off64_t *in_offset, int out, off64_t *out_offset, size_t len,                   \
	   unsigned int flags),                                                                    \
	  (in, in_offset, out, out_offset, len, flags))                                            \
	X(int, poll, (struct pollfd *fds, nfds_t count, int timeout_ms), (fds, count, timeout_ms)) \
	X(int, ppoll,                                                                              \
	  (struct pollfd *fds, nfds_t count, const struct timespec *timeout,                       \
	   const sigset_t *mask),                                                                  \
	  (fds, count, timeout, mask))                                                             \
	X(int, select,                                                                             \
	  (int nfds, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout),            \
	  (nfds, in, out, except, timeout))                                                        \
	X(int, pselect,                                                                            \
	  (int nfds, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,      \
	   const sigset_t *mask),                                                                  \
	  (nfds, in, out, except, timeout, mask))                                                  \
	X(int, epoll_ctl, (int epfd, int op, int fd, struct epoll_event *event),                   \
	  (epfd, op, fd, event))                                                                   \
	X(int, epoll_wait, (int epfd, struct epoll_event *events, int max, int timeout_ms),        \
	  (epfd, events, max, timeout_ms))                                                         \
	X(int, epoll_pwait,                                                                        \
	  (int epfd, struct epoll_event *events, int max, int timeout_ms, const sigset_t *mask),   \
	  (epfd, events, max, timeout_ms, mask))                                                   \
	X(int, epoll_pwait2,                                                                       \
	  (int epfd, struct epoll_event *events, int max, const struct timespec *timeout,          \
	   const sigset_t *mask),                                                                  \
	  (epfd, events, max, timeout, mask))

/* The stack address at which the thread has called another library's function; 0 if it hasn't. Stacks grow downwards. */
static _Thread_local uintptr_t called_at;

bool beneath_is_inside(void)
{
	return (uintptr_t)__builtin_frame_address(0) < called_at;
}

/* Notes a call made at stack address @here. Returns the value that called_at is to have again when the call has returned. */
static uintptr_t call_begin(uintptr_t here)
{
	uintptr_t outer = called_at;

	called_at = here;
	return here < outer ? outer : 0;
}

/* The functions that the wrappers below call: the table as next_bind() left it. */
static struct next_functions other;

#define CALL_OTHER(ret, name, params, args)                                                        \
	static ret through_##name params                                                           \
	{                                                                                          \
		uintptr_t outer = call_begin((uintptr_t)__builtin_frame_address(0));               \
		ret result = other.name args;                                                      \
                                                                                                   \
		called_at = outer;                                                                 \
		return result;                                                                     \
	}
BENEATH_FUNCTIONS(CALL_OTHER)
#undef CALL_OTHER

/* fcntl() and ioctl() have an optional argument, which is passed on as a pointer, the widest type that it can have. */
static int through_fcntl(int fd, int command, ...)
{
	uintptr_t outer = call_begin((uintptr_t)__builtin_frame_address(0));
	va_list args;
	int result;

	va_start(args, command);
	result = other.fcntl(fd, command, va_arg(args, void *));
	va_end(args);
	called_at = outer;
	return result;
}

static int through_ioctl(int fd, unsigned long request, ...)
{
	uintptr_t outer = call_begin((uintptr_t)__builtin_frame_address(0));
	va_list args;
	int result;

	va_start(args, request);
	result = other.ioctl(fd, request, va_arg(args, void *));
	va_end(args);
	called_at = outer;
	return result;
}

/* The C library: an address in it, by which object_find() knows it, and where its segments start and end. */
static struct object {
	uintptr_t address, start, end;
} libc;

static int object_find(struct dl_phdr_info *info, size_t size, void *data)
{
	struct object *object = data;
	uintptr_t start = UINTPTR_MAX, end = 0;

	(void)size;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		start = at < start ? at : start;
		end = at + info->dlpi_phdr[i].p_memsz > end ? at + info->dlpi_phdr[i].p_memsz : end;
	}
	if (object->address < start || object->address >= end)
		return 0;
	object->start = start;
	object->end = end;
	return 1;
}

static bool has_mptcpize;

bool beneath_has_mptcpize(void)
{
	return has_mptcpize;
}

bool beneath_is_libc(uintptr_t address)
{
	return address >= libc.start && address < libc.end;
}

void beneath_bind(struct next_functions *functions)
{
	const char *preloads = getenv("LD_PRELOAD");

	has_mptcpize = preloads && strstr(preloads, "libmptcpwrap");
	/* errno's function, which no library replaces */
	libc.address = (uintptr_t)dlsym(RTLD_NEXT, "__errno_location");
	dl_iterate_phdr(object_find, &libc);
	other = *functions;
	/* dlsym() finds nothing where the C library lacks a name: then the entry is next.c's own, which calls nobody. */
#define BIND(name)                                                                                 \
	if (!beneath_is_libc((uintptr_t)other.name) && dlsym(RTLD_NEXT, #name))                    \
		functions->name = through_##name;
#define BIND_LISTED(ret, name, params, args) BIND(name)
	BENEATH_FUNCTIONS(BIND_LISTED)
	BIND(fcntl)
	BIND(ioctl)
#undef BIND_LISTED
#undef BIND
}

const char *beneath_proxy(void)
{
	void *address;
	Dl_info info;
	const char *slash;

	if (!other.connect || next.connect == other.connect)
		return NULL;
	memcpy(&address, &other.connect, sizeof(address));
	if (!dladdr(address, &info) || !info.dli_fname)
		return NULL;
	slash = strrchr(info.dli_fname, '/');
	return proxies_is_library(slash ? slash + 1 : info.dli_fname) ? info.dli_fname : NULL;
}

#else
bool beneath_has_mptcpize(void)
{
	return false;
}

bool beneath_is_libc(uintptr_t address)
{
	(void)address;
	return false;
}

const char *beneath_proxy(void)
{
	return NULL;
}

void beneath_bind(struct next_functions *functions)
{
	(void)functions;
}

bool beneath_is_inside(void)
{
	return false;
}
#endif
