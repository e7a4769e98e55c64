/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conversion.c - from connect() to the end of the Convert response, on one socket
 *
 * The response is peeked at until it is complete and then taken off the stream in one
 * call, so that nothing of it is ever kept here. While a part is missing,
 * SO_RCVLOWAT makes the socket readable only when the rest has come. Multipath TCP sockets of Linux 6.1 don't heed that: there whoever
 * waits would look at once and all the time, and so pauses after a look that was in vain.
 *
 * A converter is at fault for silence until its SYN+ACK has come, and afterwards as long as it acknowledges no probe
 * (liveness.c). One that acknowledges probes is taken to be waiting for the server if it has ever answered anything: it is waited
 * for as long as a direct connection would be. If it has never answered, it may be no converter, and isn't asked for this server for
 * a while.
 *
 * conversion_progress() takes the steps. It can be called by any thread, at any time, from any hook: it claims the conn, takes the
 * step that its phase has (phase.h), and releases it in the next phase. What ends the handshake is in settle.c, which
 * also puts back what was changed on the socket.
 */
#include "config.h"

#include "shim/connect/conversion.h"

#include "client/exchange.h"
#include "client/handshake.h"
#include "common/errors.h"
#include "convert/convert.h"
#include "shim/connect/attempt.h"
#include "common/clock.h"
#include "client/converters_facts.h"
#include "shim/connect/follow.h"
#include "shim/wait/deadlines.h"
#include "shim/socket/early.h"
#include "shim/connect/liveness.h"
#include "shim/connect/path_look.h"
#include "shim/system/log.h"
#include "shim/connect/lowat.h"
#include "shim/socket/mptcpinfo.h"
#include "shim/system/next.h"
#include "shim/connect/settle.h"
#include "shim/socket/tcpinfo.h"
#include "shim/wait/watch.h"

#include <errno.h>
#include <string.h>

/* Longer than Linux tries to connect (tcp_syn_retries 6: 127 s), which is what converters do. */
#define SERVER_PATIENCE_SECONDS 150

#define IN_VAIN_MS 2

/* In these, what is sent before the server has answered is early data, which follows the request. */
#define PHASES_TAKING_EARLY (PHASE(RESOLVING) | PHASE(SYN_SENT) | PHASE(ASKED) | PHASE(EARLY_DIRECT))

static const struct settings *settings;

void conversion_steps_init(const struct settings *kept)
{
	settings = kept;
}

static bool peer_has_closed(int fd)
{
	struct pollfd end = { .fd = fd, .events = POLLRDHUP };

	return next_poll_now(&end, 1) > 0 && end.revents;
}

/*
 * Judges the bytes that have arrived. Returns 0 with @out set, or -errno: -EAGAIN if
 * there are none. Where the peer has closed the stream behind a part of a response, that is a failure. The bytes are read once
 * more before it is believed, since the last ones may have come together with the end.
 */
static int response_judge(const struct conn *conn, int fd, uint8_t response[CONVERT_MESSAGE_MAX],
			  struct handshake_step *out)
{
	struct handshake_ask ask = attempt_ask_of(conn);
	bool gathered = false;

	for (bool ended = false;;) {
		ssize_t got = next.recv(fd, response, CONVERT_MESSAGE_MAX, MSG_PEEK | MSG_DONTWAIT);

		if (got < 0)
			return -errno;
		if (got == 0) {
			*out = handshake_on_close();
			return 0;
		}
		*out = handshake_on_bytes(response, (size_t)got, &conn->call.peer, &ask);
		if (out->verdict != HANDSHAKE_NEED_MORE)
			return 0;
		if (!gathered && conn->socket.mptcp && mptcpinfo_gather(fd) > got) {
			gathered = true;
			continue;
		}
		if (ended)
			*out = handshake_on_close();
		if (ended || !peer_has_closed(fd))
			return 0;
		ended = true;
		gathered = false;
	}
}

/* Has the SYN+ACK, which has come, left the Multipath TCP attempt as it is? If not, @ride is how to ask anew: ride_goes_on(). */
static bool synack_holds(struct conn *conn, int fd, const struct tcp_info *info, enum ride *ride)
{
	const struct ride_synack seen = {
		.syn_data = conn->attempt.syn_data,
		.acknowledged = info->tcpi_options & TCPI_OPT_SYN_DATA,
		.sent_again = info->tcpi_total_retrans,
		.fallen_back = !conn->attempt.syn_data && mptcpinfo_has_fallen_back(fd),
	};

	conn->attempt.synack_due = false;
	return ride_goes_on(&seen, ride);
}

/* Does the SYN+ACK say that the server was reached: ride_confirms()? False before it has come, when it may still do so. */
static bool is_confirmed(struct conn *conn, int fd, const struct tcp_info *info)
{
	bool confirmable = conn->attempt.confirmable;

	if (info->tcpi_state == TCPINFO_UNKNOWN || info->tcpi_state == TCPINFO_SYN_SENT)
		return false;
	conn->attempt.confirmable = false;
	if (confirmable && info->tcpi_state != TCPINFO_CLOSE &&
	    ride_confirms(info->tcpi_options, conn->attempt.withheld_ms, clock_ns_of(&conn->call.started), clock_ns()) &&
	    !conn->call.shut && !(conn->socket.mptcp && mptcpinfo_has_fallen_back(fd)))
		return true;
	watch_mask(conn); /* the response has to be waited for */
	return false;
}

/* Goes on with a connection that has no response in front of the server's bytes. */
static enum conn_phase step_silent(struct conn *conn, int fd, const struct tcp_info *info)
{
	int ret = 0;

	if (conn->socket.mptcp && mptcpinfo_has_fallen_back(fd))
		return settle_anew(conn, fd, RIDE_TCP);
	if (conn->attempt.want_output) /* early data, of which the SYN had no room for all */
		ret = attempt_send_rest(conn, fd);
	if (ret == -EAGAIN)
		return attempt_phase(&conn->attempt);
	return ret < 0 ? settle_failed(conn, fd, -ret, error_text(-ret)) : settle_silent(conn, fd, info);
}

/* Is the converter waited for on? One that has proved itself is, for as long as a server would be, with a look at it now and then. */
static bool is_waited_for(struct conn *conn)
{
	int64_t patience = clock_ns_of(&conn->call.started) + SERVER_PATIENCE_SECONDS * CLOCK_NS_PER_S;
	int64_t deadline = atomic_load(&conn->deadline);

	if (!converters_is_proven(conn->attempt.converter) || clock_ns() >= patience)
		return false;
	if (!deadline || deadline > patience)
		deadlines_set(conn, patience);
	return true;
}

static bool is_patient(const struct conn *conn)
{
	return clock_ns() < clock_ns_of(&conn->call.started) + SERVER_PATIENCE_SECONDS * CLOCK_NS_PER_S;
}

/* Waits on for the rest of a response, of which a part has come, as long as the converter sends more of it. */
static enum conn_phase wait_for_rest(struct conn *conn, int fd)
{
	struct handshake_step why;

	if (conn_is_confirmed(conn))
		return CONN_CONFIRMED;
	if (!deadlines_is_over(conn) ||
	    (is_patient(conn) && liveness_speaks(conn, fd, (unsigned int)settings->timeout_ms)))
		return attempt_phase(&conn->attempt);
	why = exchange_silent(conn->attempt.converter, &conn->call.peer, false);
	return settle_converter_failed(conn, fd, &why);
}

/* Decides whether to wait on for a response of which nothing has come. */
static enum conn_phase still_waiting(struct conn *conn, int fd)
{
	struct handshake_step why;
	enum liveness liveness;
	enum paths_do what;

	if (conn_is_confirmed(conn))
		return CONN_CONFIRMED;
	if (path_look_due(conn)) {
		what = attempt_look(conn, fd);
		if (what == PATHS_MOVE || what == PATHS_BEHIND)
			return settle_path(conn, fd, what);
	}
	if (!deadlines_is_over(conn))
		return attempt_phase(&conn->attempt);
	liveness = liveness_look(conn, fd, settings->timeout_ms);
	path_look_go_on(conn);
	if (liveness == LIVENESS_EARLY || (liveness == LIVENESS_ALIVE && is_waited_for(conn)))
		return attempt_phase(&conn->attempt);
	if (liveness == LIVENESS_GONE)
		return settle_on_error(conn, fd, ECONNRESET);
	why = exchange_silent(conn->attempt.converter, &conn->call.peer, liveness == LIVENESS_ALIVE);
	return settle_converter_failed(conn, fd, &why);
}

/* Sends early data to the server itself. Once all is sent the connection is the kernel's. */
static enum conn_phase step_directly(struct conn *conn, int fd)
{
	int ret = attempt_send_rest(conn, fd);

	if (ret == -EAGAIN)
		return CONN_EARLY_DIRECT;
	if (ret < 0)
		return settle_on_error(conn, fd, -ret);
	settle_let_go(conn, fd);
	return CONN_DIRECT;
}

/*
 * Takes a step of a connection to the server itself over Multipath TCP. The SYN+ACK says whether the server speaks it, and the
 * server's first bytes show whether the path has kept it behind the handshake.
 */
static enum conn_phase step_bypassed(struct conn *conn, int fd)
{
	const struct tcp_info info = tcpinfo_of(fd);
	const bool accepted = conn_is_confirmed(conn);
	bool lost;
	char byte;

	if (info.tcpi_state == TCPINFO_SYN_SENT)
		return CONN_BYPASS;
	if (info.tcpi_state == TCPINFO_CLOSE && !accepted)
		return settle_on_error(conn, fd, ECONNREFUSED);
	lost = mptcpinfo_has_fallen_back(fd);
	if (!accepted && !lost && !conn->socket.streamed) {
		conn->attempt.synack_due = false;
		watch_show(conn);
		return CONN_BYPASSED;
	}
	if (accepted && next.recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN)
		return CONN_BYPASSED;
	if (lost && info.tcpi_state != TCPINFO_CLOSE)
		return settle_bypass_lost(conn, fd);
	settle_let_go(conn, fd);
	return CONN_DIRECT;
}

/* Deals with a response, @told, that is an error or no Convert message. */
static enum conn_phase step_failed(struct conn *conn, int fd, const struct handshake_step *told)
{
	if (conn_is_confirmed(conn))
		return settle_unreached(conn, fd, told);
	if (told->fault != HANDSHAKE_FAULT_PROTOCOL)
		converters_proved(conn->attempt.converter);
	if (!conn_has(conn, CONN_WROTE) && exchange_take_remedy(conn->attempt.converter, conn->attempt.cookie_number, told,
						 &conn->attempt.cookie_asked, &conn->attempt.ask_mptcp,
						 &conn->attempt.ask_silent))
		return settle_again(conn, fd);
	if (told->fault != HANDSHAKE_FAULT_SERVER)
		return settle_converter_failed(conn, fd, told);
	exchange_failed(conn->attempt.converter, &conn->call.peer, told);
	return settle_failed(conn, fd, told->error, told->reason);
}

/* Looks at the SYN+ACK if it matters. Returns false if the attempt is over, with the next phase in @phase. */
static bool step_synack(struct conn *conn, int fd, struct tcp_info *info, enum conn_phase *phase)
{
	enum ride ride;

	if (!conn->attempt.synack_due && !conn->attempt.confirmable && !conn->attempt.silence_due)
		return true;
	*info = tcpinfo_of(fd);
	if (!conn->attempt.synack_due || info->tcpi_state == TCPINFO_SYN_SENT ||
	    info->tcpi_state == TCPINFO_CLOSE || synack_holds(conn, fd, info, &ride))
		return true;
	*phase = settle_anew(conn, fd, ride);
	return false;
}

/*
 * Looks at what has come of a response. Returns false if that is nothing, else true with the next phase in @phase. Not inlined: the
 * room for a response, a kilobyte of stack, is given back before anything else is done.
 */
static __attribute__((noinline)) bool step_response(struct conn *conn, int fd, enum conn_phase *phase)
{
	struct handshake_step told = { .verdict = HANDSHAKE_NEED_MORE };
	uint8_t response[CONVERT_MESSAGE_MAX];
	int ret = conn->attempt.want_output ? attempt_send_rest(conn, fd) : 0;

	if (ret == 0)
		ret = response_judge(conn, fd, response, &told);
	if (ret == -EAGAIN)
		return false;
	if (ret < 0) {
		*phase = settle_on_error(conn, fd, -ret);
	} else if (told.verdict == HANDSHAKE_DONE) {
		*phase = settle_done(conn, fd, &told);
	} else if (told.verdict == HANDSHAKE_NEED_MORE) {
		conn->attempt.confirmable = false;
		conn->attempt.in_vain = conn->attempt.awaited == told.length;
		conn->attempt.awaited = (uint16_t)told.length;
		lowat_raise(conn, fd, told.length);
		watch_mask(conn); /* output is of no use any more */
		*phase = wait_for_rest(conn, fd);
	} else {
		*phase = step_failed(conn, fd, &told);
	}
	return true;
}

/* Takes a step of a claimed conn on the way to a response. Returns the phase to release it in. */
static enum conn_phase step_asked(struct conn *conn, int fd)
{
	struct tcp_info info = { .tcpi_state = TCPINFO_UNKNOWN };
	enum silence silence;
	enum conn_phase phase;

	if (!step_synack(conn, fd, &info, &phase))
		return phase;
	silence = attempt_silence(conn, &info);
	if (silence == SILENCE_OPEN) /* what comes behind the SYN+ACK may be the server's: it is not looked at before it is known */
		return still_waiting(conn, fd);
	if (silence == SILENCE_KEPT)
		return step_silent(conn, fd, &info);
	if (conn->attempt.silence_due) {
		conn->attempt.silence_due = false;
		watch_mask(conn);
	}
	if (conn->attempt.ask_blind && info.tcpi_state != TCPINFO_CLOSE)
		return settle_blind(conn, fd, conn->attempt.ride, ECONNRESET, "the SYN+ACK doesn't confirm the server");
	if (step_response(conn, fd, &phase))
		return phase;
	return is_confirmed(conn, fd, &info) ? settle_confirmed(conn, fd, &info) : still_waiting(conn, fd);
}

/* Takes a step of a claimed conn that is in @phase. Returns the phase to release it in. */
static enum conn_phase step(struct conn *conn, int fd, enum conn_phase phase)
{
	switch (phase) {
	case CONN_RESOLVING:
		return settle_go_on(conn, fd, ENETUNREACH, "no converter answers");
	case CONN_BYPASS:
	case CONN_BYPASSED:
		return step_bypassed(conn, fd);
	case CONN_EARLY_DIRECT:
		return step_directly(conn, fd);
	default:
		return step_asked(conn, fd);
	}
}

bool conversion_is_ripe(const struct conn *conn, int fd)
{
	struct pollfd ready = { .fd = fd, .events = conversion_poll_events(conn) };

	return conn_phase(conn) == CONN_RESOLVING || deadlines_is_over(conn) || next_poll_now(&ready, 1) != 0;
}

enum conn_phase conversion_progress(struct conn *conn, int fd)
{
	struct attempt_refusal refusal;
	struct conn_claim claim;
	enum conn_phase phase;
	bool in_vain = false;
	int saved_errno = errno; /* that of a call which succeeds stays as it was */

	while (conn_in(conn, PHASES_PENDING | PHASES_CONFIRMED) && conversion_is_ripe(conn, fd)) {
		if (conn_phase(conn) == CONN_RESOLVING)
			attempt_resolve(conn, fd, conn_peer(conn), conn->call.tried, &refusal);
		if (!conn_claim_of(conn, fd, PHASES_PENDING | PHASES_CONFIRMED, &claim))
			break;
		phase = conn->call.follows ? follow_step(conn, fd) : step(conn, fd, claim.from);
		in_vain = conn->attempt.in_vain;
		conn->attempt.in_vain = false;
		conn_release(conn, phase, &claim);
		if (conn_phase(conn) != CONN_RESOLVING)
			break;
	}
	if (in_vain)
		next.poll(NULL, 0, IN_VAIN_MS);
	errno = saved_errno;
	return conn_phase_unclaimed(conn);
}

/* Sends request and early data after the SYN has gone, as far as the socket takes them. The conn is claimed. */
static enum conn_phase send_behind(struct conn *conn, int fd)
{
	enum conn_phase phase = conn_phase(conn);
	int ret = attempt_send_rest(conn, fd);

	if (ret == -EAGAIN)
		watch_mask(conn);
	if (ret < 0 && ret != -EAGAIN)
		return settle_on_error(conn, fd, -ret);
	return phase_in(phase, PHASE(SYN_SENT) | PHASE(ASKED)) ? attempt_phase(&conn->attempt) : phase;
}

static enum conn_phase send_with_syn(struct conn *conn, int fd)
{
	int ret = attempt_send_held(conn, fd);

	return ret < 0 ? settle_on_error(conn, fd, -ret) : attempt_phase(&conn->attempt);
}

/*
 * What follows another process leaves what is sent to that. A server that is asked itself gets the application's bytes from the
 * kernel: they must not follow a request.
 */
bool conversion_takes_early(const struct conn *conn)
{
	return conn_phase(conn) == CONN_HELD ||
	       (conn_in(conn, PHASES_TAKING_EARLY) &&
		(conn_has(conn, CONN_TOLD_CONNECTED) || conn_has(conn, CONN_TOLD_WRITABLE)) &&
		!conn->early.bytes && !conn->call.follows);
}

size_t conversion_send_early(struct conn *conn, int fd, const struct iovec *iov, size_t count, bool *went)
{
	enum conn_phase phase;
	struct conn_claim claim;
	size_t taken = 0;
	bool held;

	*went = false;
	if (!conn_claim(conn, PHASE(HELD) | PHASES_TAKING_EARLY, &claim))
		return 0;
	phase = claim.from;
	*went = held = phase == CONN_HELD; /* no longer if another thread has let the SYN go a moment ago */
	if (!conn->early.bytes && !conn->call.follows)
		taken = early_keep(&conn->early, iov, count);
	if (held)
		phase = send_with_syn(conn, fd);
	else if (taken && phase != CONN_RESOLVING) /* there, whoever is asked next gets them with the request */
		phase = send_behind(conn, fd);
	conn_release(conn, phase, &claim);
	if (held && !watch_any(conn))
		conn_mark_unseen(conn, true);
	return taken;
}

void conversion_send_held(struct conn *conn, int fd)
{
	struct conn_claim claim;

	while (conn_claim_of(conn, fd, PHASE(HELD), &claim))
		conn_release(conn, send_with_syn(conn, fd), &claim);
	if (!watch_any(conn))
		conn_mark_unseen(conn, true);
}

static bool send_held_visit(struct conn *conn, void *arg)
{
	if (conn_phase(conn) == CONN_HELD && conn_of(conn->fd) == conn &&
	    watch_may_be_in(conn, *(const int *)arg))
		conversion_send_held(conn, conn->fd);
	return true;
}

void conversion_send_all_held(int epfd)
{
	conn_each_pending(send_held_visit, &epfd);
}

void conversion_let_go(struct conn *conn, int fd)
{
	struct conn_claim claim;

	if (!conn_claim_of(conn, fd, PHASE(BYPASSED), &claim))
		return;
	settle_let_go(conn, fd);
	conn_release(conn, CONN_DIRECT, &claim);
}

static bool expire_visit(struct conn *conn, void *arg)
{
	(void)arg;
	if (conn_is_pending(conn) && deadlines_is_over(conn) && conn_of(conn->fd) == conn)
		conversion_progress(conn, conn->fd);
	return true;
}

void conversion_expire(void)
{
	int64_t first = deadlines_first();

	if (!first || clock_ns() < first)
		return;
	conn_each_pending(expire_visit, NULL);
	deadlines_renew();
}

short conversion_poll_events(const struct conn *conn)
{
	return conn_in(conn, PHASES_WANTING_OUTPUT) ? POLLIN | POLLOUT : POLLIN;
}
