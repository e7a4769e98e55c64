/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liveness.c - is a converter that is silent behind its SYN+ACK still there?
 *
 * Keepalive's times are whole seconds, so INTERVAL is a third of CONVERT_TIMEOUT rounded down, and a second at least:
 *
 *	0      SYN                 the deadline is one interval ahead
 *	1 s    the first look      SYN+ACK is there, nothing else: keepalive on. Linux sends a probe as soon as nothing has
 *	                           been heard for an interval, and each look that finds it so sends one more, four in an interval
 *	3 s    CONVERT_TIMEOUT     six probes are unanswered: dead. Else the silence may be the server's
 *	...    a look an interval  what dies later is found as well
 *
 * A converter without state answers the first probe with a reset, and a path on which everything vanishes makes
 * ETIMEDOUT in the end. But once MPTCP is fully established an MPTCP socket tells neither: Linux 6.18 closes the
 * subflow and waits for another one, for a minute (test_platform.py). So it is the looks that decide. What was
 * sent and not acknowledged asks as well as a probe, and holds the probes back.
 *
 * A CONVERT_TIMEOUT below two and a half intervals has no time for that: two probes decide, and the end is 1.5 s after the
 * SYN+ACK at the earliest.
 */
#include "config.h"

#include "shim/connect/liveness.h"

#include "common/clock.h"
#include "shim/wait/deadlines.h"
#include "shim/system/next.h"
#include "shim/socket/tcpinfo.h"

#include <assert.h>

#define PROBES 100 /* Linux must not end the connection before us; 127 at most */
#define LOOKS 4    /* in an interval, once a probe is due */
#define INTERVAL_MAX 32767 /* seconds, as Linux takes them */

/* The options in the order in which they are set. The time comes last, since setting it sends a probe that is due at once. */
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

static int interval_seconds(unsigned int timeout_ms)
{
	unsigned int seconds = timeout_ms / 3000;

	return seconds < 1 ? 1 : seconds > INTERVAL_MAX ? INTERVAL_MAX : (int)seconds;
}

static int64_t interval_ns(unsigned int timeout_ms)
{
	return interval_seconds(timeout_ms) * CLOCK_NS_PER_S;
}

/* Returns how long after the first unanswered probe a converter counts as dead. */
static int64_t grace_ns(unsigned int timeout_ms)
{
	int64_t interval = interval_ns(timeout_ms), half = interval / 2;

	return timeout_ms * CLOCK_NS_PER_MS >= 2 * interval + half ? interval + half : half;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

void liveness_begin(struct conn *conn, unsigned int timeout_ms)
{
	int64_t now = clock_ns();

	conn->attempt.probing_since = 0;
	conn->attempt.ends = now + timeout_ms * CLOCK_NS_PER_MS;
	deadlines_set(conn, earlier(conn->attempt.ends, now + interval_ns(timeout_ms)));
}

void liveness_go_on(struct conn *conn, int64_t ends)
{
	const int64_t now = clock_ns(), half = now + (conn->attempt.ends - now) / 2;

	if (ends && ends < conn->attempt.ends)
		conn->attempt.ends = ends > half ? ends : half;
	deadlines_set(conn, earlier(atomic_load(&conn->deadline), conn->attempt.ends));
}

static bool set(int fd, size_t i, int value)
{
	return next.setsockopt(fd, options[i].level, options[i].name, &value, sizeof(value)) == 0;
}

/*
 * Sets our keepalive, even where it is on already: a time that is over when it is set makes Linux send a probe at once, which
 * is how there are several a second.
 */
static bool probes_set(struct conn *conn, int fd)
{
	const int interval = conn->socket.keepalive.interval;
	const int values[OPTION_COUNT] = { interval, PROBES, 1, interval };

	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (!set(fd, i, values[i]))
			return false;
	return true;
}

static void options_restore(const struct conn *conn, int fd)
{
	for (size_t i = OPTION_COUNT; i-- > 0;)
		set(fd, i, conn->socket.keepalive.kept[i]);
}

/* Has the converter asked by keepalive, if that can be. MPTCP takes these options since Linux 6.10. */
static void probes_start(struct conn *conn, int fd, unsigned int timeout_ms)
{
	struct conn_keepalive *ours = &conn->socket.keepalive;

	for (size_t i = 0; i < OPTION_COUNT && !ours->on; i++) {
		ours->kept[i] = sockopt_get(fd, options[i].level, options[i].name, -1);
		if (ours->kept[i] < 0)
			return;
	}
	ours->interval = interval_seconds(timeout_ms);
	ours->on = true;
	if (!probes_set(conn, fd)) {
		liveness_end(conn, fd);
		return;
	}
	if (!conn->attempt.probing_since)
		conn->attempt.probing_since = clock_ns();
}

/* Returns when something was last heard from the converter. */
static int64_t heard_at(const struct tcp_info *info, int64_t now)
{
	uint32_t ms = info->tcpi_last_ack_recv < info->tcpi_last_data_recv ? info->tcpi_last_ack_recv :
									     info->tcpi_last_data_recv;

	return now - ms * CLOCK_NS_PER_MS;
}

/* Returns when a probe is due, or was: an interval after something was heard, or after the converter was last asked. */
static int64_t probe_at(const struct conn *conn, const struct tcp_info *info, int64_t now, unsigned int timeout_ms)
{
	int64_t probe = heard_at(info, now) + interval_ns(timeout_ms);

	return probe < conn->attempt.probing_since ? conn->attempt.probing_since : probe;
}

/* Has Linux send a probe if one is due. @probe: probe_at(); each look after that time sends one more. */
static int64_t next_look(int64_t probe, int64_t now, unsigned int timeout_ms)
{
	return (probe > now ? probe : now) + interval_ns(timeout_ms) / LOOKS;
}

/* CONVERT_TIMEOUT is over: judges the converter. One that couldn't be asked counts as alive, and isn't looked at again. */
static enum liveness judge(struct conn *conn, int64_t probe, int64_t now, unsigned int timeout_ms)
{
	int64_t end = probe + grace_ns(timeout_ms);

	if (!conn->attempt.probing_since) {
		deadlines_set(conn, 0);
		return LIVENESS_ALIVE;
	}
	deadlines_set(conn, earlier(end, next_look(probe, now, timeout_ms)));
	return now < end ? LIVENESS_ALIVE : LIVENESS_DEAD;
}

enum liveness liveness_look(struct conn *conn, int fd, unsigned int timeout_ms)
{
	struct tcp_info info = tcpinfo_of(fd);
	int64_t now = clock_ns(), ends = conn->attempt.ends, probe;

	if (info.tcpi_state == TCPINFO_UNKNOWN || info.tcpi_state == TCPINFO_CLOSE)
		return LIVENESS_GONE;
	if (info.tcpi_state == TCPINFO_SYN_SENT) {
		deadlines_set(conn, earlier(ends, now + interval_ns(timeout_ms)));
		return now < ends ? LIVENESS_EARLY : LIVENESS_DEAD;
	}
	probes_start(conn, fd, timeout_ms);
	probe = probe_at(conn, &info, now, timeout_ms);
	if (now >= ends)
		return judge(conn, probe, now, timeout_ms);
	deadlines_set(conn, earlier(ends, next_look(probe, now, timeout_ms)));
	return LIVENESS_EARLY;
}

bool liveness_speaks(struct conn *conn, int fd, unsigned int timeout_ms)
{
	int64_t last = clock_ns() - tcpinfo_of(fd).tcpi_last_data_recv * CLOCK_NS_PER_MS;
	int64_t ends = last + timeout_ms * CLOCK_NS_PER_MS;

	if (ends > conn->attempt.ends)
		conn->attempt.ends = ends;
	deadlines_set(conn, conn->attempt.ends);
	return !deadlines_is_over(conn);
}

void liveness_end(struct conn *conn, int fd)
{
	if (conn->socket.keepalive.on)
		options_restore(conn, fd);
	conn->socket.keepalive.on = false;
}

static int option_index(int level, int name)
{
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (options[i].name == name && options[i].level == level)
			return (int)i;
	return -1;
}

void liveness_note(struct conn *conn, int fd, int level, int name)
{
	int i = conn->socket.keepalive.on ? option_index(level, name) : -1;
	struct conn_claim claim;

	if (i < 0 || !conn_claim(conn, PHASES_PENDING, &claim))
		return;
	if (conn->socket.keepalive.on) {
		conn->socket.keepalive.kept[i] = sockopt_get(fd, level, name, conn->socket.keepalive.kept[i]);
		probes_set(conn, fd);
	}
	conn_release(conn, claim.from, &claim);
}

bool liveness_kept(const struct conn *conn, int level, int name, int *value)
{
	int i = conn->socket.keepalive.on ? option_index(level, name) : -1;

	if (i >= 0)
		*value = conn->socket.keepalive.kept[i];
	return i >= 0;
}
