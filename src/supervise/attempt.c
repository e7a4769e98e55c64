/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attempt.c - ask a converter, or the server itself: the socket that fits, the SYN, and what goes with it
 *
 * The program's own socket is used where that is what is wanted, which it is for converters that are reached over Multipath TCP.
 * In all other cases a stand-in is connected, and takes the place of the program's socket once the server has answered.
 */
#include "config.h"

#include "supervise/attempt.h"

#include "client/converters.h"
#include "client/converters_facts.h"
#include "client/converters_destinations.h"
#include "client/exchange.h"
#include "common/clock.h"
#include "common/errors.h"
#include "host/networks.h"
#include "supervise/advice.h"
#include "supervise/blind_memory.h"
#include "supervise/kernel.h"
#include "supervise/log.h"
#include "supervise/resolver.h"
#include "supervise/stand_in.h"
#include "supervise/tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#define LOOKUPS_MAX 3 /* for one connection; another connection's may come first */

/*
 * connect(2) that doesn't block, whatever the mode of the program's socket, which is shared with the program. Others of its
 * threads see the mode change for a moment in which the socket isn't connected, so that their calls fail in any case.
 */
static int connect_nonblocking(int fd, const union sockaddr_ip *to)
{
	int flags = fcntl(fd, F_GETFL), ret;

	if (!(flags & O_NONBLOCK))
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	ret = connect(fd, &to->sa, sockaddr_ip_len(to)) == 0 ? 0 : -errno;
	if (!(flags & O_NONBLOCK))
		fcntl(fd, F_SETFL, flags);
	return ret == -EINPROGRESS ? 0 : ret;
}

void attempt_disconnect(struct connection *connection)
{
	kernel_disconnect(connection->sock);
}

struct handshake_ask attempt_ask_of(const struct connection *connection)
{
	const struct attempt *attempt = &connection->attempt;

	return (struct handshake_ask){
		.cookie = converters_cookie(supervision.settings, attempt->converter, attempt->cookie_number),
		.mptcp = attempt->ask_mptcp,
		.info = attempt->ask_info,
		.silent = attempt->ask_silent,
		.blind = attempt->ask_blind,
		.attempt = attempt->ask_attempt,
		.hold_ms = attempt->hold_ms,
		.over_mptcp = connection->sock_mptcp,
	};
}

/*
 * Has @sock be one that can be connected to @to, which is put into its form, over Multipath TCP (@mptcp, which may turn out not
 * to be had) or plain TCP. Returns 0 or -errno.
 */
static int socket_fit(struct connection *connection, union sockaddr_ip *to, bool mptcp)
{
	const bool v4 = sockaddr_ip_is_v4(to);
	const struct in6_addr in6 = sockaddr_ip_in6(to);
	const int domain = v4 && (connection->domain == AF_INET || connection->v6only) ? AF_INET :
			   v4							       ? connection->domain :
											 AF_INET6;
	int made;

	if (connection->sock_domain != domain || connection->sock_mptcp != mptcp || (connection->sock_was_mapped && !v4)) {
		made = stand_in_make(connection->fd, domain, mptcp, connection->bound);
		if (made < 0 && mptcp) {
			mptcp = false;
			made = stand_in_make(connection->fd, domain, false, connection->bound);
		}
		if (made < 0)
			return made;
		connection_use(connection, made, domain, mptcp);
	}
	connection->sock_was_mapped = domain == AF_INET6 && v4;
	sockaddr_ip_set(to, domain, &in6, sockaddr_ip_port(to));
	return 0;
}

ssize_t attempt_message(const struct connection *connection, uint8_t out[static CONNECTION_MESSAGE_MAX])
{
	const struct handshake_ask ask = attempt_ask_of(connection);
	ssize_t len = handshake_request(out, CONNECTION_MESSAGE_MAX, &connection->peer, &ask);

	if (len < 0)
		return len;
	if (connection->early_len)
		memcpy(out + len, connection->early, connection->early_len);
	return len + (ssize_t)connection->early_len;
}

/*
 * Sends what is left of the request and of the data behind it. @to: the address for MSG_FASTOPEN, else NULL. Returns 0 or
 * -errno.
 */
static int message_send(struct connection *connection, const union sockaddr_ip *to)
{
	struct attempt *attempt = &connection->attempt;
	uint8_t message[CONNECTION_MESSAGE_MAX];
	ssize_t sent, len = attempt_message(connection, message);

	if (len < 0)
		return (int)len;
	attempt->request_len = (size_t)len - connection->early_len;
	sent = sendto(connection->sock, message + attempt->sent, (size_t)len - attempt->sent,
		      MSG_DONTWAIT | MSG_NOSIGNAL | (to ? MSG_FASTOPEN : 0), to ? &to->sa : NULL, to ? sockaddr_ip_len(to) : 0);
	if (sent > 0)
		attempt->sent += (size_t)sent;
	attempt->want_output = attempt->sent < (size_t)len;
	return sent < 0 ? -errno : 0;
}

static bool wants_syn_data(const struct connection *connection)
{
	const struct attempt *attempt = &connection->attempt;
	enum ride_syn_data may = ride_syn_data(attempt->ride, connection->sock_mptcp,
					       paths_take_syn_data(&connection->begin.own.id),
					       converters_corrects_windows(supervision.settings, attempt->converter));

	return may == RIDE_SYN_DATA_ALWAYS || (may == RIDE_SYN_DATA_ON_ONE_PATH && !paths_may_be_several(connection->sock, &attempt->addr));
}

/*
 * Sends the SYN, with as much of the message as fits. Returns 0 or -errno. ECONNABORTED is the news, once, of an attempt before that the
 * network has ended; Linux (6.18) connects an MPTCP socket no more that has told it to output (EINVAL), before that is ended by AF_UNSPEC.
 */
static int syn_send(struct connection *connection)
{
	struct attempt *attempt = &connection->attempt;
	int ret;

	kernel_set(connection->sock, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 0); /* the program's must not hold back what is ours */
	if (((connection->ours && connection->sock == connection->fd) ||
	     kernel_set(connection->sock, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)) &&
	    wants_syn_data(connection)) {
		if (!attempt->ask_info)
			attempt->hold_ms = exchange_hold_ms(supervision.settings, &connection->begin.own.id, connection->sock_mptcp,
							    attempt->ask_attempt != 0);
		ret = message_send(connection, &attempt->addr);
		if (ret == -ECONNABORTED) {
			kernel_disconnect(connection->sock);
			ret = message_send(connection, &attempt->addr);
		}
		attempt->syn_data = attempt->sent > 0;
		if (ret != -EOPNOTSUPP) /* sysctl tcp_fastopen without its bit 0x1 */
			return ret == -EINPROGRESS ? 0 : ret;
	}
	attempt->want_output = true;
	ret = connect_nonblocking(connection->sock, &attempt->addr);
	if (ret != -ECONNABORTED)
		return ret;
	kernel_disconnect(connection->sock);
	return connect_nonblocking(connection->sock, &attempt->addr);
}

/*
 * Notes why the SYN+ACK is waited for. It says whether the connection has Multipath TCP, and whether there is a response to a
 * silent request; one that stayed out of the SYN, and isn't written yet, isn't silent, and doesn't say for how long a SYN may be withheld.
 */
static void synack_expect(struct connection *connection)
{
	struct attempt *attempt = &connection->attempt;

	attempt->synack_due = connection->sock_mptcp;
	attempt->ask_silent &= attempt->syn_data;
	if (!attempt->syn_data)
		attempt->hold_ms = 0;
	attempt->ask_blind &= attempt->ask_silent;
	attempt->silence_due = attempt->ask_silent && attempt->sent >= attempt->request_len;
}

void attempt_look_at(struct connection *connection, int64_t at)
{
	const int64_t path_at = connection->begin.look_at;

	connection->look_at = path_at && path_at < at ? path_at : at;
}

/*
 * A response may be at the head of the stream before the supervisor has taken it off, and a program's other threads may read from the
 * socket by then, or go on with it behind exec(). So where one is to come it comes on a stand-in, which the program hasn't got before.
 * Other processes that share the socket would keep it as it was: for them it is not done.
 *
 * Nor could it be read from a socket that the program has shut down for reading.
 */
static int hide_response(struct connection *connection)
{
	int made;

	if (connection->sock != connection->fd || (connection->attempt.ask_silent && wants_syn_data(connection)) ||
	    (!connection->shut && !tracee_has_threads(connection->call.tid)))
		return 0;
	made = stand_in_make(connection->fd, connection->domain, connection->sock_mptcp, connection->bound);
	if (made >= 0)
		connection_use(connection, made, connection->domain, connection->sock_mptcp);
	return made < 0 ? made : 0;
}

int attempt_again(struct connection *connection)
{
	const struct attempt before = connection->attempt;
	int64_t now = clock_ns();
	int ret;

	connection->attempt = (struct attempt){
		.addr = before.addr,
		.converter = before.converter,
		.ride = before.ride,
		.ask_info = before.ask_info,
		.ask_mptcp = before.ask_mptcp,
		.cookie_asked = before.cookie_asked,
		.ask_silent = before.ask_silent,
		.ask_blind = before.ask_blind,
		.ask_attempt = before.ask_attempt,
		.cookie_number = converters_cookie_current(before.converter),
		.ends = now + supervision.settings->timeout_ms * CLOCK_NS_PER_MS,
	};
	connection->state = CONNECTION_ASKED;
	ret = hide_response(connection);
	if (ret == 0)
		ret = begin_place(&connection->begin, connection->sock);
	if (ret == 0)
		ret = syn_send(connection);
	synack_expect(connection);
	begin_sent(&connection->begin, now);
	attempt_look_at(connection, connection->attempt.ends);
	if (!connection->attempt.ask_blind)
		connection_watch(connection);
	return ret;
}

int attempt_anew(struct connection *connection, enum ride ride)
{
	int ret = socket_fit(connection, &connection->attempt.addr, ride != RIDE_TCP);

	if (ret < 0)
		return ret;
	connection->attempt.ride = connection->sock_mptcp ? ride : RIDE_TCP;
	connection->attempt.ask_silent = connection->attempt.ask_blind = false;
	connection->attempt.ask_attempt = 0;
	return attempt_again(connection);
}

int attempt_send_rest(struct connection *connection)
{
	int ret = message_send(connection, NULL);

	return ret == 0 && connection->attempt.want_output ? -EAGAIN : ret;
}

/* For requests that can be made again: whoever could guess it would get at the connection. 0: there is none */
static uint64_t attempt_number(const struct connection *connection)
{
	uint64_t number;

	if (!connection->sock_mptcp || !converters_takes_repeats(connection->attempt.converter) ||
	    getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		return 0;
	return number;
}

/*
 * A blind request that the converter refuses, by its rules, would be a failed connection to a server that is reached directly. So it is
 * made for what the converter is known to serve, or where nothing says that it might not.
 */
static bool is_likely_served(const struct connection *connection)
{
	return converters_admits(connection->attempt.converter, &connection->peer) ||
	       (!policy_is_private(&connection->peer) && !blind_memory_has_failed(&connection->peer));
}

/* A lost SYN of a stand-in for TCP, which isn't made again, would fail a connection that need not fail. */
static bool may_be_blind(const struct connection *connection)
{
	return connection->nonblocking && (connection->sock == connection->fd || connection->sock_mptcp) && wants_syn_data(connection) &&
	       !paths_doubt_syn_data(&connection->begin.own.id) && !blind_memory_is_slow(&connection->peer) && is_likely_served(connection);
}

/* Prepares to ask the converter of the attempt: the socket, and what is asked. Returns 0 or -errno. */
static int ask_prepare(struct connection *connection)
{
	struct attempt *attempt = &connection->attempt;
	struct handshake_ask ask;
	const bool mptcp = connection->mptcp && advice_allows_mptcp(connection->fd) &&
			   converters_mptcp(attempt->converter) != CACHE_MPTCP_LOST;
	int ret = socket_fit(connection, &attempt->addr, mptcp);

	if (ret < 0)
		return ret;
	attempt->ride = connection->sock_mptcp ? RIDE_MPTCP_SYN : RIDE_TCP;
	ask = exchange_ask(supervision.settings, attempt->converter, &connection->peer, connection->sock_mptcp,
			   converters_cookie_current(attempt->converter));
	if (may_be_blind(connection))
		exchange_ask_blindly(supervision.settings, attempt->converter, &ask);
	attempt->ask_attempt = ask.blind ? attempt_number(connection) : 0;
	attempt->ask_silent = ask.silent;
	attempt->ask_blind = ask.blind;
	attempt->ask_mptcp = ask.mptcp;
	attempt->ask_info = ask.info;
	return 0;
}

struct converters_query attempt_query(const struct connection *connection)
{
	return (struct converters_query){
		.destination = &connection->peer,
		.family = connection->domain,
		.v6only = connection->v6only,
		.any = true,
		.tried = connection->tried,
	};
}

int attempt_by(struct connection *connection, const union sockaddr_ip *addr, int converter)
{
	int ret;

	connection->attempt = (struct attempt){ .addr = *addr, .converter = converter };
	ret = ask_prepare(connection);
	return ret < 0 ? ret : attempt_again(connection);
}

bool attempt_blindly(struct connection *connection)
{
	const struct attempt before = connection->attempt;

	connection->attempt = (struct attempt){ .addr = before.addr, .converter = before.converter };
	if (ask_prepare(connection) < 0 || !connection->attempt.ask_blind)
		return false;
	if (attempt_again(connection) == 0 && connection->attempt.ask_blind)
		return true;
	attempt_disconnect(connection);
	return false;
}

bool attempt_next(struct connection *connection, struct attempt_refusal *refusal)
{
	struct converters_query query = attempt_query(connection);
	char text[SOCKADDR_STRLEN];
	const char *refused = NULL;
	union sockaddr_ip addr;
	int index, ret;

	if (connection->begin.may_move && path_list_is_forbidden(supervision.settings, &query)) {
		*refusal = (struct attempt_refusal){
			.verdict = POLICY_CONVERT,
			.error = ENETUNREACH,
			.reason = "CONVERT_PATHS allows no network that leads to a converter",
		};
		return false;
	}
	*refusal = (struct attempt_refusal){ .verdict = POLICY_CONVERT, .error = ENETUNREACH };
	for (;;) {
		index = converters_choose(supervision.settings, &query, &addr, &refusal->verdict, &refusal->reason);
		if (index < 0)
			break;
		index = begin_choose(&connection->begin, &query, index, &addr);
		ret = attempt_by(connection, &addr, index);
		if (ret == 0)
			return true;
		/* What the kernel says at once is about routes and this socket: no reason to rest. */
		refusal->error = -ret;
		refused = error_text(-ret);
		log_line("converter %s: %s", sockaddr_ip_format(&addr, text), refused);
		connection->tried |= 1u << index;
		query.tried = connection->tried;
	}
	if (refused && refusal->verdict == POLICY_CONVERT)
		refusal->reason = refused;
	if (index == CONVERTERS_UNRESOLVED && !refusal->reason)
		refusal->reason = "the converter's name can't be looked up";
	if (index != CONVERTERS_UNRESOLVED || connection->lookups++ >= LOOKUPS_MAX || !resolver_start(&query))
		return false;
	connection->state = CONNECTION_RESOLVING;
	connection->look_at = connection->limit;
	return true;
}

int attempt_directly(struct connection *connection)
{
	union sockaddr_ip server = connection->peer;
	int made;

	connection_drop_stand_in(connection);
	if (connection->ours) {
		made = stand_in_make(connection->fd, connection->domain, false, connection->bound);
		if (made < 0)
			return made;
		connection_use(connection, made, connection->domain, false);
	}
	connection->state = CONNECTION_DIRECT;
	connection->look_at = 0;
	begin_end(&connection->begin);
	made = begin_place_direct(&connection->begin, connection->sock, &server);
	if (made < 0)
		return made;
	connection_watch(connection);
	return connect_nonblocking(connection->sock, &server);
}
