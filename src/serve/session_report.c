/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_report.c - a session's relay, its line in the log, and its part of the metrics
 *
 * Linux counts only the present subflows, and those of a reset or closed connection are gone at once. So we look at them before we close a
 * socket and at each look at a relay, and also report the highest number.
 */
#include "config.h"

#include "serve/session_parts.h"

#include "common/clock.h"
#include "daemon/metrics.h"
#include "daemon/log.h"

#include <assert.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* The lines of this many seconds may be printed at once. */
#define LOG_BURST_SECONDS 10

void session_look_transport(struct session *s)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];

	if (client->fd < 0 || client->tcp)
		return;
	/* A read has looked just now: no need to ask again. */
	if (!client->looked)
		fallback_look(client->fd, &client->mptcp);
	s->record.transport = client->mptcp.fallen ? RECORD_FALLBACK : RECORD_MPTCP;
	if (client->mptcp.fallen)
		return;
	s->record.subflows = client->mptcp.subflows;
	if (s->record.subflows > s->record.subflows_max)
		s->record.subflows_max = s->record.subflows;
}

void session_set_outcome(struct session *s, enum outcome outcome, const char *reason)
{
	s->record.outcome = outcome;
	s->record.reason = reason ? reason : outcome_text(outcome);
}

uint64_t session_age_us(const struct session *s)
{
	uint64_t age = clock_now_us() - s->started_us;

	return age ? age : 1;
}

/* Returns the bytes carried from the end @from to the other one, without our own answer. */
static uint64_t relayed(const struct session *s, enum relay_end from)
{
	uint64_t bytes = s->relay.flow[from].bytes;

	if (from == RELAY_UPSTREAM)
		return bytes;
	return bytes > s->answer_len ? bytes - s->answer_len : 0;
}

static bool may_log(const struct session *s)
{
	struct session_pool *pool = s->pool;
	unsigned rate = pool->context.settings->log_rate;

	if (!rate)
		return true;
	if (log_limit_take(&pool->context.log_limits[s->record.outcome], 1000000 / rate,
			   rate * LOG_BURST_SECONDS, clock_now_us()))
		return true;
	metrics_add(pool->context.metrics, METRIC_LOG_LEFT_OUT, 1);
	return false;
}

static enum log_level line_level(const struct session *s)
{
	return s->quiet ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO;
}

void session_decide_line(struct session *s)
{
	s->no_line = !log_enabled(line_level(s)) || !may_log(s);
}

/* The server's socket may be closed before the session ends: we ask for its address only if the log has such lines at all. */
void session_look_source(struct session *s)
{
	socklen_t len = sizeof(s->record.source);

	if (s->no_line || s->record.source.sa.sa_family || !log_enabled(line_level(s)))
		return;
	if (getsockname(s->relay.side[RELAY_DOWNSTREAM].fd, &s->record.source.sa, &len) < 0)
		s->record.source.sa.sa_family = 0;
}

void session_report_drop(const struct session *s, enum outcome outcome)
{
	char client[SOCKADDR_STRLEN];
	unsigned suppressed;

	if (log_limit_pass(&s->pool->shared->drops, &suppressed))
		log_warning("%s is reset: %s (%u other clients since the last such line)",
			    sockaddr_ip_format(&s->record.client, client), outcome_text(outcome),
			    suppressed);
}

void session_report_memory(struct session *s)
{
	char client[SOCKADDR_STRLEN];
	unsigned suppressed;

	if (log_limit_pass(&s->pool->shared->memory, &suppressed))
		log_warning("%s is reset: for %u ms none of its %llu kB in the kernel has moved, and "
			    "the sessions hold too much in all (%u others since the last such line); see "
			    "--max-memory",
			    sockaddr_ip_format(&s->record.client, client), s->memory.seen.stalled_ms,
			    (unsigned long long)s->memory.seen.bytes / 1000, suppressed);
}

void session_report_end(struct session *s)
{
	struct record *record = &s->record;
	char text[RECORD_TEXT_MAX];

	record->bytes_up = relayed(s, RELAY_UPSTREAM);
	record->bytes_down = relayed(s, RELAY_DOWNSTREAM);
	record->duration_us = clock_now_us() - s->started_us;
	record->syn_data = s->syn.data;
	record->silent = s->silence.reply == JUDGEMENT_SILENT;
	metrics_count_record(s->pool->context.metrics, record);
	if (record->outcome == OUTCOME_LIMIT_CONNECTIONS && s->pool->context.plugs->full)
		s->pool->context.plugs->full(&s->pool->context);
	if (!s->no_line)
		log_fields(line_level(s), record_text(record, text), record_json, record);
}

/* ----- a session's relay: its bytes are counted, and its end gets an outcome ----- */

/* The outcomes of sessions that have passed a limit of relay.h. */
static const enum outcome watch_outcomes[] = {
	[RELAY_WATCH_NONE] = OUTCOME_NONE,
	[RELAY_WATCH_CLIENT_STALLED] = OUTCOME_CLIENT_STALLED,
	[RELAY_WATCH_SERVER_STALLED] = OUTCOME_SERVER_STALLED,
	[RELAY_WATCH_HALF_CLOSED] = OUTCOME_HALF_CLOSED,
	[RELAY_WATCH_IDLE] = OUTCOME_IDLE,
};
static_assert(sizeof(watch_outcomes) / sizeof(watch_outcomes[0]) == RELAY_WATCH_COUNT, "an outcome for each");

/*
 * Counts only if bytes were written: for a Multipath TCP socket that has fallen back to TCP and was never written to, Linux (6.18) reports
 * one unsent byte.
 */
bool session_relay_unsent(const struct session *s, enum relay_end end)
{
	int unsent = 0;

	return s->relay.flow[!end].bytes &&
	       ioctl(s->relay.side[end].fd, SIOCOUTQ, &unsent) == 0 && unsent;
}

enum relay_result session_relay_run(struct session *s)
{
	uint64_t before[RELAY_ENDS] = { relayed(s, RELAY_UPSTREAM),
					relayed(s, RELAY_DOWNSTREAM) };
	enum relay_result result = relay_run(&s->relay, s->pool->scratch);

	for (int end = 0; end < RELAY_ENDS; end++)
		metrics_add(s->pool->context.metrics, METRIC_BYTES + (unsigned)end,
			    relayed(s, (enum relay_end)end) - before[end]);
	return result;
}

enum outcome session_relay_watch(struct session *s)
{
	static const int on = 1;
	uint64_t now_ms = clock_now_ms();
	enum outcome reason;

	/* Detects a server that has vanished. Short connections need none of this. */
	if (!s->kept_alive)
		setsockopt(s->relay.side[RELAY_DOWNSTREAM].fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	s->kept_alive = true;
	session_look_transport(s);
	reason = watch_outcomes[relay_watch_look(&s->watch, &s->relay, &s->pool->context.settings->watch, now_ms)];
	if (s->watch.moved_ms == now_ms)
		limits_touch(s->pool->context.limits, &s->member);
	return reason;
}
