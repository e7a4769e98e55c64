/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syn_decision.c - decides about a SYN, and about the attempt to reach its server while we withhold it (no I/O)
 *
 * doc/states-convertd.md has the table of events. A SYN whose server can't be reached, or that new settings don't grant, goes on without
 * MP_CAPABLE, since plain TCP sends the error before the third ACK. We can tell blind clients nothing after they are connected, so theirs
 * are refused by the network's own means, or dropped. With Multipath TCP such a SYN is late after syn_first_wait_ms(): a Linux client sends
 * it again after a second, and its third ACK lacks MP_CAPABLE then. After three seconds its SYN lacks it, too; if we accepted that
 * connection, the client would avoid Multipath TCP for an hour. So we drop it ASK_MS - BLIND_MPTCP_MS after it was late, and its
 * repetitions: the kernel has sent the server all SYNs that it sends for an unproven client (downstream.c).
 *
 * A client that numbers its attempt makes the request again before it is too late, by a SYN from another port. So there is always a SYN
 * that isn't late, unless packets are lost; we keep an answer that comes between two SYNs for the next one.
 *
 * A gateway's clients are blind and know nothing of us: they ask for no server by name. Their SYNs wait for as long as the gateway's
 * settings say, and are routed where withholding ends.
 *
 * A SYN that we don't withhold passes at once. If its request is refused, it passes without MP_CAPABLE, and its session tells the client
 * the error. A blind one is refused by the network's own means, unless it lacks only proof of its address, or room among the SYNs: then it
 * passes, and its session connects to the server as soon as the third ACK has proved the address. So forged SYNs can't keep a blind client
 * away.
 */
#include "config.h"

#include "serve/syn_decision.h"

#include <assert.h>

/* Less than the second after which a Linux client sends its SYN again. */
#define BLIND_MPTCP_MS 900

/* Shorter by the time that a SYN+ACK takes to most clients, so that it arrives before they make their request again. */
#define BLIND_REPEATED_MS 700

/* How long we wait for the next repeat of a request after the server has answered: time for two repeats, as one may be lost. */
#define NEXT_REPEAT_MS 2000

/* How long we try to reach the server of a blind client, from its last SYN on. */
#define ASK_MS 3500

static struct syn_step stay(const struct syn_facts *facts, unsigned ms)
{
	return (struct syn_step){ .verdict = HOLD_WITHHOLD, .wait_ms = ms, .late = facts->late, .server_answered = facts->server_answered };
}

static struct syn_step release(enum hold_verdict verdict, enum metrics_syn counted, bool keep, const char *why)
{
	return (struct syn_step){ .verdict = verdict, .counted = counted, .keep = keep, .why = why };
}

static struct syn_step refuse(bool resets, const char *why)
{
	return (struct syn_step){ .verdict = HOLD_REFUSE, .resets = resets, .counted = METRICS_SYN_REFUSED, .why = why };
}

static struct syn_step decide_on_time(const struct syn_facts *facts)
{
	struct syn_step step;

	if (!facts->blind)
		return release(HOLD_PASS_UNCONFIRMED, METRICS_SYN_LATE, true, "the server hasn't answered in time");
	if (facts->server_answered)
		return refuse(true, "the server has answered too late");
	if (!facts->needs_mptcp || facts->late)
		return release(HOLD_DROP_UNANSWERED, METRICS_SYN_UNANSWERED, false, "nobody has said anything");
	step = stay(facts, ASK_MS - BLIND_MPTCP_MS);
	step.late = true;
	return step;
}

static struct syn_step decide_on_answer(const struct syn_facts *facts, bool speaks_mptcp)
{
	struct syn_step step;

	/*
	 * A silent client may ask whether the server speaks Multipath TCP. If the server does, we send a response, so the SYN+ACK must
	 * confirm nothing; otherwise we send none. We can't tell a blind client either way.
	 */
	const bool tells = facts->silent && !facts->blind && facts->asks && speaks_mptcp;

	if (!facts->late)
		return release(tells ? HOLD_PASS_UNCONFIRMED : HOLD_PASS_CONFIRMED, METRICS_SYN_ANSWERED, true,
			       "the server has answered");
	if (!facts->numbered)
		return refuse(true, "the server has answered too late");
	step = stay(facts, NEXT_REPEAT_MS);
	step.server_answered = true;
	return step;
}

static struct syn_step decide_on_failure(const struct syn_facts *facts)
{
	struct syn_step step = release(HOLD_PASS_TCP, METRICS_SYN_FAILED, true, NULL);

	if (facts->blind)
		step = refuse(false, NULL);
	step.tells_refusal = true;
	return step;
}

struct syn_step syn_decide(const struct syn_facts *facts, enum syn_event event)
{
	/* We wait for the client's next SYN, whatever the server does now. */
	if (facts->server_answered && event >= SYN_SERVER_ANSWERED && event <= SYN_SERVER_TIMED_OUT)
		return stay(facts, 0);
	switch (event) {
	case SYN_TIME_IS_OVER:
		return decide_on_time(facts);
	case SYN_SERVER_ANSWERED:
	case SYN_SERVER_ANSWERED_MPTCP:
		return decide_on_answer(facts, event == SYN_SERVER_ANSWERED_MPTCP);
	case SYN_SERVER_FAILED:
	case SYN_SERVER_TIMED_OUT:
		if (facts->blind && event == SYN_SERVER_TIMED_OUT)
			return release(HOLD_DROP_UNANSWERED, METRICS_SYN_UNANSWERED, false, "nobody has said anything");
		return decide_on_failure(facts);
	case SYN_PASSES:
		return release(HOLD_PASS_UNCONFIRMED, METRICS_SYN_UNCONFIRMED, false, "it goes on without us");
	case SYN_ROOM_IS_NEEDED:
		return release(facts->late ? HOLD_DROP_UNANSWERED : HOLD_PASS_UNCONFIRMED, METRICS_SYN_STOPPED, false,
			       "others need the room");
	case SYN_NOT_GRANTED:
		if (facts->routes)
			return release(HOLD_PASS_UNCONFIRMED, METRICS_SYN_NOT_GRANTED, false, "no longer granted");
		if (facts->blind)
			return refuse(false, "no longer granted");
		return release(HOLD_PASS_TCP, METRICS_SYN_NOT_GRANTED, true, "no longer granted");
	case SYN_STOPPED:
		if (facts->blind && !facts->routes)
			return refuse(true, "no longer withheld");
		return release(HOLD_PASS_UNCONFIRMED, METRICS_SYN_STOPPED, !facts->routes, "no longer withheld");
	case SYN_REPEATED:
		return release(HOLD_DROP_REPEATED, METRICS_SYN_REPEATED, false, "its client has asked again");
	case SYN_EVENTS:
		break;
	}
	assert(false);
	return stay(facts, 0);
}

/* Decides about the SYN of a silent request that we don't withhold. */
static enum hold_verdict decide_silent(const struct serve_verdict *verdict, const struct serve_settings *settings, uint8_t *native)
{
	const enum request_action action = verdict->action;
	const bool lacks_proof = verdict->demanded || action == REQUEST_PROVE || action == REQUEST_CONNECT;

	/* The session would reset an incomplete request, or one that we don't offer. */
	if (action == REQUEST_WAIT || action == REQUEST_RESET || verdict->reply == JUDGEMENT_RESET)
		*native = NATIVE_RESET;
	else if (lacks_proof)
		return HOLD_PASS_UNCONFIRMED;
	else if (!verdict->blind)
		return action == REQUEST_ANSWER ? HOLD_PASS_TCP : HOLD_PASS_UNCONFIRMED;
	return settings->refuses_syns ? HOLD_REFUSE : HOLD_PASS_UNCONFIRMED;
}

enum hold_verdict syn_decide_judged(const struct serve_verdict *verdict, const struct serve_settings *settings, uint8_t *native)
{
	if (verdict->action == REQUEST_CONNECT && verdict->withhold)
		return HOLD_WITHHOLD;
	if (verdict->silent)
		return decide_silent(verdict, settings, native);
	switch (verdict->action) {
	case REQUEST_CONNECT:
		return verdict->responds ? HOLD_PASS : HOLD_PASS_UNCONFIRMED;
	case REQUEST_PROVE:
		return HOLD_PASS_UNCONFIRMED;
	case REQUEST_ANSWER:
		/* If we demand a proof, MP_CAPABLE stays: after the client's third ACK we may connect it after all. */
		if (verdict->demanded)
			return HOLD_PASS_UNCONFIRMED;
		return verdict->refused ? HOLD_PASS_TCP : HOLD_PASS;
	case REQUEST_IGNORE:
		return settings->drop_foreign ? HOLD_DROP_FOREIGN : HOLD_PASS;
	case REQUEST_WAIT:
	case REQUEST_RESET:
	case REQUEST_ACTION_COUNT:
		break;
	}
	return HOLD_PASS;
}

bool syn_ends_in_time(const struct syn_facts *facts)
{
	return facts->blind && facts->needs_mptcp && !facts->late && !facts->server_answered;
}

unsigned syn_first_wait_ms(const struct syn_facts *facts, unsigned hold_ms)
{
	const unsigned blind_ms = facts->numbered ? BLIND_REPEATED_MS : BLIND_MPTCP_MS;

	if (facts->blind && !facts->needs_mptcp)
		return facts->routes ? facts->hold_ms : ASK_MS;
	if (facts->hold_ms < hold_ms)
		hold_ms = facts->hold_ms;
	return facts->blind && blind_ms < hold_ms ? blind_ms : hold_ms;
}

enum syn_repeat syn_decide_repeat(const struct syn_facts *facts, const struct syn_facts *earlier, bool same_server)
{
	if (earlier->repeat >= facts->repeat)
		return SYN_REPEAT_DROP;
	return earlier->needs_mptcp == facts->needs_mptcp && same_server ? SYN_REPEAT_TAKE : SYN_REPEAT_NEW;
}
