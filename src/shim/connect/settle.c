/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settle.c - how an attempt to reach a server ends, and what follows from it
 *
 * An end that the server caused is the application's: the socket is disconnected,
 * which sends the reset that Section 6.2.8 wants, and looks to poll and epoll like
 * one whose connection was refused. A converter that can't be reached, is silent, refuses or
 * doesn't speak Convert is left alone for a while, and on the same socket the next one is
 * asked, or the server connected to directly, unless the application has already sent data
 * that we have no copy of.
 */
#include "config.h"

#include "shim/connect/settle.h"

#include "common/errors.h"
#include "convert/convert.h"
#include "shim/connect/attempt.h"
#include "common/clock.h"
#include "client/converters_facts.h"
#include "client/exchange.h"
#include "shim/wait/deadlines.h"
#include "shim/socket/early.h"
#include "shim/connect/liveness.h"
#include "shim/system/log.h"
#include "shim/connect/path_begin.h"
#include "shim/connect/path_look.h"
#include "shim/connect/replace.h"
#include "shim/connect/unattended.h"
#include "shim/socket/mptcpinfo.h"
#include "shim/system/next.h"
#include "client/converters_destinations.h"
#include "common/thread.h"
#include "shim/socket/tcpinfo.h"
#include "shim/wait/watch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct settings *settings;

void settle_init(const struct settings *kept)
{
	settings = kept;
}

static void log_verdict(const struct conn *conn, const char *verdict, const char *detail)
{
	char server[SOCKADDR_STRLEN];

	log_line("%s: %s%s after %.1f ms", sockaddr_ip_format(&conn->call.peer, server), verdict, detail,
		 (double)(clock_ns() - clock_ns_of(&conn->call.started)) / 1e6);
}

/* How the request got there. A connection that has been reset since knows nothing of it any more. */
static const char *request_ride(const struct conn *conn, const struct tcp_info *info)
{
	if (!conn->attempt.syn_data)
		return "request behind the handshake";
	if (info->tcpi_state == TCPINFO_UNKNOWN || info->tcpi_state == TCPINFO_CLOSE)
		return "reset since";
	return info->tcpi_options & TCPI_OPT_SYN_DATA ? "request taken in the SYN" : "request not taken in the SYN";
}

void settle_let_go(struct conn *conn, int fd)
{
	attempt_end(conn, fd);
	if (conn->call.shut)
		next.shutdown(fd, conn->call.shut - 1); /* SHUT_RD, SHUT_WR, SHUT_RDWR */
	early_drop(&conn->early);
	watch_restore(conn);
}

/* @confirmed: by what else than the response; empty if by that */
static void log_converted(const struct conn *conn, const struct tcp_info *info, const char *confirmed)
{
	char detail[96];

	if (!log_is_on())
		return;
	snprintf(detail, sizeof(detail), "%s%s", request_ride(conn, info), confirmed);
	log_verdict(conn, conn->socket.mptcp ? "converted over MPTCP, " : "converted over TCP, ", detail);
}

/*
 * Takes @length bytes, which were peeked at a moment ago, off the stream. Returns false if the kernel gives fewer: what is left would
 * be taken for the server's. Not inlined, so that its buffer isn't on the stack during what follows.
 */
__attribute__((noinline)) static bool response_take(int fd, size_t length)
{
	uint8_t response[CONVERT_MESSAGE_MAX];

	while (length) {
		ssize_t got = next.recv(fd, response, length, MSG_DONTWAIT);

		if (got <= 0)
			return false;
		length -= (size_t)got;
	}
	return true;
}

static enum conn_phase connection_lost(struct conn *conn, int fd, const char *reason)
{
	watch_mask(conn); /* so that the kernel looks again */
	return settle_failed(conn, fd, ECONNRESET, reason);
}

/* Has the application done something with the connection that can't be done again with another one? */
static bool cannot_begin_anew(const struct conn *conn)
{
	return conn_has(conn, CONN_WROTE) || conn_is_confirmed(conn);
}

enum conn_phase settle_again(struct conn *conn, int fd)
{
	int ret;

	attempt_end(conn, fd);
	attempt_disconnect(fd);
	ret = attempt_again(conn, fd);
	return ret < 0 ? settle_on_error(conn, fd, -ret) : attempt_phase(&conn->attempt);
}

/* Asks the same converter anew, by @ride. The socket is disconnected. */
static enum conn_phase begin_anew(struct conn *conn, int fd, enum ride ride)
{
	int ret = attempt_anew(conn, fd, ride);

	return ret < 0 ? settle_on_error(conn, fd, -ret) : attempt_phase(&conn->attempt);
}

enum conn_phase settle_anew(struct conn *conn, int fd, enum ride ride)
{
	const struct path_id path = path_of(conn);
	char text[SOCKADDR_STRLEN];

	log_line("converter %s: %s", sockaddr_ip_format(&conn->attempt.addr, text),
		 ride == RIDE_TCP ? "Multipath TCP is lost on the way, asked over TCP" :
					 "data in the SYN was not taken, asked behind the handshake");
	if (!stack_is_small())
		exchange_ride_failed(&path, ride, conn->attempt.syn_at);
	if (conn->attempt.ask_blind)
		return settle_blind(conn, fd, ride, ECONNRESET, "the connection would not stay Multipath TCP");
	if (cannot_begin_anew(conn))
		return connection_lost(conn, fd, "Multipath TCP was lost behind the handshake");
	attempt_end(conn, fd);
	attempt_disconnect(fd);
	return begin_anew(conn, fd, ride);
}

enum conn_phase settle_path(struct conn *conn, int fd, enum paths_do what)
{
	const enum ride ride = conn->socket.mptcp ? RIDE_MPTCP : RIDE_TCP;
	char text[SOCKADDR_STRLEN];
	int ret;

	if (what == PATHS_BEHIND) {
		log_line("converter %s: SYNs with data are lost on the way, asked behind the handshake",
			 sockaddr_ip_format(&conn->attempt.addr, text));
		if (conn->attempt.ask_blind)
			return settle_blind(conn, fd, ride, ECONNRESET, "SYNs with data are lost on the way");
		attempt_end(conn, fd);
	}
	attempt_disconnect(fd);
	ret = what == PATHS_BEHIND ? attempt_anew(conn, fd, ride) : attempt_move(conn, fd);
	return ret < 0 ? settle_on_error(conn, fd, -ret) : attempt_phase(&conn->attempt);
}

enum conn_phase settle_done(struct conn *conn, int fd, const struct handshake_step *told)
{
	/* What is lost behind the handshake shows in the first bytes from the converter. */
	if (conn->socket.mptcp && mptcpinfo_has_fallen_back(fd))
		return settle_anew(conn, fd, RIDE_TCP);
	if (!response_take(fd, told->length))
		return connection_lost(conn, fd, "the response can't be taken off the stream");
	if (!stack_is_small())
		exchange_done(conn->attempt.converter, &conn->call.peer, told, conn->socket.mptcp);
	if (!conn_is_confirmed(conn)) {
		const struct tcp_info info = tcpinfo_of(fd);

		path_note_reached(conn, &info);
		log_converted(conn, &info, "");
	}
	settle_let_go(conn, fd);
	return CONN_DONE;
}

enum conn_phase settle_silent(struct conn *conn, int fd, const struct tcp_info *info)
{
	path_note_reached(conn, info);
	if (!stack_is_small())
		exchange_done_silently(conn->attempt.converter, &conn->call.peer, conn->attempt.ask_mptcp);
	log_converted(conn, info, ", server confirmed by the SYN+ACK, silently");
	settle_let_go(conn, fd);
	return CONN_DONE;
}

enum conn_phase settle_confirmed(struct conn *conn, int fd, const struct tcp_info *info)
{
	path_note_reached(conn, info);
	liveness_end(conn, fd);
	path_look_end(conn);
	log_converted(conn, info, ", server confirmed by the SYN+ACK");
	deadlines_set(conn, 0);
	early_drop(&conn->early);
	watch_show(conn);
	return CONN_CONFIRMED;
}

enum conn_phase settle_failed(struct conn *conn, int fd, int error, const char *reason)
{
	attempt_end(conn, fd);
	early_drop(&conn->early);
	log_verdict(conn, "failed: ", reason);
	attempt_disconnect(fd);
	atomic_store(&conn->error, error);
	watch_fail(conn);
	return CONN_FAILED;
}

enum conn_phase settle_unreached(struct conn *conn, int fd, const struct handshake_step *told)
{
	char text[SOCKADDR_STRLEN];

	if (told->fault != HANDSHAKE_FAULT_PROTOCOL) {
		log_line("converter %s: its SYN+ACK confirmed a server that it has not reached",
			 sockaddr_ip_format(&conn->attempt.addr, text));
		converters_withholds_nothing(conn->attempt.converter);
	}
	return connection_lost(conn, fd, told->reason);
}

enum conn_phase settle_bypass_lost(struct conn *conn, int fd)
{
	char text[SOCKADDR_STRLEN];
	int ret;

	log_line("%s: no Multipath TCP without the converter", sockaddr_ip_format(&conn->call.peer, text));
	servers_note_no_bypass(&conn->call.peer);
	if (cannot_begin_anew(conn))
		return connection_lost(conn, fd, "Multipath TCP was lost behind the handshake");
	attempt_end(conn, fd);
	attempt_disconnect(fd);
	ret = attempt_directly(conn, fd);
	if (ret < 0)
		return settle_failed(conn, fd, -ret, error_text(-ret));
	settle_let_go(conn, fd);
	return CONN_DIRECT;
}

static enum conn_phase settle_directly(struct conn *conn, int fd, const char *reason)
{
	int ret;

	log_verdict(conn, "direct, the converter fails: ", reason);
	ret = attempt_directly(conn, fd);
	if (ret < 0)
		return settle_failed(conn, fd, -ret, error_text(-ret));
	if (conn->attempt.want_output)
		return CONN_EARLY_DIRECT;
	settle_let_go(conn, fd);
	return CONN_DIRECT;
}

enum conn_phase settle_blind(struct conn *conn, int fd, enum ride ride, int error, const char *reason)
{
	const bool in_time = clock_ns() < conn->attempt.ends;
	char text[SOCKADDR_STRLEN];

	/* A reset may be the converter's, which has lost the request, or has waited for a slow server as long as it may. */
	if ((in_time || error == ECONNRESET || error == ECONNREFUSED) && unattended_take_back(conn, fd)) {
		if (in_time && unattended_renew(conn, fd)) {
			log_line("%s: the blind request failed: %s; asked again for an application that waits",
				 sockaddr_ip_format(&conn->call.peer, text), reason);
			return begin_anew(conn, fd, ride);
		}
		if (!settings->fail_closed)
			return settle_directly(conn, fd, reason);
	}
	converters_doubt_silence(conn->attempt.converter);
	return settle_failed(conn, fd, error, reason);
}

enum conn_phase settle_unfinished(struct conn *conn, int fd)
{
	static const char reason[] = "the handshake can't be waited for";

	if (conn->call.follows)
		return settle_severed(conn);
	if (cannot_begin_anew(conn))
		return connection_lost(conn, fd, reason);
	attempt_end(conn, fd);
	attempt_disconnect(fd);
	return settings->fail_closed ? settle_failed(conn, fd, ETIMEDOUT, reason) : settle_directly(conn, fd, reason);
}

enum conn_phase settle_go_on(struct conn *conn, int fd, int error, const char *reason)
{
	struct attempt_refusal refusal;
	enum conn_phase phase = attempt_next(conn, fd, false, &refusal);

	if (phase != CONN_IDLE)
		return phase;
	if (settings->fail_closed)
		return settle_failed(conn, fd, error, reason);
	return settle_directly(conn, fd, reason);
}

enum conn_phase settle_converter_failed(struct conn *conn, int fd, const struct handshake_step *why)
{
	char text[SOCKADDR_STRLEN];
	struct tcp_info info;

	log_line("converter %s: %s, left alone for %u s%s",
		 sockaddr_ip_format(&conn->attempt.addr, text), why->reason, why->rest,
		 why->fault == HANDSHAKE_FAULT_REFUSED ? " as to this server" : "");
	exchange_failed(conn->attempt.converter, &conn->call.peer, why);
	if (conn_has(conn, CONN_WROTE)) /* what was written is with the converter */
		return settle_failed(conn, fd, why->error, why->reason);
	conn->call.tried |= 1u << conn->attempt.converter;
	info = tcpinfo_of(fd);
	path_was_silent(conn, &info);
	attempt_end(conn, fd);
	attempt_disconnect(fd);
	return settle_go_on(conn, fd, why->error, why->reason);
}

enum conn_phase settle_on_error(struct conn *conn, int fd, int error)
{
	int seen = conn_take_error(conn); /* whoever waited has seen it: the kernel tells it once */
	int pending = sockopt_get(fd, SOL_SOCKET, SO_ERROR, 0);
	struct handshake_step why;

	error = seen ? seen : pending ? pending : error;
	if (conn->attempt.ask_blind)
		return settle_blind(conn, fd, conn->attempt.ride, error, error_text(error));
	if (conn_in(conn, PHASE(EARLY_DIRECT) | PHASE(BYPASS) | PHASES_CONFIRMED))
		return settle_failed(conn, fd, error, error_text(error));
	if (attempt_leave(conn, fd, error))
		return settle_path(conn, fd, PATHS_MOVE);
	why = handshake_on_error(error, converters_is_proven(conn->attempt.converter));
	if (conn->attempt.ask_silent && !conn_has(conn, CONN_WROTE) &&
	    exchange_take_remedy(conn->attempt.converter, conn->attempt.cookie_number, &why, &conn->attempt.cookie_asked,
				 &conn->attempt.ask_mptcp, &conn->attempt.ask_silent))
		return settle_again(conn, fd);
	return settle_converter_failed(conn, fd, &why);
}

enum conn_phase settle_followed(struct conn *conn, int fd)
{
	log_verdict(conn, "converted", " by another process");
	settle_let_go(conn, fd);
	return CONN_DONE;
}

enum conn_phase settle_severed(struct conn *conn)
{
	log_verdict(conn, "failed here: ", "the handshake is another process's");
	watch_forget(conn);
	early_drop(&conn->early);
	conn->socket.rcvlowat = 0;
	conn->socket.keepalive.on = false;
	deadlines_set(conn, 0);
	replace_sever(conn);
	atomic_store(&conn->error, ECONNREFUSED); /* what has become of it the other one knows */
	return CONN_FAILED;
}
