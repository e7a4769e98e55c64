/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rawcall.h - system calls that no hook or library can intercept
 *
 * The C library's syscall() is a hook of the shim (shim/hooks/syscall.c), and we can't look up the function behind it before the
 * constructor has run: dlsym(3) may allocate, and allocators make system calls (jemalloc: read and close) as soon as the first library's
 * constructor allocates. So RAWCALL(number, ...), with up to six arguments, uses the system call instruction. On an unknown architecture
 * RAWCALL_OWN is 0: RAWCALL is the C library's syscall() then, which is no hook there.
 */
#ifndef COMMON_RAWCALL_H
#define COMMON_RAWCALL_H

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if (defined(__x86_64__) && defined(__LP64__)) || defined(__aarch64__) ||                          \
	(defined(__riscv) && __riscv_xlen == 64)
#define RAWCALL_OWN 1
#else
#define RAWCALL_OWN 0
#endif

/*
 * The number of a system call with a time among its arguments. 32-bit architectures have two of each. Which one matches the C library's
 * struct timespec depends on its time_t: 64 bits on musl, and on glibc if programs ask for it.
 */
#ifdef SYS_ppoll_time64
#define SYS_WITH_TIME(name) (sizeof(time_t) > sizeof(long) ? SYS_##name##_time64 : SYS_##name)
#else
#define SYS_WITH_TIME(name) SYS_##name
#endif

#if RAWCALL_OWN

/* The kernel's own result: -errno on failure. */
static inline long rawcall_kernel(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
	register long a7 __asm__("a7") = number;
	register long a0 __asm__("a0") = a;
	register long a1 __asm__("a1") = b;
	register long a2 __asm__("a2") = c;
	register long a3 __asm__("a3") = d;
	register long a4 __asm__("a4") = e;
	register long a5 __asm__("a5") = f;

	__asm__ volatile("ecall"
			 : "+r"(a0)
			 : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5)
			 : "memory");
	return a0;
#endif
}

/* Returns as syscall(2). */
static inline long rawcall(long number, long a, long b, long c, long d, long e, long f)
{
	long ret = rawcall_kernel(number, a, b, c, d, e, f);

	if (ret >= 0 || ret < -4095)
		return ret;
	errno = (int)-ret;
	return -1;
}

#define RAWCALL_PADDED(number, a, b, c, d, e, f, ...)                                              \
	rawcall(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define RAWCALL(...) RAWCALL_PADDED(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

#else
#define RAWCALL(...) syscall(__VA_ARGS__)
#endif

#endif
