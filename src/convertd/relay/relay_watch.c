/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_watch.c - finds relays on which nothing moves any more
 *
 * The problem: a peer may keep its window closed for as long as it likes, and the kernel probes it for ever.
 * TCP_USER_TIMEOUT would end that, but MPTCP sockets don't have it. So a timer of the caller looks at each relay now
 * and then.
 *
 * Carrying bytes costs nothing more for that: the relay's counters are compared with those of the last look. A peer that
 * doesn't read is known by what it acknowledges: the bytes written to its socket less those that the kernel still has.
 */
#include "config.h"

#include "convertd/relay/relay_watch.h"

#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>

void relay_watch_start(struct relay_watch *watch, uint64_t now_ms)
{
	memset(watch, 0, sizeof(*watch));
	watch->moved_ms = now_ms;
	for (int end = 0; end < RELAY_ENDS; end++)
		watch->took_ms[end] = now_ms;
}

bool relay_watch_waits(const struct relay *relay, enum relay_end end, uint64_t *taken)
{
	const struct relay_flow *flow = &relay->flow[!end];
	int unsent = 0;

	*taken = flow->bytes;
	if (ioctl(relay->side[end].fd, SIOCOUTQ, &unsent) == 0 && unsent > 0)
		*taken -= (uint64_t)unsent < *taken ? (uint64_t)unsent : *taken;
	return *taken < flow->bytes || relay_has_pending(relay, !end);
}

/* Looks at the bytes that are to go to the peer at @end. */
static void look_at_end(struct relay_watch *watch, const struct relay *relay, enum relay_end end,
			uint64_t now_ms)
{
	uint64_t taken;
	bool waits = relay_watch_waits(relay, end, &taken);

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
