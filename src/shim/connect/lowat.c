/* SPDX-License-Identifier: BSD-3-Clause */
/* lowat.c - SO_RCVLOWAT, the application's and ours */
#include "config.h"

#include "shim/connect/lowat.h"

#include "shim/system/next.h"
#include "shim/socket/options.h"
#include "shim/system/usermem.h"

#include <limits.h>
#include <string.h>

void lowat_raise(struct conn *conn, int fd, size_t bytes)
{
	const int want = (int)bytes;

	if (!conn->socket.rcvlowat)
		conn->socket.rcvlowat = sockopt_get(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
	next.setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &want, sizeof(want));
}

/* Most applications never set the option, and the kernel's default of 1 is what is needed; what other processes set isn't known. */
void lowat_hold(struct conn *conn, int fd)
{
	if (!conn->generation || options_is_set(conn, SOL_SOCKET, SO_RCVLOWAT))
		lowat_raise(conn, fd, 1);
}

void lowat_restore(struct conn *conn, int fd)
{
	const int kept = conn->socket.rcvlowat;

	if (kept)
		next.setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &kept, sizeof(kept));
	conn->socket.rcvlowat = 0;
}

bool lowat_keep(struct conn *conn, const void *value, socklen_t len)
{
	struct conn_claim claim;
	int lowat;

	if (len < sizeof(lowat) || len > INT_MAX || !usermem_read(&lowat, value, sizeof(lowat)) ||
	    !conn_claim(conn, PHASES_UNFINISHED, &claim))
		return false;
	conn->socket.rcvlowat = lowat < 0 ? INT_MAX : lowat ? lowat : 1; /* as the kernel takes it */
	conn_release(conn, claim.from, &claim);
	return true;
}

int lowat_kept(const struct conn *conn)
{
	return conn->socket.rcvlowat;
}
