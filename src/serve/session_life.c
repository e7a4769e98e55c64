/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_life.c - a session from accept() to its end: when it runs, its class in the limits, the proof of its client's address
 *
 * Events of its two sockets and one deadline drive a session. Events only set flags (struct relay_side). After all events of a round,
 * session_advance() calls the handler of the state (session_states.c), which does all that the flags allow, until nothing moves any more. A
 * session belongs to one thread, that of its pool.
 *
 * Memory: a session is one block (blocks.h), with its deadline's event behind the struct, since only libevent knows the event's size.
 * Beside that it may hold an incomplete request, at most 1019 bytes; all bytes of an unproven client, or early data, at most
 * REQUEST_READ_MAX; and a relay's pending bytes. An idle session has the block alone. session_destroy() frees all of it.
 *
 * A session with more to do than fits into a round of the event loop waits for the next round, behind all others. A session with an event
 * waits for the end of the round, as its other socket may have an event in the same round. Both are in one queue, pool->runnable, which the
 * pool's event "run" empties (session_pool.c).
 *
 * A session is unproven from accept() until its client's third ACK, or until the judge says that its request proves its address.
 * proof.c limits the bytes that we may send to such a client, and this file keeps the limits: it writes little to the client (relay_cap()),
 * sends no FIN or RST that doesn't fit, keeps the session pending with any request, and ends the session in time:
 *
 *     TCP     the kernel gives up by itself after TCP_SYNCNT, and reports an error on the socket
 *     MPTCP   we bring the session's deadline forward and reset the connection before the kernel gives up. The kernel would tell the client
 *             nothing: a client whose third ACKs were lost, and that waits for the server to speak, would wait for ever
 */
#include "config.h"

#include "serve/session_parts.h"

#include "common/clock.h"
#include "daemon/metrics.h"
#include "daemon/proof.h"

#include <event2/event.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <utlist.h>

/* ----- the queue of sessions that run in the next round, or at the end of this one ----- */

void session_unqueue(struct session *s)
{
	if (s->queued)
		DL_DELETE2(s->pool->runnable, s, queue_prev, queue_next);
	s->queued = false;
}

static void enqueue(struct session *s)
{
	DL_APPEND2(s->pool->runnable, s, queue_prev, queue_next);
	s->queued = true;
}

void session_run_again(struct session *s)
{
	static const struct timeval now = { 0, 0 };

	if (s->queued)
		return;
	event_add(s->pool->run, &now);
	enqueue(s);
}

void session_run_soon(struct session *s)
{
	/* Runs after the events that are active already. */
	event_active(s->pool->run, EV_TIMEOUT, 0);
	if (!s->queued)
		enqueue(s);
}

/* ----- a session's class in the limits and in the metrics ----- */

static void session_count_pending(struct session *s, enum limits_class class, uint64_t by)
{
	if (class == LIMITS_PENDING || class == LIMITS_WAITING || class == LIMITS_REFUSED)
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
	limits_move(s->pool->context.limits, &s->member, class);
	session_count_class(s, before);
}

/* ----- unproven clients ----- */

/* Returns the time that an MPTCP client has to complete its handshake, in ms after the SYN+ACK. */
static unsigned deadline_ms(const struct session *s, const struct proof *proof)
{
	unsigned kernels = s->pool->context.settings->synacks, most = proof_synacks(proof);

	return proof_deadline_ms(most < kernels ? most : kernels);
}

static void session_start_proof(struct session *s)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];
	struct tcp_info info;
	struct proof proof;
	unsigned age_ms;
	int retries;

	s->proof.missing = proof_look(client->fd, &info, &age_ms);
	s->handshake_done = !s->proof.missing;
	s->syn.data = info.tcpi_options & TCPI_OPT_SYN_DATA;
	s->syn.timestamps = info.tcpi_options & TCPI_OPT_TIMESTAMPS;
	s->client_writable = s->handshake_done || client->tcp;
	if (s->handshake_done)
		metrics_observe_us(s->pool->context.metrics, METRIC_ROUND_TRIP_SECONDS, info.tcpi_rtt);
	if (!s->proof.missing)
		return;
	if (s->pool->context.plugs->unproven)
		s->pool->context.plugs->unproven(&s->pool->context, true);
	proof_read(&proof, &info, !sockaddr_ip_is_v4(&s->record.client), !client->tcp);
	if (client->tcp) {
		retries = proof_retries(&proof);
		proof_set_retries(client->fd, retries);
		relay_cap(&s->relay, RELAY_UPSTREAM, proof_room(&proof, (unsigned)retries + 1),
			  proof.header, proof.segment);
		s->proof.reset_bytes = proof.reset;
	} else {
		unsigned ms = deadline_ms(s, &proof);

		s->proof.prove_by_us = clock_now_us() + (ms > age_ms ? ms - age_ms : 1) * 1000ULL;
	}
}

void session_cap_answer(struct session *s, size_t len)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];
	uint32_t cost = client->overhead + (uint32_t)len;

	if (!client->capped)
		return;
	/* A part of an answer is of no use. */
	if (client->allowance < cost || len > client->segment)
		client->allowance = 0;
	else if (client->allowance > cost + s->proof.reset_bytes)
		client->allowance -= s->proof.reset_bytes;
	/* We prefer the server's first bytes to a reset: the kernel ends this connection without one. */
	else
		s->proof.no_reset = true;
}

static void session_forget_proof(struct session *s)
{
	if (!s->proof.missing)
		return;
	s->proof.missing = false;
	if (s->pool->context.plugs->unproven)
		s->pool->context.plugs->unproven(&s->pool->context, false);
}

void session_end_proof(struct session *s)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];

	if (!s->proof.missing)
		return;
	session_forget_proof(s);
	if (client->capped) {
		relay_uncap(&s->relay, RELAY_UPSTREAM);
		client->writable = true;
	}
	/* A client that its request has proven gets the usual time for its handshake. */
	if (client->tcp && !s->handshake_done && s->pool->context.settings->synacks > 1)
		proof_set_retries(client->fd, (int)s->pool->context.settings->synacks - 1);
	s->proof.prove_by_us = 0;
	s->proof.no_reset = false;
	if (s->proof.has_deadline)
		session_set_deadline(s, (enum session_timeout)s->timeout);
}

/* ----- from accept() to the end ----- */

static void session_end_socket(struct session *s, enum relay_end end)
{
	if (session_ends_in_order(end, s->record.outcome, s->answered))
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
	limits_leave(s->pool->context.limits, &s->member, clock_now_ms());
	session_clear_deadline(s);
	session_decide_line(s);
	/* After a mere close(), a socket in SYN_RECV would repeat SYN+ACKs, which nobody counts. */
	if (s->proof.missing || !s->client_writable)
		session_reset_socket(s, RELAY_UPSTREAM);
	session_forget_proof(s);
	session_end_socket(s, RELAY_UPSTREAM);
	session_end_socket(s, RELAY_DOWNSTREAM);
	session_report_end(s);
	session_drop_withheld(s);
	relay_fini(&s->relay);
	free(s->request);
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
	else /* The transport may change before the next round: a read's look counts for this round only. */
		s->relay.side[RELAY_UPSTREAM].looked = false;
}

/* Waits for the end of the round, as both sockets may have events in it. In REQUEST there is one socket only. */
static void session_on_event(struct session *s)
{
	if (s->state == SESSION_REQUEST)
		session_advance(s);
	else
		session_run_soon(s);
}

void session_on_upstream(void *arg, uint32_t events)
{
	struct session *s = arg;
	struct relay_side *side = &s->relay.side[RELAY_UPSTREAM];
	bool writable = relay_side_note(side, events);

	s->fresh = false;
	/* A reset makes the socket readable, as bytes and a FIN do. */
	s->client_sent |= (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0;
	session_look_upstream(s);
	side->writable |= s->client_writable && writable;
	session_on_event(s);
}

void session_on_downstream(void *arg, uint32_t events)
{
	struct session *s = arg;
	struct relay_side *side = &s->relay.side[RELAY_DOWNSTREAM];

	side->writable |= relay_side_note(side, events);
	session_on_event(s);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	(void)fd;
	(void)what;
	if (s->proof.has_deadline)
		session_handle_no_proof(s);
	else
		session_handle_deadline(s);
	session_advance(s);
}

/* An MPTCP listener returns plain TCP sockets for clients that didn't ask for MPTCP. */
static bool is_tcp(int fd)
{
	int protocol = 0;
	socklen_t len = sizeof(protocol);

	return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) == 0 &&
	       protocol == IPPROTO_TCP;
}

/* Ends a session that the limits have evicted. */
static void make_room(struct limits_member *member, enum outcome reason)
{
	struct session *s = (struct session *)((char *)member - offsetof(struct session, member));

	session_make_room(s, reason);
	session_advance(s);
}

static const struct limits_member_kind member_kind = { .make_room = make_room };

/* Creates the session of an accepted socket, in REQUEST. Returns NULL if memory is short. */
static struct session *session_create(struct session_pool *pool, int fd, bool mptcp, const union sockaddr_ip *client)
{
	struct in6_addr address = sockaddr_ip_in6(client);
	struct session *s;

	s = blocks_get(&pool->blocks);
	if (!s)
		return NULL;
	s->member.owner = &pool->context.owner;
	s->member.kind = &member_kind;
	if (limits_enter(pool->context.limits, &s->member, &address, LIMITS_PENDING) < 0) {
		blocks_put(&pool->blocks, s);
		return NULL;
	}
	s->pool = pool;
	s->record.client = *client;
	s->record.id = atomic_fetch_add(&pool->shared->last_id, 1) + 1;
	s->started_us = clock_now_us();
	s->record.error = RECORD_NO_ERROR;
	s->record.connect_us = RECORD_NEVER;
	session_set_outcome(s, OUTCOME_NONE, NULL);
	metrics_add(pool->context.metrics, METRIC_ACCEPTED, 1);
	metrics_add(pool->context.metrics, METRIC_STATE + s->state, 1);
	session_count_pending(s, LIMITS_PENDING, 1);
	relay_init(&s->relay, &pool->pipes);
	s->relay.side[RELAY_UPSTREAM].fd = fd;
	s->relay.side[RELAY_UPSTREAM].tcp = !mptcp;
	if (mptcp && is_tcp(fd))
		relay_set_tcp(&s->relay, RELAY_UPSTREAM);
	DL_APPEND(pool->sessions, s);
	event_assign(session_deadline_event(s), pool->context.base, -1, 0, on_deadline, s);
	s->registration[RELAY_UPSTREAM] = s->registration[RELAY_DOWNSTREAM] = POLLER_NONE;
	return s;
}

void session_accept(struct session_pool *pool, int fd, bool mptcp, const union sockaddr_ip *client)
{
	struct session *s = session_create(pool, fd, mptcp, client);

	if (!s) {
		relay_reset(fd);
		close(fd);
		return;
	}
	session_start_proof(s);
	session_take_withheld(s);
	if (!limits_may_stay(pool->context.limits, &s->member)) {
		session_drop(s, OUTCOME_LIMIT_CONNECTIONS);
	} else if (session_register(s, RELAY_UPSTREAM, fd) < 0) {
		session_close(s, OUTCOME_OUT_OF_MEMORY);
	} else {
		session_set_deadline(s, SESSION_TIMEOUT_REQUEST);
		/* With data in the SYN, the request has arrived already. */
		s->relay.side[RELAY_UPSTREAM].readable = true;
		s->fresh = true;
	}
	session_advance(s);
}
