/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.c - answers the call of a connection: with success, an error, or a direct connection */
#include "config.h"

#include "supervise/ends.h"

#include "client/converters_facts.h"
#include "common/thread.h"
#include "supervise/blind_requests.h"
#include "supervise/connection.h"
#include "supervise/enquiry.h"
#include "supervise/kernel.h"
#include "supervise/peers.h"
#include "supervise/stand_in.h"

#include <errno.h>
#include <poll.h>

#define IN6ADDR_V4MAPPED_LOOPBACK { { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1 } } }

/*
 * Makes the kernel report the server's refusal on the socket, for a non-blocking call: event loops expect it there, not from connect(). So
 * we connect the program's socket to a port of this host on which nobody listens. Returns whether that was refused.
 */
static bool refuse_later(const struct connection *connection)
{
	static int reserved = -1; /* bound to the port, and never listens */
	static union sockaddr_ip closed = { .in = { .sin_family = AF_INET } };
	const struct in6_addr loopback = IN6ADDR_V4MAPPED_LOOPBACK;
	struct pollfd refused = { .fd = connection->fd };
	union sockaddr_ip to;
	socklen_t len = sizeof(closed);

	if (reserved < 0) {
		reserved = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		closed.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		if (bind(reserved, &closed.sa, sizeof(closed.in)) != 0 || getsockname(reserved, &closed.sa, &len) != 0)
			return false;
	}
	sockaddr_ip_set(&to, connection->domain, &loopback, sockaddr_ip_port(&closed));
	if (connection->early || !connection->nonblocking || connection->v6only ||
	    connect(connection->fd, &to.sa, sockaddr_ip_len(&to)) == 0 || errno != EINPROGRESS)
		return false;
	if (poll(&refused, 1, 0) == 1 && refused.revents & POLLERR)
		return true;
	kernel_disconnect(connection->fd);
	return false;
}

void ends_fail(struct connection *connection, int error, const char *reason)
{
	dial_log(&connection->dial, "failed: ", reason);
	connection_probes_end(connection);
	if (connection->sock == connection->fd)
		connection_disconnect(connection);
	connection_answer(connection, 0, error == ECONNREFUSED && refuse_later(connection) ? connection->unfinished : error);
}

void ends_shut(struct connection *connection)
{
	kernel_disconnect(connection->fd); /* otherwise, with a stand-in, the program's own socket would stay shut down for good */
	ends_fail(connection, ECONNRESET, "the program has shut the socket down");
}

bool ends_hand_over(struct connection *connection)
{
	int ret;

	if (connection->sock == connection->fd)
		return true;
	ret = stand_in_put(supervision.listener, &connection->call, connection->fd, connection->sock);
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
		more = send(connection->sock, connection->early + sent, connection->dial.early_len - sent,
			    MSG_DONTWAIT | MSG_NOSIGNAL);
	return sent + (more > 0 ? (size_t)more : 0);
}

/* Completes our non-blocking connect() for a program that blocks, so that its next connect() gets EISCONN. */
static void tell_kernel(const struct connection *connection, const union sockaddr_ip *peer)
{
	if (!connection->nonblocking)
		(void)connect(connection->sock, &peer->sa, sockaddr_ip_len(peer));
}

void ends_directly(struct connection *connection)
{
	if (!ends_hand_over(connection))
		return;
	tell_kernel(connection, &connection->dial.server);
	connection_succeed(connection, send_early(connection, 0));
}

/* Connects to the server by plain TCP, unless the program itself made an MPTCP socket. Returns 0 if that is under way, or -errno. */
static int server_connect(struct connection *connection)
{
	const union sockaddr_ip server = connection->dial.server;
	int made, ret;

	connection_drop_stand_in(connection);
	if (connection->ours) {
		made = stand_in_make(connection->fd, connection->domain, false, connection->bound);
		if (made < 0)
			return made;
		connection_use(connection, made, connection->domain, false);
	}
	connection->state = CONNECTION_DIRECT;
	connection->look_at = 0;
	dial_stop(&connection->dial);
	ret = path_start_bind_directly(&connection->dial.start, connection->sock, &server);
	if (ret < 0)
		return ret;
	connection_watch(connection);
	return connection_connect(connection->sock, &server);
}

void ends_go_directly(struct connection *connection)
{
	int ret = server_connect(connection);

	if (ret < 0)
		connection_answer(connection, 0, -ret);
	else if (connection->nonblocking && ends_hand_over(connection)) /* early data isn't taken yet, as without a cookie */
		connection_answer(connection, 0, connection->unfinished);
}

void ends_reached(struct connection *connection)
{
	connection_probes_end(connection);
	if (!ends_hand_over(connection))
		return;
	peers_note(connection->sock, &connection->dial.attempt.addr, &connection->dial.server);
	tell_kernel(connection, &connection->dial.attempt.addr);
	connection_succeed(connection, connection->dial.early_len);
}

/* blind_requests.c looks later how the request fared, when we have no descriptor of the socket any more. */
void ends_blindly(struct connection *connection)
{
	const struct attempt *attempt = &connection->dial.attempt;

	dial_log(&connection->dial, connection->dial.mptcp ? "converted over MPTCP, " : "converted over TCP, ", "request in the SYN, blindly");
	if (!ends_hand_over(connection))
		return;
	peers_note(connection->sock, &attempt->addr, &connection->dial.server);
	blind_requests_expect(connection);
	if (converters_silence_ends_soon(attempt->converter))
		enquiry_start(&connection->dial.start, clock_ns());
	connection_succeed(connection, (size_t)(attempt->sent - attempt->request_len));
}
