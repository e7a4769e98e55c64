/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_memory.c - what a relay holds of the kernel's memory, and whether that moves
 *
 * A relay reads no more than the other side takes, so what a peer doesn't take is in its socket's send buffer and,
 * when that is full, in the other socket's receive buffer. The kernel tells both with all that it spends on
 * them (SO_MEMINFO, Linux 4.12), of Multipath TCP sockets as well: what is in subflows is accounted to
 * the connection's own socket, but for small change.
 *
 * Does it move? Peers aren't asked for one byte but for a fair part of what they have the kernel hold:
 * one that has taken a 64th of it since it was looked at has moved. Of one that has taken less, the time since then counts
 * less by as much. So who reads 5 MB in five minutes is never seen to stand still for more than two seconds, and
 * who reads a byte now and then stands still.
 */
#include "config.h"

#include "convertd/relay/relay_memory.h"

#include "convertd/relay/relay_watch.h"

#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

/* What a peer has to take of all that is held, to have moved: one in so many bytes. */
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

/* The bytes of memory that a socket's buffers take. */
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

/* For how long, in milliseconds, the peer at @end hasn't moved. */
static uint64_t look_at_end(struct relay_memory *memory, const struct relay *relay, enum relay_end end,
			    uint64_t now_ms)
{
	uint64_t taken, moved, enough = memory->bytes / MOVED_PART + 1;
	bool waits = relay_watch_waits(relay, end, &taken);

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
		uint64_t ms = look_at_end(memory, relay, (enum relay_end)end, now_ms);

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
