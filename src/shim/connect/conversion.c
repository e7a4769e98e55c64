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

#include "shim/connect/settle.h"
#include "shim/connect/follow.h"
#include "shim/connect/operations.h"
#include "shim/socket/early.h"
#include "shim/system/next.h"
#include "shim/wait/deadlines.h"
#include "shim/wait/watch.h"

#include <errno.h>

#define IN_VAIN_MS 2

/* In these phases, output before the server's answer is early data, which follows the request. */
#define PHASES_TAKING_EARLY (PHASE(RESOLVING) | PHASE(SYN_SENT) | PHASE(ASKED) | PHASE(EARLY_DIRECT))

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

	return conn_phase(conn) == CONN_RESOLVING || deadlines_is_over(conn) || next_poll_now(&ready, 1) != 0;
}

enum conn_phase conversion_progress(struct conn *conn, int fd)
{
	struct dial_end end;
	struct conn_claim claim;
	enum conn_phase phase;
	bool in_vain = false;
	int saved_errno = errno; /* a call that succeeds leaves errno as it was */

	while (conn_in(conn, PHASES_PENDING | PHASES_CONFIRMED) && conversion_can_step(conn, fd)) {
		if (conn_phase(conn) == CONN_RESOLVING)
			operations_resolve(conn, fd, conn_peer(conn), &end);
		if (!conn_claim_of(conn, fd, PHASES_PENDING | PHASES_CONFIRMED, &claim))
			break;
		phase = conn->call.follows ? follow_step(conn, fd) : step(conn, fd, claim.from);
		in_vain = conn->dial.attempt.in_vain;
		conn->dial.attempt.in_vain = false;
		conn_release(conn, phase, &claim);
		if (conn_phase(conn) != CONN_RESOLVING)
			break;
	}
	if (in_vain)
		next.poll(NULL, 0, IN_VAIN_MS);
	errno = saved_errno;
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
	int ret = dial_send_held(dial);

	return ret < 0 ? settle(conn, fd, dial_failed(dial, -ret, &end), &end) : conn_phase_asked(conn);
}

/*
 * A conn that follows another process leaves output to that. A server that is asked itself gets the application's bytes from the kernel:
 * they must not follow a request.
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
	*went = held = phase == CONN_HELD; /* false if another thread has just sent the SYN */
	if (!conn->early.bytes && !conn->call.follows)
		taken = early_keep(&conn->early, iov, count);
	if (held)
		phase = send_with_syn(conn, fd);
	else if (taken && phase != CONN_RESOLVING) /* in RESOLVING, the next request carries them */
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
