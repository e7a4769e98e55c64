/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steps.c - the steps of a dial, from its SYN (attempt.c) to the end
 *
 * A step looks and decides (decide.c) until there is nothing more to find out, and then acts on the decision:
 *
 *	the server was reached             it takes the response off the stream: REACHED
 *	the server's failure               FAILED, with its errno
 *	the SYN+ACK confirms the server    CONFIRMED; a failure from then on is FAILED, like a server's reset
 *	MPTCP or the SYN's data is lost    the same converter, asked in a safer way
 *	the converter knows a remedy       the same converter, with a cookie, without an option …
 *	the path is silent                 another network, perhaps to another converter
 *	the converter's failure            the next converter; after the last one DIRECT, or FAILED (CONVERT_FALLBACK=none)
 *
 * The engine keeps no part of a response: it peeks at it until it is complete, and then takes it off at once.
 */
#include "config.h"

#include "engine/attempt.h"

#include "client/converters.h"
#include "client/exchange.h"
#include "common/thread.h"
#include "convert/convert.h"
#include "engine/decide.h"

#include <errno.h>
#include <linux/tcp.h>
#include <stdio.h>

static void converter_log(const struct dial *dial, const char *what, const char *more)
{
	char text[SOCKADDR_STRLEN];

	dial_host.log("converter %s: %s%s", sockaddr_ip_format(&dial->attempt.addr, text), what, more);
}

static void disconnect(struct dial *dial)
{
	path_start_end(&dial->start);
	dial->ops->disconnect(dial);
}

static enum dial_state fail(struct dial_end *end, int error, const char *reason)
{
	end->error = error;
	end->reason = reason;
	return DIAL_FAILED;
}

/* Asks the next converter after one has failed with @error for @reason, or connects directly. */
static enum dial_state go_on(struct dial *dial, int error, const char *reason, struct dial_end *end)
{
	enum dial_state state = dial_next(dial, false, end);

	if (state != DIAL_REFUSED)
		return state;
	fail(end, error, reason);
	if (dial_host.settings->fail_closed)
		return DIAL_FAILED;
	dial_log_direct(dial, true, reason);
	return DIAL_DIRECT;
}

enum dial_state dial_resolved(struct dial *dial, struct dial_end *end)
{
	return go_on(dial, ENETUNREACH, "no converter answers", end);
}

/* --- ends of an attempt --- */

/* Lets the failed converter rest, as @why says, and goes on without it. */
static enum dial_state converter_failed(struct dial *dial, const struct handshake_step *why, struct dial_end *end)
{
	const int error = why->error;
	const char *const reason = why->reason;

	attempt_let_rest(dial, why);
	if (dial->wrote) /* the converter has the program's bytes */
		return fail(end, error, reason);
	dial->tried |= 1u << dial->attempt.converter;
	/* The usual path is silent, and so is the unproven one that the dial has moved to: no network is better. */
	if (dial->start.placed && attempt_is_unanswered(dial) && !path_works(paths_facts_kept(&dial->start.path.id).state))
		path_start_give_back(&dial->start);
	disconnect(dial);
	return go_on(dial, error, reason, end);
}

/* The converter has failed on the network that the program has chosen. That tells nothing about others, so the converter doesn't rest. */
static enum dial_state network_failed(struct dial *dial, struct handshake_step why, struct dial_end *end)
{
	converter_log(dial, why.reason, ", on the network that the program has chosen");
	why.rest = 0;
	return converter_failed(dial, &why, end);
}

static enum dial_state attempt_failed(struct dial *dial, int error, bool at_once, struct dial_end *end);

/* Returns the state after an attempt has begun. @ret: 0, or the -errno with which it failed */
static enum dial_state begun(struct dial *dial, int ret, struct dial_end *end)
{
	return ret < 0 ? attempt_failed(dial, -ret, true, end) : DIAL_IN_PROGRESS;
}

/* Resets the connection and asks the same converter again, with the remedy that its answer has shown. */
static enum dial_state ask_again(struct dial *dial, struct dial_end *end)
{
	disconnect(dial);
	return begun(dial, attempt_again(dial), end);
}

enum dial_state dial_anew(struct dial *dial, enum ask_way way, struct dial_end *end)
{
	return begun(dial, attempt_anew(dial, way), end);
}

static enum dial_state blind_lost(enum ask_way way, int error, const char *reason, struct dial_end *end)
{
	*end = (struct dial_end){ .error = error, .reason = reason, .way = way };
	return DIAL_BLIND;
}

/*
 * Asks by @way after Multipath TCP was lost on the way to the converter (ASK_TCP: a socket that fell back to TCP loses bytes), or would be,
 * or the SYN's data was. @known: a converter has answered. Otherwise something else may have taken the connection, and unless the request
 * is blind we note the loss of Multipath TCP only when a converter answers.
 */
static enum dial_state begin_anew(struct dial *dial, enum ask_way way, bool known, struct dial_end *end)
{
	const bool later = way == ASK_TCP && !known && !dial->attempt.ask.blind;
	/* not if the program has sent or seen what another connection can't repeat; after a blind request the front end decides */
	const bool again = !dial->attempt.ask.blind && !dial->wrote && !dial->confirmed;

	converter_log(dial, way == ASK_TCP ? "Multipath TCP is lost on the way" : "data in the SYN was not taken",
		      !again ? "" : way == ASK_TCP ? ", asked over TCP" : ", asked behind the handshake");
	dial->attempt.fallback_syn_at = later ? dial->start.syn_at : 0;
	if (!stack_is_small() && !later)
		exchange_way_failed(&dial->start.path.id, way, dial->start.syn_at);
	if (dial->attempt.ask.blind)
		return blind_lost(way, ECONNRESET, "the connection would not stay Multipath TCP", end);
	if (!again)
		return fail(end, ECONNRESET, "Multipath TCP to the converter was lost behind the handshake");
	disconnect(dial);
	return dial_anew(dial, way, end);
}

/* Begins anew over the path of dial->start, with the converter at @addr. */
static enum dial_state begin_at(struct dial *dial, const union sockaddr_ip *addr, struct dial_end *end)
{
	int ret;

	disconnect(dial);
	dial->attempt = (struct attempt){
		.addr = *addr,
		.converter = (uint8_t)dial->start.path.id.converter,
		.cookie_asked = dial->attempt.cookie_asked,
	};
	ret = attempt_begin(dial, false);
	return begun(dial, ret, end);
}

/* Begins anew over the same path, without data in the SYN. */
static enum dial_state begin_behind(struct dial *dial, struct dial_end *end)
{
	const enum ask_way way = dial->mptcp ? ASK_MPTCP : ASK_TCP;

	converter_log(dial, "SYNs with data are lost on the way, asked behind the handshake", "");
	if (dial->attempt.ask.blind)
		return blind_lost(way, ECONNRESET, "SYNs with data are lost on the way", end);
	disconnect(dial);
	return dial_anew(dial, way, end);
}

/* The connection was refused on its path, as in path_start_refused(). Returns true with @state if an attempt over another one has begun. */
static bool leave_refused(struct dial *dial, enum cache_path how, const char *reason, enum dial_state *state, struct dial_end *end)
{
	struct converters_query query;
	union sockaddr_ip addr;

	if (dial->wrote || stack_is_small())
		return false;
	query = dial->ops->query(dial);
	if (how == CACHE_PATH_REFUSES) /* only the same converter: we try others once it has refused over two paths */
		query.tried = ~(1u << dial->attempt.converter);
	if (!path_start_refused(&dial->start, &query, how, reason, &addr))
		return false;
	*state = begin_at(dial, &addr, end);
	return true;
}

static bool has_remedy(struct dial *dial, const struct handshake_step *told)
{
	struct attempt *attempt = &dial->attempt;
	const bool was_silent = attempt->ask.silent;

	if (dial->wrote || !exchange_take_remedy(attempt->converter, attempt->cookie_number, told, &attempt->cookie_asked,
						 &attempt->ask.mptcp, &attempt->ask.silent))
		return false;
	attempt->repeated |= was_silent && !attempt->ask.silent; /* another refusal would be the second one */
	return true;
}

/*
 * The converter, or a firewall or captive portal on the path, has refused the connection, by a reset or by bytes that are no response.
 * Another path shows which. Without one we repeat the request once, from another port, before all programs leave the converter alone.
 */
static enum dial_state refused(struct dial *dial, const struct handshake_step *why, struct dial_end *end)
{
	enum dial_state state;

	if (leave_refused(dial, CACHE_PATH_REFUSES, why->reason, &state, end))
		return state;
	if (dial->wrote || dial->start.moves || dial->attempt.repeated)
		return dial->start.may_move ? converter_failed(dial, why, end) : network_failed(dial, *why, end);
	converter_log(dial, why->reason, ", asked once more");
	dial->attempt.repeated = true;
	return ask_again(dial, end);
}

/* @at_once: no packet was sent. Then this socket or the routes have failed, and the converter needn't rest. */
static enum dial_state attempt_failed(struct dial *dial, int error, bool at_once, struct dial_end *end)
{
	struct attempt *attempt = &dial->attempt;
	int pending = dial->ops->error(dial);
	struct handshake_step why;
	enum dial_state state;

	error = pending ? pending : error;
	if (attempt->ask.blind)
		return blind_lost(attempt->way, error, error_text(error), end);
	if (attempt->direct || dial->confirmed)
		return fail(end, error, error_text(error));
	if (error_means_no_path(error) && leave_refused(dial, CACHE_PATH_SILENT, error_text(error), &state, end))
		return state;
	why = handshake_on_error(error, converters_is_proven(attempt->converter));
	if (attempt->ask.silent && has_remedy(dial, &why))
		return ask_again(dial, end);
	if (why.fault == HANDSHAKE_FAULT_CONVERTER && (why.error == ECONNREFUSED || why.error == ECONNRESET))
		return refused(dial, &why, end);
	if (at_once) {
		converter_log(dial, why.reason, ", before a packet was sent");
		why.rest = 0;
		return converter_failed(dial, &why, end);
	}
	return dial->start.may_move ? converter_failed(dial, &why, end) : network_failed(dial, why, end);
}

enum dial_state dial_failed(struct dial *dial, int error, struct dial_end *end)
{
	return attempt_failed(dial, error, false, end);
}

/* --- the response --- */

/*
 * Judges the bytes that have arrived. A peer that closes the stream after part of a response has failed. Before we conclude that, we read
 * once more, since the last bytes may have come together with the end.
 */
static enum seen_response response_read(struct dial *dial, uint8_t response[CONVERT_MESSAGE_MAX], struct handshake_step *out, int *error)
{
	const struct handshake_ask ask = dial_ask(dial);
	bool ended = true;

	for (int look = 0; look < 2; look++) {
		ssize_t got = dial->ops->peek(dial, response, CONVERT_MESSAGE_MAX, look ? &ended : NULL);

		if (got == -EAGAIN)
			return RESPONSE_NOTHING;
		if (got < 0) {
			*error = (int)-got;
			return RESPONSE_BROKEN;
		}
		*out = got ? handshake_on_bytes(response, (size_t)got, &dial->server, &ask) : handshake_on_close();
		if (out->verdict != HANDSHAKE_NEED_MORE)
			break;
	}
	if (out->verdict == HANDSHAKE_NEED_MORE && ended)
		*out = handshake_on_close();
	return out->verdict == HANDSHAKE_NEED_MORE ? RESPONSE_PART :
	       out->verdict == HANDSHAKE_DONE	   ? RESPONSE_WHOLE :
						     RESPONSE_ERROR;
}

/* Waits until @length bytes of a response are there. If CONVERT_TIMEOUT was over before the first one, the rest has as long again. */
static void wait_for_rest(struct dial *dial, size_t length)
{
	struct attempt *attempt = &dial->attempt;
	const int64_t now = dial_host.clock();

	if (!attempt->awaited && now >= attempt->ends)
		attempt->ends = now + dial_host.settings->timeout_ms * CLOCK_NS_PER_MS;
	attempt->confirmable = false;
	attempt->woke_early = attempt->awaited == length;
	attempt->awaited = (uint16_t)length;
	path_start_end(&dial->start);
	dial->ops->watch(dial); /* no longer for output */
}

static void look_at_socket(struct dial *dial, struct dial_seen *seen)
{
	struct tcp_info info;
	uint32_t heard_ms;

	dial->ops->info(dial, &info);
	heard_ms = info.tcpi_last_ack_recv < info.tcpi_last_data_recv ? info.tcpi_last_ack_recv : info.tcpi_last_data_recv;
	seen->looked = true;
	seen->state = info.tcpi_state;
	seen->options = info.tcpi_options;
	seen->sent_again = info.tcpi_total_retrans;
	seen->heard_at = dial_host.clock() - heard_ms * CLOCK_NS_PER_MS;
	seen->proven = converters_is_proven(dial->attempt.converter);
	if (info.tcpi_state != TCPINFO_SYN_SENT && info.tcpi_state != TCPINFO_CLOSE)
		attempt_answered(dial, &info);
}

/* Returns how the request arrived, for the log. After a reset the kernel doesn't know any more. */
static const char *way_text(const struct dial *dial, const struct dial_seen *seen)
{
	if (!dial->attempt.syn_data)
		return "request behind the handshake";
	if (seen->state == TCPINFO_UNKNOWN || seen->state == TCPINFO_CLOSE)
		return "reset since";
	return seen->options & TCPI_OPT_SYN_DATA ? "request taken in the SYN" : "request not taken in the SYN";
}

/* Notes how the path treats data in SYNs, and logs the connection. @how: words for how the server was confirmed, or none */
static void note_reached(struct dial *dial, struct dial_seen *seen, const char *how)
{
	char detail[96];

	if (!seen->looked)
		look_at_socket(dial, seen);
	if (!stack_is_small() && dial->attempt.syn_data && seen->state != TCPINFO_UNKNOWN && seen->state != TCPINFO_CLOSE)
		paths_note_syn_data(&dial->start.path.id, seen->options & TCPI_OPT_SYN_DATA, dial->start.syn_at);
	snprintf(detail, sizeof(detail), "%s%s", way_text(dial, seen), how);
	dial_log_converted(dial, detail);
	dial_note(dial);
}

/* Notes the facts about the path that only a converter's response proves. */
static void note_converter(const struct dial *dial)
{
	if (stack_is_small())
		return;
	path_start_served(&dial->start);
	if (dial->attempt.fallback_syn_at)
		exchange_way_failed(&dial->start.path.id, ASK_TCP, dial->attempt.fallback_syn_at);
}

static enum dial_state server_reached(struct dial *dial, struct dial_seen *seen, const struct handshake_step *told, struct dial_end *end)
{
	if (!dial->ops->take(dial, told->length)) /* the program would take the rest for the server's bytes */
		return fail(end, ECONNRESET, "the response can't be taken off the stream");
	note_converter(dial);
	if (!stack_is_small())
		exchange_done(&dial->start.path.id, &dial->server, told, dial->mptcp);
	dial->attempt.ask.silent = false;
	if (!dial->confirmed)
		note_reached(dial, seen, "");
	dial_stop(dial);
	return DIAL_REACHED;
}

static enum dial_state reached_silently(struct dial *dial, struct dial_seen *seen)
{
	note_reached(dial, seen, ", server confirmed by the SYN+ACK, silently");
	note_converter(dial);
	if (!stack_is_small())
		exchange_done_silently(dial->attempt.converter, &dial->server, dial->attempt.ask.mptcp);
	dial_stop(dial);
	return DIAL_REACHED;
}

/* Once the SYN+ACK has come, clears the flags that waited for it. Then only the response is awaited. */
static void synack_seen(struct dial *dial, const struct dial_seen *seen)
{
	struct attempt *attempt = &dial->attempt;
	const bool wanted = dial_wants_output(dial);

	if (seen->state == TCPINFO_SYN_SENT)
		return;
	attempt->synack_due = false;
	if (seen->state != TCPINFO_UNKNOWN)
		attempt->confirmable = false;
	if (seen->state != TCPINFO_UNKNOWN && !synack_is_silent(seen->options))
		attempt->silence_due = false;
	if (wanted && !dial_wants_output(dial))
		dial->ops->watch(dial); /* for the response */
}

static enum dial_state confirm(struct dial *dial, struct dial_seen *seen)
{
	note_reached(dial, seen, ", server confirmed by the SYN+ACK");
	dial_stop(dial);
	synack_seen(dial, seen);
	dial->attempt.wake_at = 0;
	attempt_wake(dial);
	dial->confirmed = true;
	return DIAL_CONFIRMED;
}

/* Ends a connection that the program was told of. To the program it looks like the reset of a server that is gone. */
static enum dial_state unreached(struct dial *dial, const struct handshake_step *told, struct dial_end *end)
{
	if (told->fault != HANDSHAKE_FAULT_PROTOCOL) {
		converter_log(dial, "its SYN+ACK confirmed a server that it has not reached", "");
		converters_withholds_nothing(dial->attempt.converter);
	}
	return fail(end, ECONNRESET, told->reason);
}

/* Handles a response that is an error or no Convert message. */
static enum dial_state judge(struct dial *dial, const struct handshake_step *told, struct dial_end *end)
{
	if (dial->confirmed)
		return unreached(dial, told, end);
	if (told->fault != HANDSHAKE_FAULT_PROTOCOL) {
		converters_proved(dial->attempt.converter);
		note_converter(dial);
	}
	if (has_remedy(dial, told))
		return ask_again(dial, end);
	if (told->fault == HANDSHAKE_FAULT_PROTOCOL)
		return refused(dial, told, end);
	if (told->fault != HANDSHAKE_FAULT_SERVER)
		return converter_failed(dial, told, end);
	exchange_failed(dial->attempt.converter, &dial->server, told);
	end->told = true;
	return fail(end, told->error, told->reason);
}

static struct dial_decision decide_now(const struct dial *dial, const struct dial_seen *seen)
{
	return decide(dial, seen, dial_host.settings->timeout_ms, seen->now);
}

static void look_at_mptcp(struct dial *dial, struct dial_seen *seen)
{
	seen->mptcp = dial->ops->fell_back(dial) ? MPTCP_LOST : MPTCP_HOLDS;
}

/*
 * Reads the bytes of a response that are there. Returns false if the step goes on, else true with its end in @state. Not inlined, so that
 * the kilobyte of stack for the response is free again before the next action.
 */
static __attribute__((noinline)) bool response_step(struct dial *dial, struct dial_seen *seen, int *error, enum dial_state *state,
						     struct dial_end *end)
{
	uint8_t response[CONVERT_MESSAGE_MAX];
	struct handshake_step told = { .verdict = HANDSHAKE_NEED_MORE };
	struct dial_decision decision;

	seen->response = response_read(dial, response, &told, error);
	if (seen->response == RESPONSE_PART)
		wait_for_rest(dial, told.length);
	if (seen->response != RESPONSE_WHOLE && seen->response != RESPONSE_ERROR)
		return false;
	while ((decision = decide_now(dial, seen)).what == DO_LOOK_AT_MPTCP)
		look_at_mptcp(dial, seen);
	*state = decision.what == DO_BEGIN_ANEW ? begin_anew(dial, decision.way, true, end) :
		 decision.what == DO_REACHED	? server_reached(dial, seen, &told, end) :
						  judge(dial, &told, end);
	return true;
}

/* --- steps --- */

static void send_rest(struct dial *dial, struct dial_seen *seen, int *error)
{
	int ret = dial_send_rest(dial);

	seen->full = ret == -EAGAIN;
	seen->broken = ret < 0 && ret != -EAGAIN;
	if (seen->broken)
		*error = -ret;
	else if (ret == 0 && seen->now >= dial->attempt.ends) /* the server is asked only now */
		dial->attempt.ends = seen->now + dial_host.settings->timeout_ms * CLOCK_NS_PER_MS;
}

static void keepalive(struct dial *dial, struct dial_seen *seen)
{
	seen->keepalive_set = true;
	if (dial->ops->keepalive(dial, decide_interval_seconds(dial_host.settings->timeout_ms)) && !dial->attempt.keepalive_since)
		dial->attempt.keepalive_since = dial_host.clock();
}

/* Checks the path. Returns false if the connection keeps it, else true with the state of the new attempt. */
static bool path_step(struct dial *dial, struct dial_seen *seen, enum dial_state *state, struct dial_end *end)
{
	const struct path_start_syn syn = { attempt_syn(dial), attempt_is_unanswered, dial };
	struct converters_query query;
	union sockaddr_ip addr;
	enum paths_do what = PATHS_WAIT;

	seen->path_looked = true;
	if (stack_is_small()) {
		path_start_put_off(&dial->start);
	} else if (dial->wrote || !attempt_is_unanswered(dial)) {
		path_start_end(&dial->start);
	} else {
		query = dial->ops->query(dial);
		what = path_start_look(&dial->start, &query, &syn, &addr);
	}
	attempt_wake(dial);
	if (what != PATHS_MOVE && what != PATHS_BEHIND)
		return false;
	*state = what == PATHS_MOVE ? begin_at(dial, &addr, end) : begin_behind(dial, end);
	return true;
}

static enum dial_state wait_on(struct dial *dial, const struct dial_seen *seen, int64_t at)
{
	synack_seen(dial, seen);
	if (at) {
		dial->attempt.wake_at = at;
		attempt_wake(dial);
	}
	return DIAL_IN_PROGRESS;
}

static enum dial_state give_up(struct dial *dial, bool alive, struct dial_end *end)
{
	const struct handshake_step why = attempt_judge_silence(dial, alive);

	return converter_failed(dial, &why, end);
}

/* Does the action @what, which finds out more facts. Returns false if the step goes on, else true with its end in @state. */
static bool find_out(struct dial *dial, enum dial_do what, struct dial_seen *seen, int *error, enum dial_state *state, struct dial_end *end)
{
	switch (what) {
	case DO_LOOK:
		look_at_socket(dial, seen);
		return false;
	case DO_LOOK_AT_MPTCP:
		look_at_mptcp(dial, seen);
		return false;
	case DO_SEND:
		send_rest(dial, seen, error);
		return false;
	case DO_KEEPALIVE:
		keepalive(dial, seen);
		return false;
	case DO_ASK_PATH:
		dial->attempt.path_asked = true;
		path_start_ask(&dial->start, dial->attempt.keepalive_since != 0);
		return false;
	case DO_READ:
		return response_step(dial, seen, error, state, end);
	case DO_LOOK_AT_PATH:
		return path_step(dial, seen, state, end);
	default:
		return false;
	}
}

enum dial_state dial_step(struct dial *dial, struct dial_end *end)
{
	struct dial_seen seen = { .now = dial_host.clock() };
	struct dial_decision decision;
	enum dial_state state;
	int error = ECONNRESET;

	*end = (struct dial_end){ 0 };
	while ((decision = decide_now(dial, &seen)).what < DO_WAIT)
		if (find_out(dial, decision.what, &seen, &error, &state, end))
			return state;
	switch (decision.what) {
	case DO_CONFIRM:
		return confirm(dial, &seen);
	case DO_REACHED_SILENTLY:
		return reached_silently(dial, &seen);
	case DO_BEGIN_ANEW:
		return begin_anew(dial, decision.way, false, end);
	case DO_BLIND_LOST:
		return blind_lost(dial->attempt.way, ECONNRESET, "the SYN+ACK doesn't confirm the server", end);
	case DO_FAIL:
		return decision.final ? fail(end, error, error_text(error)) : dial_failed(dial, error, end);
	case DO_GIVE_UP:
		return give_up(dial, decision.alive, end);
	default:
		return wait_on(dial, &seen, decision.at);
	}
}
