/* SPDX-License-Identifier: BSD-3-Clause */
/* session_relay.c - a session's relay: what it carries is counted, and what its end is called */
#include "config.h"

#include "convertd/session/session_relay.h"

#include "convertd/base/clock.h"
#include "convertd/config/settings.h"
#include "convertd/observe/metrics.h"
#include "convertd/session/session_report.h"

#include <assert.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

/* What the end of a session is called that has passed a limit of relay_watch.h. */
static const enum outcome watch_outcomes[] = {
	[RELAY_WATCH_NONE] = OUTCOME_NONE,
	[RELAY_WATCH_CLIENT_STALLED] = OUTCOME_CLIENT_STALLED,
	[RELAY_WATCH_SERVER_STALLED] = OUTCOME_SERVER_STALLED,
	[RELAY_WATCH_HALF_CLOSED] = OUTCOME_HALF_CLOSED,
	[RELAY_WATCH_IDLE] = OUTCOME_IDLE,
};
static_assert(sizeof(watch_outcomes) / sizeof(watch_outcomes[0]) == RELAY_WATCH_COUNT, "an outcome for each");

/* Of a Multipath TCP socket that has fallen back to TCP and was never written to, Linux (6.18) says that a byte is unsent. */
bool session_relay_unsent(const struct session *s, enum relay_end end)
{
	int unsent = 0;

	return s->relay.flow[!end].bytes &&
	       ioctl(s->relay.side[end].fd, SIOCOUTQ, &unsent) == 0 && unsent;
}

enum outcome session_relay_lost(const struct session *s, enum relay_end end)
{
	if (s->relay.side[end].garbled)
		return OUTCOME_BYTES_MISSING;
	if (end == RELAY_UPSTREAM && !s->confirmed)
		return OUTCOME_NO_HANDSHAKE;
	return end == RELAY_UPSTREAM ? OUTCOME_CLIENT_LOST : OUTCOME_SERVER_LOST;
}

enum relay_result session_relay_run(struct session *s)
{
	uint64_t before[RELAY_ENDS] = { session_relayed(s, RELAY_UPSTREAM),
					session_relayed(s, RELAY_DOWNSTREAM) };
	enum relay_result result = relay_run(&s->relay, s->pool->scratch);

	for (int end = 0; end < RELAY_ENDS; end++)
		metrics_add(s->pool->context.metrics, METRIC_BYTES + (unsigned)end,
			    session_relayed(s, (enum relay_end)end) - before[end]);
	return result;
}

enum outcome session_relay_watch(struct session *s)
{
	const struct settings *settings = s->pool->context.terms->settings;
	const struct relay_watch_settings timeouts = {
		.stall_ms = settings->stall_timeout * 1000ULL,
		.half_close_ms = settings->half_close_timeout * 1000ULL,
		.idle_ms = settings->idle_timeout * 1000ULL,
	};
	uint64_t now_ms = clock_now_ms();
	enum outcome reason;

	if (!s->kept_alive)
		downstream_keep_alive(s->relay.side[RELAY_DOWNSTREAM].fd);
	s->kept_alive = true;
	session_look_transport(s);
	reason = watch_outcomes[relay_watch_look(&s->watch, &s->relay, &timeouts, now_ms)];
	if (s->watch.moved_ms == now_ms)
		limits_touch(s->pool->context.admission.limits, &s->member);
	return reason;
}
