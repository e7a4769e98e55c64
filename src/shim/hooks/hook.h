/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hook.h - how an exported symbol is defined
 *
 * HOOK(type, name, (parameters)) starts the definition of the C library's NAME under a name of our own, which avoids its fortified inline
 * version and the transparent unions of its prototype. src/shim/libconvert.sym lists the same names for the linker, and a section of the
 * library lists them for dlopen.c.
 *
 * HOOK_PASSING(type, name, (parameters), (arguments)) starts the definition of the hook's work while a connection is pending. Without one,
 * the hook is a load, a test and a jump to next.NAME. So the body must be a function of its own; otherwise the hook would save the body's
 * registers first.
 *
 * HOOK_TIMED and HOOK_TIMED_PASSING are the same for functions that take times. Where longs have 32 bits, and times 64, musl's headers
 * (since 1.2) direct programs and dlsym() to __NAME_time64. Older programs call NAME, with times of 32 bits, which a hook can't take: there
 * NAME stays the C library's.
 */
#ifndef SHIM_HOOK_H
#define SHIM_HOOK_H

#include "shim/socket/conn.h"
#include "shim/system/next.h"
#include "shim/system/waiting.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/types.h>

/* 1 if dlopen.c knows the loader's relocations, and has an entry in assembly language. */
#if defined(__GLIBC__) && ((defined(__x86_64__) && defined(__LP64__)) || (defined(__aarch64__) && defined(__LP64__)))
#define REBIND_KNOWN 1
#else
#define REBIND_KNOWN 0
#endif

#define HOOK_NAME(name)                                                                            \
	__attribute__((section("hook_names"), used)) static const char hook_name_##name[] = #name;

#define HOOK(type, name, params)                                                                   \
	HOOK_NAME(name)                                                                            \
	type hook_##name params __asm__(#name) __attribute__((visibility("default")));             \
	type hook_##name params

#if !defined(__GLIBC__) && defined(_REDIR_TIME64)
#define HOOK_TIMED(type, name, params)                                                             \
	HOOK_NAME(__##name##_time64)                                                               \
	type hook_##name params __asm__("__" #name "_time64")                                      \
		__attribute__((visibility("default")));                                            \
	type hook_##name params
#else
#define HOOK_TIMED(type, name, params) HOOK(type, name, params)
#endif

#define HOOK_SLOW __attribute__((noinline)) static

#define HOOK_PASSING_BY(hook, type, name, params, args)                                            \
	HOOK_SLOW type slow_##name params;                                                         \
	hook(type, name, params)                                                                   \
	{                                                                                          \
		return conn_none_handled() ? next.name args : slow_##name args;                    \
	}                                                                                          \
	HOOK_SLOW type slow_##name params

#define HOOK_PASSING(type, name, params, args) HOOK_PASSING_BY(HOOK, type, name, params, args)

#define HOOK_TIMED_PASSING(type, name, params, args)                                               \
	HOOK_PASSING_BY(HOOK_TIMED, type, name, params, args)

/* VARIADIC_HOOK(name, type, call) defines a hook like fcntl(2): see VARIADIC_BODY(). */
#define VARIADIC_HOOK(name, type, call)                                                            \
	HOOK(int, name, (int fd, type command, ...))                                               \
	VARIADIC_BODY(call)

/* Turns 0, a positive value or -errno into the C library's return value and errno. */
static inline ssize_t hook_result(ssize_t ret)
{
	if (ret >= 0)
		return ret;
	errno = (int)-ret;
	return -1;
}

/* Returns @ret. After a successful call errno is @saved_errno, whatever other calls have failed on the way. */
static inline int hook_success_kept(int ret, int saved_errno)
{
	if (ret >= 0)
		errno = saved_errno;
	return ret;
}

/*
 * socket_made() - note that socket(2) has returned @fd to the application, if it is a TCP socket (socket.c)
 * @domain, @type, @protocol: the arguments of the call; @generation: conn_generation() before it
 * Returns @fd, which is -1 if the call has failed. errno stays as it was.
 */
int socket_made(int fd, int domain, int type, int protocol, uint32_t generation);

/* --- waiting for descriptors with pending connections among them: poll.c --- */

/*
 * poll_pending() - ppoll(2) with descriptors of pending connections among @fds, until @deadline
 * @fds: the application's; the caller knows that they are readable and writable memory; sets their revents
 * @mask: as in ppoll(2), or NULL
 * Returns as ppoll(2), but -errno if it fails. errno stays as it was. A cancellation point.
 */
int poll_pending(struct pollfd *fds, nfds_t count, int64_t deadline, const sigset_t *mask);

#endif
