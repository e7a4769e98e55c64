/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syn_judge.c - one worker's part of withholding SYNs: asks the judge about each SYN
 *
 * convertd/process/withholding.c describes the problem and the solution: a SYN whose request is granted stays in a netfilter queue
 * (hold/hold.c) while the dialler connects to the server (syn_attempt.c). The same function judges SYNs and streams.
 *
 * After the release the kernel makes the connection at once (Fast Open), some worker accepts it, and its session takes the server's socket,
 * or the error, out of the table (hold_table.h). The session still reads its request from the stream; if that differs from the SYN's, it
 * closes the server's socket.
 *
 * We withhold silent requests like all others. Only a whole one may be released with a mark, as its client takes the SYN+ACK's timestamps
 * for the promise that no response follows.
 *
 * Limits. We withhold no SYN for longer than hold_ms, unless its client is blind (syn_decision.c), as a Linux client sends its third SYN
 * after 3 s without MP_CAPABLE. A client with a long round trip says for how long we may withhold its SYN, so that the SYN+ACK reaches it
 * before it sends its second one. A SYN tells nothing else about its sender. We check whether client and server are allowed, and the proof
 * of an address, before we connect to the server, and a withheld SYN counts as a pending session of its client. Forged SYNs can't take all
 * room for pending sessions: a quarter may be withheld SYNs, and half may wait in the kernel for their third ACK
 * (listener_limit_syn_data()). Beyond that, limits.h chooses a SYN to be released as if we had never withheld it, or we don't withhold the
 * newcomer. Such clients have to complete a handshake before we read their request, and the timestamps of the SYN+ACK tell them to wait
 * for the response.
 */
#include "config.h"

#include "serve/syn_judge.h"

#include "common/clock.h"
#include "serve/plugs.h"

#include <stdlib.h>
#include <utlist.h>

/* ----- judgement ----- */

/* @a, @packet: the attempt for the limits to count, and its SYN; or NULL if they count it already */
static void judge_request(const struct syn_judge *judge, enum judgement_place place, const struct syn_packet *syn,
			  struct syn_attempt *a, const struct hold_packet *packet, struct serve_verdict *verdict)
{
	const struct judgement_case c = {
		.place = place,
		.bytes = syn->payload,
		.len = syn->payload_len,
		.client.address = syn->flow.source,
		.flow = &syn->flow,
		.member = a ? &a->member : NULL,
		.mptcp = syn->mp_capable,
		.urgent = syn->urgent,
		.in = packet ? packet->in : 0,
		.out = packet ? packet->out : 0,
		.now_ms = clock_now_ms(),
	};

	judge->context->plugs->judge(judge->context, &c, verdict, NULL);
}

/* Returns whether the present settings grant the request of a withheld SYN. */
static bool is_still_granted(const struct syn_judge *judge, const struct syn_attempt *a)
{
	struct serve_verdict verdict;
	struct syn_packet syn;

	if (syn_packet_parse(a->hold.packet, a->hold.packet_len, &syn) != SYN_PACKET_OK)
		return false;
	judge_request(judge, JUDGEMENT_WITHHELD, &syn, NULL, NULL, &verdict);
	return verdict.action == REQUEST_CONNECT;
}

void syn_judge_again(struct syn_judge *judge)
{
	struct syn_attempt *a, *next;

	hold_configure(judge->hold, judge->context->settings->drop_foreign, judge->context->plugs->no_request);
	DL_FOREACH_SAFE(judge->attempts, a, next) {
		if (is_still_granted(judge, a))
			a->grant.settings_number = judge->context->settings->number;
		else
			syn_attempt_on(a, SYN_NOT_GRANTED);
	}
}

static enum hold_verdict on_syn(void *arg, const struct hold_packet *packet, uint8_t *native)
{
	struct syn_judge *judge = arg;
	struct syn_attempt *a = syn_attempt_create(judge);
	struct serve_verdict judged;
	enum hold_verdict verdict;

	if (!a)
		return HOLD_PASS_UNCONFIRMED;
	judge_request(judge, JUDGEMENT_SYN, &packet->syn, a, packet, &judged);
	*native = native_prohibited(IN6_IS_ADDR_V4MAPPED(&packet->flow.addresses.source));
	verdict = syn_decide_judged(&judged, judge->context->settings, native);
	if (verdict == HOLD_WITHHOLD) {
		verdict = syn_attempt_ask(a, packet, &judged, native);
		if (verdict == HOLD_WITHHOLD)
			return verdict;
		limits_leave(judge->context->limits, &a->member, clock_now_ms());
	}
	free(a);
	return verdict;
}

static void on_expired(void *arg, struct hold_syn *syn)
{
	syn_attempt_free(arg, (struct syn_attempt *)syn);
}

/* ----- on and off ----- */

void syn_judge_stop(struct syn_judge *judge, bool read)
{
	if (!hold_is_open(judge->hold))
		return;
	if (read)
		hold_read_all(judge->hold);
	while (judge->attempts)
		syn_attempt_on(judge->attempts, SYN_STOPPED);
	hold_close(judge->hold);
}

struct syn_judge *syn_judge_create(struct serve_context *context)
{
	static const struct hold_calls calls = { .on_syn = on_syn, .on_expired = on_expired };
	struct syn_judge *judge = calloc(1, sizeof(*judge));

	if (!judge)
		return NULL;
	judge->context = context;
	judge->hold = hold_create(context->base, context->withheld, context->metrics, &calls, judge);
	if (judge->hold)
		return judge;
	free(judge);
	return NULL;
}

void syn_judge_destroy(struct syn_judge *judge)
{
	if (!judge)
		return;
	syn_judge_stop(judge, false);
	hold_destroy(judge->hold);
	free(judge);
}
