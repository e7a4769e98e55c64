/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold.c - withholds SYNs in a netfilter queue until their owner gives a verdict on them
 *
 * For each SYN from the queue, hold.c reads it, corrects its window, and looks it up in the table:
 *
 *     new, with data        the owner withholds the SYN, or gives a verdict at once
 *     new, without data     passes, or is dropped as foreign (without_data: as with data)
 *     a join                passes
 *     it is withheld        dropped: a repetition; the kernel has the first one
 *     it was released       passes and confirms nothing: its connection may differ from that of the first SYN
 *                           (without_data: passes marked until its connection has come, as a firewall may have dropped the first one)
 *     it passed             without_data: passes again; it is routed, and connection tracking may have translated it
 *     it was refused        refused again: the kernel limits ICMP messages, and the client may not have got the first one
 *     it was dropped        dropped again (without_data: it is new, as its client goes on to ask for the server)
 *     unreadable            passes
 *
 * Each verdict changes the packet accordingly (hold_rules.c has the rules for the marks). Verdicts are collected, and
 * sent at the end of a round of the event loop.
 *
 * The kernel makes no connection of a released SYN if its queue for Fast Open is full, or if the address was forged.
 * So the owner gets released SYNs back after HOLD_EXPECT_MS.
 */
#include "config.h"

#include "hold/hold.h"

#include "common/clock.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "hold/hold_queue.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

/* How often we search for released SYNs whose time is over. */
static const struct timeval expire_interval = { .tv_sec = 1 };

struct hold {
	struct hold_table *table;
	struct metrics *metrics;
	const struct hold_calls *calls;
	void *arg;
	struct event_base *base;
	bool without_data, drop_foreign, configured;
	struct hold_queue *queue; /* NULL: off */
	struct event *readable;
	struct event *flush;  /* active: verdicts wait for the end of this round of the loop */
	struct event *expire; /* pending: released SYNs wait for their connections */
	uint32_t next_id;     /* the number of the next packet unless we missed some; 0: none has come yet */
};

/* ----- packets ----- */

/* The counters of SYNs that aren't withheld; METRICS_SYN_COUNT marks verdicts that these SYNs never get. */
static const enum metrics_syn counters[] = {
	[HOLD_WITHHOLD] = METRICS_SYN_COUNT,
	[HOLD_DROP_REPEATED] = METRICS_SYN_REPEATED,
	[HOLD_DROP_FOREIGN] = METRICS_SYN_FOREIGN,
	[HOLD_DROP_UNANSWERED] = METRICS_SYN_COUNT,
	[HOLD_PASS] = METRICS_SYN_PASSED,
	[HOLD_PASS_CONFIRMED] = METRICS_SYN_PASSED,
	[HOLD_PASS_UNCONFIRMED] = METRICS_SYN_UNCONFIRMED,
	[HOLD_PASS_TCP] = METRICS_SYN_NOT_GRANTED,
	[HOLD_REFUSE] = METRICS_SYN_REFUSED,
};
static_assert(sizeof(counters) / sizeof(counters[0]) == HOLD_VERDICTS, "each verdict is counted");

static void count_syns(const struct hold *hold, enum metrics_syn syn, uint32_t packets)
{
	metrics_add(hold->metrics, METRIC_SYNS + syn, packets);
}

static void change_packet(uint8_t *bytes, struct syn_packet *syn, enum hold_verdict verdict, uint8_t native)
{
	if (verdict == HOLD_PASS || verdict == HOLD_PASS_CONFIRMED)
		syn_packet_mark(bytes, syn);
	else if (verdict == HOLD_PASS_TCP)
		syn_packet_remove_mp_capable(bytes, syn);
	else if (verdict == HOLD_REFUSE)
		syn_packet_refuse(bytes, syn, native);
}

static bool is_drop(enum hold_verdict verdict)
{
	return verdict == HOLD_DROP_REPEATED || verdict == HOLD_DROP_FOREIGN || verdict == HOLD_DROP_UNANSWERED;
}

static enum hold_verdict judge_packet(struct hold *hold, const struct hold_packet *packet, uint8_t *native)
{
	enum hold_verdict verdict;
	bool routed;

	switch (hold_table_look(hold->table, &packet->flow, clock_now_ms(), native)) {
	case HOLD_IS_WITHHELD:
	case HOLD_WAS_DROPPED:
		return HOLD_DROP_REPEATED;
	case HOLD_WAS_REFUSED:
		return HOLD_REFUSE;
	case HOLD_IS_RELEASED:
		return hold->without_data ? HOLD_PASS_CONFIRMED : HOLD_PASS_UNCONFIRMED;
	case HOLD_WAS_RELEASED:
		return HOLD_PASS_UNCONFIRMED;
	case HOLD_NEW:
		break;
	}
	if (packet->syn.mp_join)
		return HOLD_PASS;
	if (!packet->syn.payload_len && !hold->without_data)
		return hold->drop_foreign ? HOLD_DROP_FOREIGN : HOLD_PASS;
	verdict = hold->calls->on_syn(hold->arg, packet, native);
	routed = hold->without_data && (verdict == HOLD_PASS || verdict == HOLD_PASS_UNCONFIRMED);
	if (routed || verdict == HOLD_REFUSE)
		hold_table_note(hold->table, &packet->flow, routed ? NATIVE_NONE : *native);
	/* Unchanged, even with data: the mark of HOLD_PASS would send it to this host. */
	return routed ? HOLD_PASS_UNCONFIRMED : verdict;
}

/* Packets have consecutive numbers. Missing ones passed unseen, as there was no room in the queue's socket. */
static void count_missed(struct hold *hold, uint32_t id)
{
	if (hold->next_id && id != hold->next_id)
		count_syns(hold, METRICS_SYN_MISSED, id - hold->next_id);
	hold->next_id = id + 1;
}

/* Handles a packet of the queue. */
static void on_packet(void *arg, uint32_t id, uint8_t *bytes, size_t len, unsigned in, unsigned out)
{
	struct hold *hold = arg;
	struct hold_packet packet = { .id = id, .bytes = bytes, .len = len, .in = in, .out = out };
	enum syn_packet_status status = syn_packet_parse(bytes, len, &packet.syn);
	uint8_t native = NATIVE_NONE;
	enum hold_verdict verdict;
	bool changed;

	count_missed(hold, id);
	if (status != SYN_PACKET_OK || !hold->configured) {
		log_debug("SYN not looked at: %s", hold->configured ? syn_packet_status_name(status) : "no settings yet");
		count_syns(hold, METRICS_SYN_UNREADABLE, 1);
		hold_queue_verdict(hold->queue, id, true, NULL, 0);
		return;
	}
	packet.flow = (struct hold_flow){ packet.syn.flow, packet.syn.isn };
	if (packet.syn.mp_capable && packet.syn.payload_len && !hold->without_data)
		syn_packet_shift_window(bytes, &packet.syn);
	verdict = judge_packet(hold, &packet, &native);
	if (verdict == HOLD_WITHHOLD)
		return;
	count_syns(hold, counters[verdict], 1);
	changed = !is_drop(verdict) && (packet.syn.payload_len || verdict == HOLD_REFUSE || verdict == HOLD_PASS_CONFIRMED);
	if (changed)
		change_packet(bytes, &packet.syn, verdict, native);
	hold_queue_verdict(hold->queue, id, !is_drop(verdict), changed ? bytes : NULL, changed ? len : 0);
}

/* ----- withheld SYNs ----- */

int hold_withhold(struct hold *hold, struct hold_syn *syn, const struct hold_packet *packet)
{
	int error;

	syn->packet = malloc(packet->len);
	if (!syn->packet)
		return -ENOMEM;
	memcpy(syn->packet, packet->bytes, packet->len);
	syn->packet_len = packet->len;
	syn->packet_id = packet->id;
	error = hold_table_add(hold->table, syn);
	if (error) {
		free(syn->packet);
		syn->packet = NULL;
	}
	return error;
}

void hold_release(struct hold *hold, struct hold_syn *syn, enum hold_verdict verdict, bool keep, uint64_t now_ms)
{
	uint8_t *bytes = syn->packet;
	const size_t len = syn->packet_len;
	const uint32_t id = syn->packet_id;
	const struct hold_flow flow = syn->flow;
	struct syn_packet parsed;

	if (syn_packet_parse(bytes, len, &parsed) == SYN_PACKET_OK)
		change_packet(bytes, &parsed, verdict, syn->native);
	syn->packet = NULL;
	if (!event_pending(hold->expire, EV_TIMEOUT, NULL))
		event_add(hold->expire, &expire_interval);
	/* From here on a kept one may be another worker's. */
	hold_table_release(hold->table, syn, keep, verdict == HOLD_DROP_UNANSWERED, now_ms);
	if (verdict == HOLD_DROP_UNANSWERED && hold->without_data)
		hold_table_forget(hold->table, &flow);
	if (is_drop(verdict))
		hold_queue_verdict(hold->queue, id, false, NULL, 0);
	else
		hold_queue_verdict(hold->queue, id, true, bytes, len);
	event_active(hold->flush, EV_TIMEOUT, 0);
	free(bytes);
}

/* Calls on_expired() for all workers' SYNs that were released at @before_ms or earlier and that nobody has taken. */
static void expire(struct hold *hold, uint64_t before_ms)
{
	struct hold_syn *syn;

	while ((syn = hold_table_expire(hold->table, before_ms))) {
		if (hold->without_data)
			hold_table_forget(hold->table, &syn->flow);
		hold->calls->on_expired(hold->arg, syn);
	}
}

/* ----- the queue ----- */

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct hold *hold = arg;

	(void)fd;
	(void)what;
	hold_queue_read(hold->queue);
	hold_queue_flush(hold->queue);
}

static void on_flush(evutil_socket_t fd, short what, void *arg)
{
	struct hold *hold = arg;

	(void)fd;
	(void)what;
	if (hold->queue)
		hold_queue_flush(hold->queue);
}

static void on_expire(evutil_socket_t fd, short what, void *arg)
{
	struct hold *hold = arg;

	(void)fd;
	(void)what;
	expire(hold, clock_now_ms() - HOLD_EXPECT_MS);
	if (hold_table_count(hold->table))
		event_add(hold->expire, &expire_interval);
}

int hold_open(struct hold *hold, size_t index)
{
	hold->next_id = 0;
	return hold_queue_open(&hold->queue, index, on_packet, hold);
}

int hold_start(struct hold *hold)
{
	hold->readable = event_new(hold->base, hold_queue_fd(hold->queue), EV_READ | EV_PERSIST, on_readable, hold);
	return hold->readable && event_add(hold->readable, NULL) == 0 ? 0 : -ENOMEM;
}

bool hold_is_open(const struct hold *hold)
{
	return hold->queue != NULL;
}

void hold_read_all(struct hold *hold)
{
	while (hold_queue_read(hold->queue))
		;
}

void hold_close(struct hold *hold)
{
	if (hold->readable)
		event_free(hold->readable);
	hold_queue_close(hold->queue);
	hold->queue = NULL;
	hold->readable = NULL;
}

/* ----- its life ----- */

struct hold *hold_create(struct event_base *base, struct hold_table *table, struct metrics *metrics, const struct hold_calls *calls,
			 void *arg)
{
	struct hold *hold = calloc(1, sizeof(*hold));

	if (!hold)
		return NULL;
	*hold = (struct hold){ .table = table, .metrics = metrics, .calls = calls, .arg = arg, .base = base };
	hold->expire = event_new(base, -1, 0, on_expire, hold);
	hold->flush = event_new(base, -1, 0, on_flush, hold);
	if (hold->expire && hold->flush)
		return hold;
	if (hold->expire)
		event_free(hold->expire);
	if (hold->flush)
		event_free(hold->flush);
	free(hold);
	return NULL;
}

void hold_destroy(struct hold *hold)
{
	if (!hold)
		return;
	expire(hold, UINT64_MAX);
	event_free(hold->expire);
	event_free(hold->flush);
	free(hold);
}

void hold_configure(struct hold *hold, bool drop_foreign, bool without_data)
{
	hold->drop_foreign = drop_foreign;
	hold->without_data = without_data;
	hold->configured = true;
}
