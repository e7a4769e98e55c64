/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress.c - a connection from its call to the answer
 *
 * The states are few, since the program waits in its call meanwhile, and nobody else reads from the socket: RESOLVING until a
 * name is looked up, ASKED until the converter has answered, DIRECT until the server has. What an answer means is the library's
 * business (src/client); here is what follows from it for the socket and the call:
 *
 *	the server was reached             the response is taken off the stream, and the call succeeds
 *	the server's failure               its errno
 *	MPTCP or the SYN's data is lost    the same converter, by a safer ride
 *	the converter's failure            the next converter, and behind the last one the server itself, or an error
 *	CONVERT_TIMEOUT, and not blocking  the server itself, or ETIMEDOUT
 *
 * A call that blocks is waited for as long as the server may take. A process that is killed meanwhile, and signals, are found by a look
 * every so often (caller.c), since the kernel says nothing of them.
 */
#include "config.h"

#include "supervise/progress.h"

#include "client/converters_facts.h"
#include "client/exchange.h"
#include "client/user_cache.h"
#include "common/clock.h"
#include "common/errors.h"
#include "host/networks.h"
#include "supervise/aftermath.h"
#include "supervise/attempt.h"
#include "supervise/caller.h"
#include "supervise/course.h"
#include "supervise/ends.h"
#include "supervise/enquiry.h"
#include "supervise/kernel.h"
#include "supervise/log.h"
#include "supervise/patience.h"
#include "supervise/probes.h"
#include "supervise/reached.h"
#include "supervise/response.h"

#include <errno.h>
#include <poll.h>

static void begun(struct connection *connection)
{
	if (connection->state == CONNECTION_ASKED && connection->attempt.ask_blind)
		reached_blindly(connection);
}

static void go_on(struct connection *connection, int error, const char *reason)
{
	struct attempt_refusal refusal;

	if (attempt_next(connection, &refusal)) {
		begun(connection);
		return;
	}
	if (supervision.settings->fail_closed) {
		ends_fail(connection, error, reason);
		return;
	}
	ends_log(connection, "direct, the converter fails: ", reason);
	ends_go_directly(connection);
}

/* A request that isn't acknowledged yet is so on a Multipath TCP socket's first subflow: there are others only once it is. */
static bool is_unacknowledged(const struct connection *connection, const struct tcp_info *info)
{
	return connection->begin.request_at && info->tcpi_state == KERNEL_ESTABLISHED && info->tcpi_unacked;
}

static bool is_unanswered(const void *owner)
{
	const struct connection *connection = owner;
	const struct tcp_info info = kernel_tcp_info(connection->sock);

	return info.tcpi_state == KERNEL_SYN_SENT || is_unacknowledged(connection, &info);
}

static void converter_failed(struct connection *connection, const struct handshake_step *why)
{
	char text[SOCKADDR_STRLEN];

	log_line("converter %s: %s, left alone for %u s%s", sockaddr_ip_format(&connection->attempt.addr, text), why->reason,
		 why->rest,
		 why->fault == HANDSHAKE_FAULT_REFUSED ? " as to this server" : "");
	exchange_failed(connection->attempt.converter, &connection->peer, why);
	connection->tried |= 1u << connection->attempt.converter;
	/* Silent on a path that it was moved to at a venture, and on the usual one. */
	if (is_unanswered(connection) && !path_works(paths_facts_kept(&connection->begin.own.id).state))
		begin_give_back(&connection->begin);
	probes_end(connection);
	attempt_disconnect(connection);
	go_on(connection, why->error, why->reason);
}

static void on_error(struct connection *connection, int error);

/* Asks the same converter again, with what was learned from its answer. */
static void ask_again(struct connection *connection)
{
	int ret;

	probes_end(connection);
	attempt_disconnect(connection);
	ret = attempt_again(connection);
	if (ret < 0)
		on_error(connection, -ret);
}

/* Begins anew on the path of connection->begin, to the converter at @addr. */
static void begin_at(struct connection *connection, const union sockaddr_ip *addr)
{
	int ret;

	probes_end(connection);
	attempt_disconnect(connection);
	ret = attempt_by(connection, addr, connection->begin.own.id.converter);
	if (ret < 0)
		on_error(connection, -ret);
	else
		begun(connection);
}

/* The network has refused the SYN with @error: begins anew on another one. Returns whether there is one. */
static bool path_leave(struct connection *connection, int error)
{
	const struct converters_query query = attempt_query(connection);
	union sockaddr_ip addr;

	if (!begin_leave(&connection->begin, &query, error, &addr))
		return false;
	begin_at(connection, &addr);
	return true;
}

static void on_error(struct connection *connection, int error)
{
	struct attempt *attempt = &connection->attempt;
	int pending = kernel_get(connection->sock, SOL_SOCKET, SO_ERROR, 0);
	struct handshake_step why;

	error = pending ? pending : error;
	if (path_leave(connection, error))
		return;
	why = handshake_on_error(error, converters_is_proven(attempt->converter));
	if (attempt->ask_silent && exchange_take_remedy(attempt->converter, attempt->cookie_number, &why, &attempt->cookie_asked,
							&attempt->ask_mptcp, &attempt->ask_silent))
		ask_again(connection);
	else
		converter_failed(connection, &why);
}

static void begin_anew(struct connection *connection, enum ride ride)
{
	char text[SOCKADDR_STRLEN];
	int ret;

	log_line("converter %s: %s", sockaddr_ip_format(&connection->attempt.addr, text),
		 ride == RIDE_TCP ? "Multipath TCP is lost on the way, asked over TCP" :
				    "data in the SYN was not taken, asked behind the handshake");
	exchange_ride_failed(&connection->begin.own.id, ride, connection->begin.syn_at);
	probes_end(connection);
	attempt_disconnect(connection);
	ret = attempt_anew(connection, ride);
	if (ret < 0)
		on_error(connection, -ret);
}

/* --- steps --- */

static enum survey_syn unanswered(const struct connection *connection)
{
	if (connection->begin.request_at)
		return SURVEY_BEHIND;
	return connection->attempt.syn_data ? SURVEY_DATA : SURVEY_PLAIN;
}

/*
 * Begins anew where the path of a SYN, or of a request behind the handshake, doesn't work that is seen to be unanswered, after @now.
 * Returns whether there is a new attempt.
 */
static bool path_look(struct connection *connection, int64_t now)
{
	const struct converters_query query = attempt_query(connection);
	struct attempt *attempt = &connection->attempt;
	const struct begin_syn syn = { unanswered(connection), is_unanswered, connection };
	char text[SOCKADDR_STRLEN];
	union sockaddr_ip addr;
	enum paths_do what;

	if (!connection->begin.look_at || now < connection->begin.look_at)
		return false;
	what = begin_look(&connection->begin, &query, &syn, now, &addr);
	if (what == PATHS_BEHIND) {
		log_line("converter %s: SYNs with data are lost on the way, asked behind the handshake",
			 sockaddr_ip_format(&attempt->addr, text));
		begin_anew(connection, attempt->ride == RIDE_MPTCP_SYN ? RIDE_MPTCP : attempt->ride);
		return true;
	}
	if (what != PATHS_MOVE)
		return false;
	begin_at(connection, &addr);
	return true;
}

/* Waits on for a response of which nothing, or a part, has come, or ends the attempt. */
static void wait_on(struct connection *connection, const struct tcp_info *info)
{
	const struct attempt *attempt = &connection->attempt;
	const struct patience_view view = {
		.started = connection->started,
		.ends = attempt->ends,
		.closed = info->tcpi_state == KERNEL_CLOSE,
		.syn_sent = info->tcpi_state == KERNEL_SYN_SENT,
		.probing = attempt->probing,
		.proven = converters_is_proven(attempt->converter),
		.heard_ms = info->tcpi_last_ack_recv,
	};
	struct handshake_step why;
	enum patience patience;
	int64_t look_at;

	patience = patience_judge(&view, clock_ns(), &look_at);
	switch (patience) {
	case PATIENCE_PROBE:
		probes_start(connection);
		attempt_look_at(connection, look_at);
		break;
	case PATIENCE_WAIT:
		attempt_look_at(connection, look_at);
		break;
	case PATIENCE_ALIVE:
	case PATIENCE_DEAD:
		why = exchange_silent(attempt->converter, &connection->peer, patience == PATIENCE_ALIVE);
		converter_failed(connection, &why);
		break;
	case PATIENCE_ERROR:
		on_error(connection, ECONNREFUSED);
		break;
	}
}

static void step_failed(struct connection *connection, const struct handshake_step *told)
{
	struct attempt *attempt = &connection->attempt;

	if (told->fault != HANDSHAKE_FAULT_PROTOCOL)
		converters_proved(attempt->converter);
	if (exchange_take_remedy(attempt->converter, attempt->cookie_number, told, &attempt->cookie_asked, &attempt->ask_mptcp,
				 &attempt->ask_silent)) {
		ask_again(connection);
		return;
	}
	if (told->fault != HANDSHAKE_FAULT_SERVER) {
		converter_failed(connection, told);
		return;
	}
	exchange_failed(attempt->converter, &connection->peer, told);
	/* The connection of an error has no Multipath TCP, and so tells less than one that succeeds. */
	if (connection->nonblocking && connection->sock_mptcp && !exchange_keeps_mptcp(supervision.settings, attempt->converter))
		enquiry_start(&connection->begin, clock_ns());
	ends_fail(connection, told->error, told->reason);
}

/* The SYN was answered: what that tells of its path is noted. */
static void path_answered(struct connection *connection, const struct tcp_info *info)
{
	const int converter = connection->attempt.converter;

	connection->attempt.answered = true;
	begin_end(&connection->begin);
	if (info->tcpi_min_rtt && info->tcpi_min_rtt != UINT32_MAX)
		begin_reached(&connection->begin, info->tcpi_min_rtt / 1000 + 1,
			      !converters_withholds_ms(supervision.settings, converter));
}

/* What is seen of the socket. Whether it has fallen back is asked only where it matters. */
static struct course_socket look_at_socket(const struct connection *connection, const struct tcp_info *info)
{
	const struct attempt *attempt = &connection->attempt;

	return (struct course_socket){
		.syn_sent = info->tcpi_state == KERNEL_SYN_SENT,
		.closed = info->tcpi_state == KERNEL_CLOSE,
		.synack_due = attempt->synack_due,
		.synack = {
			.syn_data = attempt->syn_data,
			.acknowledged = info->tcpi_options & TCPI_OPT_SYN_DATA,
			.sent_again = info->tcpi_total_retrans,
			.fallen_back = attempt->synack_due && !attempt->syn_data && info->tcpi_state != KERNEL_SYN_SENT &&
				       info->tcpi_state != KERNEL_CLOSE && kernel_has_fallen_back(connection->sock),
		},
		.want_output = attempt->want_output,
		.silence_due = attempt->silence_due,
		.options = info->tcpi_options,
	};
}

/* Looks after the path of a request behind the handshake, until that is acknowledged. Returns whether there is a new attempt. */
static bool request_look(struct connection *connection, const struct tcp_info *info, int64_t now)
{
	if (is_unacknowledged(connection, info))
		return path_look(connection, now);
	begin_end(&connection->begin);
	return false;
}

/* @info: of after @now */
static void step_response(struct connection *connection, const struct tcp_info *info, int64_t now)
{
	struct handshake_step told;
	int ret = response_judge(connection, &told);

	if (ret == -EAGAIN && request_look(connection, info, now))
		return;
	if (ret == -EAGAIN || (ret == 0 && told.verdict == HANDSHAKE_NEED_MORE))
		wait_on(connection, info);
	else if (ret < 0)
		on_error(connection, -ret);
	else if (told.verdict != HANDSHAKE_DONE)
		step_failed(connection, &told);
	else if (!reached_by_response(connection, &told))
		begin_anew(connection, RIDE_TCP);
}

/* Sends the rest of the message. Returns whether there is none any more. */
static bool step_send(struct connection *connection, const struct tcp_info *info)
{
	int ret = attempt_send_rest(connection);

	if (ret == -EAGAIN)
		wait_on(connection, info);
	else if (ret < 0)
		on_error(connection, -ret);
	else if (!connection->attempt.syn_data)
		begin_sent_behind(&connection->begin, clock_ns());
	return ret == 0;
}

/*
 * Another thread of the program has shut the socket down: nothing has come, and there is no error. That says nothing of the converter. An
 * error is told, since it is read off the socket here.
 */
static bool was_shut(const struct connection *connection, const struct tcp_info *info, int *error)
{
	*error = 0;
	if (connection->sock != connection->fd || info->tcpi_state != KERNEL_CLOSE || info->tcpi_segs_in)
		return false;
	*error = kernel_get(connection->sock, SOL_SOCKET, SO_ERROR, 0);
	return !*error;
}

static void step_asked(struct connection *connection)
{
	const int64_t now = clock_ns();
	struct tcp_info info = kernel_tcp_info(connection->sock);
	struct course_socket seen = look_at_socket(connection, &info);
	enum course_step step;
	enum ride next;
	int error;

	if (!seen.syn_sent && !connection->attempt.answered)
		path_answered(connection, &info);
	if (was_shut(connection, &info, &error)) {
		ends_shut(connection);
		return;
	}
	if (error) {
		on_error(connection, error);
		return;
	}
	step = course_of_socket(&seen, &next);
	connection->attempt.synack_due &= seen.syn_sent || seen.closed;
	if (step == COURSE_SEND) {
		if (!step_send(connection, &info))
			return;
		info = kernel_tcp_info(connection->sock); /* what was sent isn't acknowledged */
		seen.want_output = false;
		step = course_of_socket(&seen, &next);
	}
	switch (step) {
	case COURSE_UNANSWERED:
		if (!path_look(connection, now))
			wait_on(connection, &info);
		break;
	case COURSE_ANEW:
		begin_anew(connection, next);
		break;
	case COURSE_SILENT:
		if (!reached_silently(connection))
			begin_anew(connection, RIDE_TCP);
		break;
	case COURSE_SEND:
	case COURSE_READ:
		step_response(connection, &info, now);
		break;
	}
}

static void step_direct(struct connection *connection)
{
	struct pollfd ready = { .fd = connection->sock, .events = POLLOUT };
	int error;

	if (poll(&ready, 1, 0) <= 0)
		return;
	error = kernel_get(connection->sock, SOL_SOCKET, SO_ERROR, 0);
	if (error)
		connection_answer(connection, 0, error);
	else
		ends_directly(connection);
}

void progress_step(struct connection *connection)
{
	log_about(connection->call.tid);
	if (!caller_look(connection, false, clock_ns()))
		return;
	switch (connection->state) {
	case CONNECTION_RESOLVING:
		break;
	case CONNECTION_ASKED:
		step_asked(connection);
		break;
	case CONNECTION_DIRECT:
		step_direct(connection);
		break;
	}
}

/* No converter could be asked for a connection that is to be converted: decides between a direct connection and an error. */
static void go_without_converter(struct connection *connection, const struct attempt_refusal *refusal)
{
	char text[SOCKADDR_STRLEN];

	if (supervision.settings->fail_closed && refusal->verdict == POLICY_CONVERT) {
		log_line("%s: failed: %s, and CONVERT_FALLBACK is none", sockaddr_ip_format(&connection->peer, text),
			 refusal->reason);
		connection_answer(connection, 0, refusal->error);
		return;
	}
	log_line("%s: direct: %s", sockaddr_ip_format(&connection->peer, text), refusal->reason);
	ends_go_directly(connection);
}

void progress_begin(struct connection *connection)
{
	struct attempt_refusal refusal = { .verdict = policy_decide(supervision.settings, &connection->peer) };

	log_about(connection->call.tid);
	caller_begin(connection);
	if (refusal.verdict == POLICY_CONVERT && networks_is_own(&connection->peer))
		refusal.verdict = POLICY_DIRECT_LOCAL;
	if (refusal.verdict != POLICY_CONVERT) {
		refusal.reason = policy_reason(refusal.verdict);
		go_without_converter(connection, &refusal);
		return;
	}
	user_cache_open(-1);
	if (attempt_next(connection, &refusal))
		begun(connection);
	else
		go_without_converter(connection, &refusal);
}

void progress_resolved(void)
{
	struct connection *connection, *next;

	HASH_ITER(hh, supervision.connections, connection, next) {
		if (connection->state != CONNECTION_RESOLVING)
			continue;
		log_about(connection->call.tid);
		go_on(connection, ENETUNREACH, "no converter answers");
	}
}

int progress_look(void)
{
	struct connection *connection, *next;
	const int64_t now = clock_ns();
	int64_t at;

	HASH_ITER(hh, supervision.connections, connection, next)
		if (caller_look(connection, now >= connection->caller_at, now) && connection->look_at && now >= connection->look_at)
			progress_step(connection);
	at = course_sooner(aftermath_look(now), course_sooner(begin_trials_look(now), enquiry_look(now)));
	for (connection = supervision.connections; connection; connection = connection->hh.next)
		at = course_sooner(course_sooner(at, connection->caller_at), course_sooner(connection->look_at, connection->limit));
	return course_wait_ms(at, now);
}
