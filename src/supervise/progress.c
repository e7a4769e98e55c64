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
 * A call that blocks is waited for as long as the server may take. A process that is killed meanwhile, and signals by which
 * programs give up waiting, are found by a look every so often, since the kernel says nothing of them.
 */
#include "config.h"

#include "supervise/progress.h"

#include "client/converters_facts.h"
#include "client/exchange.h"
#include "client/user_cache.h"
#include "common/clock.h"
#include "common/errors.h"
#include "supervise/aftermath.h"
#include "supervise/attempt.h"
#include "supervise/ends.h"
#include "supervise/enquiry.h"
#include "supervise/kernel.h"
#include "supervise/log.h"
#include "supervise/patience.h"
#include "supervise/peers.h"
#include "supervise/probes.h"
#include "supervise/tracee.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#define LOOK_NS (250 * CLOCK_NS_PER_MS) /* how often it is looked whether the caller still waits */

static void done_blindly(struct connection *connection);

/* A request is on its way, or a name is looked up. */
static void begun(struct connection *connection)
{
	if (connection->state == CONNECTION_ASKED && connection->attempt.ask_blind)
		done_blindly(connection);
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

static void converter_failed(struct connection *connection, const struct handshake_step *why)
{
	char text[SOCKADDR_STRLEN];

	log_line("converter %s: %s, left alone for %u s%s", sockaddr_ip_format(&connection->attempt.addr, text), why->reason,
		 why->rest,
		 why->fault == HANDSHAKE_FAULT_REFUSED ? " as to this server" : "");
	exchange_failed(connection->attempt.converter, &connection->peer, why);
	connection->tried |= 1u << connection->attempt.converter;
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

static void on_error(struct connection *connection, int error)
{
	struct attempt *attempt = &connection->attempt;
	int pending = kernel_get(connection->sock, SOL_SOCKET, SO_ERROR, 0);
	struct handshake_step why;

	error = pending ? pending : error;
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

static const char *request_ride(const struct connection *connection)
{
	bool taken;

	if (!connection->attempt.syn_data)
		return "request behind the handshake";
	taken = kernel_tcp_info(connection->sock).tcpi_options & TCPI_OPT_SYN_DATA;
	paths_note_syn_data(&connection->begin.own.id, taken, connection->begin.syn_at);
	return taken ? "request taken in the SYN" : "request not taken in the SYN";
}

/*
 * Takes the response, which was peeked at a moment ago, off the stream. What would be left of it would be taken for the
 * server's.
 */
static bool response_take(int fd, size_t length)
{
	uint8_t response[CONVERT_MESSAGE_MAX];

	while (length) {
		ssize_t got = recv(fd, response, length, MSG_DONTWAIT);

		if (got <= 0)
			return false;
		length -= (size_t)got;
	}
	return true;
}

/* The server was reached, which @how says in the log. */
static void converted(struct connection *connection, const char *how)
{
	char detail[96];

	snprintf(detail, sizeof(detail), "%s%s", request_ride(connection), how);
	ends_log(connection, connection->sock_mptcp ? "converted over MPTCP, " : "converted over TCP, ", detail);
	probes_end(connection);
	if (!ends_hand_over(connection))
		return;
	peers_note(connection->sock, &connection->attempt.addr, &connection->peer);
	ends_settle(connection, &connection->attempt.addr);
	connection_succeed(connection, connection->early_len);
}

static void done(struct connection *connection, const struct handshake_step *told)
{
	/* What is lost behind the handshake shows in the first bytes from the converter. */
	if (connection->sock_mptcp && kernel_has_fallen_back(connection->sock)) {
		begin_anew(connection, RIDE_TCP);
		return;
	}
	if (!response_take(connection->sock, told->length)) {
		ends_fail(connection, ECONNRESET, "the response can't be taken off the stream");
		return;
	}
	exchange_done(connection->attempt.converter, &connection->peer, told, connection->sock_mptcp);
	converted(connection, "");
}

/* The SYN+ACK to a silent request was all that there is. */
static void done_silently(struct connection *connection)
{
	if (connection->sock_mptcp && kernel_has_fallen_back(connection->sock)) {
		begin_anew(connection, RIDE_TCP);
		return;
	}
	exchange_done_silently(connection->attempt.converter, &connection->peer, connection->attempt.ask_mptcp);
	converted(connection, ", server confirmed by the SYN+ACK, silently");
}

/*
 * A blind request is on its way: all that follows is the kernel's to say, and no byte will be Convert's. How the request fared is
 * looked up later (aftermath.c), when nothing of ours refers to the socket any more.
 */
static void done_blindly(struct connection *connection)
{
	const struct attempt *attempt = &connection->attempt;

	ends_log(connection, connection->sock_mptcp ? "converted over MPTCP, " : "converted over TCP, ",
		    "request in the SYN, blindly");
	if (!ends_hand_over(connection))
		return;
	peers_note(connection->sock, &attempt->addr, &connection->peer);
	aftermath_expect(connection);
	if (converters_silence_ends_soon(attempt->converter))
		enquiry_start(&connection->begin, clock_ns());
	connection_succeed(connection, attempt->sent - attempt->request_len);
}

/* --- steps --- */

/* Begins anew where the path of an unanswered SYN doesn't work. Returns whether there is a new attempt. */
static bool path_look(struct connection *connection)
{
	const struct converters_query query = attempt_query(connection);
	struct attempt *attempt = &connection->attempt;
	const int64_t now = clock_ns();
	char text[SOCKADDR_STRLEN];
	union sockaddr_ip addr;
	enum paths_do what;
	int ret;

	if (!connection->begin.look_at || now < connection->begin.look_at)
		return false;
	what = begin_look(&connection->begin, &query, attempt->syn_data ? SURVEY_DATA : SURVEY_PLAIN, now, &addr);
	if (what == PATHS_BEHIND) {
		log_line("converter %s: SYNs with data are lost on the way, asked behind the handshake",
			 sockaddr_ip_format(&attempt->addr, text));
		begin_anew(connection, attempt->ride == RIDE_MPTCP_SYN ? RIDE_MPTCP : attempt->ride);
		return true;
	}
	if (what != PATHS_MOVE)
		return false;
	probes_end(connection);
	attempt_disconnect(connection);
	ret = attempt_by(connection, &addr, connection->begin.own.id.converter);
	if (ret < 0)
		on_error(connection, -ret);
	else
		begun(connection);
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

static bool peer_has_closed(int fd)
{
	struct pollfd end = { .fd = fd, .events = POLLRDHUP };

	return poll(&end, 1, 0) > 0 && end.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

/*
 * Judges the bytes that have arrived. Returns 0 with @out set, or -errno: -EAGAIN if there are none. The bytes are read once more
 * before the end of the stream is believed, since the last ones may have come together with it.
 */
static int response_judge(const struct connection *connection, uint8_t response[CONVERT_MESSAGE_MAX], struct handshake_step *out)
{
	const struct handshake_ask ask = attempt_ask_of(connection);

	for (bool ended = false;; ended = true) {
		int readable;
		ssize_t got;

		/* FIONREAD brings segments together that MSG_PEEK would show only the first of (Linux 6.1 and 6.12). */
		ioctl(connection->sock, FIONREAD, &readable);
		got = recv(connection->sock, response, CONVERT_MESSAGE_MAX, MSG_PEEK | MSG_DONTWAIT);
		if (got < 0)
			return -errno;
		*out = got ? handshake_on_bytes(response, (size_t)got, &connection->peer, &ask) : handshake_on_close();
		if (out->verdict != HANDSHAKE_NEED_MORE)
			return 0;
		if (ended)
			*out = handshake_on_close();
		if (ended || !peer_has_closed(connection->sock))
			return 0;
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

/* Looks at the SYN+ACK. Returns false if the attempt is over because of it. */
static bool synack_holds(struct connection *connection, const struct tcp_info *info)
{
	const struct ride_synack seen = {
		.syn_data = connection->attempt.syn_data,
		.acknowledged = info->tcpi_options & TCPI_OPT_SYN_DATA,
		.sent_again = info->tcpi_total_retrans,
		.fallen_back = !connection->attempt.syn_data && kernel_has_fallen_back(connection->sock),
	};
	enum ride next;

	connection->attempt.synack_due = false;
	if (ride_goes_on(&seen, &next))
		return true;
	begin_anew(connection, next);
	return false;
}

/* The SYN was answered: what that tells of its path is noted. */
static void path_answered(struct connection *connection, const struct tcp_info *info)
{
	const int converter = connection->attempt.converter;

	begin_end(&connection->begin);
	if (info->tcpi_min_rtt && info->tcpi_min_rtt != UINT32_MAX)
		begin_reached(&connection->begin, info->tcpi_min_rtt / 1000 + 1,
			      !converters_withholds_ms(supervision.settings, converter));
}

static void step_asked(struct connection *connection)
{
	const struct tcp_info info = kernel_tcp_info(connection->sock);
	uint8_t response[CONVERT_MESSAGE_MAX];
	struct handshake_step told;
	int ret = 0;

	if (info.tcpi_state == KERNEL_SYN_SENT) {
		if (!path_look(connection))
			wait_on(connection, &info);
		return;
	}
	path_answered(connection, &info);
	if (info.tcpi_state != KERNEL_CLOSE && connection->attempt.synack_due && !synack_holds(connection, &info))
		return;
	if (connection->attempt.want_output)
		ret = attempt_send_rest(connection);
	if (ret == 0 && connection->attempt.silence_due && ride_is_silent(info.tcpi_options, true)) {
		done_silently(connection);
		return;
	}
	if (ret == 0)
		ret = response_judge(connection, response, &told);
	if (ret == -EAGAIN || (ret == 0 && told.verdict == HANDSHAKE_NEED_MORE))
		wait_on(connection, &info);
	else if (ret < 0)
		on_error(connection, -ret);
	else if (told.verdict == HANDSHAKE_DONE)
		done(connection, &told);
	else
		step_failed(connection, &told);
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

/* The time of a call that must not wait is over. */
static void out_of_time(struct connection *connection)
{
	static const char reason[] = "no answer within CONVERT_TIMEOUT";
	struct handshake_step why;

	if (connection->state == CONNECTION_ASKED && kernel_tcp_info(connection->sock).tcpi_state == KERNEL_SYN_SENT) {
		why = exchange_silent(connection->attempt.converter, &connection->peer, false);
		exchange_failed(connection->attempt.converter, &connection->peer, &why);
	}
	probes_end(connection);
	attempt_disconnect(connection);
	if (supervision.settings->fail_closed) {
		ends_fail(connection, ETIMEDOUT, reason);
		return;
	}
	ends_log(connection, "direct, ", reason);
	ends_go_directly(connection);
}

void progress_step(struct connection *connection)
{
	log_about(connection->call.tid);
	if (connection->limit && clock_ns() >= connection->limit && connection->state != CONNECTION_DIRECT) {
		out_of_time(connection);
		return;
	}
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
	connection->started = clock_ns();
	if (connection->nonblocking)
		connection->limit = connection->started + supervision.settings->timeout_ms * CLOCK_NS_PER_MS;
	if (refusal.verdict != POLICY_CONVERT) {
		refusal.reason = policy_reason(refusal.verdict);
		go_without_converter(connection, &refusal);
		return;
	}
	user_cache_open();
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

/* Has the call ended, or is it to end, without an answer of the server's? */
static bool is_over(struct connection *connection, int64_t now)
{
	if (!listener_is_waiting(supervision.listener, &connection->call)) {
		connection_forget(connection);
		return true;
	}
	if (connection->nonblocking || now < connection->started + LOOK_NS || !tracee_is_called_off(connection->call.tid))
		return false;
	log_about(connection->call.tid);
	ends_fail(connection, EINTR, "a signal has come");
	return true;
}

int progress_look(void)
{
	static int64_t caller_at;
	struct connection *connection, *next;
	int64_t now = clock_ns(), earliest = INT64_MAX, aftermath_at, trials_at, enquiry_at;
	const bool callers = now >= caller_at;

	if (callers)
		caller_at = now + LOOK_NS;
	HASH_ITER(hh, supervision.connections, connection, next) {
		if (callers && is_over(connection, now))
			continue;
		if ((connection->look_at && now >= connection->look_at) || (connection->limit && now >= connection->limit))
			progress_step(connection);
	}
	aftermath_at = aftermath_look(now);
	trials_at = begin_trials_look(now);
	enquiry_at = enquiry_look(now);
	if (!supervision.connections && !aftermath_at && !trials_at && !enquiry_at)
		return -1;
	if (aftermath_at)
		earliest = aftermath_at;
	if (trials_at && trials_at < earliest)
		earliest = trials_at;
	if (enquiry_at && enquiry_at < earliest)
		earliest = enquiry_at;
	for (connection = supervision.connections; connection; connection = connection->hh.next) {
		if (connection->look_at && connection->look_at < earliest)
			earliest = connection->look_at;
		if (connection->limit && connection->limit < earliest)
			earliest = connection->limit;
	}
	if (supervision.connections && caller_at < earliest)
		earliest = caller_at;
	return earliest <= now ? 1 : (int)((earliest - now) / CLOCK_NS_PER_MS) + 1;
}
