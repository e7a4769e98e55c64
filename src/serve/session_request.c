/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_request.c - a session's request and the converter's own answers: kept, judged, queued, echoed
 *
 * Withheld SYNs: a session uses the attempt for its SYN only if the request in its stream is the same. It is, unless the kernel didn't take
 * the SYN's data and the client sends something else then.
 *
 * Silent clients: doc/private-tlvs.md says what we promise to them, and judgement.h how the facts of their connections decide. If we can't
 * tell such a client the result, we reset its connection.
 *
 * Echo: "convertize check" sends bytes of its own, and sees what the paths to this converter carry, each way, without any server
 * (doc/private-tlvs.md, Echo). Nobody can use it against others: we return nothing before the client has completed its handshake, so that
 * its address is real, and never more than it has sent. REQUEST_ECHO_KIB and the time-out for requests limit it, and --max-errors counts
 * it.
 */
#include "config.h"

#include "serve/session_parts.h"

#include "serve/plugs.h"

#include "common/clock.h"
#include "daemon/poller.h"
#include "daemon/metrics.h"
#include "convertd/policy/cookies.h"
#include "convertd/policy/judgement.h"
#include "convertd/policy/request.h"
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
	struct syn_packet_flow addresses = { .source = sockaddr_ip_in6(&s->client), .source_port = sockaddr_ip_port(&s->client) };
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
		limits_leave(s->pool->context.admission.limits, &a->member, clock_now_ms());
		if (a->unproven)
			demand_leave(s->pool->context.admission.demand);
	}
	if (!s->withheld)
		return;
	s->started_us = s->withheld->came_us;
	s->syn.far = s->withheld->far;
}

void session_drop_withheld(struct session *s)
{
	while (s->withheld) {
		struct syn_attempt *a = s->withheld;

		s->withheld = (struct syn_attempt *)a->hold.next;
		poller_forget(s->pool->context.poller, a->registration);
		syn_attempt_destroy(a);
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
	s->syn.far = chosen->far;
}

/* ----- the request ----- */

bool session_request_is_confirmed(const struct session *s)
{
	return s->syn.data && s->syn.timestamps;
}

void session_request_judge(struct session *s, const uint8_t *buf, size_t len, struct judgement *judgement)
{
	enum limits_class before = (enum limits_class)s->member.class;
	const struct judgement_case c = {
		.place = JUDGEMENT_STREAM,
		.bytes = buf,
		.len = len,
		.client = { .address = sockaddr_ip_in6(&s->client), .proven = !s->proof.missing },
		.grant = s->withheld ? &s->withheld->grant : NULL,
		.member = &s->member,
		.now_ms = clock_now_ms(),
		.mptcp = !s->relay.side[RELAY_UPSTREAM].tcp,
		.confirmed = session_request_is_confirmed(s),
		.syn_data = s->syn.data,
	};
	const struct request_decision *request = &judgement->request;

	s->pool->context.plugs->judge(&s->pool->context.admission, &c, judgement);
	session_count_class(s, before);
	if (request->silent && request->action != REQUEST_WAIT && request->action != REQUEST_PROVE) {
		s->silence.voice = (uint8_t)judgement->voice;
		s->silence.needs_mptcp = request->silence.mptcp;
		metrics_add(s->pool->context.metrics, METRIC_SILENT + judgement->voice, 1);
	}
	if (request->connect)
		sockaddr_ip_set(&s->server, AF_UNSPEC, &request->address, request->port);
	/* If the request isn't the SYN's, or is no longer granted, the attempts are of no use. */
	if (judgement->by_grant)
		choose_withheld(s, judgement->grant);
	else if (request->action != REQUEST_WAIT)
		session_drop_withheld(s);
	s->error_taken = judgement->error_taken;
	if (request->lacking) {
		s->outcome = OUTCOME_LACKING;
		s->pool->context.plugs->lacking(&s->pool->context, &s->server);
	}
	if (judgement->exceeded != OUTCOME_NONE)
		s->outcome = (uint8_t)judgement->exceeded;
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

size_t session_request_unkeep(struct session *s, uint8_t *scratch)
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
 * A silent client that needs Multipath TCP relies on the converter to notice that its connection has fallen back: the kernel may lose bytes
 * then (fallback.c). The first packets show it, and session_relay_watch() looks later on.
 */
bool session_has_fallen_back(struct session *s)
{
	const struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];

	if (!s->silence.needs_mptcp || s->silence.voice != JUDGEMENT_SILENT)
		return false;
	/* A read has looked already. */
	if (client->looked) {
		session_look_transport(s);
	} else if (s->confirmed && !client->readable && s->silence.looks < FALLBACK_LOOKS) {
		s->silence.looks++;
		session_look_transport(s);
	}
	return s->line.transport == RECORD_FALLBACK;
}

/* ----- the converter's own answers to a client: queued, and counted ----- */

bool session_queue_answer(struct session *s, const uint8_t *answer, size_t len)
{
	s->answer_len = (uint16_t)len;
	session_cap_answer(s, len);
	return len && relay_prepend(&s->relay, RELAY_DOWNSTREAM, answer, len) == 0;
}

enum outcome session_answer_outcome(const uint8_t *answer, size_t len)
{
	struct convert_response response;
	bool error = convert_response_parse(answer, len, &response) == CONVERT_STATUS_OK && response.has_error;

	return error ? outcome_of_error(response.error_code) : OUTCOME_INFORMATION;
}

enum outcome session_read_answer(struct session *s, const uint8_t *answer, size_t len)
{
	struct convert_response response;

	if (convert_response_parse(answer, len, &response) != CONVERT_STATUS_OK || !response.has_error)
		return OUTCOME_INFORMATION;
	s->line.error = response.error_code;
	metrics_count_error(s->pool->context.metrics, response.error_code);
	return outcome_of_error(response.error_code);
}

/* ----- the echo: bytes behind a request for information return to the client, if it asks for that ----- */

/* The most reads in one round, so that other sessions have their turn. */
#define ECHO_READS 8

/* The most bytes that wait in memory for a client that doesn't take them. */
#define ECHO_CHUNK (16 * 1024)

void session_start_echo(struct session *s, const uint8_t *early, size_t len)
{
	if (s->state != SESSION_REFUSING)
		return;
	s->echo_left = REQUEST_ECHO_KIB * 1024;
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

	for (int i = 0; s->echo_left && s->confirmed && client->readable && !error; i++) {
		if (i == ECHO_READS) {
			session_run_again(s);
			return false;
		}
		error = echo_some(s, s->echo_left < ECHO_CHUNK ? s->echo_left : ECHO_CHUNK);
	}
	if (!error && s->echo_left && s->confirmed)
		error = relay_flush(&s->relay, RELAY_DOWNSTREAM);
	/* After the end of the stream, or of the connection, continue as after any other answer. */
	if (error && error != -EAGAIN)
		s->echo_left = 0;
	return !s->echo_left;
}
