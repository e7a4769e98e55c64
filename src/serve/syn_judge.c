/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syn_judge.c - one worker's part of withholding SYNs: judges each SYN, and asks its server
 *
 * The problem, and the way out, are described in withholding.c: a SYN whose request is granted stays in a netfilter
 * queue while the converter connects to the server. This file reads one worker's queue, judges each SYN by the same
 * function as a stream (policy/judgement.h), connects, and gives the kernel its verdict on the packet.
 *
 * What becomes of a withheld SYN (of a blind client's: see syn_attempt.c):
 *
 *     event                            the SYN is released …          SYN+ACK
 *     the server has answered          with a mark                    confirms that
 *     the server can't be reached      without MP_CAPABLE             confirms nothing; the Error TLV comes at once, as
 *                                                                     plain TCP sends it before the third ACK
 *     --hold-time is over, or what     as it is                       confirms nothing; the response comes when it comes
 *     the client says, or
 *     far_clients.h leaves of it
 *     the limits want its room         as it is                       the same; its connection is judged like any other
 *     new terms don't grant it         without MP_CAPABLE             the same as for a server that can't be reached
 *     withholding ends                 as it is                       as when the time is over
 *
 * The kernel then makes the connection at once (Fast Open), some worker accepts it, and its session takes the server's
 * socket, or the error, out of the table (withheld.h). The session reads its request from the stream all the same; if
 * that is another one than the SYN's, it closes the server's socket.
 *
 * A SYN that isn't withheld goes on at once: one whose request is refused without MP_CAPABLE, and its session finds
 * out again what is wrong; everything else that isn't a whole request as it is: joins, SYNs without data, fragments,
 * damaged packets. Linux clients send SYNs again without data: these are dropped while the first one is withheld,
 * whatever is in them, so that a client's SYN makes one SYN to the server (Section 9.3).
 *
 * Silent requests (doc/private-tlvs.md) are withheld as all others are; only a whole one may go on with a mark, as its client
 * takes the SYN+ACK's timestamps for the promise that no response follows.
 *
 * Limits. A SYN isn't withheld for longer than --hold-time, as a Linux client sends its third SYN after 3 s without
 * MP_CAPABLE; and that of a client that says so (a Hold Time TLV), or whose round trip is known to be long, not for so long
 * that it has sent its second one when the SYN+ACK comes (far_clients.c). Nothing else is known of whoever sends a SYN.
 * Clients and servers that aren't allowed, and missing cookies, are found out before the server is asked, and a withheld SYN
 * counts as a pending session of its client. Forged SYNs can't take all that may be pending: a quarter may be withheld, and
 * half wait in the kernel for their third ACK (listener_set_pending()). Beyond that, limits.h chooses a SYN that is released
 * as if it had never been withheld, or the newcomer itself isn't withheld. Such clients have to complete a handshake before
 * they are heard, and the timestamps of the SYN+ACK tell them to wait for the response.
 *
 * Clean-up. The kernel makes no connection of a released SYN if its queue for Fast Open is full and the address was
 * forged. After EXPECT_MS the server's socket is reset.
 *
 * The window of a SYN that has MP_CAPABLE and data is corrected on the way: see syn_window.c.
 */
#include "config.h"

#include "serve/syn_judge.h"

#include "convertd/base/clock.h"
#include "convertd/base/log.h"
#include "convertd/config/settings.h"
#include "convertd/config/effective_settings.h"
#include "hold/syn_packet.h"
#include "convertd/observe/metrics.h"
#include "convertd/policy/judgement.h"
#include "serve/request_context.h"
#include "hold/hold_table.h"
#include "serve/syn_attempt.h"
#include "hold/hold_queue.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <utlist.h>

/* How long a released SYN's connection is waited for: without its data it takes a round trip more, and may lose a packet. */
#define EXPECT_MS 5000

/* How SYNs are counted that aren't withheld; METRICS_SYN_COUNT stands for verdicts that these don't get. */
static const enum metrics_syn verdict_metrics[] = {
	[SYN_WITHHOLD] = METRICS_SYN_COUNT,
	[SYN_DROP_REPEATED] = METRICS_SYN_REPEATED,
	[SYN_DROP_FOREIGN] = METRICS_SYN_FOREIGN,
	[SYN_DROP_SILENT] = METRICS_SYN_COUNT,
	[SYN_PASS] = METRICS_SYN_PASSED,
	[SYN_PASS_CONFIRMED] = METRICS_SYN_COUNT,
	[SYN_PASS_UNCONFIRMED] = METRICS_SYN_UNCONFIRMED,
	[SYN_PASS_REFUSED] = METRICS_SYN_NOT_GRANTED,
	[SYN_REFUSE] = METRICS_SYN_REFUSED,
};
static_assert(sizeof(verdict_metrics) / sizeof(verdict_metrics[0]) == SYN_VERDICT_COUNT, "each verdict is counted");

/* ----- judgement ----- */

/* @a: the attempt to be counted by the limits, or NULL where it is counted already */
static void judge_request(const struct syn_judge *judge, enum judgement_place place, const struct syn_packet *syn,
			  struct syn_attempt *a, struct judgement *judgement)
{
	const struct judgement_case c = {
		.place = place,
		.bytes = syn->payload,
		.len = syn->payload_len,
		.client.address = syn->flow.source,
		.member = a ? &a->syn.member : NULL,
		.mptcp = syn->mp_capable,
		.now_ms = clock_now_ms(),
	};

	judgement_make(&judge->context->admission, &c, judgement);
}

/* Does the present terms' judgement of a withheld SYN grant its request? */
static bool is_still_granted(const struct syn_judge *judge, const struct withheld_syn *withheld)
{
	struct judgement judgement;
	struct syn_packet syn;

	if (syn_packet_parse(withheld->packet, withheld->packet_len, &syn) != SYN_PACKET_OK)
		return false;
	judge_request(judge, JUDGEMENT_WITHHELD, &syn, NULL, &judgement);
	return judgement.request.action == REQUEST_CONNECT;
}

void syn_judge_again(struct syn_judge *judge)
{
	struct syn_attempt *a, *next;

	DL_FOREACH_SAFE(judge->attempts, a, next) {
		if (is_still_granted(judge, &a->syn)) {
			a->syn.grant.terms = judge->context->terms->admission.number;
			continue;
		}
		/* The session finds nothing that was done for it, and says what is wrong. */
		syn_attempt_forbid(a, "no longer granted");
	}
}

/* Says what the judgement means for the SYN of a silent request that isn't to be withheld. @native: how a blind one is refused */
static enum syn_verdict silent_verdict_of(const struct syn_judge *judge, const struct judgement *judgement, uint8_t *native)
{
	const struct request_decision *request = &judgement->request;
	bool refuses = judge->context->terms->features.withholding.blind;

	/* What isn't a whole request, or isn't one that was offered, is reset by its session, if it comes to that. */
	if (request->action == REQUEST_WAIT || request->action == REQUEST_RESET || judgement->voice == JUDGEMENT_RESET)
		*native = NATIVE_RESET;
	else if (!request->silence.blind)
		return request->action == REQUEST_ANSWER && !request->demanded ? SYN_PASS_REFUSED : SYN_PASS_UNCONFIRMED;
	return refuses ? SYN_REFUSE : SYN_PASS_UNCONFIRMED;
}

/*
 * What the judgement of its request means for a SYN. SYN_WITHHOLD: if its server can be asked
 * @native: set with SYN_REFUSE where it isn't to be what it is
 */
static enum syn_verdict verdict_of(const struct syn_judge *judge, const struct judgement *judgement, uint8_t *native)
{
	const struct request_decision *request = &judgement->request;

	if (request->action == REQUEST_CONNECT && judgement->withhold)
		return SYN_WITHHOLD;
	if (request->silent)
		return silent_verdict_of(judge, judgement, native);
	switch (request->action) {
	case REQUEST_CONNECT:
		return request->info ? SYN_PASS : SYN_PASS_UNCONFIRMED;
	case REQUEST_PROVE:
		return SYN_PASS_UNCONFIRMED;
	case REQUEST_ANSWER:
		/* With a demanded cookie, MP_CAPABLE stays: after its third ACK the client may have the server after all. */
		if (request->demanded)
			return SYN_PASS_UNCONFIRMED;
		return request->refused ? SYN_PASS_REFUSED : SYN_PASS;
	case REQUEST_IGNORE:
		return judge->context->terms->settings->drop_foreign_syns ? SYN_DROP_FOREIGN : SYN_PASS;
	case REQUEST_WAIT:
	case REQUEST_RESET:
	case REQUEST_ACTION_COUNT:
		break;
	}
	return SYN_PASS;
}

/* Judges the request of a SYN that has not been seen before. @native: how it is refused, with SYN_REFUSE */
static enum syn_verdict judge_new(struct syn_judge *judge, uint32_t id, const uint8_t *packet, size_t len,
				  const struct syn_packet *syn, uint8_t *native)
{
	struct syn_attempt *a = judge->spare ? judge->spare : syn_attempt_create(judge);
	struct judgement judgement;
	enum syn_verdict verdict;

	judge->spare = a;
	if (!a)
		return SYN_PASS_UNCONFIRMED;
	judge_request(judge, JUDGEMENT_SYN, syn, a, &judgement);
	*native = native_prohibited(IN6_IS_ADDR_V4MAPPED(&syn->flow.source));
	verdict = verdict_of(judge, &judgement, native);
	if (verdict == SYN_WITHHOLD) {
		a->syn.packet_id = id;
		verdict = syn_attempt_ask(a, packet, len, syn, &judgement.request, native);
		if (verdict == SYN_WITHHOLD)
			judge->spare = NULL;
		else
			limits_leave(judge->context->admission.limits, &a->syn.member, clock_now_ms());
	}
	/* Its kernel may not be told at once: there is a limit on ICMP messages. Then it sends the SYN again, without its data. */
	if (verdict == SYN_REFUSE)
		withheld_note_refusal(judge->table, &syn->flow, syn->isn, *native);
	return verdict;
}

/* @native: how it is refused, with SYN_REFUSE */
static enum syn_verdict judge_syn(struct syn_judge *judge, uint32_t id, const uint8_t *packet, size_t len,
				  const struct syn_packet *syn, uint8_t *native)
{
	enum withheld_known known = withheld_look(judge->table, &syn->flow, syn->isn, native);

	if (known == WITHHELD_NOW)
		return SYN_DROP_REPEATED;
	if (known == WITHHELD_REFUSED)
		return SYN_REFUSE;
	/* Its connection may be another one than the first SYN would have made. */
	if (known == WITHHELD_BEFORE)
		return SYN_PASS_UNCONFIRMED;
	if (syn->mp_join)
		return SYN_PASS;
	if (!syn->payload_len)
		return judge->context->terms->settings->drop_foreign_syns ? SYN_DROP_FOREIGN : SYN_PASS;
	return judge_new(judge, id, packet, len, syn, native);
}

/* ----- the queue ----- */

/* Packets have consecutive numbers. Those that are missing went on unseen, as there was no room in the queue's socket. */
static void count_missed(struct syn_judge *judge, uint32_t id)
{
	if (judge->next_id)
		metrics_add(judge->context->metrics, METRIC_SYNS + METRICS_SYN_MISSED, id - judge->next_id);
	judge->next_id = id + 1;
}

static void on_syn(void *arg, uint32_t id, uint8_t *packet, size_t len)
{
	struct syn_judge *judge = arg;
	const struct request_context *context = judge->context;
	enum syn_packet_status status;
	enum syn_verdict verdict;
	struct syn_packet syn;
	uint8_t native;

	count_missed(judge, id);
	status = syn_packet_parse(packet, len, &syn);
	if (status != SYN_PACKET_OK || !context->terms) {
		log_debug("SYN not looked at: %s", syn_packet_status_name(status));
		metrics_add(context->metrics, METRIC_SYNS + METRICS_SYN_UNREADABLE, 1);
		syn_queue_pass(judge->queue, id);
		return;
	}
	if (syn.mp_capable && syn.payload_len && !context->terms->settings->no_syn_window_fix)
		syn_packet_shift_window(packet, &syn);
	verdict = judge_syn(judge, id, packet, len, &syn, &native);
	if (verdict == SYN_WITHHOLD)
		return;
	metrics_add(context->metrics, METRIC_SYNS + verdict_metrics[verdict], 1);
	if (syn.payload_len || verdict == SYN_REFUSE)
		syn_attempt_change(packet, &syn, verdict, native);
	if (verdict == SYN_DROP_REPEATED || verdict == SYN_DROP_FOREIGN)
		syn_queue_drop(judge->queue, id);
	else if (syn.payload_len || verdict == SYN_REFUSE)
		syn_queue_pass_changed(judge->queue, id, packet, len);
	else
		syn_queue_pass(judge->queue, id);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct syn_judge *judge = arg;

	(void)fd;
	(void)what;
	syn_queue_read(judge->queue);
	syn_queue_flush(judge->queue);
}

static void on_flush(evutil_socket_t fd, short what, void *arg)
{
	struct syn_judge *judge = arg;

	(void)fd;
	(void)what;
	if (judge->queue)
		syn_queue_flush(judge->queue);
}

/* Frees the released SYNs whose connections have not come by @before_ms. */
static void expire(struct syn_judge *judge, uint64_t before_ms)
{
	struct withheld_syn *syn;

	while ((syn = withheld_expire(judge->table, before_ms)))
		syn_attempt_free(judge, syn);
}

static void on_expire(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval again = { .tv_sec = SYN_ATTEMPT_EXPIRE_SECONDS };
	struct syn_judge *judge = arg;

	(void)fd;
	(void)what;
	expire(judge, clock_now_ms() - EXPECT_MS);
	if (withheld_count(judge->table))
		event_add(judge->expire, &again);
}

/* ----- on and off ----- */

int syn_judge_open(struct syn_judge *judge, size_t index)
{
	judge->next_id = 0;
	return syn_queue_open(&judge->queue, index, on_syn, judge);
}

int syn_judge_start(struct syn_judge *judge)
{
	judge->readable = event_new(judge->context->base, syn_queue_fd(judge->queue), EV_READ | EV_PERSIST,
				    on_readable, judge);
	return judge->readable && event_add(judge->readable, NULL) == 0 ? 0 : -ENOMEM;
}

void syn_judge_stop(struct syn_judge *judge, bool read)
{
	if (!judge->queue)
		return;
	while (read && syn_queue_read(judge->queue))
		;
	syn_attempts_stop(judge);
	if (judge->readable)
		event_free(judge->readable);
	syn_queue_close(judge->queue);
	judge->queue = NULL;
	judge->readable = NULL;
}

struct syn_judge *syn_judge_create(struct request_context *context)
{
	struct syn_judge *judge = calloc(1, sizeof(*judge));

	if (!judge)
		return NULL;
	judge->context = context;
	judge->table = context->withheld;
	judge->expire = event_new(context->base, -1, 0, on_expire, judge);
	judge->flush = event_new(context->base, -1, 0, on_flush, judge);
	if (judge->expire && judge->flush)
		return judge;
	if (judge->expire)
		event_free(judge->expire);
	if (judge->flush)
		event_free(judge->flush);
	free(judge);
	return NULL;
}

void syn_judge_forget(struct syn_judge *judge)
{
	expire(judge, UINT64_MAX);
}

void syn_judge_destroy(struct syn_judge *judge)
{
	if (!judge)
		return;
	syn_judge_stop(judge, false);
	syn_judge_forget(judge);
	event_free(judge->expire);
	event_free(judge->flush);
	free(judge->spare);
	free(judge);
}
