/* SPDX-License-Identifier: BSD-3-Clause */
/* attempt_choice.c - whom to ask next: a converter and a path to it, at the beginning, and after one that doesn't answer */
#include "config.h"

#include "shim/connect/attempt.h"

#include "client/converters.h"
#include "client/converters_facts.h"
#include "client/exchange.h"
#include "common/errors.h"
#include "common/thread.h"
#include "shim/connect/attempt_private.h"
#include "shim/connect/path_begin.h"
#include "shim/connect/path_look.h"
#include "shim/connect/replace.h"
#include "shim/system/log.h"
#include "shim/system/next.h"
#include "shim/wait/watch.h"

#include <errno.h>

static const struct settings *settings;

void attempt_choice_init(const struct settings *kept)
{
	settings = kept;
	converters_init(kept);
	path_begin_init(kept);
	path_look_init(kept);
}

static struct converters_query query_of(const struct conn *conn, int fd,
					const union sockaddr_ip *server, uint32_t tried)
{
	struct converters_query query = {
		.destination = server,
		.family = sockopt_get(fd, SOL_SOCKET, SO_DOMAIN, AF_UNSPEC),
		.tried = tried,
		.any = replace_is_possible(conn),
	};

	query.v6only = query.family == AF_INET6 && sockopt_get(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	return query;
}

bool attempt_resolve(const struct conn *conn, int fd, const union sockaddr_ip *server, uint32_t tried,
		     struct attempt_refusal *refusal)
{
	struct converters_query query = query_of(conn, fd, server, tried);
	union sockaddr_ip addr;

	*refusal = (struct attempt_refusal){ .verdict = POLICY_CONVERT, .error = ENETUNREACH };
	query.may_resolve = true;
	return converters_choose(settings, &query, &addr, &refusal->verdict, &refusal->reason) >= 0;
}

/* Asks the converter by a socket that fits. Returns the phase to go on in, or -errno. */
static int ask_fitted(struct conn *conn, int fd, bool may_hold)
{
	const struct path_id path = path_of(conn);
	struct handshake_ask ask = exchange_ask(settings, conn->attempt.converter, &conn->call.peer, conn->socket.mptcp,
						conn->attempt.cookie_number);
	int ret;

	if (conn->call.at_once && attempt_wants_syn_data(conn, fd) && !paths_doubt_syn_data(&path))
		exchange_ask_blindly(settings, conn->attempt.converter, &ask);
	conn->attempt.ask_mptcp = ask.mptcp;
	conn->attempt.ask_info = ask.info;
	ask.blind &= ask.silent;
	conn->attempt.ask_silent = ask.silent;
	conn->attempt.ask_blind = ask.blind;
	if (may_hold && attempt_wants_syn_data(conn, fd)) {
		ret = attempt_hold(conn, fd);
		if (ret < 0)
			return ret;
		if (ret == 0)
			return CONN_HELD;
		if (conn->attempt.want_output)
			return CONN_SYN_SENT;
	}
	ret = attempt_again(conn, fd);
	return ret < 0 ? ret : (int)attempt_phase(&conn->attempt);
}

static int ask(struct conn *conn, int fd, bool may_hold)
{
	bool mptcp = (conn->socket.mptcp || replace_may_be_mptcp(conn)) &&
		     converters_mptcp(conn->attempt.converter) != CACHE_MPTCP_LOST;
	int ret = attempt_socket_fit(conn, fd, &conn->attempt.addr, mptcp);

	if (ret < 0)
		return ret;
	conn->attempt.ride = conn->socket.mptcp ? RIDE_MPTCP_SYN : RIDE_TCP;
	ret = ask_fitted(conn, fd, may_hold);
	watch_resume(conn);
	return ret;
}

/* Ends the attempt, whose next one is to be on path @best. */
static void path_leave(struct conn *conn, int fd, const struct path_list *list, int best)
{
	attempt_end(conn, fd);
	path_take(conn, list, best);
	conn->call.moves++;
	conn->attempt.addr = list->addrs[best];
	conn->attempt.converter = (uint8_t)list->paths[best].id.converter;
}

enum paths_do attempt_look(struct conn *conn, int fd)
{
	struct converters_query query = query_of(conn, fd, &conn->call.peer, conn->call.tried);
	char text[SOCKADDR_STRLEN];
	struct path_id own;
	struct path_list list;
	int best = -1;
	enum paths_do what = path_look(conn, fd, &query, &list, &best);

	if (what != PATHS_MOVE)
		return what;
	own = path_of(conn);
	log_line("converter %s: the path to it %s, asked by %s", sockaddr_ip_format(&conn->attempt.addr, text), path_complaint(&own),
		 list.names[best]);
	path_leave(conn, fd, &list, best);
	return what;
}

/* Not inlined, so that the list isn't on the stack of each connection that fails. */
__attribute__((noinline)) static bool leave_refused(struct conn *conn, int fd, int error)
{
	struct converters_query query = query_of(conn, fd, &conn->call.peer, conn->call.tried);
	const struct path_id own = path_of(conn);
	char text[SOCKADDR_STRLEN];
	struct path_list list;
	int best = path_list_refused(&list, settings, &query, &own);

	if (best < 0)
		return false;
	log_line("converter %s: the path to it leads nowhere (%s), begins on %s", sockaddr_ip_format(&conn->attempt.addr, text),
		 error_text(error), list.names[best]);
	path_leave(conn, fd, &list, best);
	return true;
}

bool attempt_leave(struct conn *conn, int fd, int error)
{
	if (!path_is_refused(error) || stack_is_small() || conn_has(conn, CONN_WROTE) || !path_may_move(conn, fd))
		return false;
	if (conn->call.moves < PATHS_MOVES_MAX && leave_refused(conn, fd, error))
		return true;
	if (conn->call.placed)
		path_give_back(conn);
	return false;
}

int attempt_move(struct conn *conn, int fd)
{
	int ret = ask(conn, fd, false);

	return ret < 0 ? ret : 0;
}

enum conn_phase attempt_next(struct conn *conn, int fd, bool may_hold,
			     struct attempt_refusal *refusal)
{
	struct converters_query query = query_of(conn, fd, &conn->call.peer, conn->call.tried);
	union sockaddr_ip addr;
	char text[SOCKADDR_STRLEN];
	const char *refused = NULL;
	struct path missed;
	int index, usual, ret;

	if (path_may_move(conn, fd) && path_list_is_forbidden(settings, &query)) {
		*refusal = (struct attempt_refusal){
			.verdict = POLICY_CONVERT,
			.error = ENETUNREACH,
			.reason = "CONVERT_PATHS allows no network that leads to a converter",
		};
		return CONN_IDLE;
	}
	*refusal = (struct attempt_refusal){ .verdict = POLICY_CONVERT, .error = ENETUNREACH };
	for (;;) {
		index = converters_choose(settings, &query, &addr, &refusal->verdict, &refusal->reason);
		if (index < 0)
			break;
		usual = index;
		index = path_choose(conn, fd, &query, index, &addr, &missed);
		if (missed.id.converter == PATH_NONE && conn->call.placed && !conn->call.tried_path &&
		    paths_is_trial_due(&(struct path_id){ .converter = usual }))
			missed = (struct path){ .id.converter = usual };
		if (missed.id.converter != PATH_NONE)
			path_look_try(conn, &missed);
		conn->attempt = (struct attempt){ .addr = addr, .converter = (uint8_t)index };
		ret = ask(conn, fd, may_hold);
		if (ret >= 0)
			return (enum conn_phase)ret;
		/* What the kernel says at once is about routes and this socket: no reason to rest. */
		refusal->error = -ret;
		refused = error_text(-ret);
		log_line("converter %s: %s", sockaddr_ip_format(&conn->attempt.addr, text), refused);
		conn->call.tried |= 1u << index;
		query.tried = conn->call.tried;
	}
	/* converters_choose() knows nothing of those that were tried here, whose error the application gets. */
	if (refused && refusal->verdict == POLICY_CONVERT)
		refusal->reason = refused;
	return index == CONVERTERS_UNRESOLVED ? CONN_RESOLVING : CONN_IDLE;
}
