/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next.c - the functions behind the hooks
 *
 * raw_NAME() makes the system call by an instruction; next_bind() leaves it in the table if the C library lacks NAME. After that the table
 * is constant, so that hooks read it without a lock.
 */
#include "config.h"

#include "shim/system/next.h"

#include "common/program.h"
#include "common/rawcall.h"
#include "shim/system/waiting.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define KERNEL_SIGSET_BYTES (_NSIG / 8)

/* Newer architectures lack dup2, poll, select and epoll_wait, so we build these from the system calls that all architectures have. */
#define RAW(type, name, params, ...)                                                               \
	static type raw_##name params                                                              \
	{                                                                                          \
		return (type)RAWCALL(SYS_##name, __VA_ARGS__);                                     \
	}
NEXT_SYSCALLS(RAW)

static int raw_close_range(unsigned int first, unsigned int last, int flags)
{
#ifdef SYS_close_range
	return (int)RAWCALL(SYS_close_range, first, last, flags);
#else
	(void)first, (void)last, (void)flags;
	errno = ENOSYS;
	return -1;
#endif
}

static void raw_closefrom(int first)
{
	raw_close_range(first < 0 ? 0 : (unsigned int)first, ~0u, 0);
}

#ifdef SYS_fcntl64
#define SYS_FCNTL SYS_fcntl64
#else
#define SYS_FCNTL SYS_fcntl
#endif

#define CALL_FCNTL(fd, command, arg) (int)RAWCALL(SYS_FCNTL, fd, command, arg)
#define CALL_IOCTL(fd, command, arg) (int)RAWCALL(SYS_ioctl, fd, command, arg)

static int raw_fcntl(int fd, int command, ...)
VARIADIC_BODY(CALL_FCNTL)

static int raw_ioctl(int fd, unsigned long command, ...)
VARIADIC_BODY(CALL_IOCTL)

static int raw_dup2(int fd, int to)
{
	/* dup3(2) refuses to copy a descriptor onto itself, which dup2(2) allows. */
	return fd == to ? (raw_fcntl(fd, F_GETFD, NULL) < 0 ? -1 : to) : raw_dup3(fd, to, 0);
}

/* preadv2(2): on every architecture the kernel takes the offset as two arguments, the low half first. */
static ssize_t raw_preadv64v2(int fd, const struct iovec *iov, int count, off64_t offset,
			      int flags)
{
	return RAWCALL(SYS_preadv2, fd, iov, count, (unsigned long)offset,
		       (unsigned long)((uint64_t)offset >> 32), flags);
}

static ssize_t raw_pwritev64v2(int fd, const struct iovec *iov, int count, off64_t offset,
			       int flags)
{
	return RAWCALL(SYS_pwritev2, fd, iov, count, (unsigned long)offset,
		       (unsigned long)((uint64_t)offset >> 32), flags);
}

static ssize_t raw_recv(int fd, void *buf, size_t len, int flags)
{
	return raw_recvfrom(fd, buf, len, flags, NULL, NULL);
}

static int raw_recvmmsg(int fd, struct mmsghdr *msgs, unsigned int count, int flags,
			struct timespec *timeout)
{
	return (int)RAWCALL(SYS_WITH_TIME(recvmmsg), fd, msgs, count, flags, timeout);
}

static ssize_t raw_send(int fd, const void *buf, size_t len, int flags)
{
	return raw_sendto(fd, buf, len, flags, NULL, 0);
}

static ssize_t raw_sendfile64(int out, int in, off64_t *offset, size_t count)
{
#ifdef SYS_sendfile64
	return RAWCALL(SYS_sendfile64, out, in, offset, count);
#else
	return RAWCALL(SYS_sendfile, out, in, offset, count);
#endif
}

static int raw_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		     const sigset_t *mask)
{
	struct timespec copy; /* the system call writes the remaining time back, ppoll(3) doesn't */

	if (timeout)
		copy = *timeout;
	return (int)RAWCALL(SYS_WITH_TIME(ppoll), fds, count, timeout ? &copy : NULL, mask,
			    KERNEL_SIGSET_BYTES);
}

static struct timespec *timespec_from_ms(struct timespec *ts, int ms)
{
	if (ms < 0)
		return NULL;
	ts->tv_sec = ms / 1000;
	ts->tv_nsec = (long)(ms % 1000) * 1000000;
	return ts;
}

static int raw_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	struct timespec ts;

	return raw_ppoll(fds, count, timespec_from_ms(&ts, timeout_ms), NULL);
}

static int raw_pselect(int nfds, fd_set *in, fd_set *out, fd_set *except,
		       const struct timespec *timeout, const sigset_t *mask)
{
	struct {
		const sigset_t *mask;
		size_t bytes;
	} sized_mask = { mask, KERNEL_SIGSET_BYTES };
	struct timespec copy;

	if (timeout)
		copy = *timeout;
	return (int)RAWCALL(SYS_WITH_TIME(pselect6), nfds, in, out, except, timeout ? &copy : NULL,
			    &sized_mask);
}

static int raw_select(int nfds, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	struct timespec ts;

	if (timeout) {
		ts.tv_sec = timeout->tv_sec;
		ts.tv_nsec = timeout->tv_usec * 1000;
	}
	return raw_pselect(nfds, in, out, except, timeout ? &ts : NULL, NULL);
}

static int raw_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms)
{
	return raw_epoll_pwait(epfd, events, max, timeout_ms, NULL);
}

static int raw_epoll_pwait2(int epfd, struct epoll_event *events, int max,
			    const struct timespec *timeout, const sigset_t *mask)
{
#ifdef SYS_epoll_pwait2
	int64_t wide[2]; /* the call has times of 64 bits on all architectures */

	if (timeout) {
		wide[0] = timeout->tv_sec;
		wide[1] = timeout->tv_nsec;
	}
	return (int)RAWCALL(SYS_epoll_pwait2, epfd, events, max, timeout ? wide : NULL, mask,
			    KERNEL_SIGSET_BYTES);
#else
	(void)epfd, (void)events, (void)max, (void)timeout, (void)mask;
	errno = ENOSYS;
	return -1;
#endif
}

static int raw_fexecve(int fd, char *const argv[], char *const envp[])
{
	return raw_execveat(fd, "", argv, envp, AT_EMPTY_PATH);
}

static void raw__exit(int status)
{
	RAWCALL(SYS_exit_group, status);
}

#define RAW_LATE(ret, name, params, args, otherwise)                                               \
	static ret raw_##name params                                                               \
	{                                                                                          \
		ret(*function) params;                                                             \
		void *found = dlsym(RTLD_NEXT, #name);                                             \
                                                                                                   \
		if (!found)                                                                        \
			return otherwise;                                                          \
		memcpy(&function, &found, sizeof(found));                                          \
		return function args;                                                              \
	}
NEXT_LATE(RAW_LATE)

static long raw_syscall(long number, ...)
{
	long args[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	return RAWCALL(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

#define NEXT_RAW(ret, name, params, ...) .name = raw_##name,
struct next_functions next = { NEXT_FUNCTIONS(NEXT_RAW) };
#undef NEXT_RAW

int next_poll_now(struct pollfd *fds, nfds_t count)
{
	return raw_poll(fds, count, 0);
}

int next_dup_now(int fd, int to, int flags)
{
	return raw_dup3(fd, to, flags);
}

void next_close_now(int fd)
{
	raw_close(fd);
}

int next_socket_now(int domain, int type, int protocol)
{
	return raw_socket(domain, type, protocol);
}

void *next_map(size_t bytes)
{
	ERRNO_KEPT;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void next_unmap(void *memory, size_t bytes)
{
	ERRNO_KEPT;

	if (memory)
		munmap(memory, bytes);
}

bool next_same_owner(int fd, int other)
{
	struct stat a, b;

	return fstat(fd, &a) != 0 || fstat(other, &b) != 0 ||
	       (a.st_uid == b.st_uid && a.st_gid == b.st_gid && a.st_mode == b.st_mode);
}

void next_bind(void)
{
	void *found;

/* dlsym() returns a pointer to an object, which ISO C doesn't convert to a function's: copy its bytes. */
#define NEXT_BIND(ret, name, params, ...)                                                             \
	found = dlsym(RTLD_NEXT, #name);                                                           \
	if (found)                                                                                 \
		memcpy(&next.name, &found, sizeof(found));
	NEXT_FUNCTIONS(NEXT_BIND)
#undef NEXT_BIND
}

/* --- the C library and other preloaded libraries, in front of our hooks and behind them --- */

#define MPTCPIZE "libmptcpwrap" /* the name of its library begins so */

/* The C library: an address in it, by which object_find() recognizes it, and the start and end of its segments. */
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

bool beneath_is_libc(uintptr_t address)
{
	return address >= libc.start && address < libc.end;
}

/*
 * Returns the file name of the library that has the function at @address, without its directory; @path: with it. NULL for the C library,
 * for which we don't call dladdr(): it would search all of its symbols, and double the work at the start of each program.
 */
static const char *object_name(uintptr_t address, const char **path)
{
	Dl_info info;

	if (beneath_is_libc(address) || !dladdr((const void *)address, &info) || !info.dli_fname)
		return NULL;
	*path = info.dli_fname;
	return program_base_name(info.dli_fname, strlen(info.dli_fname));
}

bool beneath_is_behind_mptcpize;

void beneath_bind(void)
{
	const char *preloads = getenv("LD_PRELOAD"), *path, *name;

	/* errno's function, which no library replaces */
	libc.address = (uintptr_t)dlsym(RTLD_NEXT, "__errno_location");
	dl_iterate_phdr(object_find, &libc);
	name = object_name((uintptr_t)next.socket, &path);
	beneath_is_behind_mptcpize = preloads && strstr(preloads, MPTCPIZE) && !(name && strstr(name, MPTCPIZE));
}

const char *beneath_proxy(void)
{
	const char *path, *name = object_name((uintptr_t)next.connect, &path);

	return name && proxies_is_library(name) ? path : NULL;
}
