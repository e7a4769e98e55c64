/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.c - one client's connection through the converter, from accept to close
 *
 * A session is driven by events of its two sockets and by one deadline. Events only set flags
 * (struct relay_side); session_advance() then lets the handler of the state do what the flags
 * allow, until nothing moves any more. States and what may happen in each are listed at enum
 * session_state.
 *
 * Two facts about Linux rule how events are used:
 *
 * - Data that is written to an accepted MPTCP socket before the third ACK (data in the SYN makes
 *   accept() return that early) isn't sent when the ACK comes, nor later (Linux 6.18). So nothing
 *   is written to such a socket before it is ESTABLISHED.
 * - The only sign of the third ACK is an EPOLLOUT edge, and only for a registration that was
 *   there before: so each socket is registered at once for all it may ever be asked,
 *   edge-triggered, and the registration is never modified.
 *
 * Memory: a session is one block, its three events behind the struct (libevent keeps their size
 * to itself); what a client has sent of an incomplete request, at most 1019 bytes; early data, at
 * most REQUEST_READ_MAX; and what a relay has pending. Idle sessions have the block alone.
 */
#include "config.h"

#include "convertd/session.h"

#include "convertd/downstream.h"
#include "convertd/log.h"
#include "convertd/relay.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

/* Bytes taken from the client before the server has been reached: the rest waits in the kernel. */
#define REQUEST_READ_MAX (16 * 1024)

/* Seconds that a refused client has to read its Error TLV and close (Section 6.2.2). */
#define LINGER_SECONDS 5

/* Reads of what a refused client still sends, in one round. */
#define DRAIN_READS 8

/*
 * REQUEST     The client is connected. Its bytes are collected until they make a request or
 *             can't become one. The client's end or the request deadline close without a word.
 * CONNECTING  The server was asked. Nothing more is read from the client: it may have sent its
 *             FIN (a half-close is a client's right), but a reset abandons the server.
 *             The server's answer, or the connect deadline, decides.
 * RELAY       The server was reached. The answer, then bytes, go both ways until both directions
 *             have ended or one socket fails, which resets the other. The deadline is for the
 *             answer to be taken by the kernel, i.e. for the client's third ACK.
 * REFUSING    The answer is the converter's last word: an Error TLV, or to an Info TLV alone. It
 *             is written, then the FIN; what the client still sends is thrown away until it
 *             closes or resets, or the linger deadline: a close before would be an RST,
 *             which takes the answer from the client (Section 6.2.2).
 * CLOSED      Nothing happens any more; the session is freed where session_advance() ends.
 */
enum session_state {
	SESSION_REQUEST,
	SESSION_CONNECTING,
	SESSION_RELAY,
	SESSION_REFUSING,
	SESSION_CLOSED,
	SESSION_STATE_COUNT
};

static const char *const state_names[] = {
	[SESSION_REQUEST] = "REQUEST",
	[SESSION_CONNECTING] = "CONNECTING",
	[SESSION_RELAY] = "RELAY",
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
	[SESSION_RELAY] = STATE_BIT(SESSION_CLOSED),
	[SESSION_REFUSING] = STATE_BIT(SESSION_CLOSED),
	[SESSION_CLOSED] = 0,
};
static_assert(sizeof(state_successors) / sizeof(state_successors[0]) == SESSION_STATE_COUNT,
	      "successors for each state");

/* The events behind the struct: the sockets' are numbered as the relay's sides. */
enum session_event {
	SESSION_EVENT_UPSTREAM = RELAY_UPSTREAM,
	SESSION_EVENT_DOWNSTREAM = RELAY_DOWNSTREAM,
	SESSION_EVENT_DEADLINE,
	SESSION_EVENT_COUNT
};

struct session {
	struct session *prev, *next; /* pool->sessions */
	struct session *hungry_prev, *hungry_next;
	struct session_pool *pool;
	struct relay relay;
	union sockaddr_ip client, server; /* the server's family is 0 until it is known */
	uint64_t id;
	uint64_t started_ms;
	const char *outcome;  /* for the log */
	uint8_t *request;     /* REQUEST: what has arrived, not yet complete */
	uint16_t request_len; /* bytes of it */
	uint16_t answer_len;  /* bytes of our answer, sent or not */
	uint8_t state;        /* enum session_state */
	bool hungry;          /* in pool->hungry */
	bool established;     /* the upstream socket may be written */
	bool answered;        /* RELAY, REFUSING: the answer has been written */
	bool info;            /* the request had an Info TLV */
	bool mptcp;           /* MPTCP is wanted towards the server */
};

static struct event *session_event(struct session *s, enum session_event which)
{
	return (struct event *)((char *)(s + 1) + (size_t)which * event_get_struct_event_size());
}

static void session_set_state(struct session *s, enum session_state state)
{
	assert(state_successors[s->state] & STATE_BIT(state));
	log_debug("session %llu: %s -> %s", (unsigned long long)s->id, state_names[s->state],
		  state_names[state]);
	s->state = (uint8_t)state;
}

static void session_close(struct session *s, const char *outcome)
{
	s->outcome = outcome;
	session_set_state(s, SESSION_CLOSED);
}

static void session_set_deadline(struct session *s, const struct timeval *timeout)
{
	event_add(session_event(s, SESSION_EVENT_DEADLINE), timeout);
}

/* Closes a socket and forgets it; its events end with it. */
static void session_close_socket(struct session *s, enum relay_end end)
{
	struct relay_side *side = &s->relay.side[end];

	if (side->fd < 0)
		return;
	event_del(session_event(s, (enum session_event)end));
	close(side->fd);
	side->fd = -1;
	side->readable = side->writable = false;
}

/*
 * Closes a socket with an RST, on MPTCP with MP_FASTCLOSE: SO_LINGER does it for TCP alone,
 * a connect() to AF_UNSPEC does it for both.
 */
static void session_reset_socket(struct session *s, enum relay_end end)
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
	event_del(session_event(s, SESSION_EVENT_DEADLINE));
	session_close_socket(s, RELAY_UPSTREAM);
	session_close_socket(s, RELAY_DOWNSTREAM);
	relay_fini(&s->relay);
	free(s->request);
	free(s);
}

/* More is to do than fits into this round: others first. */
static void session_set_hungry(struct session *s)
{
	static const struct timeval now = { 0, 0 };

	if (s->hungry)
		return;
	if (!s->pool->hungry)
		event_add(s->pool->feed, &now);
	DL_APPEND2(s->pool->hungry, s, hungry_prev, hungry_next);
	s->hungry = true;
}

/* Queues the answer in front of all that goes to the client. */
static bool session_queue_answer(struct session *s, const uint8_t *answer, size_t len)
{
	s->answer_len = (uint16_t)len;
	return len && relay_prepend(&s->relay, RELAY_DOWNSTREAM, answer, len) == 0;
}

/* The answer is our last word. */
static void session_refuse(struct session *s, const uint8_t *answer, size_t len,
			   const char *outcome)
{
	session_close_socket(s, RELAY_DOWNSTREAM);
	if (!session_queue_answer(s, answer, len)) {
		session_close(s, "out of memory");
		return;
	}
	s->outcome = outcome;
	session_set_deadline(s, s->pool->request_timeout);
	session_set_state(s, SESSION_REFUSING);
}

/* The server can't be reached; @error says why. */
static void session_refuse_server(struct session *s, int error)
{
	struct downstream_error refusal =
		downstream_refusal(s->relay.side[RELAY_DOWNSTREAM].fd, &s->server, error);
	uint8_t answer[CONVERT_MESSAGE_MAX];
	size_t len = request_write_error(&s->pool->features, s->info, refusal.code, refusal.value,
					 answer);

	log_debug("session %llu: %s: Error TLV %u (%s), value %u", (unsigned long long)s->id,
		  strerror(-error), (unsigned)refusal.code, convert_error_name(refusal.code),
		  (unsigned)refusal.value);
	session_refuse(s, answer, len, convert_error_name(refusal.code));
}

static void on_downstream(evutil_socket_t fd, short what, void *arg);

static int session_register(struct session *s, enum relay_end end, int fd, event_callback_fn callback)
{
	struct event *event = session_event(s, (enum session_event)end);

	if (event_assign(event, s->pool->base, fd, EV_READ | EV_WRITE | EV_ET | EV_PERSIST,
			 callback, s) < 0)
		return -EINVAL;
	return event_add(event, NULL) < 0 ? -ENOMEM : 0;
}

static void session_connect(struct session *s, const struct request_decision *decision)
{
	int fd;

	s->info = decision->info;
	s->mptcp = decision->mptcp;
	fd = downstream_connect(&s->server, s->mptcp);
	if (s->mptcp && (fd == -ENOPROTOOPT || fd == -EPROTONOSUPPORT)) {
		/* It was switched off since the start: net.mptcp.enabled. */
		static const uint8_t kind = TCP_KIND_MPTCP;
		uint8_t answer[CONVERT_MESSAGE_MAX];
		size_t len = request_write_unsupported(&s->pool->features, s->info, &kind, 1,
						       answer);

		session_refuse(s, answer, len, "MPTCP is off on this host");
		return;
	}
	if (fd >= 0) {
		s->relay.side[RELAY_DOWNSTREAM].fd = fd;
		if (session_register(s, RELAY_DOWNSTREAM, fd, on_downstream) < 0)
			fd = -ENOMEM;
	}
	if (fd < 0) {
		session_refuse_server(s, fd);
		return;
	}
	session_set_deadline(s, s->pool->connect_timeout);
	session_set_state(s, SESSION_CONNECTING);
}

/* @buf: all that has arrived. */
static void session_decide(struct session *s, const uint8_t *buf, size_t len)
{
	struct request_decision decision;

	request_decide(&s->pool->features, buf, len, &decision);
	if (decision.connect)
		sockaddr_ip_set(&s->server, AF_UNSPEC, &decision.address, decision.port);
	switch (decision.action) {
	case REQUEST_WAIT:
		s->request = malloc(len);
		if (!s->request) {
			session_close(s, "out of memory");
			return;
		}
		memcpy(s->request, buf, len);
		s->request_len = (uint16_t)len;
		return;
	case REQUEST_CONNECT:
		if (relay_prepend(&s->relay, RELAY_UPSTREAM, buf + decision.length,
				  len - decision.length) < 0) {
			session_close(s, "out of memory");
			return;
		}
		session_connect(s, &decision);
		return;
	case REQUEST_ANSWER:
		session_refuse(s, decision.answer, decision.answer_len, decision.reason);
		return;
	case REQUEST_RESET:
		session_reset_socket(s, RELAY_UPSTREAM);
		session_close(s, decision.reason);
		return;
	case REQUEST_IGNORE:
	case REQUEST_ACTION_COUNT:
		session_close(s, decision.reason);
		return;
	}
}

static void advance_request(struct session *s)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];
	uint8_t *scratch = s->pool->scratch;

	while (s->state == SESSION_REQUEST && client->readable) {
		ssize_t n;

		n = recv(client->fd, scratch + s->request_len, REQUEST_READ_MAX, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			client->readable = false;
			return;
		}
		if (n <= 0) {
			session_close(s, n ? "client lost before its request" :
					     "client left before its request");
			return;
		}
		if (s->request_len)
			memcpy(scratch, s->request, s->request_len);
		n += s->request_len;
		free(s->request);
		s->request = NULL;
		s->request_len = 0;
		session_decide(s, scratch, (size_t)n);
	}
}

/* Has the client reset the connection? A FIN is none: poll() tells them apart. */
static bool client_is_lost(const struct session *s)
{
	struct pollfd client = { .fd = s->relay.side[RELAY_UPSTREAM].fd };

	return poll(&client, 1, 0) > 0 && client.revents & (POLLERR | POLLHUP | POLLNVAL);
}

static void session_start_relay(struct session *s)
{
	int fd = s->relay.side[RELAY_DOWNSTREAM].fd;
	uint8_t options[DOWNSTREAM_OPTIONS_MAX], answer[CONVERT_MESSAGE_MAX];
	size_t len;

	downstream_established(fd, &s->server);
	len = downstream_options(fd, s->mptcp, options);
	len = request_write_connected(&s->pool->features, s->info, options, len, answer);
	if (!session_queue_answer(s, answer, len)) {
		session_close(s, "out of memory");
		return;
	}
	session_set_deadline(s, s->pool->connect_timeout);
	session_set_state(s, SESSION_RELAY);
}

static void advance_connecting(struct session *s)
{
	const struct relay_side *server = &s->relay.side[RELAY_DOWNSTREAM];
	int error;

	if (client_is_lost(s)) {
		session_close(s, "client lost while connecting");
		return;
	}
	if (!server->writable && !server->readable)
		return;
	error = downstream_result(server->fd);
	if (error == 0)
		session_start_relay(s);
	else if (error != -EINPROGRESS)
		session_refuse_server(s, error);
}

static void advance_relay(struct session *s)
{
	enum relay_result result = relay_run(&s->relay, s->pool->scratch);

	if (!s->answered && s->relay.flow[RELAY_DOWNSTREAM].bytes >= s->answer_len) {
		s->answered = true;
		event_del(session_event(s, SESSION_EVENT_DEADLINE));
	}
	switch (result) {
	case RELAY_WAIT:
		return;
	case RELAY_AGAIN:
		session_set_hungry(s);
		return;
	case RELAY_DONE:
		session_close(s, "done");
		return;
	case RELAY_UPSTREAM_LOST:
	case RELAY_DOWNSTREAM_LOST:
		session_reset_socket(s, RELAY_UPSTREAM);
		session_reset_socket(s, RELAY_DOWNSTREAM);
		session_close(s, result == RELAY_UPSTREAM_LOST ? "client lost" : "server lost");
		return;
	}
}

static void advance_refusing(struct session *s)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];
	int error = relay_flush(&s->relay, RELAY_DOWNSTREAM);

	if (error && error != -EAGAIN) {
		session_close(s, s->outcome);
		return;
	}
	if (!error && !s->answered) {
		s->answered = true;
		shutdown(client->fd, SHUT_WR);
		session_set_deadline(s, s->pool->linger_timeout);
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
			session_close(s, s->outcome);
	}
}

static void (*const state_handlers[])(struct session *) = {
	[SESSION_REQUEST] = advance_request,
	[SESSION_CONNECTING] = advance_connecting,
	[SESSION_RELAY] = advance_relay,
	[SESSION_REFUSING] = advance_refusing,
	[SESSION_CLOSED] = NULL,
};
static_assert(sizeof(state_handlers) / sizeof(state_handlers[0]) == SESSION_STATE_COUNT,
	      "a handler for each state");

/* Does all that can be done now. The session may be gone afterwards. */
static void session_advance(struct session *s)
{
	enum session_state before;

	do {
		before = s->state;
		if (before != SESSION_CLOSED)
			state_handlers[before](s);
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

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	(void)fd;
	(void)what;
	switch ((enum session_state)s->state) {
	case SESSION_REQUEST:
		session_close(s, "no request in time");
		break;
	case SESSION_CONNECTING:
		session_refuse_server(s, -ETIMEDOUT);
		break;
	case SESSION_RELAY:
		session_reset_socket(s, RELAY_UPSTREAM);
		session_reset_socket(s, RELAY_DOWNSTREAM);
		session_close(s, "client never completed its handshake");
		break;
	case SESSION_REFUSING:
		session_close(s, s->outcome);
		break;
	case SESSION_CLOSED:
	case SESSION_STATE_COUNT:
		break;
	}
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
	event_assign(session_event(s, SESSION_EVENT_DOWNSTREAM), pool->base, -1, 0, on_downstream, s);
	if (session_register(s, RELAY_UPSTREAM, fd, on_upstream) < 0) {
		session_close(s, "out of memory");
	} else {
		session_set_deadline(s, pool->request_timeout);
		/* With data in the SYN, the request is here already. */
		s->relay.side[RELAY_UPSTREAM].readable = true;
	}
	session_advance(s);
}

static const struct timeval *common_timeout(struct event_base *base, unsigned seconds)
{
	struct timeval timeout = { .tv_sec = (time_t)seconds };

	return event_base_init_common_timeout(base, &timeout);
}

int session_pool_init(struct session_pool *pool, struct event_base *base,
		      const struct request_features *features, unsigned request_seconds,
		      unsigned connect_seconds)
{
	memset(pool, 0, sizeof(*pool));
	pool->base = base;
	pool->features = *features;
	pool->request_timeout = common_timeout(base, request_seconds);
	pool->connect_timeout = common_timeout(base, connect_seconds);
	pool->linger_timeout = common_timeout(base, LINGER_SECONDS);
	pool->feed = event_new(base, -1, 0, on_feed, pool);
	pool->scratch = malloc(RELAY_SCRATCH_SIZE);
	if (!pool->request_timeout || !pool->connect_timeout || !pool->linger_timeout ||
	    !pool->feed || !pool->scratch) {
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
		if (s->state == SESSION_RELAY) {
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
