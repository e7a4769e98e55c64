/* SPDX-License-Identifier: BSD-3-Clause */
/* borrowed_options.c - options of the application's socket that have our values while its connection is pending */
#include "config.h"

#include "shim/connect/borrowed_options.h"

#include "shim/socket/options.h"
#include "shim/socket/tcpinfo.h"
#include "shim/system/next.h"
#include "shim/system/usermem.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#define PROBES 100 /* Linux must not end the connection before us; 127 at most */

/* The options in the order in which we set them. The idle time comes last, since setting it sends a probe that is due at once. */
static const struct {
	int level, name;
} options[] = {
	{ IPPROTO_TCP, TCP_KEEPINTVL },
	{ IPPROTO_TCP, TCP_KEEPCNT },
	{ SOL_SOCKET, SO_KEEPALIVE },
	{ IPPROTO_TCP, TCP_KEEPIDLE },
};
#define OPTION_COUNT (sizeof(options) / sizeof(options[0]))
static_assert(OPTION_COUNT == CONN_KEEPALIVE_COUNT, "a value for each");

/*
 * Sets our keepalive, even if it is on already: if the idle time is over when it is set, Linux sends a probe at once. So we can send
 * several a second.
 */
static bool ours_set(struct conn *conn, int fd)
{
	const int interval = conn->socket.keepalive.interval;
	const int values[OPTION_COUNT] = { interval, PROBES, 1, interval };

	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (!sockopt_set(fd, options[i].level, options[i].name, values[i]))
			return false;
	return true;
}

bool keepalive_start(struct conn *conn, int fd, int seconds)
{
	struct conn_keepalive *ours = &conn->socket.keepalive;

	for (size_t i = 0; i < OPTION_COUNT && !ours->on; i++) {
		ours->kept[i] = sockopt_get(fd, options[i].level, options[i].name, -1);
		if (ours->kept[i] < 0)
			return false;
	}
	ours->interval = seconds;
	ours->on = true;
	if (ours_set(conn, fd))
		return true;
	keepalive_end(conn, fd);
	return false;
}

void keepalive_end(struct conn *conn, int fd)
{
	for (size_t i = OPTION_COUNT; conn->socket.keepalive.on && i-- > 0;)
		sockopt_set(fd, options[i].level, options[i].name, conn->socket.keepalive.kept[i]);
	conn->socket.keepalive.on = false;
}

static int option_index(int level, int name)
{
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (options[i].name == name && options[i].level == level)
			return (int)i;
	return -1;
}

void keepalive_note(struct conn *conn, int fd, int level, int name)
{
	int i = conn->socket.keepalive.on ? option_index(level, name) : -1;
	struct conn_claim claim;

	if (i < 0 || !conn_claim(conn, PHASES_PENDING, &claim))
		return;
	if (conn->socket.keepalive.on) {
		conn->socket.keepalive.kept[i] = sockopt_get(fd, level, name, conn->socket.keepalive.kept[i]);
		ours_set(conn, fd);
	}
	conn_release(conn, claim.from, &claim);
}

bool keepalive_kept(const struct conn *conn, int level, int name, int *value)
{
	int i = conn->socket.keepalive.on ? option_index(level, name) : -1;

	if (i >= 0)
		*value = conn->socket.keepalive.kept[i];
	return i >= 0;
}

/* --- SO_RCVLOWAT: the application's value and ours --- */

void lowat_raise(struct conn *conn, int fd, size_t bytes)
{
	const int want = (int)bytes;

	if (!conn->socket.rcvlowat)
		conn->socket.rcvlowat = sockopt_get(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
	next.setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &want, sizeof(want));
}

/* Most applications never set the option, and we need the kernel's default, 1. We don't know which values other processes have set. */
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
	conn->socket.rcvlowat = lowat < 0 ? INT_MAX : lowat ? lowat : 1; /* as the kernel does */
	conn_release(conn, claim.from, &claim);
	return true;
}

int lowat_kept(const struct conn *conn)
{
	return conn->socket.rcvlowat;
}
