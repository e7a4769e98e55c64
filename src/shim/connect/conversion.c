/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conversion.c - from connect() to the end of the Convert response, on one socket
 *
 * conversion_progress() takes the steps. Any thread may call it at any time, from any hook: it claims the conn, takes the step of its phase
 * (phase.h), and releases it in the next phase. The engine decides (engine/dial.h), operations.c acts on the socket, and settle.c reports
 * the end to the application.
 *
 * While part of a response is missing, SO_RCVLOWAT makes the socket readable only when the rest has come. Multipath TCP sockets of Linux
 * 6.1 ignore it: there a waiting thread would look all the time. So it pauses after a look in vain.
 */
#include "config.h"

#include "shim/connect/conversion.h"

#include "client/cache.h"
#include "client/client_log.h"
#include "client/converters.h"
#include "client/exchange.h"
#include "client/notes.h"
#include "client/settings.h"
#include "common/clock.h"
#include "host/networks.h"
#include "shim/connect/connect.h"
#include "shim/socket/app_options.h"
#include "shim/system/next.h"
#include "shim/system/rights.h"
#include "shim/system/rings.h"
#include "shim/system/usermem.h"
#include "shim/system/waiting.h"
#include "shim/wait/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>

#define WOKE_EARLY_MS 2

/* In these phases, output before the server's answer is early data, which follows the request. */
#define PHASES_TAKING_EARLY (PHASE(RESOLVING) | PHASE(SYN_SENT) | PHASE(ASKED) | PHASE(EARLY_DIRECT))

/* In these phases the kernel has a connection of which it may send no signal, or one too early. */
#define PHASES_WITHOUT_SIGNAL (PHASE(RESOLVING) | PHASE(SYN_SENT) | PHASE(ASKED) | PHASE(BYPASS))

/* Takes a step of a claimed conn in @phase. Returns the phase to release it in. */
static enum conn_phase step(struct conn *conn, int fd, enum conn_phase phase)
{
	struct dial *dial = operations_dial(conn, fd);
	struct dial_end end;

	switch (phase) {
	case CONN_RESOLVING:
		return settle(conn, fd, dial_resolved(dial, &end), &end);
	case CONN_BYPASS:
	case CONN_BYPASSED:
		return bypass_step(conn, fd);
	case CONN_EARLY_DIRECT:
		return settle_early_data(conn, fd);
	default:
		return settle(conn, fd, dial_step(dial, &end), &end);
	}
}

bool conversion_can_step(const struct conn *conn, int fd)
{
	struct pollfd ready = { .fd = fd, .events = conversion_poll_events(conn) };

	return conn_phase(conn) == CONN_RESOLVING || conn_look_is_due(conn) || next_poll_now(&ready, 1) != 0;
}

/* Resolves the names of the converters that may be asked for a conn in RESOLVING. As this may take long, it doesn't keep the claim. */
static void resolve(struct conn *conn, int fd)
{
	struct converters_query query;
	union sockaddr_ip server;
	struct conn_claim claim;
	struct dial_end end;

	if (!conn_claim_of(conn, fd, PHASE(RESOLVING), &claim))
		return;
	server = *conn_peer(conn);
	query = operations_query(conn, fd, &server);
	conn_release(conn, CONN_RESOLVING, &claim);
	operations_resolve(query, &end);
}

enum conn_phase conversion_progress(struct conn *conn, int fd)
{
	ERRNO_KEPT;
	struct conn_claim claim;
	enum conn_phase phase;
	bool woke_early = false;

	while (conn_in(conn, PHASES_PENDING | PHASES_CONFIRMED) && conversion_can_step(conn, fd)) {
		if (conn_phase(conn) == CONN_RESOLVING)
			resolve(conn, fd);
		if (!conn_claim_of(conn, fd, PHASES_PENDING | PHASES_CONFIRMED, &claim))
			break;
		phase = conn->follows ? follow_step(conn, fd) : step(conn, fd, claim.from);
		woke_early = conn->dial.attempt.woke_early;
		conn->dial.attempt.woke_early = false;
		conn_release(conn, phase, &claim);
		if (conn_phase(conn) != CONN_RESOLVING)
			break;
	}
	if (woke_early)
		next.poll(NULL, 0, WOKE_EARLY_MS);
	return conn_phase_unclaimed(conn);
}

/* Sends request and early data behind the SYN, as far as the socket takes them. The conn is claimed. */
static enum conn_phase send_behind(struct conn *conn, int fd)
{
	enum conn_phase phase = conn_phase(conn);
	struct dial *dial = operations_dial(conn, fd);
	struct dial_end end;
	int ret = dial_send_rest(dial);

	if (ret == -EAGAIN)
		watch_mask(conn);
	if (ret < 0 && ret != -EAGAIN)
		return settle(conn, fd, dial_failed(dial, -ret, &end), &end);
	return phase_in(phase, PHASE(SYN_SENT) | PHASE(ASKED)) ? conn_phase_asked(conn) : phase;
}

static enum conn_phase send_with_syn(struct conn *conn, int fd)
{
	struct dial *dial = operations_dial(conn, fd);
	struct dial_end end;
	int ret = dial_send_deferred(dial);

	return ret < 0 ? settle(conn, fd, dial_failed(dial, -ret, &end), &end) : conn_phase_asked(conn);
}

/*
 * A conn that follows another process leaves output to that process. In BYPASS the kernel sends the application's bytes to the server:
 * there is no request for them to follow.
 */
bool conversion_takes_early(const struct conn *conn)
{
	return conn_phase(conn) == CONN_DEFERRED ||
	       (conn_in(conn, PHASES_TAKING_EARLY) &&
		(conn_has(conn, CONN_TOLD_CONNECTED) || conn_has(conn, CONN_TOLD_WRITABLE)) &&
		!conn->early.bytes && !conn->follows);
}

/*
 * Copies the application's first bytes, DIAL_EARLY_MAX at most. Returns the number of bytes taken: 0 if there is no memory, fewer than in @iov
 * if some are unreadable.
 */
static size_t early_keep(struct early *early, const struct iovec *iov, size_t count)
{
	uint8_t *memory = next_map(DIAL_EARLY_MAX);
	size_t len = 0;

	if (!memory)
		return 0;
	for (size_t i = 0; i < count; i++) {
		size_t part = iov[i].iov_len < DIAL_EARLY_MAX - len ? iov[i].iov_len : DIAL_EARLY_MAX - len;
		size_t got = usermem_read_part(memory + len, iov[i].iov_base, part);

		len += got;
		if (got < part) /* send(2), too, sends the readable part */
			break;
	}
	if (!len) {
		next_unmap(memory, DIAL_EARLY_MAX);
		return 0;
	}
	early->len = (uint16_t)len;
	early->bytes = memory;
	return len;
}

size_t conversion_send_early(struct conn *conn, int fd, const struct iovec *iov, size_t count, bool *syn_sent)
{
	enum conn_phase phase;
	struct conn_claim claim;
	size_t taken = 0;
	bool deferred;

	*syn_sent = false;
	if (!conn_claim(conn, PHASE(DEFERRED) | PHASES_TAKING_EARLY, &claim))
		return 0;
	phase = claim.from;
	*syn_sent = deferred = phase == CONN_DEFERRED; /* false if another thread has just sent the SYN */
	if (!conn->early.bytes && !conn->follows)
		taken = early_keep(&conn->early, iov, count);
	if (deferred)
		phase = send_with_syn(conn, fd);
	else if (taken && phase != CONN_RESOLVING) /* in RESOLVING, the next request carries them */
		phase = send_behind(conn, fd);
	conn_release(conn, phase, &claim);
	if (deferred && !watch_any(conn))
		conn_mark_unseen(conn, true);
	return taken;
}

void conversion_send_deferred(struct conn *conn, int fd)
{
	struct conn_claim claim;

	while (conn_claim_of(conn, fd, PHASE(DEFERRED), &claim))
		conn_release(conn, send_with_syn(conn, fd), &claim);
	if (!watch_any(conn))
		conn_mark_unseen(conn, true);
}

void conversion_send_all_deferred(int epfd)
{
	EACH_CONN (conn, PHASE(DEFERRED))
		if (conn_of(conn->fd) == conn && watch_may_be_in(conn, epfd))
			conversion_send_deferred(conn, conn->fd);
}

void conversion_hand_over(struct conn *conn, int fd)
{
	struct conn_claim claim;

	if (!conn_claim_of(conn, fd, PHASE(BYPASSED), &claim))
		return;
	settle_hand_over(conn, fd);
	conn_release(conn, CONN_DIRECT, &claim);
}

void conversion_look(void)
{
	int64_t first = conn_first_deadline(), now;

	if (!first)
		return;
	now = clock_ns();
	if (now < first)
		return;
	EACH_CONN (conn, PHASES_PENDING)
		if (conn_look_is_due(conn) && conn_of(conn->fd) == conn && !follow_is_reached(conn, conn->fd))
			conversion_progress(conn, conn->fd);
	conn_renew_deadlines(now);
}

short conversion_poll_events(const struct conn *conn)
{
	return conn_in(conn, PHASES_WANTING_OUTPUT) ? POLLIN | POLLOUT : POLLIN;
}

/* --- from connect() to the first SYN: asks a converter, the server itself, or nobody --- */

void conversion_init(const struct settings *settings)
{
	user_cache_init(settings);
	operations_init(settings);
}

bool conversion_enabled(void)
{
	return dial_host.settings && dial_host.settings->enabled;
}

/* Does the application want signals about the socket (O_ASYNC, fcntl(2))? */
static bool wants_signals(int fd)
{
	return next.fcntl(fd, F_GETFL) & O_ASYNC;
}

/* Resets the claimed conn for a new connect() call. */
static void call_begin(struct conn *conn, int fd, const union sockaddr_ip *server)
{
	struct conn_call call = {
		.bound = replace_is_bound(conn, fd),
		.fastopen_connect = kernel_get(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 0),
		.wants_signals = dial_host.settings->fail_closed && wants_signals(fd),
	};
	bool ring_may_use;

	call.uses_io_uring = rings_in_use(fd);
	call.ring_holds = call.uses_io_uring && rings_hold(fd);
	ring_may_use = call.uses_io_uring && !operations_may_block(conn, fd, 0);
	call.at_once = ring_may_use && ring_use_may_return(conn);
	conn_begin(conn, fd, call);
	if (conn->socket.left.sa.sa_family != AF_UNSPEC && !call.bound)
		operations_renew(conn, fd); /* leaves the network of the attempt before */
	operations_begin(conn, fd, server);
	conn->ring_may_use = ring_may_use;
}

/* Is Multipath TCP to the server itself, without a converter, the better way (Section 5.1)? */
static bool is_bypassed(const struct conn *conn, const union sockaddr_ip *server)
{
	return exchange_bypasses(dial_host.settings, server) && !path_preferences_restrict(host_preferences(dial_host.settings)) &&
	       (conn->socket.mptcp || replace_may_be_mptcp(conn));
}

/* Restores options and registrations if no connection was begun, so that the caller can leave the socket to the kernel. */
static void leave_unbegun(struct conn *conn, int fd)
{
	operations_end(conn, fd);
	watch_resume(conn);
	watch_unmask(conn);
}

/*
 * Has an attempt, of this connect() or an earlier one, left another socket or other options than the application's? Then settle() connects
 * it directly: by the application's connect() alone the kernel would use Multipath TCP, or refuse the address.
 */
static bool is_changed(const struct conn *conn)
{
	return conn->dial.tried || conn->socket.mptcp || conn->socket.shown_ipv4 || conn->socket.was_mapped;
}

/* Notes the direct connection for "convertize status", but not that it stays on this host. */
static void log_directly(int fd, const union sockaddr_ip *server, const char *reason)
{
	char text[SOCKADDR_STRLEN];

	if (reason != policy_reason(POLICY_DIRECT_LOCAL)) {
		user_cache_open(-1);
		note_direct(kernel_cookie(fd), server, reason);
	}

	log_line("%s: direct: %s", sockaddr_ip_format(server, text), reason);
}

/* Leaves @fd to the kernel for @reason, or connects a changed socket, on whichever network it takes. Returns as conversion_start(). */
static int go_directly(struct conn *conn, int fd, const union sockaddr_ip *server, const char *reason)
{
	const bool changed = is_changed(conn);
	struct conn_claim claim;
	bool placed;

	if (changed) {
		if (!conn_claim(conn, PHASE(IDLE), &claim))
			return 0; /* another thread connects the same socket */
		placed = conn->dial.start.placed;
		call_begin(conn, fd, server);
		conn->call.bound &= !placed; /* an attempt has bound it, and not the application */
		conn->dial.start.may_move = false;
		conn_release(conn, settle(conn, fd, DIAL_DIRECT, NULL), &claim);
	}
	log_directly(fd, server, reason);
	return changed ? 0 : CONVERSION_DIRECT;
}

/*
 * No converter could be asked: connects a changed socket directly, or decides between a direct connection by the kernel and an error.
 * Releases the conn. Returns as conversion_start().
 */
static int go_without_converter(struct conn *conn, int fd, struct dial_end *end, const struct conn_claim *claim)
{
	int ret = CONVERSION_DIRECT;

	conn->dial.start.may_move &= end->verdict == POLICY_CONVERT;
	if (dial_refused(&conn->dial, end) == DIAL_FAILED) {
		ret = -end->error;
	} else if (is_changed(conn)) {
		conn_release(conn, settle(conn, fd, DIAL_DIRECT, end), claim);
		return 0;
	} else if (path_start_bind_directly(&conn->dial.start, fd, conn_peer(conn)) < 0) {
		ret = -ENETUNREACH;
	} else {
		dial_note_direct(operations_dial(conn, fd));
	}
	leave_unbegun(conn, fd);
	conn_release(conn, CONN_IDLE, claim);
	return ret;
}

/* Asks the server itself, over Multipath TCP. Returns as conversion_start(). */
static int start_bypass(struct conn *conn, int fd, const union sockaddr_ip *server)
{
	static const char reason[] = "the server speaks Multipath TCP itself";
	struct conn_claim claim;
	int ret;

	if (!conn_claim(conn, PHASE(IDLE), &claim))
		return 0; /* another thread connects the same socket */
	call_begin(conn, fd, server);
	ret = bypass_begin(conn, fd);
	if (ret <= 0)
		log_directly(fd, server, reason);
	if (ret)
		leave_unbegun(conn, fd);
	conn_release(conn, ret ? CONN_IDLE : CONN_BYPASS, &claim);
	return ret > 0 ? go_directly(conn, fd, server, reason) : ret;
}

/* Returns why we don't convert a connection to @server, or NULL if we do. */
static const char *obstacle(const struct conn *conn, int fd, const union sockaddr_ip *server)
{
	enum policy_verdict verdict = policy_decide(dial_host.settings, server);

	if (verdict == POLICY_CONVERT && networks_is_own(server))
		verdict = POLICY_DIRECT_LOCAL;
	if (verdict != POLICY_CONVERT)
		return policy_reason(verdict);
	if (conn->socket.shut_for_reading)
		return "the socket was shut down before";
	return !dial_host.settings->fail_closed && wants_signals(fd) ? policy_reason(POLICY_DIRECT_SIGNALS) : NULL;
}

/* Does the kernel refuse to connect a socket of this family to @server? */
static bool is_of_other_family(int fd, const union sockaddr_ip *server)
{
	return server->sa.sa_family == AF_INET6 &&
	       (kernel_get(fd, SOL_SOCKET, SO_DOMAIN, AF_UNSPEC) == AF_INET ||
		(sockaddr_ip_is_v4(server) && kernel_get(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0)));
}

/* Is the socket of the network namespace that this thread is in, whose networks we know? */
static bool is_of_our_network(int fd)
{
	const uint64_t network = cache_network(fd), ours = cache_network(-1);

	return !network || !ours || network == ours;
}

/* Returns why a converter can't do what the socket is for, or NULL. */
static const char *hindrance(const struct conn *conn, int fd)
{
	if (options_are_for_the_peer(conn))
		return "the program authenticates the server by TCP, or repairs a connection";
	return is_of_our_network(fd) ? NULL : "the socket is of another network namespace";
}

void conversion_abandoned(const struct conn *conn)
{
	if (clock_ns() - conn->dial.started > dial_host.settings->timeout_ms * CLOCK_NS_PER_MS)
		converters_doubt(conn->dial.attempt.converter);
}

void conversion_conclude(struct conn *conn, int fd)
{
	struct conn_claim claim;

	conversion_finish(conn, fd, dial_host.settings->timeout_ms);
	if (conn_claim_of(conn, fd, PHASES_PENDING | PHASES_CONFIRMED, &claim))
		conn_release(conn, settle_unfinished(conn, fd), &claim);
}

void conversion_conclude_now(struct conn *conn, int fd)
{
	struct pollfd made = { .fd = fd, .events = POLLOUT };
	struct quiet quiet;

	if (conn_is_pending(conn))
		conversion_conclude(conn, fd);
	if (conn_phase(conn) != CONN_DIRECT)
		return;
	quiet_all(&quiet);
	next.poll(&made, 1, (int)dial_host.settings->timeout_ms);
	quiet_end(&quiet);
}

void conversion_conclude_all(bool (*concerns)(const struct conn *conn))
{
	struct conn_claim claim;

	if (conn_none_handled())
		return;
	conversion_finish_all(concerns);
	EACH_CONN (conn, PHASES_PENDING | PHASES_CONFIRMED)
		if (conn_claim_of(conn, conn->fd, PHASES_PENDING | PHASES_CONFIRMED, &claim))
			conn_release(conn, concerns(conn) ? settle_unfinished(conn, conn->fd) : claim.from, &claim);
}

static bool has_to_be_finished(const struct conn *conn)
{
	return !follow_is_silent(conn) && !conn->follows;
}

void conversion_before_fork(void)
{
	if (conn_none_handled() || !conn_is_owner())
		return;
	conversion_finish_all(has_to_be_finished);
	EACH_CONN (conn, PHASE(SYN_SENT))
		follow_note(conn, conn->fd);
}

int conversion_start(struct conn *conn, int fd, const union sockaddr_ip *server, bool fastopen)
{
	struct converters_query query;
	struct conn_claim claim;
	struct dial_end end;
	enum dial_state state;
	enum conn_phase phase;
	const char *reason;
	bool early_data, ring_waits;
	int ret;

	if (is_of_other_family(fd, server))
		return CONVERSION_DIRECT; /* the kernel reports the errno */
	reason = obstacle(conn, fd, server);
	if (!reason && (reason = hindrance(conn, fd)) && dial_host.settings->fail_closed)
		return -ENETUNREACH;
	if (reason)
		return go_directly(conn, fd, server, reason);
	ret = rights_ask(server);
	if (ret < 0)
		return ret;
	if (user_cache_open(fd))
		converters_forget();
	if (is_bypassed(conn, server) && !rings_in_use(fd)) /* a ring: nobody would check whether it stays Multipath TCP */
		return start_bypass(conn, fd, server);
	for (bool resolved = false;; resolved = true) {
		if (!conn_claim(conn, PHASE(IDLE), &claim))
			return 0; /* another thread connects the same socket */
		call_begin(conn, fd, server);
		early_data = fastopen || dial_host.settings->early_data || conn->call.fastopen_connect;
		state = dial_next(operations_dial(conn, fd), early_data && !conn->socket.streamed && !conn->call.uses_io_uring, &end);
		if (state != DIAL_RESOLVING || resolved)
			break;
		/* Resolves a name first, which may take long. */
		query = operations_query(conn, fd, server);
		conn_release(conn, CONN_IDLE, &claim);
		if (operations_resolve(query, &end))
			continue;
		if (!conn_claim(conn, PHASE(IDLE), &claim))
			return 0;
		state = DIAL_REFUSED;
		break;
	}
	if (state == DIAL_REFUSED)
		return go_without_converter(conn, fd, &end, &claim);
	phase = settle(conn, fd, state, &end);
	if (phase == CONN_DEFERRED) {
		conn_note(conn, CONN_TOLD_CONNECTED);
		watch_rearm(conn); /* the socket is writable already, and the kernel reports no edge for that */
	}
	ring_waits = conn->ring_may_use && !conn->dial.attempt.ask.blind;
	conn_release(conn, phase, &claim);
	if (ring_waits || conn->call.wants_signals)
		conversion_conclude(conn, fd);
	if (ring_waits)
		ring_use_waited(conn);
	return 0;
}

void conversion_before_signals(int fd)
{
	struct conn *conn = conn_handled(fd);
	struct conn_claim claim;

	if (!conn || dial_host.settings->fail_closed || !phase_in(conversion_progress(conn, fd), PHASES_WITHOUT_SIGNAL) ||
	    !conn_claim_of(conn, fd, PHASES_WITHOUT_SIGNAL, &claim))
		return;
	conn_release(conn, conn_has(conn, CONN_TOLD_CONNECTED) || conn_has(conn, CONN_WROTE) ? claim.from : settle_unfinished(conn, fd),
		     &claim);
}
