/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.c - one client's connection through the converter, from accept to close
 *
 * A session is driven by events of its two sockets and by one deadline. Events only set flags
 * (struct relay_side); when all events of a round have done so, session_advance() lets the handler
 * of the state do what the flags allow, until nothing moves any more. The states and what may
 * happen in each are listed at enum session_state (session_private.h), their handlers are in
 * session_states.c; here is what makes them run: sockets, events, rounds. A session belongs to one
 * thread, that of its pool.
 *
 * Two facts about Linux rule how events are used:
 *
 * - Data that is written to an accepted MPTCP socket before the third ACK (data in the SYN makes
 *   accept() return that early) isn't sent when the ACK comes, nor later (Linux 6.18), and the
 *   end of the stream is no better off. So nothing is written to such a socket before it is
 *   ESTABLISHED, nor is it closed unless with a reset.
 * - The only sign of the third ACK is an EPOLLOUT edge, and only for a registration that was
 *   there before: so each socket is registered at once for all it may ever be asked,
 *   edge-triggered, and the registration is never modified.
 *
 * Memory: a session is one block (blocks.h), its three events behind the struct (libevent keeps their size
 * to itself); what a client has sent of an incomplete request, at most 1019 bytes; early data, at
 * most REQUEST_READ_MAX; and what a relay has pending. Idle sessions have the block alone.
 */
#include "config.h"

#include "convertd/session/session_private.h"

#include "convertd/base/clock.h"
#include "convertd/net/downstream.h"
#include "convertd/base/log.h"
#include "convertd/observe/metrics.h"
#include "convertd/privilege/survivor.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

/* The kernel gives up a handshake that is to be sent one SYN+ACK more after 3 s. */
#define NO_RESET_SECONDS 4

static struct event *session_event(struct session *s, enum session_event which)
{
	return (struct event *)((char *)(s + 1) + (size_t)which * event_get_struct_event_size());
}

void session_set_state(struct session *s, enum session_state state)
{
	enum session_state before = (enum session_state)s->state;

	assert(session_state_allows(before, state));
	log_debug("session %llu: %s -> %s", (unsigned long long)s->id, session_state_name(before),
		  session_state_name(state));
	metrics_add(s->pool->context.metrics, METRIC_STATE + s->state, (uint64_t)-1);
	metrics_add(s->pool->context.metrics, METRIC_STATE + state, 1);
	s->state = (uint8_t)state;
	/* Until then it stays a pending one: session_prove(). */
	if (state == SESSION_REFUSING && !s->unproven)
		session_set_class(s, LIMITS_REFUSING);
}

static void session_count_pending(struct session *s, enum limits_class class, uint64_t by)
{
	if (class == LIMITS_PENDING || class == LIMITS_WAITING)
		metrics_add(s->pool->context.metrics, METRIC_PENDING, by);
}

void session_count_class(struct session *s, enum limits_class before)
{
	enum limits_class class = (enum limits_class)s->member.class;

	if (class == before)
		return;
	session_count_pending(s, before, (uint64_t)-1);
	session_count_pending(s, class, 1);
}

void session_set_class(struct session *s, enum limits_class class)
{
	enum limits_class before = (enum limits_class)s->member.class;

	if (class == before)
		return;
	limits_move(s->pool->context.admission.limits, &s->member, class);
	session_count_class(s, before);
}

void session_set_outcome(struct session *s, enum outcome outcome, const char *reason)
{
	s->outcome = (uint8_t)outcome;
	s->reason = reason ? reason : outcome_text(outcome);
}

void session_close(struct session *s, enum outcome outcome)
{
	session_set_outcome(s, outcome, NULL);
	session_set_state(s, SESSION_CLOSED);
}

void session_clear_deadline(struct session *s)
{
	event_del(session_event(s, SESSION_EVENT_DEADLINE));
}

/* Sets the deadline to when an unproven client has to be there, if @ms would end later. */
static bool hurry(struct session *s, unsigned ms)
{
	uint64_t now_us = clock_now_us();
	uint64_t left_us = s->prove_by_us > now_us ? s->prove_by_us - now_us : 1;
	struct timeval left = { .tv_sec = (time_t)(left_us / 1000000),
				.tv_usec = (suseconds_t)(left_us % 1000000) };

	if (ms && ms * 1000ULL <= left_us)
		return false;
	event_add(session_event(s, SESSION_EVENT_DEADLINE), &left);
	return true;
}

/* Sets the deadline to when the kernel has ended the session, if @ms would end earlier, with a reset. */
static bool leave_to_kernel(struct session *s, unsigned ms)
{
	static const struct timeval ended = { .tv_sec = NO_RESET_SECONDS };

	if (!ms || ms >= NO_RESET_SECONDS * 1000)
		return false;
	event_add(session_event(s, SESSION_EVENT_DEADLINE), &ended);
	return true;
}

void session_set_deadline(struct session *s, enum session_timeout timeout)
{
	unsigned ms = s->pool->timeout_ms[timeout];

	s->timeout = (uint8_t)timeout;
	s->hurried = (s->prove_by_us && hurry(s, ms)) || (s->no_reset && leave_to_kernel(s, ms));
	if (s->hurried)
		return;
	if (ms)
		event_add(session_event(s, SESSION_EVENT_DEADLINE), &s->pool->timeouts[timeout]);
	else
		session_clear_deadline(s);
}

/* Returns the socket, which is no longer the session's, or -1. */
static int session_take_socket(struct session *s, enum relay_end end)
{
	struct relay_side *side = &s->relay.side[end];
	int fd = side->fd;

	if (fd < 0)
		return fd;
	if (end == RELAY_UPSTREAM)
		session_look_transport(s);
	else
		session_look_source(s);
	event_del(session_event(s, (enum session_event)end));
	side->fd = -1;
	side->readable = side->writable = false;
	return fd;
}

void session_close_socket(struct session *s, enum relay_end end)
{
	int fd = session_take_socket(s, end);

	if (fd >= 0)
		close(fd);
}

void session_reset_socket(struct session *s, enum relay_end end)
{
	int fd = session_take_socket(s, end);

	if (fd < 0)
		return;
	downstream_reset(fd);
	close(fd);
}

void session_cut(struct session *s)
{
	for (int end = 0; end < RELAY_ENDS; end++) {
		if (survivor_is_there())
			session_take_socket(s, (enum relay_end)end);
		else
			session_reset_socket(s, (enum relay_end)end);
	}
}

void session_drop(struct session *s, enum outcome outcome)
{
	char client[SOCKADDR_STRLEN];
	unsigned suppressed;

	if (log_limit_pass(&s->pool->shared->drops, &suppressed))
		log_warning("%s is reset: %s (%u other clients since the last such line)",
			    sockaddr_ip_format(&s->client, client), outcome_text(outcome),
			    suppressed);
	s->quiet = true;
	session_reset_socket(s, RELAY_UPSTREAM);
	session_reset_socket(s, RELAY_DOWNSTREAM);
	session_close(s, outcome);
}

/* It has a line of its own as well, if its outcome hasn't too many. */
static void tell_memory(struct session *s)
{
	char client[SOCKADDR_STRLEN];
	unsigned suppressed;

	if (log_limit_pass(&s->pool->shared->memory, &suppressed))
		log_warning("%s is reset: for %u ms nothing has moved of %llu kB that the kernel "
			    "holds for it, and there is too much of that (%u others since the last such "
			    "line); see --max-memory",
			    sockaddr_ip_format(&s->client, client), s->memory.stalled_ms,
			    (unsigned long long)s->memory.bytes / 1000, suppressed);
}

void session_make_room(struct session *s, enum outcome reason)
{
	static const struct downstream_error exceeded = { .code = CONVERT_ERROR_RESOURCE_EXCEEDED };

	if (reason == OUTCOME_LIMIT_MEMORY)
		tell_memory(s);
	if (s->state == SESSION_RELAY && s->answered) {
		session_reset_socket(s, RELAY_UPSTREAM);
		session_reset_socket(s, RELAY_DOWNSTREAM);
		session_close(s, reason);
	} else if (s->state == SESSION_CONNECTING && s->confirmed) {
		s->outcome = (uint8_t)reason;
		session_refuse_server(s, exceeded);
	} else {
		session_drop(s, reason);
	}
}

/*
 * The socket that is left at the end is closed if that is the end of what goes to its peer: both directions have
 * ended, or the converter itself has nothing more to say to a client that has no server. All else is a reset.
 */
static void session_end_socket(struct session *s, enum relay_end end)
{
	bool own_word = end == RELAY_UPSTREAM &&
			(s->answered || s->outcome == OUTCOME_CLIENT_LEFT);

	if (own_word || s->outcome == OUTCOME_DONE)
		session_close_socket(s, end);
	else
		session_reset_socket(s, end);
}

static void session_destroy(struct session *s)
{
	session_unqueue(s);
	session_memory_forget(s);
	DL_DELETE(s->pool->sessions, s);
	session_count_pending(s, (enum limits_class)s->member.class, (uint64_t)-1);
	limits_leave(s->pool->context.admission.limits, &s->member, clock_now_ms());
	session_clear_deadline(s);
	session_decide_line(s);
	/* A socket in SYN_RECV that is only closed goes on with SYN+ACKs, of which nobody keeps count. */
	if (s->unproven || !s->established)
		session_reset_socket(s, RELAY_UPSTREAM);
	session_end_proof(s);
	session_end_socket(s, RELAY_UPSTREAM);
	session_end_socket(s, RELAY_DOWNSTREAM);
	session_report_end(s);
	session_drop_withheld(s);
	relay_fini(&s->relay);
	free(s->request);
	free(s->fastopen);
	blocks_put(&s->pool->blocks, s);
}

void session_advance(struct session *s)
{
	enum session_state before;

	do {
		before = s->state;
		session_handle(s);
	} while (s->state != before);
	if (s->state == SESSION_CLOSED)
		session_destroy(s);
}

/*
 * See the top of this file for what may be written when. A connection that has ended before its
 * handshake was complete is closed, not confirmed.
 */
void session_look_upstream(struct session *s)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (s->confirmed || client->fd < 0)
		return;
	s->confirmed = getsockopt(client->fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
		       info.tcpi_state != TCP_SYN_RECV && info.tcpi_state != TCP_CLOSE;
	s->established = s->confirmed || client->tcp;
	if (s->confirmed)
		session_prove(s);
}

/* Both sockets may have something to say in one round; in REQUEST there is but one. */
static void session_on_event(struct session *s)
{
	if (s->state == SESSION_REQUEST)
		session_advance(s);
	else
		session_set_due(s);
}

static void on_upstream(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	struct relay_side *side = &s->relay.side[RELAY_UPSTREAM];

	(void)fd;
	s->fresh = false;
	side->readable |= (what & EV_READ) != 0;
	side->ended = (what & EV_CLOSED) != 0;
	side->news = true;
	s->client_said |= (what & EV_READ) != 0;
	session_look_upstream(s);
	side->writable |= s->established && (what & EV_WRITE);
	session_on_event(s);
}

static void on_downstream(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	struct relay_side *side = &s->relay.side[RELAY_DOWNSTREAM];

	(void)fd;
	side->readable |= (what & EV_READ) != 0;
	side->ended = (what & EV_CLOSED) != 0;
	side->news = true;
	side->writable |= (what & EV_WRITE) != 0;
	session_on_event(s);
}

static int session_register(struct session *s, enum relay_end end, int fd,
			    event_callback_fn callback)
{
	struct event *event = session_event(s, (enum session_event)end);

	if (event_assign(event, s->pool->context.base, fd,
			 EV_READ | EV_WRITE | EV_CLOSED | EV_ET | EV_PERSIST, callback, s) < 0)
		return -ENOMEM;
	return event_add(event, NULL) < 0 ? -ENOMEM : 0;
}

int session_watch_downstream(struct session *s, int fd)
{
	s->relay.side[RELAY_DOWNSTREAM].fd = fd;
	if (!s->mptcp)
		relay_set_tcp(&s->relay, RELAY_DOWNSTREAM);
	return session_register(s, RELAY_DOWNSTREAM, fd, on_downstream);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	(void)fd;
	(void)what;
	if (s->hurried)
		session_handle_no_proof(s);
	else
		session_handle_deadline(s);
	session_advance(s);
}

/* An MPTCP listener gives plain TCP sockets for clients that didn't ask for MPTCP. */
static bool is_tcp(int fd)
{
	int protocol = 0;
	socklen_t len = sizeof(protocol);

	return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) == 0 &&
	       protocol == IPPROTO_TCP;
}

/* The limits have told a session to go. */
static void make_room(struct limits_member *member, enum outcome reason)
{
	struct session *s = (struct session *)((char *)member - offsetof(struct session, member));

	session_make_room(s, reason);
	session_advance(s);
}

static const struct limits_member_kind member_kind = { .make_room = make_room };

/* The session of an accepted socket, in REQUEST; NULL without memory. */
static struct session *session_create(struct session_pool *pool, int fd,
				      const union sockaddr_ip *client)
{
	struct in6_addr address = sockaddr_ip_in6(client);
	struct session *s;

	s = blocks_get(&pool->blocks);
	if (!s)
		return NULL;
	s->member.owner = &pool->context.owner;
	s->member.kind = &member_kind;
	if (limits_enter(pool->context.admission.limits, &s->member, &address, LIMITS_PENDING) < 0) {
		blocks_put(&pool->blocks, s);
		return NULL;
	}
	s->pool = pool;
	s->client = *client;
	s->id = atomic_fetch_add(&pool->shared->last_id, 1) + 1;
	s->started_us = clock_now_us();
	s->error = RECORD_NO_ERROR;
	session_set_outcome(s, OUTCOME_NONE, NULL);
	metrics_add(pool->context.metrics, METRIC_ACCEPTED, 1);
	metrics_add(pool->context.metrics, METRIC_STATE + s->state, 1);
	session_count_pending(s, LIMITS_PENDING, 1);
	relay_init(&s->relay, &pool->pipes);
	s->relay.side[RELAY_UPSTREAM].fd = fd;
	if (is_tcp(fd))
		relay_set_tcp(&s->relay, RELAY_UPSTREAM);
	DL_APPEND(pool->sessions, s);
	event_assign(session_event(s, SESSION_EVENT_DEADLINE), pool->context.base, -1, 0, on_deadline, s);
	event_assign(session_event(s, SESSION_EVENT_UPSTREAM), pool->context.base, -1, 0, on_upstream, s);
	event_assign(session_event(s, SESSION_EVENT_DOWNSTREAM), pool->context.base, -1, 0, on_downstream,
		     s);
	return s;
}

void session_accept(struct session_pool *pool, int fd, const union sockaddr_ip *client)
{
	struct session *s = session_create(pool, fd, client);

	if (!s) {
		downstream_reset(fd);
		close(fd);
		return;
	}
	session_start_proof(s);
	session_take_withheld(s);
	if (!limits_may_stay(pool->context.admission.limits, &s->member)) {
		session_drop(s, OUTCOME_LIMIT_CONNECTIONS);
	} else if (session_register(s, RELAY_UPSTREAM, fd, on_upstream) < 0) {
		session_close(s, OUTCOME_OUT_OF_MEMORY);
	} else {
		session_set_deadline(s, SESSION_TIMEOUT_REQUEST);
		/* With data in the SYN, the request is here already. */
		s->relay.side[RELAY_UPSTREAM].readable = true;
		s->fresh = true;
	}
	session_advance(s);
}
