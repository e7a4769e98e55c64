/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stdio.c - before the C library itself reads and writes, and before the process ends
 *
 * What stdio does on a socket goes past all hooks. So a connection has to have its response
 * behind it before a stream is made of it, if the application believes itself connected; and one that is
 * begun with a stream there already is neither held nor confirmed by its SYN+ACK (conn.streamed). The
 * standard descriptors have their streams from the beginning: hooks/socket.c, dup2().
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

/* The fortified names: @flag has "%n" looked at. */
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

/* No destructor runs. exit() itself ends with a call that isn't hooked. */
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
