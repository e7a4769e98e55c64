/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syscall.c - syscall(), the C library's door to any system call
 *
 * Those that have a hook of their own go there, with the kernel's arguments put into the
 * library's form. All others, and there are many calls of futex(2), go on at once: the entry is
 * written in assembly language where it can be, so that it is a jump with every register and the
 * stack as they were, whatever the compiler's options. A clone() or vfork() through
 * syscall() thus fares no worse than without us.
 *
 * syscall() is no point of cancellation, and the functions behind hooks are: hence the switch.
 *
 * What a preloaded library calls that stands behind one of the hooks goes to the kernel, see beneath.h.
 */
#include "config.h"

#include "common/rawcall.h"
#include "shim/system/beneath.h"
#include "shim/socket/conn.h"
#include "shim/system/deadline.h"
#include "shim/hooks/hook.h"
#include "shim/system/next.h"
#include "shim/system/usermem.h"

#if RAWCALL_OWN

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define KERNEL_SIGSET_BYTES (_NSIG / 8)

/* Hooks that the C library doesn't declare. */
#if !HAVE_DECL_PREADV64V2
ssize_t preadv64v2(int fd, const struct iovec *iov, int count, off64_t offset, int flags);
#endif
#if !HAVE_DECL_PWRITEV64V2
ssize_t pwritev64v2(int fd, const struct iovec *iov, int count, off64_t offset, int flags);
#endif
#if !HAVE_DECL_CLOSE_RANGE
int close_range(unsigned int first, unsigned int last, int flags);
#endif
#if !HAVE_DECL_EPOLL_PWAIT2
int epoll_pwait2(int epfd, struct epoll_event *events, int max, const struct timespec *timeout,
		 const sigset_t *mask);
#endif
#define NUMBERS 512 /* those of system calls that are looked up; the hooked ones are below */

/* Not for us: what the kernel itself says. */
static long pass(long number, const long args[6])
{
	return next_syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

#define P(type, i) ((type)(uintptr_t)args[i])
#define N(type, i) ((type)args[i])

/*
 * CALL(name, expression): a system call whose arguments are those of the hook.
 * BUSY(name, expression): the same for one that needs the hook only while a connection is pending.
 */
#define CALL(name, expression)                                                                     \
	static long call_##name(const long args[6])                                                \
	{                                                                                          \
		return (expression);                                                               \
	}
#define BUSY(name, expression)                                                                     \
	static long call_##name(const long args[6])                                                \
	{                                                                                          \
		return conn_none_attentive() ? pass(SYS_##name, args) : (expression);              \
	}

/* mptcpize asks so for every TCP socket: the program asked for TCP, and which is best is for us to say. */
static long call_socket(const long args[6])
{
	bool is_mptcpize = N(int, 2) == IPPROTO_MPTCP && beneath_has_mptcpize();

	return socket(N(int, 0), N(int, 1), is_mptcpize ? 0 : N(int, 2));
}

CALL(connect, connect(N(int, 0), P(const struct sockaddr *, 1), N(socklen_t, 2)))
CALL(listen, listen(N(int, 0), N(int, 1)))
CALL(getpeername, getpeername(N(int, 0), P(struct sockaddr *, 1), P(socklen_t *, 2)))
CALL(getsockopt,
     getsockopt(N(int, 0), N(int, 1), N(int, 2), P(void *, 3), P(socklen_t *, 4)))
CALL(setsockopt,
     setsockopt(N(int, 0), N(int, 1), N(int, 2), P(const void *, 3), N(socklen_t, 4)))
CALL(shutdown, shutdown(N(int, 0), N(int, 1)))
CALL(close, close(N(int, 0)))
CALL(dup, dup(N(int, 0)))
CALL(dup3, dup3(N(int, 0), N(int, 1), N(int, 2)))
CALL(ioctl, ioctl(N(int, 0), N(unsigned int, 1), P(void *, 2)))
CALL(epoll_ctl, epoll_ctl(N(int, 0), N(int, 1), N(int, 2), P(struct epoll_event *, 3)))
CALL(read, read(N(int, 0), P(void *, 1), N(size_t, 2)))
CALL(readv, readv(N(int, 0), P(const struct iovec *, 1), N(int, 2)))
CALL(preadv2, preadv64v2(N(int, 0), P(const struct iovec *, 1), N(int, 2), args[3], N(int, 5)))
CALL(recvfrom, recvfrom(N(int, 0), P(void *, 1), N(size_t, 2), N(int, 3), P(struct sockaddr *, 4),
			P(socklen_t *, 5)))
CALL(recvmsg, recvmsg(N(int, 0), P(struct msghdr *, 1), N(int, 2)))
CALL(recvmmsg, recvmmsg(N(int, 0), P(struct mmsghdr *, 1), N(unsigned int, 2), N(int, 3),
			P(struct timespec *, 4)))
BUSY(write, write(N(int, 0), P(const void *, 1), N(size_t, 2)))
BUSY(writev, writev(N(int, 0), P(const struct iovec *, 1), N(int, 2)))
BUSY(pwritev2, pwritev64v2(N(int, 0), P(const struct iovec *, 1), N(int, 2), args[3], N(int, 5)))
CALL(sendto, sendto(N(int, 0), P(const void *, 1), N(size_t, 2), N(int, 3),
		    P(const struct sockaddr *, 4), N(socklen_t, 5)))
CALL(sendmsg, sendmsg(N(int, 0), P(const struct msghdr *, 1), N(int, 2)))
CALL(sendmmsg, sendmmsg(N(int, 0), P(struct mmsghdr *, 1), N(unsigned int, 2), N(int, 3)))
BUSY(sendfile, sendfile64(N(int, 0), N(int, 1), P(off64_t *, 2), N(size_t, 3)))
BUSY(splice, splice(N(int, 0), P(off64_t *, 1), N(int, 2), P(off64_t *, 3), N(size_t, 4),
		    N(unsigned int, 5)))
#ifdef SYS_close_range
CALL(close_range, close_range(N(unsigned int, 0), N(unsigned int, 1), N(int, 2)))
#endif
#ifdef SYS_dup2
CALL(dup2, dup2(N(int, 0), N(int, 1)))
#endif
#ifdef SYS_poll
BUSY(poll, poll(P(struct pollfd *, 0), N(nfds_t, 1), N(int, 2)))
#endif
#ifdef SYS_epoll_wait
BUSY(epoll_wait, epoll_wait(N(int, 0), P(struct epoll_event *, 1), N(int, 2), N(int, 3)))
#endif

/* Most commands are about locks and flags, where the library has ideas of its own. */
static long call_fcntl(const long args[6])
{
	if (args[1] != F_DUPFD && args[1] != F_DUPFD_CLOEXEC)
		return pass(SYS_fcntl, args);
	return fcntl(N(int, 0), N(int, 1), N(int, 2));
}

/* A signal mask has its size beside it; any other than the kernel's is the kernel's to refuse. */
static bool is_masked_otherwise(const void *mask, size_t bytes)
{
	return mask && bytes != KERNEL_SIGSET_BYTES;
}

static long call_epoll_pwait(const long args[6])
{
	if (conn_none_attentive() || is_masked_otherwise(P(void *, 4), N(size_t, 5)))
		return pass(SYS_epoll_pwait, args);
	return epoll_pwait(N(int, 0), P(struct epoll_event *, 1), N(int, 2), N(int, 3),
			   P(const sigset_t *, 4));
}

#ifdef SYS_epoll_pwait2
static long call_epoll_pwait2(const long args[6])
{
	if (conn_none_attentive() || is_masked_otherwise(P(void *, 4), N(size_t, 5)))
		return pass(SYS_epoll_pwait2, args);
	return epoll_pwait2(N(int, 0), P(struct epoll_event *, 1), N(int, 2),
			    P(const struct timespec *, 3), P(const sigset_t *, 4));
}
#endif

/*
 * A time-out, copied as the kernel does. The system calls write back what is left of it, which is no
 * error where it can't be written; the library's functions that are called instead don't.
 */
struct limit {
	struct timespec *theirs;
	struct timespec time;
	struct deadline deadline;
};

/* False if it isn't there, or is no time, which the kernel says. */
static bool limit_copy(struct limit *limit, struct timespec *theirs)
{
	limit->theirs = theirs;
	if (theirs && (!usermem_read(&limit->time, theirs, sizeof(limit->time)) || !timeout_is_valid(&limit->time)))
		return false;
	limit->deadline = deadline_in(theirs ? &limit->time : NULL);
	return true;
}

static const struct timespec *limit_time(const struct limit *limit)
{
	return limit->theirs ? &limit->time : NULL;
}

static long limit_write_back(const struct limit *limit, long ret)
{
	struct timespec left;

	if (deadline_left(&limit->deadline, &left))
		usermem_write(limit->theirs, &left, sizeof(left));
	return ret;
}

static long call_ppoll(const long args[6])
{
	struct limit limit;

	if (conn_none_attentive() || is_masked_otherwise(P(void *, 3), N(size_t, 4)) ||
	    !limit_copy(&limit, P(struct timespec *, 2)))
		return pass(SYS_ppoll, args);
	return limit_write_back(&limit, ppoll(P(struct pollfd *, 0), N(nfds_t, 1), limit_time(&limit),
					      P(sigset_t *, 3)));
}

static long call_pselect6(const long args[6])
{
	struct {
		const sigset_t *mask;
		size_t bytes;
	} sized = { NULL, 0 };
	struct limit limit;

	if (conn_none_attentive() || (P(void *, 5) && !usermem_read(&sized, P(void *, 5), sizeof(sized))) ||
	    is_masked_otherwise(sized.mask, sized.bytes) || !limit_copy(&limit, P(struct timespec *, 4)))
		return pass(SYS_pselect6, args);
	return limit_write_back(&limit, pselect(N(int, 0), P(fd_set *, 1), P(fd_set *, 2), P(fd_set *, 3),
						limit_time(&limit), sized.mask));
}

#ifdef SYS_select
static long call_select(const long args[6])
{
	struct timeval *timeout = P(struct timeval *, 4), time;
	long ret;

	if (conn_none_attentive() || (timeout && !usermem_read(&time, timeout, sizeof(time))))
		return pass(SYS_select, args);
	ret = select(N(int, 0), P(fd_set *, 1), P(fd_set *, 2), P(fd_set *, 3), timeout ? &time : NULL);
	if (timeout)
		usermem_write(timeout, &time, sizeof(time));
	return ret;
}
#endif

/* X(name): every system call that has a function above. */
#define ALWAYS(X)                                                                                  \
	X(socket) X(connect) X(listen) X(getpeername) X(getsockopt)           \
	X(setsockopt) X(shutdown) X(close) X(dup) X(dup3) X(fcntl) X(ioctl) X(read) X(readv) X(preadv2)        \
	X(recvfrom) X(recvmsg) X(recvmmsg) X(write) X(writev) X(pwritev2) X(sendto) X(sendmsg)     \
	X(sendmmsg) X(sendfile) X(splice) X(ppoll) X(pselect6) X(epoll_ctl) X(epoll_pwait)
#ifdef SYS_close_range
#define WITH_CLOSE_RANGE(X) X(close_range)
#else
#define WITH_CLOSE_RANGE(X)
#endif
#ifdef SYS_epoll_pwait2
#define WITH_EPOLL_PWAIT2(X) X(epoll_pwait2)
#else
#define WITH_EPOLL_PWAIT2(X)
#endif
#ifdef SYS_poll /* not on newer architectures, nor are the others */
#define WITH_OLD_ONES(X) X(dup2) X(poll) X(select) X(epoll_wait)
#else
#define WITH_OLD_ONES(X)
#endif
#define HOOKED(X) ALWAYS(X) WITH_CLOSE_RANGE(X) WITH_EPOLL_PWAIT2(X) WITH_OLD_ONES(X)

#define KIND(name) KIND_##name,
enum { KIND_NONE, HOOKED(KIND) KIND_COUNT };
#undef KIND

/* By number, which kind it is; KIND_NONE for most. Looked at by every syscall(). */
#define KIND(name) [SYS_##name] = KIND_##name,
extern const uint8_t syscall_kinds[NUMBERS];
__attribute__((used)) const uint8_t syscall_kinds[NUMBERS] = { HOOKED(KIND) };
#undef KIND

#define KIND(name) [KIND_##name] = call_##name,
static long (*const calls[KIND_COUNT])(const long args[6]) = { HOOKED(KIND) };
#undef KIND

/* A system call that has a hook. */
long syscall_hooked(long number, long a, long b, long c, long d, long e, long f);
__attribute__((used)) long syscall_hooked(long number, long a, long b, long c, long d, long e, long f)
{
	const long args[6] = { a, b, c, d, e, f };
	int cancel_state;
	long ret;

	if (beneath_is_inside())
		return rawcall(number, a, b, c, d, e, f);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	ret = calls[syscall_kinds[number]](args);
	pthread_setcancelstate(cancel_state, NULL);
	return ret;
}

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)

#if defined(__x86_64__)
HOOK_NAME(syscall)
__asm__(".pushsection .text\n"
	".globl syscall\n"
	".type syscall, @function\n"
	".p2align 4\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	cmpq $" TEXT_OF(NUMBERS) ", %rdi\n"
	"	jae 1f\n"
	"	leaq syscall_kinds(%rip), %rax\n"
	"	cmpb $0, (%rax, %rdi)\n"
	"	jne syscall_hooked\n"
	"1:	jmp *next_syscall(%rip)\n"
	"	.cfi_endproc\n"
	".size syscall, . - syscall\n"
	".popsection\n");
#elif defined(__aarch64__)
HOOK_NAME(syscall)
__asm__(".pushsection .text\n"
	".globl syscall\n"
	".type syscall, %function\n"
	".p2align 4\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	hint #34\n" /* bti c */
	"	cmp x0, #" TEXT_OF(NUMBERS) "\n"
	"	b.hs 1f\n"
	"	adrp x16, syscall_kinds\n"
	"	add x16, x16, :lo12:syscall_kinds\n"
	"	ldrb w17, [x16, x0]\n"
	"	cbz w17, 1f\n"
	"	b syscall_hooked\n"
	"1:	adrp x16, next_syscall\n"
	"	ldr x16, [x16, :lo12:next_syscall]\n"
	"	br x16\n"
	"	.cfi_endproc\n"
	".size syscall, . - syscall\n"
	".popsection\n");
#else
HOOK(long, syscall, (long number, long a, long b, long c, long d, long e, long f))
{
	if ((unsigned long)number < NUMBERS && syscall_kinds[number])
		return syscall_hooked(number, a, b, c, d, e, f);
	return next_syscall(number, a, b, c, d, e, f);
}
#endif

#endif
