/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hooks_stdio.c - fdopen(), and what becomes of a socket that the C library's streams use
 *
 * Streams call read and write inside the C library, which no hook sees. Most sockets have nothing to
 * be hooked any more when they become streams. The others are those that are connected for the
 * application, but not yet for us: the SYN+ACK has confirmed the server and the Convert response is
 * still to come, or the SYN waits for early data. A stream would read the response as the server's
 * words, and write to the converter. So the handshake is ended before, and not cut short later.
 */
#include "config.h"

#include "shim/hooks_stdio.h"

#include "shim/conn.h"
#include "shim/conversion.h"
#include "shim/hook.h"
#include "shim/next.h"
#include "shim/others.h"

#include <stdio.h>

void stdio_opened(int fd)
{
	struct conn *conn = conn_maybe(fd) && conn_is_owner() ? conn_unsettled(fd) : NULL;
	int saved_errno = errno;
	enum conn_state state;

	if (!conn)
		return;
	conn->streamed = true;
	state = conn_state_unclaimed(conn);
	if (state == CONN_CONFIRMED || state == CONN_HELD ||
	    (state == CONN_PENDING && conn->connect_told))
		conversion_finish(conn, fd, OTHERS_FINISH_MS);
	errno = saved_errno;
}

HOOK(FILE *, fdopen, (int fd, const char *mode))
{
	stdio_opened(fd);
	return next.fdopen(fd, mode);
}
