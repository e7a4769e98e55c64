/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.c - one client's connection through the converter, from accept to close
 *
 * A session is driven by events of its two sockets and by one deadline. Events only set flags
 * (struct relay_side); session_advance() then lets the handler of the state do what the flags
 * allow, until nothing moves any more. The states and what may happen in each are listed at enum
 * session_state (session_private.h), their handlers are in session_states.c; here is what makes
 * them run: sockets, events, rounds.
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
 * Memory: a session is one block, its three events behind the struct (libevent keeps their size
 * to itself); what a client has sent of an incomplete request, at most 1019 bytes; early data, at
 * most REQUEST_READ_MAX; and what a relay has pending. Idle sessions have the block alone.
 */
#include "config.h"

#include "convertd/session_private.h"

#include "convertd/log.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

static const char *const state_names[] = {
	[SESSION_REQUEST] = "REQUEST",
	[SESSION_CONNECTING] = "CONNECTING",
	[SESSION_RELAY] = "RELAY",
	[SESSION_RESETTING] = "RESETTING",
	[SESSION_REFUSING] = "REFUSING",
	[SESSION_CLOSED] = "CLOSED",
};
static_assert(sizeof(state_names) / sizeof(state_names[0]) == SESSION_STATE_COUNT,
	      "a name for each state");

#define STATE_BIT(state) (1U << (state))

/* The states that may follow each. */
static const unsigned state_successors[] = {
	[SESSION_REQUEST] = STATE_BIT(SESSION_CONNECTING) | STATE_BIT(SESSION_REFUSING) |
			    STATE_BIT(SESSION_CLOSED),
	[SESSION_CONNECTING] = STATE_BIT(SESSION_RELAY) | STATE_BIT(SESSION_REFUSING) |
			       STATE_BIT(SESSION_CLOSED),
	[SESSION_RELAY] = STATE_BIT(SESSION_RESETTING) | STATE_BIT(SESSION_CLOSED),
	[SESSION_RESETTING] = STATE_BIT(SESSION_CLOSED),
	[SESSION_REFUSING] = STATE_BIT(SESSION_CLOSED),
	[SESSION_CLOSED] = 0,
};
static_assert(sizeof(state_successors) / sizeof(state_successors[0]) == SESSION_STATE_COUNT,
	      "successors for each state");

static struct event *session_event(struct session *s, enum session_event which)
{
	return (struct event *)((char *)(s + 1) + (size_t)which * event_get_struct_event_size());
}

void session_set_state(struct session *s, enum session_state state)
{
	assert(state_successors[s->state] & STATE_BIT(state));
	log_debug("session %llu: %s -> %s", (unsigned long long)s->id, state_names[s->state],
		  state_names[state]);
	s->state = (uint8_t)state;
}

void session_close(struct session *s, const char *outcome)
{
	s->outcome = outcome;
	session_set_state(s, SESSION_CLOSED);
}

void session_set_deadline(struct session *s, const struct timeval *timeout)
{
	event_add(session_event(s, SESSION_EVENT_DEADLINE), timeout);
}

void session_clear_deadline(struct session *s)
{
	event_del(session_event(s, SESSION_EVENT_DEADLINE));
}

void session_close_socket(struct session *s, enum relay_end end)
{
	struct relay_side *side = &s->relay.side[end];

	if (side->fd < 0)
		return;
	event_del(session_event(s, (enum session_event)end));
	close(side->fd);
	side->fd = -1;
	side->readable = side->writable = false;
}

/* SO_LINGER does it for TCP alone, a connect() to AF_UNSPEC for both. */
void session_reset_socket(struct session *s, enum relay_end end)
{
	static const struct linger linger = { .l_onoff = 1, .l_linger = 0 };
	static const struct sockaddr unspec = { .sa_family = AF_UNSPEC };
	int fd = s->relay.side[end].fd;

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	/* Fails where the socket is closed already: fine. */
	if (connect(fd, &unspec, sizeof(unspec)) < 0)
		(void)0;
	session_close_socket(s, end);
}

static void session_log_end(const struct session *s)
{
	const struct relay_flow *flow = s->relay.flow;
	char client[SOCKADDR_STRLEN], server[SOCKADDR_STRLEN] = "nowhere";
	uint64_t ms = log_now_ms() - s->started_ms, down = flow[RELAY_DOWNSTREAM].bytes;

	if (!log_enabled(LOG_LEVEL_INFO))
		return;
	if (s->server.sa.sa_family)
		sockaddr_ip_format(&s->server, server);
	down -= down < s->answer_len ? down : s->answer_len;
	log_info("%s to %s: %llu bytes up, %llu down, %llu.%03u s: %s",
		 sockaddr_ip_format(&s->client, client), server,
		 (unsigned long long)flow[RELAY_UPSTREAM].bytes, (unsigned long long)down,
		 (unsigned long long)(ms / 1000), (unsigned)(ms % 1000), s->outcome);
}

static void session_destroy(struct session *s)
{
	session_log_end(s);
	if (s->hungry)
		DL_DELETE2(s->pool->hungry, s, hungry_prev, hungry_next);
	DL_DELETE(s->pool->sessions, s);
	session_clear_deadline(s);
	session_close_socket(s, RELAY_UPSTREAM);
	session_close_socket(s, RELAY_DOWNSTREAM);
	relay_fini(&s->relay);
	free(s->request);
	free(s);
}

void session_set_hungry(struct session *s)
{
	static const struct timeval now = { 0, 0 };

	if (s->hungry)
		return;
	if (!s->pool->hungry)
		event_add(s->pool->feed, &now);
	DL_APPEND2(s->pool->hungry, s, hungry_prev, hungry_next);
	s->hungry = true;
}

/* Does all that can be done now. The session may be gone afterwards. */
static void session_advance(struct session *s)
{
	enum session_state before;

	do {
		before = s->state;
		session_handle(s);
	} while (s->state != before);
	if (s->state == SESSION_CLOSED)
		session_destroy(s);
}

/* May the client's socket be written? See the top of this file. */
static bool upstream_is_established(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	int protocol = 0;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ||
	    info.tcpi_state != TCP_SYN_RECV)
		return true;
	len = sizeof(protocol);
	return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) < 0 ||
	       protocol != IPPROTO_MPTCP;
}

static void on_upstream(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	struct relay_side *side = &s->relay.side[RELAY_UPSTREAM];

	side->readable |= (what & EV_READ) != 0;
	if (!s->established)
		s->established = upstream_is_established(fd);
	side->writable |= s->established && (what & EV_WRITE);
	session_advance(s);
}

static void on_downstream(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	struct relay_side *side = &s->relay.side[RELAY_DOWNSTREAM];

	(void)fd;
	side->readable |= (what & EV_READ) != 0;
	side->writable |= (what & EV_WRITE) != 0;
	session_advance(s);
}

static int session_register(struct session *s, enum relay_end end, int fd,
			    event_callback_fn callback)
{
	struct event *event = session_event(s, (enum session_event)end);

	if (event_assign(event, s->pool->base, fd, EV_READ | EV_WRITE | EV_ET | EV_PERSIST,
			 callback, s) < 0)
		return -ENOMEM;
	return event_add(event, NULL) < 0 ? -ENOMEM : 0;
}

int session_watch_downstream(struct session *s, int fd)
{
	s->relay.side[RELAY_DOWNSTREAM].fd = fd;
	return session_register(s, RELAY_DOWNSTREAM, fd, on_downstream);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	(void)fd;
	(void)what;
	session_handle_deadline(s);
	session_advance(s);
}

/* Sessions that get hungry again meanwhile wait for the next round. */
static void on_feed(evutil_socket_t fd, short what, void *arg)
{
	struct session_pool *pool = arg;
	struct session *last = pool->hungry ? pool->hungry->hungry_prev : NULL;
	bool more = last != NULL;

	(void)fd;
	(void)what;
	while (more) {
		struct session *s = pool->hungry;

		more = s != last;
		DL_DELETE2(pool->hungry, s, hungry_prev, hungry_next);
		s->hungry = false;
		session_advance(s);
	}
}

void session_accept(struct session_pool *pool, int fd, const union sockaddr_ip *client)
{
	struct session *s;

	s = calloc(1, sizeof(*s) + SESSION_EVENT_COUNT * event_get_struct_event_size());
	if (!s) {
		close(fd);
		return;
	}
	s->pool = pool;
	s->client = *client;
	s->id = ++pool->last_id;
	s->started_ms = log_now_ms();
	s->outcome = "unknown";
	relay_init(&s->relay);
	s->relay.side[RELAY_UPSTREAM].fd = fd;
	DL_APPEND(pool->sessions, s);
	event_assign(session_event(s, SESSION_EVENT_DEADLINE), pool->base, -1, 0, on_deadline, s);
	event_assign(session_event(s, SESSION_EVENT_DOWNSTREAM), pool->base, -1, 0, on_downstream,
		     s);
	if (session_register(s, RELAY_UPSTREAM, fd, on_upstream) < 0) {
		session_close(s, "out of memory");
	} else {
		session_set_deadline(s, pool->request_timeout);
		/* With data in the SYN, the request is here already. */
		s->relay.side[RELAY_UPSTREAM].readable = true;
	}
	session_advance(s);
}

static const struct timeval *common_timeout(struct event_base *base, unsigned ms)
{
	struct timeval timeout = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	return event_base_init_common_timeout(base, &timeout);
}

int session_pool_init(struct session_pool *pool, struct event_base *base,
		      const struct request_features *features, unsigned request_seconds,
		      unsigned connect_seconds)
{
	memset(pool, 0, sizeof(*pool));
	pool->base = base;
	pool->features = *features;
	pool->request_timeout = common_timeout(base, request_seconds * 1000);
	pool->connect_timeout = common_timeout(base, connect_seconds * 1000);
	pool->linger_timeout = common_timeout(base, LINGER_SECONDS * 1000);
	pool->reset_poll = common_timeout(base, RESET_POLL_MS);
	pool->feed = event_new(base, -1, 0, on_feed, pool);
	pool->scratch = malloc(RELAY_SCRATCH_SIZE);
	if (!pool->request_timeout || !pool->connect_timeout || !pool->linger_timeout ||
	    !pool->reset_poll || !pool->feed || !pool->scratch) {
		session_pool_fini(pool);
		return -ENOMEM;
	}
	return 0;
}

void session_pool_fini(struct session_pool *pool)
{
	struct session *s, *next;

	DL_FOREACH_SAFE(pool->sessions, s, next)
	{
		if (s->state == SESSION_RELAY || s->state == SESSION_RESETTING || !s->established) {
			session_reset_socket(s, RELAY_UPSTREAM);
			session_reset_socket(s, RELAY_DOWNSTREAM);
		}
		session_close(s, "convertd stops");
		session_advance(s);
	}
	if (pool->feed)
		event_free(pool->feed);
	free(pool->scratch);
	memset(pool, 0, sizeof(*pool));
}
