/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_states.c - what a session does in each of its states
 *
 * Each handler does all that the sockets' flags allow and may change the state; it is called
 * again at once in the new one. What the states mean is said at enum session_state.
 */
#include "config.h"

#include "convertd/session/session_private.h"

#include "convertd/base/clock.h"
#include "convertd/session/blame.h"
#include "convertd/policy/judgement.h"
#include "convertd/session/withheld.h"
#include "convertd/net/downstream.h"
#include "convertd/base/log.h"
#include "convertd/base/memory.h"
#include "convertd/observe/metrics.h"
#include "convertd/net/plain_servers.h"
#include "convertd/config/settings.h"
#include "convertd/observe/shortage.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

/* Bytes taken from the client before the server has been reached: the rest waits in the kernel. */
#define REQUEST_READ_MAX (16 * 1024)

/* Reads of what a refused client still sends, in one round. */
#define DRAIN_READS 8

/* Queues the answer in front of all that goes to the client. */
static bool session_queue_answer(struct session *s, const uint8_t *answer, size_t len)
{
	s->answer_len = (uint16_t)len;
	session_cap_answer(s, len);
	return len && relay_prepend(&s->relay, RELAY_DOWNSTREAM, answer, len) == 0;
}

/* No answer: the end of the stream is our last word. */
static void session_refuse_silently(struct session *s, enum outcome outcome, const char *reason)
{
	if (!limits_may_refuse(s->pool->context.admission.limits, &s->member)) {
		session_drop(s, OUTCOME_LIMIT_REFUSED);
		return;
	}
	session_set_outcome(s, outcome, reason);
	session_set_deadline(s, SESSION_TIMEOUT_REQUEST);
	session_set_state(s, SESSION_REFUSING);
}

/* What our last word says. Notes the error, and returns what that means for the session. */
static enum outcome session_read_answer(struct session *s, const uint8_t *answer, size_t len)
{
	struct convert_response response;

	if (convert_response_parse(answer, len, &response) != CONVERT_STATUS_OK || !response.has_error)
		return OUTCOME_INFORMATION;
	s->error = response.error_code;
	metrics_count_error(s->pool->context.metrics, response.error_code);
	return outcome_of_error(response.error_code);
}

void session_refuse(struct session *s, const uint8_t *answer, size_t len, const char *reason)
{
	enum outcome exceeded = (enum outcome)s->outcome, outcome;

	session_reset_socket(s, RELAY_DOWNSTREAM);
	if (!s->error_taken &&
	    !limits_take_error(s->pool->context.admission.limits, &s->member, clock_now_ms())) {
		session_drop(s, OUTCOME_LIMIT_ERRORS);
		return;
	}
	if (!session_queue_answer(s, answer, len)) {
		session_close(s, OUTCOME_OUT_OF_MEMORY);
		return;
	}
	outcome = session_read_answer(s, answer, len);
	session_refuse_silently(s, exceeded != OUTCOME_NONE ? exceeded : outcome, reason);
}

void session_refuse_server(struct session *s, struct downstream_error refusal)
{
	uint8_t answer[CONVERT_MESSAGE_MAX];
	size_t len;

	if (refusal.ours)
		s->outcome = OUTCOME_LACKING;
	if (refusal.code == CONVERT_ERROR_RESOURCE_EXCEEDED)
		refusal.value = (uint8_t)s->pool->context.terms->settings->retry_delay;
	len = request_write_error(&s->pool->context.terms->features, s->info, refusal.code, refusal.value, answer);

	log_debug("session %llu: Error TLV %u (%s), value %u", (unsigned long long)s->id,
		  (unsigned)refusal.code, convert_error_name(refusal.code),
		  (unsigned)refusal.value);
	session_refuse(s, answer, len, refusal.ours ? outcome_text(OUTCOME_LACKING) :
						       convert_error_name(refusal.code));
}

uint64_t session_asked_ms(const struct session *s)
{
	return (s->started_us + s->request_us) / 1000;
}

void session_fail_server(struct session *s, int error)
{
	int fd = s->relay.side[RELAY_DOWNSTREAM].fd;

	log_debug("session %llu: %s", (unsigned long long)s->id, strerror(-error));
	shortage_of_files(-error, "clients are refused");
	session_refuse_server(s, blame_refusal(&s->pool->context, fd, &s->server, session_asked_ms(s), error));
}

/* What becomes of the request that the stream begins with. @buf: all that has arrived */
static void session_judge(struct session *s, const uint8_t *buf, size_t len, struct judgement *judgement)
{
	enum limits_class before = (enum limits_class)s->member.class;
	const struct judgement_case c = {
		.place = JUDGEMENT_STREAM,
		.bytes = buf,
		.len = len,
		.client = { .address = sockaddr_ip_in6(&s->client), .proven = !s->unproven },
		.grant = s->withheld ? &s->withheld->grant : NULL,
		.member = &s->member,
		.now_ms = clock_now_ms(),
	};
	const struct request_decision *request = &judgement->request;

	judgement_make(&s->pool->context.admission, &c, judgement);
	session_count_class(s, before);
	if (request->connect)
		sockaddr_ip_set(&s->server, AF_UNSPEC, &request->address, request->port);
	/* The request isn't the one of the SYN, or is no longer granted: what was done for that is of no use. */
	if (request->action != REQUEST_WAIT && !judgement->by_grant)
		session_drop_withheld(s);
	s->error_taken = judgement->error_taken;
	if (request->lacking) {
		s->outcome = OUTCOME_LACKING;
		blame_again(&s->pool->context, &s->server);
	}
	if (judgement->exceeded != OUTCOME_NONE)
		s->outcome = (uint8_t)judgement->exceeded;
}

/* @buf: all that has arrived, which is kept until there is more to know. */
static void session_keep(struct session *s, const uint8_t *buf, size_t len)
{
	s->request = malloc(memory_size(len));
	if (!s->request) {
		session_close(s, OUTCOME_OUT_OF_MEMORY);
		return;
	}
	memcpy(s->request, buf, len);
	s->request_len = (uint16_t)len;
}

static void session_wait(struct session *s);

/* @buf: all that has arrived. */
static void session_decide(struct session *s, const uint8_t *buf, size_t len)
{
	struct judgement judgement;
	const struct request_decision *decision = &judgement.request;

	session_judge(s, buf, len, &judgement);
	if (decision->proven)
		session_prove(s);
	switch (decision->action) {
	case REQUEST_WAIT:
		session_keep(s, buf, len);
		return;
	case REQUEST_PROVE:
		s->must_prove = true;
		session_keep(s, buf, len);
		if (s->state == SESSION_REQUEST)
			session_wait(s);
		return;
	case REQUEST_CONNECT:
		s->relay.side[RELAY_UPSTREAM].readable = !s->fresh;
		session_connect(s, decision, buf + decision->length, len - decision->length);
		return;
	case REQUEST_ANSWER:
		session_refuse(s, decision->answer, decision->answer_len, decision->reason);
		if (decision->echo && !decision->refused)
			session_start_echo(s, buf + decision->length, len - decision->length);
		return;
	case REQUEST_RESET:
		session_reset_socket(s, RELAY_UPSTREAM);
		session_set_outcome(s, OUTCOME_BAD_REQUEST, decision->reason);
		session_set_state(s, SESSION_CLOSED);
		return;
	case REQUEST_IGNORE:
	case REQUEST_ACTION_COUNT:
		session_refuse_silently(s, OUTCOME_NOT_CONVERT, decision->reason);
		return;
	}
}

/* The client has to say more. Those who are too many may not take their time for it. */
static void session_wait(struct session *s)
{
	enum outcome exceeded;

	if (s->member.class == LIMITS_WAITING)
		return;
	session_set_class(s, LIMITS_WAITING);
	exceeded = limits_admit(s->pool->context.admission.limits, &s->member);
	if (exceeded != OUTCOME_NONE)
		session_drop(s, exceeded);
}

/* Has the client reset the connection? A FIN is none: poll() tells them apart. */
static bool client_is_lost(const struct session *s)
{
	struct pollfd client = { .fd = s->relay.side[RELAY_UPSTREAM].fd };

	return poll(&client, 1, 0) > 0 && client.revents & (POLLERR | POLLHUP | POLLNVAL);
}

/* What has arrived of a request, which is no longer kept, at @scratch; returns how many bytes. */
static size_t session_unkeep(struct session *s, uint8_t *scratch)
{
	size_t len = s->request_len;

	if (len)
		memcpy(scratch, s->request, len);
	free(s->request);
	s->request = NULL;
	s->request_len = 0;
	return len;
}

static void advance_request(struct session *s)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];
	uint8_t *scratch = s->pool->scratch;

	if (s->must_prove && s->confirmed) {
		s->must_prove = false;
		session_decide(s, scratch, session_unkeep(s, scratch));
	}
	/* While it has to be proven first, only the end of the connection matters. */
	if (s->must_prove && client->readable && !s->fresh && client_is_lost(s)) {
		session_close(s, OUTCOME_NO_HANDSHAKE);
		return;
	}
	while (s->state == SESSION_REQUEST && client->readable && !s->must_prove) {
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
				      s->unproven ? OUTCOME_NO_HANDSHAKE :
						    OUTCOME_CLIENT_LOST_REQUEST);
			return;
		}
		if (relay_side_is_garbled(client, (size_t)n)) {
			session_reset_socket(s, RELAY_UPSTREAM);
			session_close(s, OUTCOME_BYTES_MISSING);
			return;
		}
		session_decide(s, scratch, session_unkeep(s, scratch) + (size_t)n);
	}
}

/* @info: of the server's connection */
static void session_start_relay(struct session *s, const struct tcp_info *info)
{
	int fd = s->relay.side[RELAY_DOWNSTREAM].fd;
	uint8_t options[DOWNSTREAM_OPTIONS_MAX], answer[CONVERT_MESSAGE_MAX];
	size_t len;

	downstream_established(fd, &s->server);
	len = session_server_options(s, info, options);
	len = request_write_connected(&s->pool->context.terms->features, s->info, options, len, answer);
	if (!session_queue_answer(s, answer, len)) {
		session_close(s, OUTCOME_OUT_OF_MEMORY);
		return;
	}
	s->connect_us = session_age_us(s) - s->request_us + 1;
	metrics_observe_us(s->pool->context.metrics, METRIC_CONNECT_SECONDS, s->connect_us);
	session_set_deadline(s, SESSION_TIMEOUT_CONNECT);
	session_set_state(s, SESSION_RELAY);
}

static void advance_connecting(struct session *s)
{
	const struct relay_side *server = &s->relay.side[RELAY_DOWNSTREAM];
	struct tcp_info info;
	int error;

	/* A reset makes the socket readable, as bytes and a FIN do. */
	if (s->client_said && client_is_lost(s)) {
		session_close(s, OUTCOME_CLIENT_LOST_CONNECTING);
		return;
	}
	s->client_said = false;
	error = server->writable || server->readable ? downstream_result(server->fd, &info) :
						       -EINPROGRESS;
	/* This connection goes on, with an eye on what is missing (fallback.c); the next ones are TCP. */
	if (error == 0 && s->mptcp && downstream_fell_back(server->fd))
		plain_servers_note(&s->server);
	if (error == 0 && session_awaits_token(s))
		return;
	if (error == 0 && session_leads_here(s, &info)) {
		session_refuse_server(s, (struct downstream_error){ .code = CONVERT_ERROR_NOT_AUTHORIZED });
	} else if (error == 0) {
		blame_nobody(&s->server);
		session_start_relay(s, &info);
	} else if (error != -EINPROGRESS) {
		session_fail_server(s, error);
	} else if (s->confirmed && !s->trusted) {
		downstream_confirm(server->fd, s->pool->context.terms->syn_retries);
		s->trusted = true;
	}
}

static void session_set_resetting(struct session *s, enum relay_end lost, enum outcome outcome)
{
	session_reset_socket(s, lost);
	session_set_deadline(s, SESSION_TIMEOUT_RESET_POLL);
	session_set_outcome(s, outcome, NULL);
	session_set_state(s, SESSION_RESETTING);
}

/*
 * Are bytes on their way to @end? Of a Multipath TCP socket that has fallen back to TCP and was never
 * written to, Linux (6.18) says that one is.
 */
static bool session_is_unsent(const struct session *s, enum relay_end end)
{
	int unsent = 0;

	return s->relay.flow[!end].bytes &&
	       ioctl(s->relay.side[end].fd, SIOCOUTQ, &unsent) == 0 && unsent;
}

/* Called by the short deadline, and by events of the other socket. */
static void advance_resetting(struct session *s)
{
	bool upstream = s->relay.side[RELAY_UPSTREAM].fd >= 0;
	enum relay_end end = upstream ? RELAY_UPSTREAM : RELAY_DOWNSTREAM;

	if (s->reset_polls < RESET_POLLS && session_is_unsent(s, end))
		return;
	session_reset_socket(s, end);
	session_set_state(s, SESSION_CLOSED);
}

static enum outcome lost_outcome(const struct session *s, enum relay_end end)
{
	if (s->relay.side[end].garbled)
		return OUTCOME_BYTES_MISSING;
	if (end == RELAY_UPSTREAM && !s->confirmed)
		return OUTCOME_NO_HANDSHAKE;
	return end == RELAY_UPSTREAM ? OUTCOME_CLIENT_LOST : OUTCOME_SERVER_LOST;
}

/* Runs the relay, and counts what it carried. */
static enum relay_result run_relay(struct session *s)
{
	uint64_t before[RELAY_ENDS] = { session_relayed(s, RELAY_UPSTREAM),
					session_relayed(s, RELAY_DOWNSTREAM) };
	enum relay_result result = relay_run(&s->relay, s->pool->scratch);

	for (int end = 0; end < RELAY_ENDS; end++)
		metrics_add(s->pool->context.metrics, METRIC_BYTES + (unsigned)end,
			    session_relayed(s, (enum relay_end)end) - before[end]);
	return result;
}

/*
 * One socket has failed, and the other one's peer doesn't take what came before: it may never do so, as
 * it may be waiting for its own bytes to be taken. So it has so long to take some of them.
 */
static void wait_for_last_bytes(struct session *s)
{
	if (relay_has_failed(&s->relay))
		session_set_deadline(s, SESSION_TIMEOUT_LINGER);
}

/* They were not taken: they are gone, as is what a reset finds unread in a socket. */
static void give_up_last_bytes(struct session *s)
{
	enum relay_end end = s->relay.side[RELAY_UPSTREAM].failed ? RELAY_UPSTREAM : RELAY_DOWNSTREAM;

	s->reset_polls = RESET_POLLS;
	session_set_resetting(s, end, lost_outcome(s, end));
}

static void advance_relay(struct session *s)
{
	enum relay_result result;

	session_look_first(s);
	if (session_awaits_token(s))
		return;
	if (session_leads_here(s, NULL)) {
		session_reset_socket(s, RELAY_DOWNSTREAM);
		session_reset_socket(s, RELAY_UPSTREAM);
		session_close(s, OUTCOME_NOT_AUTHORIZED);
		return;
	}
	result = run_relay(s);
	if (!s->answered && s->confirmed &&
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
		session_set_hungry(s);
		return;
	case RELAY_DONE:
		if (!session_memory_lingers(s))
			session_close(s, OUTCOME_DONE);
		return;
	case RELAY_UPSTREAM_LOST:
		session_set_resetting(s, RELAY_UPSTREAM, lost_outcome(s, RELAY_UPSTREAM));
		return;
	case RELAY_DOWNSTREAM_LOST:
		session_set_resetting(s, RELAY_DOWNSTREAM, lost_outcome(s, RELAY_DOWNSTREAM));
		return;
	}
}

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
	for (int i = 0; client->readable; i++) {
		ssize_t n;

		if (i == DRAIN_READS) {
			session_set_hungry(s);
			return;
		}
		n = recv(client->fd, s->pool->scratch, RELAY_SCRATCH_SIZE, MSG_DONTWAIT);
		if (n > 0)
			continue;
		client->readable = false;
		/* After its FIN the client still waits for the answer. */
		if (n == 0 ? s->answered : errno != EAGAIN && errno != EINTR)
			session_set_state(s, SESSION_CLOSED);
	}
}

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

/* What the end of a session is called that has passed a limit of relay_watch.h. */
static const enum outcome watch_outcomes[] = {
	[RELAY_WATCH_NONE] = OUTCOME_NONE,
	[RELAY_WATCH_CLIENT_STALLED] = OUTCOME_CLIENT_STALLED,
	[RELAY_WATCH_SERVER_STALLED] = OUTCOME_SERVER_STALLED,
	[RELAY_WATCH_HALF_CLOSED] = OUTCOME_HALF_CLOSED,
	[RELAY_WATCH_IDLE] = OUTCOME_IDLE,
};
static_assert(sizeof(watch_outcomes) / sizeof(watch_outcomes[0]) == RELAY_WATCH_COUNT, "an outcome for each");

/* The deadline in RELAY: is the client there, and does anything move? */
static void look_at_relay(struct session *s)
{
	const struct settings *settings = s->pool->context.terms->settings;
	const struct relay_watch_settings timeouts = {
		.stall_ms = settings->stall_timeout * 1000ULL,
		.half_close_ms = settings->half_close_timeout * 1000ULL,
		.idle_ms = settings->idle_timeout * 1000ULL,
	};
	enum outcome reason = OUTCOME_NONE;
	uint64_t now_ms = clock_now_ms();

	if (!s->answered) {
		session_look_upstream(s);
		/* Its event is on the way: advance_relay() will see it. */
		if (s->confirmed && s->relay.flow[RELAY_DOWNSTREAM].bytes >= s->answer_len)
			return;
		reason = OUTCOME_NO_HANDSHAKE;
	} else {
		session_look_transport(s);
		reason = watch_outcomes[relay_watch_look(&s->watch, &s->relay, &timeouts, now_ms)];
		if (s->watch.moved_ms == now_ms)
			limits_touch(s->pool->context.admission.limits, &s->member);
	}
	if (reason == OUTCOME_NONE) {
		session_set_deadline(s, SESSION_TIMEOUT_LOOK);
		return;
	}
	session_reset_socket(s, RELAY_UPSTREAM);
	session_reset_socket(s, RELAY_DOWNSTREAM);
	session_close(s, reason);
}

void session_handle_no_proof(struct session *s)
{
	session_look_upstream(s);
	/* Its event is on the way, or it came just now: session_prove() has set another deadline. */
	if (s->confirmed)
		return;
	session_reset_socket(s, RELAY_UPSTREAM);
	session_reset_socket(s, RELAY_DOWNSTREAM);
	session_close(s, OUTCOME_NO_HANDSHAKE);
}

/* The server has answered by now, if it was only the session that waited. */
static void give_up_connecting(struct session *s)
{
	struct tcp_info info;
	int error = downstream_result(s->relay.side[RELAY_DOWNSTREAM].fd, &info);

	if (error == -EINPROGRESS && s->rest && blame_silence(&s->pool->context, &s->server, session_asked_ms(s))) {
		session_refuse_server(s, blame_ourselves());
	} else if (error == -EINPROGRESS && s->rest) {
		session_set_deadline(s, (enum session_timeout)s->rest);
		s->rest = 0;
	} else if (error) {
		session_fail_server(s, error == -EINPROGRESS ? -ETIMEDOUT : error);
	}
}

/* What was held back may go on, or waits for a moment more. */
static void go_on_relaying(struct session *s)
{
	if (!session_awaits_token(s))
		session_set_deadline(s, s->answered ? SESSION_TIMEOUT_LOOK : SESSION_TIMEOUT_CONNECT);
}

void session_handle_deadline(struct session *s)
{
	switch ((enum session_state)s->state) {
	case SESSION_REQUEST:
		session_close(s, OUTCOME_NO_REQUEST);
		break;
	case SESSION_CONNECTING:
		if (!session_awaits_token(s))
			give_up_connecting(s);
		break;
	case SESSION_RELAY:
		if (s->doubted)
			go_on_relaying(s);
		else if (relay_has_failed(&s->relay))
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
