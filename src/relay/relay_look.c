/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_look.c - tells whether a relay still moves, and how much kernel memory it holds
 *
 * The problem: a peer may keep its window closed for as long as it likes, and the kernel probes it for ever.
 * TCP_USER_TIMEOUT would end that, but MPTCP sockets don't have it. So a timer of the caller looks at each relay now
 * and then.
 *
 * This doesn't slow the relay down: a look compares the relay's counters with those of the last look. Whether a peer reads shows in the
 * bytes that it has acknowledged: those written to its socket less those that the kernel still has.
 *
 * The problem: a peer that doesn't read makes the kernel hold megabytes for it, and there is a limit for all relays
 * together (--max-memory). When it is reached, convertd ends the relays that hold the most for the longest.
 *
 * A relay reads no more than the other side takes, so bytes that a peer doesn't take are in its socket's send buffer
 * and, when that is full, in the other socket's receive buffer. The kernel tells the sizes of both, including its
 * overhead (SO_MEMINFO, Linux 4.12), for Multipath TCP sockets as well: nearly all memory of subflows is accounted to
 * the connection's own socket.
 *
 * A peer counts as moving if it has taken a fair part of the bytes that the kernel holds, one in MOVED_PART, since it
 * last moved: one byte now and then would be easy to feign. If it has taken less, we forgive a proportional part of
 * the time since then. So a peer that reads 5 MB in five minutes is never seen to stand still for more than two
 * seconds, and one that reads a byte now and then stands still.
 */
#include "config.h"

#include "relay/relay.h"

#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

void relay_watch_start(struct relay_watch *watch, uint64_t now_ms)
{
	memset(watch, 0, sizeof(*watch));
	watch->moved_ms = now_ms;
	for (int end = 0; end < RELAY_ENDS; end++)
		watch->took_ms[end] = now_ms;
}

/* Tells whether there are bytes that the peer at @end hasn't taken. @taken: set to the number that it has acknowledged */
static bool has_untaken(const struct relay *relay, enum relay_end end, uint64_t *taken)
{
	const struct relay_flow *flow = &relay->flow[!end];
	int unsent = 0;

	*taken = flow->bytes;
	if (ioctl(relay->side[end].fd, SIOCOUTQ, &unsent) == 0 && unsent > 0)
		*taken -= (uint64_t)unsent < *taken ? (uint64_t)unsent : *taken;
	return *taken < flow->bytes || relay_has_pending(relay, !end);
}

/* Looks at the bytes that wait for the peer at @end. */
static void look_at_end(struct relay_watch *watch, const struct relay *relay, enum relay_end end,
			uint64_t now_ms)
{
	uint64_t taken;
	bool waits = has_untaken(relay, end, &taken);

	if (taken != watch->taken[end] || !waits || !watch->waits[end])
		watch->took_ms[end] = now_ms;
	watch->taken[end] = taken;
	watch->waits[end] = waits;
}

static bool has_passed(uint64_t since_ms, uint64_t limit_ms, uint64_t now_ms)
{
	return limit_ms && now_ms - since_ms >= limit_ms;
}

enum relay_watch_verdict relay_watch_look(struct relay_watch *watch, const struct relay *relay,
					  const struct relay_watch_settings *settings,
					  uint64_t now_ms)
{
	uint64_t bytes = relay->flow[RELAY_UPSTREAM].bytes + relay->flow[RELAY_DOWNSTREAM].bytes;

	if (bytes != watch->bytes)
		watch->moved_ms = now_ms;
	watch->bytes = bytes;
	look_at_end(watch, relay, RELAY_UPSTREAM, now_ms);
	look_at_end(watch, relay, RELAY_DOWNSTREAM, now_ms);
	if (has_passed(watch->took_ms[RELAY_UPSTREAM], settings->stall_ms, now_ms))
		return RELAY_WATCH_CLIENT_STALLED;
	if (has_passed(watch->took_ms[RELAY_DOWNSTREAM], settings->stall_ms, now_ms))
		return RELAY_WATCH_SERVER_STALLED;
	if ((relay->flow[RELAY_UPSTREAM].eof || relay->flow[RELAY_DOWNSTREAM].eof) &&
	    has_passed(watch->moved_ms, settings->half_close_ms, now_ms))
		return RELAY_WATCH_HALF_CLOSED;
	if (has_passed(watch->moved_ms, settings->idle_ms, now_ms))
		return RELAY_WATCH_IDLE;
	return RELAY_WATCH_NONE;
}

/* ----- measures the kernel memory that a relay holds, and how long its bytes haven't moved ----- */

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

/* To count as moving, a peer has to take one in this many bytes of all that the relay holds. */
#define MOVED_PART 64

bool relay_memory_may_grow(const struct relay *relay)
{
	for (int end = 0; end < RELAY_ENDS; end++) {
		const struct relay_flow *flow = &relay->flow[!end];

		if (flow->bulk)
			return true;
		if (!relay->side[end].writable && flow->bytes &&
		    (relay->side[!end].readable || relay_has_pending(relay, (enum relay_end)!end)))
			return true;
	}
	return false;
}

/* Returns the bytes of memory that a socket's buffers take, or 0 without a socket. */
static uint64_t socket_memory(int fd)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(info);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) < 0)
		return 0;
	return (uint64_t)info[SK_MEMINFO_RMEM_ALLOC] + info[SK_MEMINFO_WMEM_QUEUED];
}

static uint64_t own_memory(const struct relay_flow *flow)
{
	return flow->pending_len + (flow->pipe ? relay_pipe_len(flow->pipe) : 0);
}

/* Returns for how long, in milliseconds, the peer at @end hasn't moved. */
static uint64_t unmoved_ms(struct relay_memory *memory, const struct relay *relay, enum relay_end end, uint64_t now_ms)
{
	uint64_t taken, moved, enough = memory->bytes / MOVED_PART + 1;
	bool waits = has_untaken(relay, end, &taken);

	moved = taken - memory->taken[end];
	if (waits && memory->since_ms[end] && moved < enough)
		return (now_ms - memory->since_ms[end]) * (enough - moved) / enough;
	memory->taken[end] = taken;
	memory->since_ms[end] = waits ? now_ms : 0;
	return 0;
}

void relay_memory_look(struct relay_memory *memory, const struct relay *relay, uint64_t now_ms)
{
	uint64_t longest = 0;

	memory->bytes = 0;
	for (int end = 0; end < RELAY_ENDS; end++)
		memory->bytes += socket_memory(relay->side[end].fd) + own_memory(&relay->flow[end]);
	for (int end = 0; end < RELAY_ENDS; end++) {
		uint64_t ms = unmoved_ms(memory, relay, (enum relay_end)end, now_ms);

		longest = ms > longest ? ms : longest;
	}
	memory->stalled_ms = longest < UINT32_MAX ? (uint32_t)longest : UINT32_MAX;
}

uint64_t relay_memory_unsent(const struct relay *relay)
{
	uint64_t most = 0;

	for (int end = 0; end < RELAY_ENDS; end++) {
		int unsent = 0;

		if (ioctl(relay->side[end].fd, SIOCOUTQ, &unsent) == 0 && unsent > 0 &&
		    (uint64_t)unsent > most)
			most = (uint64_t)unsent;
	}
	return most;
}
