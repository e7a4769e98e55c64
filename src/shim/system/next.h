/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next.h - the functions behind the hooks
 *
 * next.NAME calls the definition of NAME that follows ours in the dynamic linker's search order, usually the C library's. If the C library
 * lacks NAME, and before next_bind() has run (constructors of other libraries run before ours), next.NAME makes the system call itself. So
 * no hook has to look up a function, but for those of NEXT_LATE: dlsym() may allocate, and an allocator may call read(2), which is a hook.
 *
 * All code of the shim reaches the system through this table, since the bare name is a hook. Unit tests replace the kernel at this table
 * (tests/unit/fake_kernel.h).
 */
#ifndef SHIM_NEXT_H
#define SHIM_NEXT_H

#include <poll.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>

/* The off_t of the functions without "64" in their names, independent of _FILE_OFFSET_BITS. */
#ifdef __GLIBC__
typedef __off_t native_off_t;
#else
typedef off_t native_off_t;
#endif

/* The system calls with the same name and arguments: X(return type, name, parameters, arguments) */
#define NEXT_SYSCALLS(X)													\
	X(int, socket, (int domain, int type, int protocol), domain, type, protocol)						\
	X(int, connect, (int fd, const struct sockaddr *addr, socklen_t len), fd, addr, len)					\
	X(int, bind, (int fd, const struct sockaddr *addr, socklen_t len), fd, addr, len)					\
	X(int, listen, (int fd, int backlog), fd, backlog)									\
	X(int, getpeername, (int fd, struct sockaddr *addr, socklen_t *len), fd, addr, len)					\
	X(int, getsockname, (int fd, struct sockaddr *addr, socklen_t *len), fd, addr, len)					\
	X(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len), fd, level, name, value, len)		\
	X(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len), fd, level, name, value, len)	\
	X(int, shutdown, (int fd, int how), fd, how)										\
	X(int, close, (int fd), fd)												\
	X(int, dup, (int fd), fd)												\
	X(int, dup3, (int fd, int to, int flags), fd, to, flags)								\
	X(ssize_t, read, (int fd, void *buf, size_t count), fd, buf, count)							\
	X(ssize_t, readv, (int fd, const struct iovec *iov, int count), fd, iov, count)						\
	X(ssize_t, recvfrom, (int fd, void *buf, size_t len, int flags, struct sockaddr *addr, socklen_t *addrlen),		\
	  fd, buf, len, flags, addr, addrlen)											\
	X(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags), fd, msg, flags)						\
	X(ssize_t, write, (int fd, const void *buf, size_t count), fd, buf, count)						\
	X(ssize_t, writev, (int fd, const struct iovec *iov, int count), fd, iov, count)					\
	X(ssize_t, sendto, (int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr, socklen_t addrlen),	\
	  fd, buf, len, flags, addr, addrlen)											\
	X(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags), fd, msg, flags)					\
	X(int, sendmmsg, (int fd, struct mmsghdr *msgs, unsigned int count, int flags), fd, msgs, count, flags)			\
	X(ssize_t, sendfile, (int out, int in, native_off_t *offset, size_t count), out, in, offset, count)			\
	X(ssize_t, splice, (int in, off64_t *in_offset, int out, off64_t *out_offset, size_t len, unsigned int flags),		\
	  in, in_offset, out, out_offset, len, flags)										\
	X(int, epoll_ctl, (int epfd, int op, int fd, struct epoll_event *event), epfd, op, fd, event)				\
	X(int, epoll_pwait, (int epfd, struct epoll_event *events, int max, int timeout_ms, const sigset_t *mask),		\
	  epfd, events, max, timeout_ms, mask, KERNEL_SIGSET_BYTES)								\
	X(int, execve, (const char *path, char *const argv[], char *const envp[]), path, argv, envp)				\
	X(int, execveat, (int dirfd, const char *path, char *const argv[], char *const envp[], int flags), dirfd, path, argv, envp, flags)

/*
 * Those that make more than one system call: X(return type, name, parameters, (arguments), result without the C library's function). Before
 * next_bind(), a call looks up that function by dlsym(). This may allocate: no allocator starts a program or makes a stream of a socket.
 */
#define NEXT_LATE(X)														\
	X(int, execvpe, (const char *file, char *const argv[], char *const envp[]), (file, argv, envp), raw_execve(file, argv, envp))	\
	X(int, posix_spawn, (pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,					\
			     const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]),				\
	  (pid, path, actions, attributes, argv, envp), ENOSYS)										\
	X(int, posix_spawnp, (pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,					\
			      const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]),				\
	  (pid, file, actions, attributes, argv, envp), ENOSYS)										\
	X(int, posix_spawn_file_actions_adddup2, (posix_spawn_file_actions_t *actions, int fd, int to), (actions, fd, to), ENOSYS)	\
	X(int, system, (const char *command), (command), (errno = ENOSYS, -1))							\
	X(FILE *, popen, (const char *command, const char *mode), (command, mode), (errno = ENOSYS, NULL))			\
	X(FILE *, fdopen, (int fd, const char *mode), (fd, mode), (errno = ENOSYS, NULL))					\
	X(int, vdprintf, (int fd, const char *format, va_list args), (fd, format, args), (errno = ENOSYS, -1))			\
	X(int, __vdprintf_chk, (int fd, int flag, const char *format, va_list args),							\
	  (fd, flag, format, args), next.vdprintf(fd, format, args))

/* The others: X(return type, name, parameters) */
#define NEXT_OTHERS(X)														\
	X(long, syscall, (long number, ...))											\
	X(int, close_range, (unsigned int first, unsigned int last, int flags))							\
	X(void, closefrom, (int first))												\
	X(int, dup2, (int fd, int to))												\
	X(int, fcntl, (int fd, int command, ...))										\
	X(int, ioctl, (int fd, unsigned long request, ...))									\
	X(ssize_t, preadv64v2, (int fd, const struct iovec *iov, int count, off64_t offset, int flags))				\
	X(ssize_t, recv, (int fd, void *buf, size_t len, int flags))								\
	X(int, recvmmsg, (int fd, struct mmsghdr *msgs, unsigned int count, int flags, struct timespec *timeout))		\
	X(ssize_t, pwritev64v2, (int fd, const struct iovec *iov, int count, off64_t offset, int flags))			\
	X(ssize_t, send, (int fd, const void *buf, size_t len, int flags))							\
	X(ssize_t, sendfile64, (int out, int in, off64_t *offset, size_t count))						\
	X(int, poll, (struct pollfd *fds, nfds_t count, int timeout_ms))							\
	X(int, ppoll, (struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask))			\
	X(int, select, (int nfds, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout))				\
	X(int, pselect, (int nfds, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout, const sigset_t *mask))	\
	X(int, epoll_wait, (int epfd, struct epoll_event *events, int max, int timeout_ms))					\
	X(int, epoll_pwait2, (int epfd, struct epoll_event *events, int max, const struct timespec *timeout, const sigset_t *mask))	\
	X(void, _exit, (int status))												\
	X(int, fexecve, (int fd, char *const argv[], char *const envp[]))

#define NEXT_FUNCTIONS(X) NEXT_SYSCALLS(X) NEXT_LATE(X) NEXT_OTHERS(X)

#define NEXT_FIELD(ret, name, params, ...) ret(*name) params;
struct next_functions {
	NEXT_FUNCTIONS(NEXT_FIELD)
};
#undef NEXT_FIELD

extern struct next_functions next;

/*
 * The body of a function like fcntl(2), (int fd, TYPE command, ...): the third argument is an int, a pointer, or missing. It passes that to
 * @call as a pointer, the widest type that it can have, as the C library does.
 */
#define VARIADIC_BODY(call)                                                                        \
	{                                                                                          \
		va_list args;                                                                      \
		void *arg;                                                                         \
                                                                                                   \
		va_start(args, command);                                                           \
		arg = va_arg(args, void *);                                                        \
		va_end(args);                                                                      \
		return call(fd, command, arg);                                                     \
	}

/*
 * next_poll_now() - poll(2) without waiting
 * Unlike next.poll it isn't a cancellation point (pthreads(7)). Returns as poll(2) does, with errno set.
 */
int next_poll_now(struct pollfd *fds, nfds_t count);

/* next_close_now() - close(2) that isn't a cancellation point */
void next_close_now(int fd);

/*
 * next_dup_now() - dup3(2) of a descriptor that the shim has created
 * Makes a system call even if another preloaded library has a dup3() that keeps track of descriptors: that library doesn't know @fd.
 */
int next_dup_now(int fd, int to, int flags);

/*
 * next_socket_now() - socket(2) for a socket that the shim needs itself
 * Makes a system call, so that the socket has exactly this protocol: another preloaded library's socket() may change it, as mptcpize's
 * makes MPTCP sockets of TCP ones.
 */
int next_socket_now(int domain, int type, int protocol);

/* next_map() - return zeroed memory that doesn't come from malloc(), or NULL; next_unmap() frees it. errno stays as it was. */
void *next_map(size_t bytes);
void next_unmap(void *memory, size_t bytes);

/* next_same_owner() - have two files the same owner, group and mode? True if the kernel doesn't say. */
bool next_same_owner(int fd, int other);

/* next_bind() - fill the table with the functions that the dynamic linker finds behind each hook; called once, by the constructor */
void next_bind(void);

/* The functions of kernel_socket.h call those of this table. */
#define KERNEL(call) next.call
#define KERNEL_POLL_NOW(fds, count) next_poll_now(fds, count)
#include "common/kernel_socket.h"

/* --- the C library and other preloaded libraries, in front of our hooks and behind them --- */

/* beneath_bind() - find out which libraries there are; called once, by the constructor, after next_bind() */
void beneath_bind(void);

/* Is @address in the C library? False before beneath_bind(). */
bool beneath_is_libc(uintptr_t address);

/*
 * beneath_proxy() - find a library behind our connect() that redirects connections to proxies, as torsocks does
 * Our converted connections would bypass that proxy. Returns the library's file name, which stays valid, or NULL if there is none.
 */
const char *beneath_proxy(void);

/* Is mptcpize's library preloaded in front of ours? It makes MPTCP sockets in place of the program's TCP sockets, by syscall(2). */
extern bool beneath_is_behind_mptcpize;

#endif
