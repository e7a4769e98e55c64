/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_socket.c - a session's two sockets, their events, and its one deadline
 *
 * Two facts about Linux determine how we use events:
 *
 * - With data in the SYN, accept() returns before the third ACK. If we write data to an MPTCP socket before that ACK, or end its stream,
 *   Linux (6.18) never sends this. So we write nothing to such a socket before it is ESTABLISHED, and close it only by a reset.
 * - The only sign of the third ACK is an EPOLLOUT edge, which we get only if we have registered the socket before. So we register each
 *   socket at once for all events, edge-triggered, and never modify the registration.
 *
 * The deadline is that of the session's state, with two exceptions: an unproven client must complete its handshake in time, and if there is
 * no room for a reset, we leave the end of the connection to the kernel.
 */
#include "config.h"

#include "serve/session_parts.h"

#include "common/clock.h"
#include "daemon/poller.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

/* The most reads from a refused client in one round. */
#define DRAIN_READS 8

struct event *session_deadline_event(struct session *s)
{
	return (struct event *)(s + 1);
}

void session_clear_deadline(struct session *s)
{
	event_del(session_deadline_event(s));
}

void session_move_deadline(struct session *s, unsigned ms)
{
	const struct session_deadline deadline =
		session_decide_deadline(ms, s->proof.prove_by_us, s->proof.no_reset, s->proof.prove_by_us ? clock_now_us() : 0);
	const struct timeval left = { .tv_sec = (time_t)(deadline.us / 1000000), .tv_usec = (suseconds_t)(deadline.us % 1000000) };

	s->proof.has_deadline = deadline.for_proof;
	if (deadline.us)
		event_add(session_deadline_event(s), &left);
	else
		session_clear_deadline(s);
}

void session_set_deadline(struct session *s, enum session_timeout timeout)
{
	s->timeout = (uint8_t)timeout;
	session_move_deadline(s, s->pool->timeout_ms[timeout]);
}

/* Takes the socket away from the session. Returns it, or -1 if there is none. */
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
	poller_forget(s->pool->context.poller, s->registration[end]);
	s->registration[end] = POLLER_NONE;
	side->fd = -1;
	side->readable = side->writable = false;
	return fd;
}

/* Makes the kernel reset, or close, the connection when the descriptor is closed or the process ends (socket(7)). */
static void set_linger(int fd, bool reset)
{
	const struct linger linger = { .l_onoff = reset };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

void session_guard_sockets(struct session *s)
{
	if (s->pool->context.plugs->outlived)
		return;
	for (int end = 0; end < RELAY_ENDS; end++)
		if (s->relay.side[end].fd >= 0)
			set_linger(s->relay.side[end].fd, true);
}

void session_close_socket(struct session *s, enum relay_end end)
{
	int fd = session_take_socket(s, end);

	if (fd < 0)
		return;
	if (!s->pool->context.plugs->outlived)
		set_linger(fd, false);
	close(fd);
}

void session_reset_socket(struct session *s, enum relay_end end)
{
	int fd = session_take_socket(s, end);

	if (end == RELAY_DOWNSTREAM && s->dialling) {
		s->dialling = false;
		s->pool->context.plugs->dial.stop(&s->pool->context, &s->dial);
		return;
	}
	if (fd < 0)
		return;
	relay_reset(fd);
	close(fd);
}

void session_cut(struct session *s)
{
	const struct serve_plugs *plugs = s->pool->context.plugs;

	for (int end = 0; end < RELAY_ENDS; end++) {
		if (plugs->outlived && plugs->outlived())
			session_take_socket(s, (enum relay_end)end);
		else
			session_reset_socket(s, (enum relay_end)end);
	}
}

int session_register(struct session *s, enum relay_end end, int fd)
{
	poller_callback *on_events = end == RELAY_UPSTREAM ? session_on_upstream : session_on_downstream;
	int registration = poller_add(s->pool->context.poller, fd, on_events, s);

	if (registration < 0)
		return registration;
	s->registration[end] = registration;
	return 0;
}

static void take_downstream(struct session *s)
{
	s->relay.side[RELAY_DOWNSTREAM].fd = s->dial.fd;
	s->relay.side[RELAY_DOWNSTREAM].tcp = false;
	s->mptcp = s->dial.mptcp;
	if (!s->mptcp)
		relay_set_tcp(&s->relay, RELAY_DOWNSTREAM);
}

int session_watch_downstream(struct session *s)
{
	take_downstream(s);
	return session_register(s, RELAY_DOWNSTREAM, s->dial.fd);
}

void session_adopt_downstream(struct session *s, int registration, uint32_t events)
{
	struct relay_side *side = &s->relay.side[RELAY_DOWNSTREAM];

	take_downstream(s);
	poller_hand_over(s->pool->context.poller, registration, session_on_downstream, s);
	s->registration[RELAY_DOWNSTREAM] = registration;
	if (events)
		side->writable |= relay_side_note(side, events);
}

bool session_client_is_lost(const struct session *s)
{
	/* poll() tells a reset from a FIN. */
	struct pollfd client = { .fd = s->relay.side[RELAY_UPSTREAM].fd };

	return poll(&client, 1, 0) > 0 && client.revents & (POLLERR | POLLHUP | POLLNVAL);
}

bool session_client_is_established(const struct session *s)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(s->relay.side[RELAY_UPSTREAM].fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ||
	    info.tcpi_state == TCP_SYN_RECV || info.tcpi_state == TCP_CLOSE)
		return false;
	metrics_observe_us(s->pool->context.metrics, METRIC_ROUND_TRIP_SECONDS, info.tcpi_rtt);
	return true;
}

bool session_drain_client(struct session *s)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];
	ssize_t n = 1;

	for (int i = 0; client->readable; i++) {
		if (i == DRAIN_READS) {
			session_run_again(s);
			return true;
		}
		n = recv(client->fd, s->pool->scratch, RELAY_SCRATCH_SIZE, MSG_DONTWAIT);
		if (n <= 0)
			client->readable = false;
	}
	/* After its FIN the client still waits for the answer. */
	return n > 0 || (n == 0 ? !s->answered : errno == EAGAIN || errno == EINTR);
}
