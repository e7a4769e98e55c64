/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_states.c - the states of a session, and their handlers
 *
 * This file alone changes the states of sessions (outcome.h explains them, doc/states-convertd.md has the table of events). Others call
 * session_handle() when a socket may be ready, session_handle_deadline() when the deadline is over, and session_close() and similar ones to
 * end a session. The handler of a state does all that the flags of the sockets allow, and may change the state; session_advance()
 * (session_life.c) calls the next one at once.
 *
 * session_decision.c decides without I/O, and this file carries the decision out. Other files do the work that needs no state, and return
 * the result: they judge the request and connect to the server (session_request.c), carry bytes (session_report.c) and
 * look for a proof of the client's address (session_life.c).
 */
#include "config.h"

#include "serve/session_parts.h"

#include "serve/plugs.h"

#include "common/clock.h"
#include "daemon/log.h"
#include "daemon/metrics.h"

#include <assert.h>
#include <errno.h>
#include <linux/tcp.h>
#include <string.h>

/* The most bytes that we read from the client before the server is reached: the rest waits in the kernel. */
#define REQUEST_READ_MAX (16 * 1024)

/* Changes the state, and asserts that the table of outcome.c allows it. Nothing else writes s->state. */
static void session_set_state(struct session *s, enum session_state state)
{
	enum session_state before = (enum session_state)s->state;

	assert(session_state_allows(before, state));
	log_debug("session %llu: %s -> %s", (unsigned long long)s->record.id, session_state_names[before],
		  session_state_names[state]);
	metrics_add(s->pool->context.metrics, METRIC_STATE + before, (uint64_t)-1);
	metrics_add(s->pool->context.metrics, METRIC_STATE + state, 1);
	s->state = (uint8_t)state;
	if (state == SESSION_REFUSING)
		session_set_class(s, s->proof.missing ? LIMITS_REFUSED : LIMITS_REFUSING);
}

/* ----- the end of a session ----- */

void session_close(struct session *s, enum outcome outcome)
{
	session_set_outcome(s, outcome, NULL);
	session_set_state(s, SESSION_CLOSED);
}

/* Resets both sockets, and closes the session. @reason: a constant for the log, or NULL */
static void session_abort(struct session *s, enum outcome outcome, const char *reason)
{
	session_reset_socket(s, RELAY_UPSTREAM);
	session_reset_socket(s, RELAY_DOWNSTREAM);
	session_set_outcome(s, outcome, reason);
	session_set_state(s, SESSION_CLOSED);
}

void session_drop(struct session *s, enum outcome outcome)
{
	session_report_drop(s, outcome);
	s->quiet = true;
	session_abort(s, outcome, NULL);
}

/* Enters REFUSING: the client gets the queued answer, if there is one, and the end of the stream. */
static void session_enter_refusing(struct session *s, enum outcome outcome, const char *reason)
{
	if (!limits_may_refuse(s->pool->context.limits, &s->member)) {
		session_drop(s, OUTCOME_LIMIT_REFUSED);
		return;
	}
	session_set_outcome(s, outcome, reason);
	session_set_deadline(s, SESSION_TIMEOUT_REQUEST);
	session_set_state(s, SESSION_REFUSING);
}

/* Refuses with an answer. */
static void session_refuse(struct session *s, const struct serve_answer *answer)
{
	const enum outcome exceeded = s->record.outcome, outcome = exceeded != OUTCOME_NONE ? exceeded : answer->outcome;

	session_reset_socket(s, RELAY_DOWNSTREAM);
	/* A silent client would take the answer for the server's bytes. */
	if (s->silence.reply != JUDGEMENT_RESPONSE) {
		session_abort(s, outcome, answer->reason);
		return;
	}
	if (!s->error_taken &&
	    !limits_take_error(s->pool->context.limits, &s->member, clock_now_ms())) {
		session_drop(s, OUTCOME_LIMIT_ERRORS);
		return;
	}
	if (session_queue_answer(s, answer))
		session_enter_refusing(s, outcome, answer->reason);
	else
		session_close(s, OUTCOME_OUT_OF_MEMORY);
}

static void session_refuse_server(struct session *s, const struct serve_refusal *refusal)
{
	struct serve_context *context = &s->pool->context;
	struct serve_answer answer;

	context->plugs->refused(context, s->responds, refusal, &answer);
	if (refusal->reason)
		answer.reason = refusal->reason;
	if (refusal->fault == SERVE_FAULT_OURS) {
		s->record.outcome = OUTCOME_LACKING;
		answer.reason = outcome_text(OUTCOME_LACKING);
	}
	log_debug("session %llu: %s, error %d", (unsigned long long)s->record.id, answer.reason, answer.error);
	session_refuse(s, &answer);
}

/* Returns when we began to connect to the server, as clock_now_ms(). */
static uint64_t asked_ms(const struct session *s)
{
	return (s->started_us + s->request_us) / 1000;
}

static void session_fail_server(struct session *s, int error)
{
	struct serve_context *context = &s->pool->context;
	const bool v4 = sockaddr_ip_is_v4(&s->record.client);
	struct serve_refusal refusal;

	log_debug("session %llu: %s", (unsigned long long)s->record.id, strerror(-error));
	log_shortage(-error, "clients are refused");
	refusal = context->plugs->dial.refusal(context, &s->dial, &s->record.server, v4, asked_ms(s), error);
	session_refuse_server(s, &refusal);
}

/* Connects to the server of the request. @early, @len: the bytes behind the request */
static void session_ask_server(struct session *s, const struct serve_verdict *verdict, const uint8_t *early, size_t len)
{
	struct serve_refusal refusal;
	const int result = session_connect(s, verdict, early, len, &refusal);

	if (result < 0)
		session_fail_server(s, result);
	else if (result)
		session_refuse_server(s, &refusal);
	else
		session_set_state(s, SESSION_CONNECTING);
}

void session_make_room(struct session *s, enum outcome reason)
{
	static const struct serve_refusal exceeded = { .fault = SERVE_FAULT_ROOM };

	if (reason == OUTCOME_LIMIT_MEMORY)
		session_report_memory(s);
	switch (session_decide_room((enum session_state)s->state, s->answered, s->handshake_done)) {
	case SESSION_WAY_ABORT:
		session_abort(s, reason, NULL);
		break;
	case SESSION_WAY_REFUSE:
		s->record.outcome = reason;
		session_refuse_server(s, &exceeded);
		break;
	case SESSION_WAY_DROP:
		session_drop(s, reason);
		break;
	}
}

/* ----- the client's address ----- */

/* Handles that the client has proved its address, by its third ACK or its request. */
static void session_prove(struct session *s)
{
	if (!s->proof.missing)
		return;
	session_end_proof(s);
	if (s->state != SESSION_REFUSING)
		return;
	if (limits_may_refuse(s->pool->context.limits, &s->member))
		session_set_class(s, LIMITS_REFUSING);
	else
		session_drop(s, OUTCOME_LIMIT_REFUSED);
}

/* A connection that has ended before its handshake was complete doesn't count as established. */
void session_look_upstream(struct session *s)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];

	if (s->handshake_done || client->fd < 0)
		return;
	s->handshake_done = session_client_is_established(s);
	s->client_writable = s->handshake_done || client->tcp;
	if (s->handshake_done)
		session_prove(s);
}

/* ----- REQUEST ----- */

/* Waits for more of the request. If too many sessions wait, the limits end some. */
static void session_wait(struct session *s)
{
	enum outcome exceeded;

	if (s->member.class == LIMITS_WAITING)
		return;
	session_set_class(s, LIMITS_WAITING);
	exceeded = limits_admit(s->pool->context.limits, &s->member);
	if (exceeded != OUTCOME_NONE)
		session_drop(s, exceeded);
}

/* Keeps the bytes that have arrived, until more come or the client is proven. */
static void session_keep(struct session *s, const uint8_t *buf, size_t len)
{
	if (!session_request_keep(s, buf, len))
		session_close(s, OUTCOME_OUT_OF_MEMORY);
}

/* Judges the request and acts on it. @buf: all bytes that have arrived */
static void session_decide(struct session *s, const uint8_t *buf, size_t len)
{
	struct serve_verdict verdict;
	struct serve_answer answer;
	const char *unserved;

	session_request_judge(s, buf, len, &verdict, &answer);
	unserved = session_decide_unserved(&verdict, session_request_is_confirmed(s));
	if (unserved) {
		session_abort(s, OUTCOME_NOT_SILENT, unserved);
		return;
	}
	if (verdict.proven)
		session_prove(s);
	switch (verdict.action) {
	case REQUEST_WAIT:
		session_keep(s, buf, len);
		return;
	case REQUEST_PROVE:
		s->proof.awaited = true;
		session_keep(s, buf, len);
		if (s->state == SESSION_REQUEST)
			session_wait(s);
		return;
	case REQUEST_CONNECT:
		s->relay.side[RELAY_UPSTREAM].readable = !s->fresh;
		session_ask_server(s, &verdict, buf + verdict.length, len - verdict.length);
		return;
	case REQUEST_ANSWER:
		session_refuse(s, &answer);
		if (verdict.echo)
			session_start_echo(s, verdict.echo, buf + verdict.length, len - verdict.length);
		return;
	case REQUEST_RESET:
		session_abort(s, OUTCOME_BAD_REQUEST, verdict.reason);
		return;
	case REQUEST_IGNORE:
	case REQUEST_ACTION_COUNT:
		session_enter_refusing(s, OUTCOME_NOT_CONVERT, verdict.reason);
		return;
	}
}

static void advance_request(struct session *s)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];
	uint8_t *scratch = s->pool->scratch;

	if (s->proof.awaited && s->handshake_done) {
		s->proof.awaited = false;
		session_decide(s, scratch, session_request_take(s, scratch));
	} else if (s->pool->context.plugs->no_request && !s->proof.awaited) {
		session_decide(s, scratch, 0);
	}
	/* While we wait for the client's proof, only the end of the connection matters. */
	if (s->proof.awaited && client->readable && !s->fresh && session_client_is_lost(s)) {
		session_close(s, OUTCOME_NO_HANDSHAKE);
		return;
	}
	while (s->state == SESSION_REQUEST && client->readable && !s->proof.awaited) {
		ssize_t n;

		n = recv(client->fd, scratch + s->request_len, REQUEST_READ_MAX, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			client->readable = false;
			session_wait(s);
			return;
		}
		if (n <= 0) {
			session_close(s, !n ? OUTCOME_CLIENT_LEFT :
				      s->proof.missing ? OUTCOME_NO_HANDSHAKE :
						    OUTCOME_CLIENT_LOST_REQUEST);
			return;
		}
		if (relay_side_is_garbled(client, (size_t)n)) {
			session_abort(s, OUTCOME_BYTES_MISSING, NULL);
			return;
		}
		session_decide(s, scratch, session_request_take(s, scratch) + (size_t)n);
	}
}

/* ----- CONNECTING ----- */

/* Queues the response after the server has answered. Returns false if memory is short. */
static bool queue_response(struct session *s, const struct tcp_info *info)
{
	struct serve_answer answer;

	answer.error = RECORD_NO_ERROR;
	answer.counter = 0;
	s->pool->context.plugs->connected(&s->pool->context, s->responds, &s->dial, info, &answer);
	return session_queue_answer(s, &answer);
}

/* Begins the relay after the server has answered. @info: of the server's connection */
static void session_start_relay(struct session *s, const struct tcp_info *info)
{
	struct serve_context *context = &s->pool->context;

	context->plugs->dial.settle(context, &s->dial, &s->record.server);
	s->dialling = false;
	session_guard_sockets(s);
	if (s->silence.reply == JUDGEMENT_SILENT) {
		session_cap_answer(s, 0);
	} else if (!queue_response(s, info)) {
		session_close(s, OUTCOME_OUT_OF_MEMORY);
		return;
	}
	s->record.connect_us = session_age_us(s) - s->request_us + 1;
	metrics_observe_us(s->pool->context.metrics, METRIC_CONNECT_SECONDS, s->record.connect_us);
	session_set_deadline(s, SESSION_TIMEOUT_CONNECT);
	session_set_state(s, SESSION_RELAY);
}

static void advance_connecting(struct session *s)
{
	const struct relay_side *server = &s->relay.side[RELAY_DOWNSTREAM];
	/* Without a response we needn't ask for TCP_INFO. If the connection has ended since, the relay finds out. */
	const bool known = s->syn.answered && s->silence.reply == JUDGEMENT_SILENT;
	struct tcp_info info = { 0 };
	int error = 0;

	/* A reset makes the socket readable, as bytes and a FIN do. */
	if (s->client_sent && session_client_is_lost(s)) {
		session_close(s, OUTCOME_CLIENT_LOST_CONNECTING);
		return;
	}
	s->client_sent = false;
	if (!known)
		error = server->writable || server->readable ? session_dial(s, &info) : -EINPROGRESS;
	if (error == 0) {
		session_start_relay(s, &info);
	} else if (error != -EINPROGRESS) {
		session_fail_server(s, error);
	} else if (s->handshake_done && !s->trusted) {
		if (s->pool->context.plugs->dial.proven)
			s->pool->context.plugs->dial.proven(&s->pool->context, &s->dial, 0);
		s->trusted = true;
	}
}

/* ----- RELAY and RESETTING ----- */

/* One socket has failed: we reset the other one when the bytes before that have arrived. */
static void session_enter_resetting(struct session *s, enum relay_end lost)
{
	const enum outcome outcome = session_decide_lost(lost, s->relay.side[lost].garbled, s->handshake_done);

	session_reset_socket(s, lost);
	session_set_deadline(s, SESSION_TIMEOUT_RESET_POLL);
	session_set_outcome(s, outcome, NULL);
	session_set_state(s, SESSION_RESETTING);
}

/* Runs at the short deadline, and for events of the other socket. */
static void advance_resetting(struct session *s)
{
	bool upstream = s->relay.side[RELAY_UPSTREAM].fd >= 0;
	enum relay_end end = upstream ? RELAY_UPSTREAM : RELAY_DOWNSTREAM;

	if (s->reset_polls < RESET_POLLS && session_relay_unsent(s, end))
		return;
	session_reset_socket(s, end);
	session_set_state(s, SESSION_CLOSED);
}

/*
 * If one socket has failed, and the other one's peer hasn't taken the bytes from before that, gives this peer SESSION_TIMEOUT_LINGER to
 * take some. It may never do so, as it may itself wait for us to take its bytes.
 */
static void wait_for_last_bytes(struct session *s)
{
	if (relay_has_failed(&s->relay))
		session_set_deadline(s, SESSION_TIMEOUT_LINGER);
}

/* Gives up bytes that the peer hasn't taken in time: they are lost, like the unread bytes of a socket that is reset. */
static void give_up_last_bytes(struct session *s)
{
	s->reset_polls = RESET_POLLS;
	session_enter_resetting(s, s->relay.side[RELAY_UPSTREAM].failed ? RELAY_UPSTREAM : RELAY_DOWNSTREAM);
}

/* Ends the session of a silent client that needs Multipath TCP and has lost it. Returns whether it ended the session. */
static bool abort_fallen_back(struct session *s)
{
	if (!session_has_fallen_back(s))
		return false;
	session_abort(s, OUTCOME_NOT_SILENT, "fell back to TCP; a silent client needs Multipath TCP");
	return true;
}

static void advance_relay(struct session *s)
{
	enum relay_result result;

	if (abort_fallen_back(s))
		return;
	result = session_relay_run(s);
	if (s->relay.side[RELAY_UPSTREAM].looked && abort_fallen_back(s))
		return;
	if (!s->answered && s->handshake_done &&
	    s->relay.flow[RELAY_DOWNSTREAM].bytes >= s->answer_len) {
		s->answered = true;
		session_set_class(s, LIMITS_OPEN);
		relay_watch_start(&s->watch, clock_now_ms());
		session_set_deadline(s, SESSION_TIMEOUT_LOOK);
	}
	switch (result) {
	case RELAY_WAIT:
		session_memory_note(s);
		wait_for_last_bytes(s);
		return;
	case RELAY_AGAIN:
		session_run_again(s);
		return;
	case RELAY_DONE:
		if (!session_linger(s))
			session_close(s, OUTCOME_DONE);
		return;
	case RELAY_UPSTREAM_LOST:
		session_enter_resetting(s, RELAY_UPSTREAM);
		return;
	case RELAY_DOWNSTREAM_LOST:
		session_enter_resetting(s, RELAY_DOWNSTREAM);
		return;
	}
}

/* ----- REFUSING ----- */

static void advance_refusing(struct session *s)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];
	int error;

	if (!session_echo(s))
		return;
	error = relay_flush(&s->relay, RELAY_DOWNSTREAM);
	if (error && error != -EAGAIN) {
		session_set_state(s, SESSION_CLOSED);
		return;
	}
	if (!error && !s->answered && client->writable && !client->capped) {
		s->answered = true;
		if (!s->answer_len) {
			session_set_state(s, SESSION_CLOSED);
			return;
		}
		shutdown(client->fd, SHUT_WR);
		session_set_deadline(s, SESSION_TIMEOUT_LINGER);
	}
	if (!session_drain_client(s))
		session_set_state(s, SESSION_CLOSED);
}

/* ----- all states ----- */

static void (*const state_handlers[])(struct session *) = {
	[SESSION_REQUEST] = advance_request,
	[SESSION_CONNECTING] = advance_connecting,
	[SESSION_RELAY] = advance_relay,
	[SESSION_RESETTING] = advance_resetting,
	[SESSION_REFUSING] = advance_refusing,
	[SESSION_CLOSED] = NULL,
};
static_assert(sizeof(state_handlers) / sizeof(state_handlers[0]) == SESSION_STATE_COUNT,
	      "a handler for each state");

void session_handle(struct session *s)
{
	if (state_handlers[s->state])
		state_handlers[s->state](s);
}

/* Handles the deadline in RELAY: sees whether the client has completed its handshake, and whether anything moves. */
static void look_at_relay(struct session *s)
{
	enum outcome reason = OUTCOME_NO_HANDSHAKE;

	if (!s->answered)
		session_look_upstream(s);
	/* The event of the third ACK is on its way to advance_relay(). */
	if (!s->answered && s->handshake_done && s->relay.flow[RELAY_DOWNSTREAM].bytes >= s->answer_len)
		return;
	if (s->answered)
		reason = session_relay_watch(s);
	if (reason == OUTCOME_NONE && session_has_fallen_back(s))
		reason = OUTCOME_NOT_SILENT;
	if (reason == OUTCOME_NONE)
		session_set_deadline(s, SESSION_TIMEOUT_LOOK);
	else
		session_abort(s, reason, NULL);
}

void session_handle_no_proof(struct session *s)
{
	session_look_upstream(s);
	/* If the third ACK has come, session_prove() has set another deadline. */
	if (!s->handshake_done)
		session_abort(s, OUTCOME_NO_HANDSHAKE, NULL);
}

/* Handles the end of the time to connect. The server may have answered by now, with its event still to come. */
static void on_connect_timeout(struct session *s)
{
	static const struct serve_refusal our_fault = { .fault = SERVE_FAULT_OURS };
	struct serve_context *context = &s->pool->context;
	struct tcp_info info;
	const int error = session_dial(s, &info);
	const bool ours = error == -EINPROGRESS && s->rest && context->plugs->dial.silence_is_ours(context, &s->record.server, asked_ms(s));

	switch (session_decide_patience(error, s->rest, ours)) {
	case SESSION_HAS_CONNECTED:
		break;
	case SESSION_BLAMES_US:
		session_refuse_server(s, &our_fault);
		break;
	case SESSION_WAITS_REST:
		session_set_connect_deadline(s, (enum session_timeout)s->rest);
		s->rest = 0;
		break;
	case SESSION_FAILS:
		session_fail_server(s, error == -EINPROGRESS ? -ETIMEDOUT : error);
		break;
	}
}

void session_handle_deadline(struct session *s)
{
	switch ((enum session_state)s->state) {
	case SESSION_REQUEST:
		session_close(s, OUTCOME_NO_REQUEST);
		break;
	case SESSION_CONNECTING:
		if (session_wake_dial(s))
			advance_connecting(s);
		else
			on_connect_timeout(s);
		break;
	case SESSION_RELAY:
		if (relay_has_failed(&s->relay))
			give_up_last_bytes(s);
		else
			look_at_relay(s);
		break;
	case SESSION_RESETTING:
		s->reset_polls++;
		session_set_deadline(s, SESSION_TIMEOUT_RESET_POLL);
		break;
	case SESSION_REFUSING:
		session_set_state(s, SESSION_CLOSED);
		break;
	case SESSION_CLOSED:
	case SESSION_STATE_COUNT:
		break;
	}
}
