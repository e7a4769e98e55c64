/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attempt.c - which converter is asked, and one attempt at it: the contents of the request, the SYN, its data, and what silence means
 *
 * The SYN carries the request, and early data behind it (MSG_FASTOPEN, without a cookie). If the kernel or the converter takes only part of
 * the data in the SYN, or none, we send the rest as soon as the handshake is over (attempt.want_output).
 */
#include "config.h"

#include "engine/attempt.h"

#include "client/converters.h"
#include "client/exchange.h"
#include "client/notes.h"
#include "common/thread.h"
#include "convert/convert.h"
#include "engine/decide.h"
#include "host/networks.h"

#include <errno.h>
#include <linux/tcp.h>
#include <string.h>

void dial_log(const struct dial *dial, const char *verdict, const char *detail)
{
	char server[SOCKADDR_STRLEN];

	dial_host.log("%s: %s%s after %.1f ms", sockaddr_ip_format(&dial->server, server), verdict, detail,
		      (double)(dial_host.clock() - dial->started) / 1e6);
}

void dial_log_converted(const struct dial *dial, const char *detail)
{
	dial_log(dial, dial->mptcp ? "converted over MPTCP, " : "converted over TCP, ", detail);
}

void dial_log_direct(struct dial *dial, bool converter_fails, const char *reason)
{
	dial_log(dial, converter_fails ? "direct, the converter fails: " : "direct, ", reason);
	dial->direct_reason = reason;
}

void dial_note(const struct dial *dial)
{
	const struct attempt *attempt = &dial->attempt;
	const struct note note = {
		.cookie = dial->ops->cookie ? dial->ops->cookie(dial) : 0,
		.server = dial->server,
		.converter = attempt->addr,
		.client = dial->client,
		.flags = (attempt->syn_data ? NOTE_SYN_DATA : 0) | (dial->early_len ? NOTE_EARLY_DATA : 0) |
			 (attempt->ask.silent ? NOTE_SILENT : 0) | (dial->start.placed ? NOTE_PLACED : 0) | (dial->start.moves ? NOTE_MOVED : 0) |
			 (dial->start.placed && host_preferences(dial_host.settings)->count ? NOTE_ORDERED : 0),
		.connect_ms = (uint32_t)((dial_host.clock() - dial->started) / CLOCK_NS_PER_MS),
	};

	note_put(user_cache(), &note);
}

void dial_note_direct(const struct dial *dial)
{
	if (dial->direct_reason && dial->ops->cookie)
		note_direct(dial->ops->cookie(dial), &dial->server, dial->direct_reason);
}

void dial_stop(struct dial *dial)
{
	path_start_end(&dial->start);
}

void attempt_wake(struct dial *dial)
{
	const int64_t converter = dial->attempt.wake_at, path = dial->start.look_at;

	dial->ops->wake(dial, path && (!converter || path < converter) ? path : converter);
}

/* --- which converter --- */

static bool are_paths_forbidden(const struct dial *dial, const struct converters_query *query, struct dial_end *end)
{
	if (!dial->start.may_move || !path_list_is_forbidden(dial_host.settings, query))
		return false;
	end->reason = "CONVERT_PATHS or a quota allows no network that leads to a converter";
	return true;
}

enum dial_state dial_next(struct dial *dial, bool defer, struct dial_end *end)
{
	struct converters_query query = dial->ops->query(dial);
	char text[SOCKADDR_STRLEN];
	const char *refused = NULL;
	union sockaddr_ip addr;
	int index, ret;

	*end = (struct dial_end){ .verdict = POLICY_CONVERT, .error = ENETUNREACH };
	if (are_paths_forbidden(dial, &query, end))
		return DIAL_REFUSED;
	for (;;) {
		index = converters_choose(dial_host.settings, &query, &addr, &end->verdict, &end->reason);
		if (index < 0)
			break;
		index = path_start_choose(&dial->start, &query, index, &addr);
		dial->attempt = (struct attempt){ .addr = addr, .converter = (uint8_t)index };
		ret = attempt_begin(dial, defer);
		if (ret >= 0)
			return (enum dial_state)ret;
		/* An error at once is about routes or this socket: no reason to let the converter rest. */
		end->error = -ret;
		refused = error_text(-ret);
		dial_host.log("converter %s: %s", sockaddr_ip_format(&dial->attempt.addr, text), refused);
		dial->tried |= 1u << index;
		query.tried = dial->tried;
	}
	/* converters_choose() doesn't know the errors of the converters that we tried; the program gets the last one. */
	if (refused && end->verdict == POLICY_CONVERT)
		end->reason = refused;
	return index == CONVERTERS_UNRESOLVED ? DIAL_RESOLVING : DIAL_REFUSED;
}

enum dial_state dial_refused(struct dial *dial, struct dial_end *end)
{
	const bool closed = dial_host.settings->fail_closed && end->verdict == POLICY_CONVERT;
	char text[SOCKADDR_STRLEN];

	dial_host.log("%s: %s: %s%s", sockaddr_ip_format(&dial->server, text), closed ? "failed" : "direct", end->reason,
		      closed ? ", and CONVERT_FALLBACK is none" : "");
	dial->direct_reason = end->verdict == POLICY_DIRECT_LOCAL ? NULL : end->reason;
	return closed ? DIAL_FAILED : DIAL_DIRECT;
}

/* --- the request --- */

struct handshake_ask dial_ask(const struct dial *dial)
{
	struct handshake_ask ask = dial->attempt.ask;

	ask.cookie = converters_cookie(dial_host.settings, dial->attempt.converter, dial->attempt.cookie_number);
	ask.over_mptcp = dial->mptcp;
	return ask;
}

ssize_t dial_message(const struct dial *dial, uint8_t *out, size_t size)
{
	const struct handshake_ask ask = dial_ask(dial);
	ssize_t len = handshake_request(out, size, &dial->server, &ask);

	if (len < 0 || !dial->early_len)
		return len;
	if ((size_t)len + dial->early_len > size)
		return -ENOBUFS;
	memcpy(out + len, dial->early, dial->early_len);
	return len + (ssize_t)dial->early_len;
}

/* Removes @bytes from the front of the message. */
static void message_skip(struct iovec iov[static 2], size_t bytes)
{
	for (int i = 0; i < 2; i++) {
		size_t part = bytes < iov[i].iov_len ? bytes : iov[i].iov_len;

		iov[i].iov_len -= part;
		if (part)
			iov[i].iov_base = (uint8_t *)iov[i].iov_base + part;
		bytes -= part;
	}
}

/* Sends the rest of request and early data. @to: the address for MSG_FASTOPEN, else NULL. Returns 0, or -errno with nothing sent. */
static int message_send(struct dial *dial, const union sockaddr_ip *to)
{
	const struct handshake_ask ask = dial_ask(dial);
	struct attempt *attempt = &dial->attempt;
	uint8_t request[CONVERT_MESSAGE_MAX];
	struct iovec iov[2];
	ssize_t sent, len = 0;

	if (!attempt->direct)
		len = handshake_request(request, sizeof(request), &dial->server, &ask);
	if (len < 0)
		return (int)len;
	attempt->request_len = (uint16_t)len;
	iov[0] = (struct iovec){ request, (size_t)len };
	iov[1] = (struct iovec){ (uint8_t *)dial->early, dial->early_len };
	message_skip(iov, attempt->sent);
	sent = dial->ops->send(dial, iov, to);
	if (sent > 0)
		attempt->sent = (uint16_t)(attempt->sent + sent);
	attempt->want_output = (size_t)(sent > 0 ? sent : 0) < iov[0].iov_len + iov[1].iov_len;
	return sent < 0 ? (int)sent : 0;
}

bool dial_wants_syn_data(struct dial *dial)
{
	enum syn_data_use may = ask_way_syn_data(dial->attempt.way, dial->mptcp, paths_take_syn_data(&dial->start.path.id),
					       converters_corrects_windows(dial_host.settings, dial->attempt.converter));

	return may == SYN_DATA_ALWAYS || (may == SYN_DATA_ON_ONE_PATH && !networks_may_be_several(dial->fd, &dial->attempt.addr));
}

/* Sets for how long the converter may withhold the SYN with the request. */
static void hold_time_choose(struct dial *dial)
{
	if (!dial->attempt.ask.info)
		dial->attempt.ask.hold_ms = exchange_hold_ms(dial_host.settings, &dial->start.path.id, dial->mptcp,
							     dial->attempt.ask.attempt != 0);
}

/* Sends the SYN, with as much of the message as fits. Returns 0 or -errno. */
static int syn_send(struct dial *dial)
{
	struct attempt *attempt = &dial->attempt;
	int ret;

	if (dial_wants_syn_data(dial)) {
		hold_time_choose(dial);
		ret = message_send(dial, &attempt->addr);
		attempt->syn_data = attempt->sent > 0;
		if (ret != -EOPNOTSUPP) /* the sysctl tcp_fastopen lacks bit 0x1 */
			return ret == -EINPROGRESS ? 0 : ret;
	}
	attempt->want_output = true;
	return dial->ops->connect(dial, &attempt->addr);
}

/* Prepares the attempt for a SYN to its converter. Keeps the request's contents and the tried remedies; takes the newest cookie. */
static void attempt_renew(struct dial *dial)
{
	const struct attempt before = dial->attempt;

	dial->attempt = (struct attempt){
		.addr = before.addr,
		.converter = before.converter,
		.way = before.way,
		.ask = before.ask,
		.cookie_asked = before.cookie_asked,
		.repeated = before.repeated,
		.fallback_syn_at = before.fallback_syn_at,
		.cookie_number = converters_cookie_current(before.converter),
	};
	dial->attempt.ask.hold_ms = 0;
}

/*
 * Notes, after the SYN, what its SYN+ACK will show: on a Multipath TCP socket, whether the connection has Multipath TCP; for a silent
 * request, whether a response follows. If the SYN had the whole message, and the converter withholds such SYNs, the SYN+ACK may also
 * confirm the server. If the request stayed out of the SYN, we write it later, not silently, and without saying for how long the converter
 * may withhold the SYN.
 */
static void synack_expect(struct dial *dial)
{
	struct attempt *attempt = &dial->attempt;

	attempt->synack_due = dial->mptcp;
	attempt->ask.silent &= attempt->syn_data;
	attempt->ask.blind &= attempt->ask.silent;
	if (!attempt->syn_data)
		attempt->ask.hold_ms = 0;
	attempt->silence_due = attempt->ask.silent && attempt->sent >= attempt->request_len;
	attempt->withheld_ms = (uint16_t)converters_withholds_ms(dial_host.settings, attempt->converter);
	attempt->confirmable = dial->may_confirm && attempt->withheld_ms && !attempt->ask.info && !attempt->ask.silent &&
			       !attempt->want_output && (!dial->mptcp || exchange_keeps_mptcp(dial_host.settings, &dial->start.path.id));
	path_start_sent(&dial->start, dial_host.clock());
	attempt_wake(dial); /* before the watch, which may wake by this deadline */
	if (dial_wants_output(dial))
		dial->ops->watch(dial);
}

/*
 * Sets the attempt's deadline and first look. A blind request has no look: silence then means that the server is silent, and lasts as long
 * as for a direct connection.
 */
static void deadline_start(struct dial *dial, int64_t ends_before)
{
	const unsigned int timeout_ms = dial_host.settings->timeout_ms;
	const int64_t now = dial_host.clock(), half = now + timeout_ms * CLOCK_NS_PER_MS / 2;
	int64_t first = now + decide_interval_seconds(timeout_ms) * CLOCK_NS_PER_S;
	struct attempt *attempt = &dial->attempt;

	attempt->ends = now + timeout_ms * CLOCK_NS_PER_MS;
	if (ends_before)
		attempt->ends = ends_before > half ? ends_before : half;
	if (first > decide_ask_at(attempt, timeout_ms))
		first = decide_ask_at(attempt, timeout_ms);
	attempt->wake_at = attempt->ask.blind ? 0 : first;
	attempt_wake(dial);
}

/* Begins the attempt by its present values. @ends_before: the deadline of the one that it continues; 0: none. Returns 0 or -errno. */
static int attempt_send_syn(struct dial *dial, int64_t ends_before)
{
	int ret;

	attempt_renew(dial);
	path_start_end(&dial->start);
	deadline_start(dial, ends_before);
	ret = dial->ops->prepare(dial);
	if (ret == 0)
		ret = syn_send(dial);
	if (ret == 0)
		synack_expect(dial);
	dial->ops->begun(dial);
	return ret;
}

int attempt_again(struct dial *dial)
{
	return attempt_send_syn(dial, 0);
}

int attempt_anew(struct dial *dial, enum ask_way way)
{
	int ret = dial->ops->fit(dial, &dial->attempt.addr, way != ASK_TCP);

	if (ret < 0)
		return ret;
	dial->attempt.way = dial->mptcp ? way : ASK_TCP;
	return attempt_send_syn(dial, dial->attempt.ends);
}

/*
 * Holds the SYN for early data. Returns DIAL_DEFERRED; DIAL_IN_PROGRESS if the kernel sent it at once; -EOPNOTSUPP if it can't wait; or
 * -errno.
 */
static int syn_defer(struct dial *dial)
{
	int ret;

	attempt_renew(dial);
	ret = dial->ops->defer(dial, &dial->attempt.addr);
	if (ret == 0)
		return DIAL_DEFERRED;
	if (ret != -EINPROGRESS)
		return ret == 1 ? -EOPNOTSUPP : ret;
	/* The kernel has disabled Fast Open for a while: the request follows the SYN. */
	dial->attempt.want_output = true;
	deadline_start(dial, 0);
	synack_expect(dial);
	return DIAL_IN_PROGRESS;
}

/* Prepares the socket and the request's contents for the attempt's converter. Returns 0 or -errno. */
static int ask_prepare(struct dial *dial)
{
	struct attempt *attempt = &dial->attempt;
	const bool mptcp = dial->ops->allows(dial, DIAL_USE_MPTCP) && paths_mptcp(&dial->start.path.id) != CACHE_MPTCP_LOST &&
			   path_start_may_have_more(&attempt->addr);
	int ret = dial->ops->fit(dial, &attempt->addr, mptcp);

	if (ret < 0)
		return ret;
	attempt->way = dial->mptcp ? ASK_MPTCP_SYN : ASK_TCP;
	attempt->ask = exchange_ask(dial_host.settings, &dial->start.path.id, &dial->server, dial->mptcp);
	if (dial->ops->allows(dial, DIAL_USE_BLIND) && dial_wants_syn_data(dial) && !paths_syn_data_is_doubted(&dial->start.path.id))
		exchange_ask_blindly(dial_host.settings, &dial->start.path.id, &attempt->ask);
	if (attempt->ask.blind && dial->mptcp && dial->ops->repeat_key && converters_takes_repeats(attempt->converter))
		attempt->ask.attempt = dial->ops->repeat_key();
	return 0;
}

int attempt_begin(struct dial *dial, bool defer)
{
	int ret = ask_prepare(dial);

	if (ret == 0 && defer && dial->ops->defer && dial_wants_syn_data(dial)) {
		ret = syn_defer(dial);
		if (ret != -EOPNOTSUPP) {
			dial->ops->begun(dial);
			return ret;
		}
		ret = 0;
	}
	if (ret == 0)
		ret = attempt_again(dial);
	return ret < 0 ? ret : DIAL_IN_PROGRESS;
}

bool dial_blindly(struct dial *dial)
{
	dial->attempt = (struct attempt){ .addr = dial->attempt.addr, .converter = dial->attempt.converter };
	if (ask_prepare(dial) < 0 || !dial->attempt.ask.blind)
		return false;
	if (attempt_again(dial) == 0 && dial->attempt.ask.blind)
		return true;
	dial_stop(dial);
	dial->ops->disconnect(dial);
	return false;
}

int dial_send_deferred(struct dial *dial)
{
	int ret;

	dial->ops->watch(dial);
	deadline_start(dial, 0);
	hold_time_choose(dial);
	ret = message_send(dial, NULL);
	dial->attempt.syn_data = dial->attempt.sent > 0;
	synack_expect(dial);
	return ret == -EINPROGRESS || ret == -EAGAIN ? 0 : ret;
}

bool attempt_is_unanswered(void *owner)
{
	struct dial *dial = owner;
	struct tcp_info info;

	dial->ops->info(dial, &info);
	return info.tcpi_state == TCPINFO_SYN_SENT ||
	       /* on a Multipath TCP socket's first subflow; other subflows exist only after the acknowledgement */
	       (dial->start.request_at && info.tcpi_state == TCPINFO_ESTABLISHED && info.tcpi_unacked);
}

enum survey_syn attempt_syn(const struct dial *dial)
{
	if (dial->start.request_at)
		return SURVEY_BEHIND;
	if (!dial->attempt.syn_data)
		return SURVEY_PLAIN;
	return dial->attempt.ask.blind ? SURVEY_DATA_ONLY : SURVEY_DATA;
}

void attempt_answered(struct dial *dial, const struct tcp_info *info)
{
	struct attempt *attempt = &dial->attempt;

	if (attempt->answered || info->tcpi_state == TCPINFO_UNKNOWN || !info->tcpi_rtt || stack_is_small())
		return;
	attempt->answered = true;
	/* tcpi_min_rtt may be of the socket's connection before: connect() to AF_UNSPEC leaves it */
	path_start_answered(&dial->start, info->tcpi_rtt / 1000 + 1, !attempt->syn_data || !attempt->withheld_ms);
}

int dial_send_rest(struct dial *dial)
{
	struct attempt *attempt = &dial->attempt;
	struct tcp_info info;
	int ret = message_send(dial, NULL);

	if (ret < 0)
		return ret;
	if (attempt->want_output)
		return -EAGAIN;
	if (!attempt->syn_data && !dial->start.request_at && !attempt->direct) {
		dial->ops->info(dial, &info);
		attempt_answered(dial, &info);
		path_start_sent_behind(&dial->start);
		attempt_wake(dial);
	}
	dial->ops->watch(dial);
	return 0;
}

/* --- the converter's faults --- */

void attempt_let_rest(const struct dial *dial, const struct handshake_step *why)
{
	char text[SOCKADDR_STRLEN];

	if (!why->rest)
		return;
	dial_host.log("converter %s: %s, left alone for %u s%s", sockaddr_ip_format(&dial->attempt.addr, text), why->reason, why->rest,
		      why->fault == HANDSHAKE_FAULT_REFUSED ? " for this server" : "");
	exchange_failed(dial->attempt.converter, &dial->server, why);
}

struct handshake_step attempt_judge_silence(struct dial *dial, bool alive)
{
	/* A host that acknowledges, or has sent a part of a response, is there. */
	const enum path_answer answer = alive || dial->attempt.awaited ? PATH_SILENT : path_start_asked(&dial->start);
	const int converter = dial->attempt.converter;
	struct handshake_step why = handshake_on_silence(false);
	char text[SOCKADDR_STRLEN];

	if (answer == PATH_SILENT && (alive || dial->start.may_move || path_is_usual(&dial->start.path.id)))
		return exchange_unanswered(converter, &dial->server, alive);
	why.rest = 0;
	if (answer == PATH_UNASKED)
		converters_rest_here(converter, HANDSHAKE_REST_SECONDS);
	dial_host.log("converter %s: %s%s", sockaddr_ip_format(&dial->attempt.addr, text), why.reason,
		      answer == PATH_SILENT  ? ", on the network that the program has chosen" :
		      answer == PATH_ANSWERS ? ", but it answers others" :
		      answer == PATH_UNASKED ? ", left alone for 30 s by this process" :
					       ", another connection asks whether it answers");
	return why;
}

void dial_blame_silence(struct dial *dial)
{
	struct handshake_step why;

	if (dial_host.clock() - dial->start.syn_at < dial_host.settings->timeout_ms * CLOCK_NS_PER_MS / 2)
		return;
	why = attempt_judge_silence(dial, false);
	attempt_let_rest(dial, &why);
}
