/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stdio.c - before the C library itself reads and writes, and before the process ends
 *
 * What stdio does on a socket goes past all hooks. So before a stream is made of a socket that the application takes for
 * connected, the response is waited for and taken off. A connection that is begun when there is a stream already is
 * neither held for early data nor confirmed by its SYN+ACK (conn.streamed). The standard descriptors have streams from the
 * beginning: see dup2() in hooks/socket.c.
 */
#include "config.h"

#include "shim/hooks/hook.h"
#include "shim/process/leave.h"
#include "shim/system/next.h"

#include <stdio.h>

HOOK(FILE *, fdopen, (int fd, const char *mode))
{
	leave_to_stdio(fd);
	return next.fdopen(fd, mode);
}

HOOK(int, vdprintf, (int fd, const char *format, va_list args))
{
	leave_to_stdio(fd);
	return next.vdprintf(fd, format, args);
}

HOOK(int, dprintf, (int fd, const char *format, ...))
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = hook_vdprintf(fd, format, args);
	va_end(args);
	return ret;
}

/* The names that _FORTIFY_SOURCE uses; @flag makes the C library check for "%n". */
HOOK(int, __vdprintf_chk, (int fd, int flag, const char *format, va_list args))
{
	leave_to_stdio(fd);
	return next.__vdprintf_chk(fd, flag, format, args);
}

HOOK(int, __dprintf_chk, (int fd, int flag, const char *format, ...))
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = hook___vdprintf_chk(fd, flag, format, args);
	va_end(args);
	return ret;
}

/* _exit() runs no destructor (init.c has one for exit(), which ends the process by a call that is no hook). */
HOOK(void, _exit, (int status))
{
	if (!conn_none_attentive() && conn_is_owner())
		leave_all(LEAVE_ALL);
	next._exit(status);
	__builtin_unreachable();
}

HOOK(void, _Exit, (int status))
{
	hook__exit(status);
}
