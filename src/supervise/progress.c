/* SPDX-License-Identifier: BSD-3-Clause */
/* progress.c - a connection from its call to the answer: success, an error, or a direct connection */
#include "config.h"

#include "supervise/connection.h"

#include "client/cache.h"
#include "client/client_log.h"
#include "client/converters.h"
#include "client/exchange.h"
#include "common/clock.h"
#include "common/thread.h"
#include "host/networks.h"
#include "supervise/blind.h"
#include "supervise/sockets.h"
#include "supervise/stand_in.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/*
 * A blocking call waits until the connection is made. So does a non-blocking one, unless its request is blind or the connection direct.
 * Meanwhile hide_response() keeps the program's other threads from reading the response. The engine (engine/dial.h) decides what an answer
 * means and what to try next; this file carries that out. At CONVERT_TIMEOUT the attempt of a non-blocking call ends: we connect to the
 * server itself, or let the call fail.
 *
 * A blocking call waits for as long as the server may take. The kernel doesn't report signals or the end of the process meanwhile, so
 * caller.c looks for them periodically.
 */

/* --- the lookup of converters' names, in a thread of its own, so that no other connection waits --- */

static atomic_bool running;
static struct {
	struct converters_query query;
	union sockaddr_ip destination;
} work;

/* Chooses a converter only in order to look up addresses. The waiting connections choose again. */
static void *names_resolve(void *unused)
{
	enum policy_verdict verdict = POLICY_CONVERT;
	union sockaddr_ip addr;
	const char *reason;
	uint64_t one = 1;

	work.query.may_resolve = true;
	converters_choose(supervision.settings, &work.query, &addr, &verdict, &reason);
	atomic_store(&running, false);
	if (write(supervision.resolver_ready, &one, sizeof(one)) != sizeof(one)) {
		/* the counter is full, and so it is readable */
	}
	return unused;
}

/*
 * Looks up the names that the choice @query needs. supervision.resolver_ready becomes readable when that is done, or when a lookup that was
 * under way already is done. Returns false if no thread can be created.
 */
static bool resolver_start(const struct converters_query *query)
{
	pthread_attr_t attributes;
	pthread_t thread;
	bool started;

	if (atomic_exchange(&running, true))
		return true;
	work.query = *query;
	work.destination = *query->destination;
	work.query.destination = &work.destination;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	started = pthread_create(&thread, &attributes, names_resolve, NULL) == 0;
	pthread_attr_destroy(&attributes);
	if (!started)
		atomic_store(&running, false);
	return started;
}

/* --- answers: success, an error, or a direct connection --- */

#define IN6ADDR_V4MAPPED_LOOPBACK { { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1 } } }

/* A port of this host on which nobody listens. */
struct closed {
	const struct in6_addr loopback;
	uint16_t port; /* 0: it isn't reserved yet */
};

/* Binds a socket to the port for good. Returns whether the port is reserved. */
static bool reserve(struct closed *closed)
{
	union sockaddr_ip at;
	socklen_t len = sizeof(at);
	int sock;

	if (closed->port)
		return true;
	sockaddr_ip_set(&at, AF_UNSPEC, &closed->loopback, 0);
	sock = socket(at.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return false;
	if (bind(sock, &at.sa, sockaddr_ip_len(&at)) == 0 && getsockname(sock, &at.sa, &len) == 0)
		closed->port = sockaddr_ip_port(&at);
	else
		close(sock);
	return closed->port;
}

/* Returns whether the kernel has refused to connect the socket there. */
static bool is_refused(int fd, int domain, struct closed *closed)
{
	struct pollfd refused = { .fd = fd };
	union sockaddr_ip to;

	if (!reserve(closed))
		return false;
	sockaddr_ip_set(&to, domain, &closed->loopback, closed->port);
	if (connect(fd, &to.sa, sockaddr_ip_len(&to)) == 0 || errno != EINPROGRESS)
		return false;
	if (poll(&refused, 1, 0) == 1 && refused.revents & POLLERR)
		return true;
	kernel_disconnect(fd);
	return false;
}

/*
 * Makes the kernel report the server's refusal on the socket, for a non-blocking call: event loops expect it there, not from connect(). So
 * we connect the program's socket to a port of this host on which nobody listens. Returns whether that was refused.
 *
 * An IPv6 socket that was once connected to a v4-mapped address can't be connected to an IPv6 address any more (converters.c). So ::1 comes
 * first. It fails if the socket was, or if this host has no IPv6: then 127.0.0.1 does no harm.
 */
static bool refuse_later(const struct connection *connection)
{
	static struct closed v4 = { .loopback = IN6ADDR_V4MAPPED_LOOPBACK }, v6 = { .loopback = IN6ADDR_LOOPBACK_INIT };

	if (connection->early || !connection->nonblocking)
		return false;
	if (connection->domain == AF_INET6 && is_refused(connection->fd, AF_INET6, &v6))
		return true;
	return !connection->v6only && is_refused(connection->fd, connection->domain, &v4);
}

void progress_fail(struct connection *connection, int error, const char *reason)
{
	dial_log(&connection->dial, "failed: ", reason);
	connection_keepalive_end(connection);
	if (connection->dial.fd == connection->fd)
		connection_disconnect(connection);
	connection_answer(connection, 0, error == ECONNREFUSED && refuse_later(connection) ? connection->unfinished_errno : error);
}

void progress_shut(struct connection *connection)
{
	kernel_disconnect(connection->fd); /* otherwise, with a stand-in, the program's own socket would stay shut down for good */
	progress_fail(connection, ECONNRESET, "the program has shut the socket down");
}

bool progress_hand_over(struct connection *connection)
{
	int ret;

	if (connection->dial.fd == connection->fd)
		return true;
	ret = stand_in_put(supervision.listener, &connection->call, connection->fd, connection->dial.fd);
	if (ret == 0)
		return true;
	dial_log(&connection->dial, "failed: the socket can't be replaced: ", error_text(-ret));
	connection_answer(connection, 0, ECONNABORTED);
	return false;
}

/* Sends the early data behind the first @sent bytes. Returns the bytes sent in total; an output call may take a part only. */
static size_t send_early(struct connection *connection, size_t sent)
{
	ssize_t more = 0;

	if (sent < connection->dial.early_len)
		more = send(connection->dial.fd, connection->early + sent, connection->dial.early_len - sent,
			    MSG_DONTWAIT | MSG_NOSIGNAL);
	return sent + (more > 0 ? (size_t)more : 0);
}

/* Completes our non-blocking connect() for a program that blocks, so that its next connect() gets EISCONN. */
static void complete_connect(const struct connection *connection, const union sockaddr_ip *peer)
{
	if (!connection->nonblocking)
		(void)connect(connection->dial.fd, &peer->sa, sockaddr_ip_len(peer));
}

/* Answers the call after the direct connection was made. */
static void answer_direct(struct connection *connection)
{
	if (!progress_hand_over(connection))
		return;
	complete_connect(connection, &connection->dial.server);
	connection_succeed(connection, send_early(connection, connection->taken));
}

/* Makes the program's own call, or waits for its earlier one. A non-blocking call is answered at once. */
static void go_natively(struct connection *connection)
{
	const struct iovec iov[2] = { { connection->early, connection->dial.early_len }, { 0 } };
	const union sockaddr_ip *peer = &connection->dial.server;
	ssize_t ret = connection->early ? kernel_send(connection->dial.fd, iov, peer) : connection_connect(connection->dial.fd, peer);

	if (ret < 0 && (connection->nonblocking || (ret != -EINPROGRESS && ret != -EALREADY))) {
		connection_answer(connection, 0, (int)-ret);
		return;
	}
	connection->state = CONNECTION_DIRECT;
	connection->taken = ret > 0 ? (size_t)ret : 0;
	if (connection->nonblocking)
		connection_succeed(connection, connection->taken);
	else
		connection_watch(connection);
}

/* Connects to the server by plain TCP, unless the program itself made an MPTCP socket. Returns 0 if that is under way, or -errno. */
static int server_connect(struct connection *connection)
{
	const union sockaddr_ip server = connection->dial.server;
	int made, ret;

	connection_use(connection, connection->fd, connection->domain, connection->mptcp);
	if (connection->made_by_us) {
		made = stand_in_make(&connection->call, connection->fd, connection->domain, false, connection->bound,
				     connection->dial.start.placed);
		if (made < 0)
			return made;
		connection_use(connection, made, connection->domain, false);
	}
	connection->state = CONNECTION_DIRECT;
	connection->look_at = 0;
	dial_stop(&connection->dial);
	ret = path_start_bind_directly(&connection->dial.start, connection->dial.fd, &server);
	if (ret < 0)
		return ret;
	connection_watch(connection);
	dial_note_direct(&connection->dial);
	return connection_connect(connection->dial.fd, &server);
}

void progress_go_directly(struct connection *connection)
{
	int ret = server_connect(connection);

	if (ret < 0)
		connection_answer(connection, 0, -ret);
	else if (connection->nonblocking && progress_hand_over(connection)) /* early data isn't taken yet, as without a cookie */
		connection_answer(connection, 0, connection->unfinished_errno);
}

/* Answers the call after the converter has reached the server. */
static void answer_reached(struct connection *connection)
{
	connection_keepalive_end(connection);
	if (!progress_hand_over(connection))
		return;
	peers_note(connection->dial.fd, &connection->dial.attempt.addr, &connection->dial.server);
	complete_connect(connection, &connection->dial.attempt.addr);
	connection_succeed(connection, connection->dial.early_len);
}

/* blind_requests.c looks later how the request fared, when we have no descriptor of the socket any more. */
void progress_blindly(struct connection *connection)
{
	const struct attempt *attempt = &connection->dial.attempt;

	dial_log_converted(&connection->dial, "request in the SYN, blindly");
	dial_note(&connection->dial);
	if (!progress_hand_over(connection))
		return;
	peers_note(connection->dial.fd, &attempt->addr, &connection->dial.server);
	blind_requests_expect(connection);
	if (converters_silence_ends_soon(attempt->converter))
		enquiry_start(&connection->dial.start, clock_ns());
	connection_succeed(connection, (size_t)(attempt->sent - attempt->request_len));
}

/* --- progress --- */

#define LOOKUPS_MAX 3 /* for one connection; some of them may be lookups of another connection */

/* Starts to look up a converter's name. Returns false if that fails, or was tried LOOKUPS_MAX times. */
static bool resolve(struct connection *connection, struct dial_end *end)
{
	const struct converters_query query = connection->dial.ops->query(&connection->dial);

	if (!end->reason)
		end->reason = "the converter's name can't be looked up";
	if (connection->lookups++ >= LOOKUPS_MAX || !resolver_start(&query))
		return false;
	connection->state = CONNECTION_RESOLVING;
	connection->look_at = connection->limit;
	return true;
}

static void fail(struct connection *connection, const struct dial_end *end)
{
	/* A connection that carries an Error TLV has no Multipath TCP, and so has taught us less: ask by another one. */
	if (end->told && connection->nonblocking && connection->dial.mptcp &&
	    !exchange_keeps_mptcp(supervision.settings, &connection->dial.start.path.id))
		enquiry_start(&connection->dial.start, clock_ns());
	progress_fail(connection, end->error, end->reason);
}

/* Does what the engine decided. */
static void go_on(struct connection *connection, enum dial_state state, struct dial_end *end)
{
	if (state == DIAL_RESOLVING && !resolve(connection, end))
		state = DIAL_REFUSED;
	if (state == DIAL_REFUSED) {
		state = dial_refused(&connection->dial, end);
		if (state == DIAL_FAILED) {
			connection_answer(connection, 0, end->error);
			return;
		}
	}
	switch (state) {
	case DIAL_IN_PROGRESS:
		if (connection->dial.attempt.ask.blind)
			progress_blindly(connection);
		break;
	case DIAL_REACHED:
		answer_reached(connection);
		break;
	case DIAL_DIRECT:
		progress_go_directly(connection);
		break;
	case DIAL_BLIND: /* its SYN couldn't be sent */
	case DIAL_FAILED:
		fail(connection, end);
		break;
	default:
		break;
	}
}

/*
 * Returns whether another thread of the program has shut the socket down: it is closed, without a segment from the peer and without an
 * error. That says nothing about the converter. Sets @error to the socket's error, which reading it has cleared.
 */
static bool own_socket_was_shut(const struct connection *connection, int *error)
{
	struct tcp_info info;

	*error = 0;
	if (connection->dial.fd != connection->fd)
		return false;
	info = kernel_tcp_info(connection->dial.fd);
	if (info.tcpi_state != TCPINFO_CLOSE || info.tcpi_segs_in)
		return false;
	*error = kernel_get(connection->dial.fd, SOL_SOCKET, SO_ERROR, 0);
	return !*error;
}

static void step_asked(struct connection *connection)
{
	enum dial_state state;
	struct dial_end end;
	int error;

	if (own_socket_was_shut(connection, &error)) {
		progress_shut(connection);
		return;
	}
	state = error ? dial_failed(&connection->dial, error, &end) : dial_step(&connection->dial, &end);
	go_on(connection, state, &end);
}

static void step_direct(struct connection *connection)
{
	struct pollfd ready = { .fd = connection->dial.fd, .events = POLLOUT };
	int error = -1, state;

	blind_retry_lock(); /* or the retry thread may have disconnected the socket for a moment */
	if (poll(&ready, 1, 0) > 0) {
		error = kernel_get(connection->dial.fd, SOL_SOCKET, SO_ERROR, 0);
		state = kernel_tcp_info(connection->dial.fd).tcpi_state;
		if (!error && state == TCPINFO_CLOSE)
			error = ECONNABORTED;
		else if (!error && state == TCPINFO_SYN_SENT)
			error = -1; /* Linux 6.18 wakes poll() for an ICMP error a moment before SO_ERROR has it (tcp_v4_err()) */
	}
	blind_retry_unlock();
	if (error < 0)
		return;
	if (error && connection->dial.fd == connection->fd)
		kernel_disconnect(connection->fd); /* as after the kernel's own answer, it can be connected again */
	if (error)
		connection_answer(connection, 0, error);
	else
		answer_direct(connection);
}

void progress_step(struct connection *connection)
{
	log_about(connection->call.tid);
	if (connection->state == CONNECTION_ASKED)
		step_asked(connection);
	else if (connection->state == CONNECTION_DIRECT)
		step_direct(connection);
}

void progress_begin(struct connection *connection)
{
	struct dial_end end = { .verdict = policy_decide(supervision.settings, &connection->dial.server) };

	log_about(connection->call.tid);
	caller_begin(connection);
	if (connection->kind != CONNECTION_CONVERTED) {
		go_natively(connection);
		return;
	}
	user_cache_open(-1);
	if (end.verdict == POLICY_CONVERT && networks_is_own(&connection->dial.server))
		end.verdict = POLICY_DIRECT_LOCAL;
	if (end.verdict == POLICY_CONVERT && !supervision.settings->fail_closed && fcntl(connection->fd, F_GETFL) & O_ASYNC)
		end.verdict = POLICY_DIRECT_SIGNALS;
	end.reason = policy_reason(end.verdict);
	go_on(connection, end.verdict == POLICY_CONVERT ? dial_next(&connection->dial, false, &end) : DIAL_REFUSED, &end);
}

void progress_resolved(void)
{
	struct dial_end end;
	struct connection *connection, *next;

	HASH_ITER(hh, supervision.connections, connection, next) {
		if (connection->state != CONNECTION_RESOLVING)
			continue;
		log_about(connection->call.tid);
		go_on(connection, dial_resolved(&connection->dial, &end), &end);
	}
}

/* Returns whether something has happened on the socket that a step waits for. */
static bool is_ready(const struct connection *connection)
{
	const bool output = connection->state == CONNECTION_DIRECT || dial_wants_output(&connection->dial);
	struct pollfd ready = { .fd = connection->dial.fd, .events = (short)(POLLIN | POLLRDHUP | (output ? POLLOUT : 0)) };

	return poll(&ready, 1, 0) > 0;
}

/*
 * Takes the step that is due, and then looks at the call. If the call's time is over, takes a step if the socket is ready: the answer may
 * have come in time, while this process had no CPU.
 */
static void look_at_one(struct connection *connection, int64_t now)
{
	const bool over = connection->limit && now >= connection->limit;
	const uint64_t cookie = connection->cookie;

	if (over ? is_ready(connection) : connection->look_at && now >= connection->look_at) {
		progress_step(connection);
		HASH_FIND(hh, supervision.connections, &cookie, sizeof(cookie), connection);
	}
	if (connection)
		caller_look(connection, now >= connection->caller_at, now);
}

int progress_look(void)
{
	struct connection *connection, *next;
	const int64_t now = clock_ns();
	int64_t at;

	HASH_ITER(hh, supervision.connections, connection, next)
		look_at_one(connection, now);
	at = caller_sooner(blind_requests_look(now), caller_sooner(path_trials_look(), enquiry_look(now)));
	for (connection = supervision.connections; connection; connection = connection->hh.next)
		at = caller_sooner(caller_sooner(at, connection->caller_at), caller_sooner(connection->look_at, connection->limit));
	return caller_wait_ms(at, now);
}
