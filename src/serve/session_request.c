/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_request.c - a session's request: kept and judged, its server connected to, its answer queued, its echo
 *
 * Withheld SYNs: a session uses the attempt for its SYN only if the request in its stream is the same. It is, unless the kernel didn't take
 * the SYN's data and the client sends something else then.
 *
 * session_connect() has the dialler connect to the server, or takes over the attempt that began while the SYN was withheld. It returns the
 * result and leaves the session's state alone: session_states.c carries the result out.
 *
 * Silent clients: if we can't tell such a client the result, we reset its connection (doc/private-tlvs.md).
 *
 * Echo: a client sends bytes of its own, and sees what the paths to us carry, each way, without any server ("convertize check" does).
 * Nobody can use it against others: we return nothing before the client has completed its handshake, so that its address is real, and never
 * more than it has sent. The judge and the time-out for requests limit it, and --max-errors counts it.
 */
#include "config.h"

#include "serve/session_parts.h"

#include "serve/plugs.h"

#include "common/clock.h"
#include "daemon/poller.h"
#include "daemon/metrics.h"
#include "daemon/log.h"
#include "hold/hold_table.h"
#include "serve/syn_judge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* ----- the attempts for the connection's SYN, while it was withheld ----- */

void session_take_withheld(struct session *s)
{
	struct hold_table *table = s->pool->context.withheld;
	const union sockaddr_ip *client = &s->record.client;
	struct syn_packet_flow addresses = { .source = sockaddr_ip_in6(client), .source_port = sockaddr_ip_port(client) };
	union sockaddr_ip local = { 0 };
	socklen_t len = sizeof(local);

	if (!hold_table_count(table) ||
	    getsockname(s->relay.side[RELAY_UPSTREAM].fd, &local.sa, &len) < 0)
		return;
	addresses.destination = sockaddr_ip_in6(&local);
	addresses.destination_port = sockaddr_ip_port(&local);
	s->withheld = (struct syn_attempt *)hold_table_take(table, &addresses);
	for (struct syn_attempt *a = s->withheld; a; a = (struct syn_attempt *)a->hold.next) {
		const struct syn_attempt *next = (const struct syn_attempt *)a->hold.next;

		a->grant.next = next ? &next->grant : NULL;
		/* The limits counted the SYN as pending; since accept() they count its session. */
		syn_attempt_uncount(a, &s->pool->context);
	}
	if (!s->withheld)
		return;
	s->started_us = s->withheld->came_us;
}

void session_drop_withheld(struct session *s)
{
	while (s->withheld) {
		struct syn_attempt *a = s->withheld;

		s->withheld = (struct syn_attempt *)a->hold.next;
		poller_forget(s->pool->context.poller, a->registration);
		syn_attempt_destroy(a, &s->pool->context);
	}
}

/* Keeps the attempt that granted the request, and frees the others. */
static void choose_withheld(struct session *s, const struct judgement_grant *grant)
{
	struct syn_attempt **at = &s->withheld, *chosen;

	while (*at && &(*at)->grant != grant)
		at = (struct syn_attempt **)&(*at)->hold.next;
	chosen = *at;
	if (!chosen)
		return;
	*at = (struct syn_attempt *)chosen->hold.next;
	session_drop_withheld(s);
	chosen->hold.next = NULL;
	s->withheld = chosen;
	s->started_us = chosen->came_us;
}

/* ----- the request ----- */

bool session_request_is_confirmed(const struct session *s)
{
	return s->syn.data && s->syn.timestamps;
}

void session_request_judge(struct session *s, const uint8_t *buf, size_t len, struct serve_verdict *verdict, struct serve_answer *answer)
{
	struct serve_context *context = &s->pool->context;
	enum limits_class before = (enum limits_class)s->member.class;
	const struct judgement_case c = {
		.place = JUDGEMENT_STREAM,
		.bytes = buf,
		.len = len,
		.client = { .address = sockaddr_ip_in6(&s->record.client), .proven = !s->proof.missing },
		.grant = s->withheld ? &s->withheld->grant : NULL,
		.member = &s->member,
		.now_ms = clock_now_ms(),
		.mptcp = !s->relay.side[RELAY_UPSTREAM].tcp,
		.confirmed = session_request_is_confirmed(s),
		.syn_data = s->syn.data,
	};

	context->plugs->judge(context, &c, verdict, answer);
	session_count_class(s, before);
	if (verdict->silent && verdict->action != REQUEST_WAIT && verdict->action != REQUEST_PROVE) {
		s->silence.reply = (uint8_t)verdict->reply;
		s->silence.needs_mptcp = verdict->needs_mptcp;
		metrics_add(context->metrics, METRIC_SILENT + verdict->reply, 1);
	}
	if (verdict->server.sa.sa_family)
		s->record.server = verdict->server;
	if (verdict->client)
		s->record.name = verdict->client;
	/* If the request isn't the SYN's, or is no longer granted, the attempts are of no use. */
	if (verdict->by_grant)
		choose_withheld(s, verdict->grant);
	else if (verdict->action != REQUEST_WAIT)
		session_drop_withheld(s);
	s->responds = verdict->responds;
	s->error_taken = verdict->error_taken;
	if (verdict->no_way_here) {
		s->record.outcome = OUTCOME_LACKING;
		if (context->plugs->no_way_here)
			context->plugs->no_way_here(context, &s->record.server);
	}
	if (verdict->exceeded != OUTCOME_NONE)
		s->record.outcome = verdict->exceeded;
}

bool session_request_keep(struct session *s, const uint8_t *buf, size_t len)
{
	s->request = malloc(len);
	if (!s->request)
		return false;
	memcpy(s->request, buf, len);
	s->request_len = (uint16_t)len;
	return true;
}

size_t session_request_take(struct session *s, uint8_t *scratch)
{
	size_t len = s->request_len;

	if (len)
		memcpy(scratch, s->request, len);
	free(s->request);
	s->request = NULL;
	s->request_len = 0;
	return len;
}

/* ----- clients that want no response ----- */

/* The client's third ACK and its first packets after that show whether Multipath TCP works on the path. */
#define FALLBACK_LOOKS 4

/*
 * A silent client that needs Multipath TCP relies on us to notice that its connection has fallen back: the kernel may lose bytes
 * then (fallback.c). The first packets show it, and session_relay_watch() looks later on.
 */
bool session_has_fallen_back(struct session *s)
{
	const struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];

	if (!s->silence.needs_mptcp || s->silence.reply != JUDGEMENT_SILENT)
		return false;
	/* A read has looked already. */
	if (client->looked) {
		session_look_transport(s);
	} else if (s->handshake_done && !client->readable && s->silence.looks < FALLBACK_LOOKS) {
		s->silence.looks++;
		session_look_transport(s);
	}
	return s->record.transport == RECORD_FALLBACK;
}

/* ----- connecting to the server ----- */

/* Brings the deadline forward to the dialler's next step. */
static void hasten_deadline(struct session *s)
{
	const uint64_t now_ms = clock_now_ms();
	const uint64_t at_ms = s->dial.wake_ms < s->dial_until_ms ? s->dial.wake_ms : s->dial_until_ms;

	session_move_deadline(s, at_ms > now_ms ? (unsigned)(at_ms - now_ms) : 1);
}

void session_set_connect_deadline(struct session *s, enum session_timeout timeout)
{
	session_set_deadline(s, timeout);
	if (!s->dial.wake_ms)
		return;
	s->dial_until_ms = clock_now_ms() + s->pool->timeout_ms[timeout];
	hasten_deadline(s);
}

/*
 * Waits for the server's answer, for @timeout at most.
 * @error: the -errno of a dialler that has failed, or 0
 * @early, @len: the bytes behind the request, which the server hasn't got yet
 * Returns 0 or -errno.
 */
static int await_server(struct session *s, int error, const uint8_t *early, size_t len, enum session_timeout timeout)
{
	if (!error)
		error = relay_prepend(&s->relay, RELAY_UPSTREAM, early, len);
	if (error)
		return error;
	s->rest = 0;
	/* A long deadline has two parts: at the end of the first we determine which side failed. */
	if (s->pool->timeout_ms[SESSION_TIMEOUT_PATIENCE])
		s->rest = timeout == SESSION_TIMEOUT_CONNECT ? SESSION_TIMEOUT_CONNECT_REST : SESSION_TIMEOUT_CONNECT_WITHHELD_REST;
	session_set_connect_deadline(s, s->rest ? SESSION_TIMEOUT_PATIENCE : timeout);
	return 0;
}

/* Takes over the attempt that began while the SYN was withheld. */
static int connect_withheld(struct session *s, const uint8_t *early, size_t len, struct serve_refusal *refusal)
{
	struct syn_attempt *a = s->withheld;
	const struct syn_attempt found = *a;
	int error = 0;

	a->dial.fd = -1;
	a->dial.state = NULL;
	a->registration = POLLER_NONE;
	session_drop_withheld(s);
	*refusal = found.refusal;
	if (found.dial.fd < 0)
		return 1;
	s->dial = found.dial;
	s->dial_until_ms = 0;
	s->dialling = true;
	s->syn.answered = found.reached;
	/* As a rule the server has answered already: we needn't wait for the event. */
	s->relay.side[RELAY_DOWNSTREAM].writable = true;
	if (found.registration != POLLER_NONE)
		session_adopt_downstream(s, found.registration, found.events);
	else
		error = session_watch_downstream(s) < 0 ? -ENOMEM : 0;
	return await_server(s, error, early, len, SESSION_TIMEOUT_CONNECT_WITHHELD);
}

/* Begins to connect to the server now. */
static int connect_now(struct session *s, const struct serve_verdict *verdict, const uint8_t *early, size_t len)
{
	struct serve_context *context = &s->pool->context;
	const struct serve_plan plan = {
		.client = &s->record.client, .server = &s->record.server, .mptcp = verdict->mptcp, .proven = s->handshake_done,
		.data_follows = len > 0,
	};
	int error = context->plugs->dial.begin(context, &plan, &s->dial);

	s->dial_until_ms = 0;
	s->trusted = s->handshake_done;
	s->dialling = true; /* also after an error: the dialler may have something to free */
	if (!error && session_watch_downstream(s) < 0)
		error = -ENOMEM;
	return await_server(s, error, early, len, SESSION_TIMEOUT_CONNECT);
}

int session_connect(struct session *s, const struct serve_verdict *verdict, const uint8_t *early, size_t len,
		    struct serve_refusal *refusal)
{
	/* The request of a withheld SYN came with the SYN, and its server was asked then. */
	s->request_us = s->withheld ? 1 : session_age_us(s);
	metrics_observe_us(s->pool->context.metrics, METRIC_REQUEST_SECONDS, s->request_us);
	metrics_add(s->pool->context.metrics, METRIC_REQUESTS + s->syn.data, 1);
	return s->withheld ? connect_withheld(s, early, len, refusal) : connect_now(s, verdict, early, len);
}

int session_dial(struct session *s, struct tcp_info *info)
{
	struct serve_context *context = &s->pool->context;
	const struct serve_dial before = s->dial;
	int error = context->plugs->dial.step(context, &s->dial, info);

	if (error == -EINPROGRESS && s->dial_until_ms)
		hasten_deadline(s);
	if (serve_dial_same_socket(&before, &s->dial))
		return error;
	/* The dialler has closed its socket, and goes on with another one. */
	poller_forget(context->poller, s->registration[RELAY_DOWNSTREAM]);
	s->registration[RELAY_DOWNSTREAM] = POLLER_NONE;
	s->relay.side[RELAY_DOWNSTREAM].readable = s->relay.side[RELAY_DOWNSTREAM].writable = false;
	return session_watch_downstream(s) < 0 ? -ENOMEM : error;
}

bool session_wake_dial(struct session *s)
{
	if (!s->dial_until_ms || clock_now_ms() >= s->dial_until_ms)
		return false;
	/* Makes advance_connecting() take the step. */
	s->relay.side[RELAY_DOWNSTREAM].readable = true;
	return true;
}

/* ----- the daemon's own words to a client ----- */

bool session_queue_answer(struct session *s, const struct serve_answer *answer)
{
	s->answer_len = (uint16_t)answer->len;
	session_cap_answer(s, answer->len);
	if (!answer->len || relay_prepend(&s->relay, RELAY_DOWNSTREAM, answer->bytes, answer->len) < 0)
		return false;
	s->record.error = answer->error;
	if (answer->counter)
		metrics_add(s->pool->context.metrics, answer->counter, 1);
	return true;
}

/* ----- the echo: bytes behind a request for information return to the client, if it asks for that ----- */

/* The most reads in one round, so that other sessions have their turn. */
#define ECHO_READS 8

/* The most bytes that wait in memory for a client that doesn't take them. */
#define ECHO_CHUNK (16 * 1024)

void session_start_echo(struct session *s, uint32_t most, const uint8_t *early, size_t len)
{
	if (s->state != SESSION_REFUSING)
		return;
	s->echo_left = most;
	/* We have read these bytes already, so they have to wait here; they are fewer than REQUEST_READ_MAX. */
	if (relay_prepend(&s->relay, RELAY_DOWNSTREAM, early, len) < 0)
		s->echo_left = 0;
	else
		s->echo_left -= (uint32_t)len;
}

/* Reads and queues more bytes, after all previous ones are written. Returns 0, or -errno: -EAGAIN waits for an event. */
static int echo_some(struct session *s, size_t room)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];
	int error = relay_flush(&s->relay, RELAY_DOWNSTREAM);
	ssize_t n;

	if (error)
		return error;
	do
		n = recv(client->fd, s->pool->scratch, room, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		client->readable = false;
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ENODATA;
	s->echo_left -= (uint32_t)n;
	return relay_prepend(&s->relay, RELAY_DOWNSTREAM, s->pool->scratch, (size_t)n);
}

bool session_echo(struct session *s)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];
	int error = 0;

	for (int i = 0; s->echo_left && s->handshake_done && client->readable && !error; i++) {
		if (i == ECHO_READS) {
			session_run_again(s);
			return false;
		}
		error = echo_some(s, s->echo_left < ECHO_CHUNK ? s->echo_left : ECHO_CHUNK);
	}
	if (!error && s->echo_left && s->handshake_done)
		error = relay_flush(&s->relay, RELAY_DOWNSTREAM);
	/* After the end of the stream, or of the connection, continue as after any other answer. */
	if (error && error != -EAGAIN)
		s->echo_left = 0;
	return !s->echo_left;
}
