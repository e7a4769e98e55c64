/* SPDX-License-Identifier: BSD-3-Clause */
/* caller.c - sees whether a call still waits for its connection, and decides how the connection continues if not */
#include "config.h"

#include "supervise/connection.h"

#include "client/client_log.h"
#include "client/converters.h"
#include "common/clock.h"
#include "supervise/tracee.h"

#include <errno.h>

/* The kernel doesn't report signals, so the supervisor looks for them. More frequent looks would take a whole CPU if many calls wait. */
#define FIRST_LOOK_NS (100 * CLOCK_NS_PER_MS)
#define LOOK_NS (250 * CLOCK_NS_PER_MS)

void caller_begin(struct connection *connection)
{
	connection->caller_at = connection->dial.started + FIRST_LOOK_NS;
	connection->unfinished_errno = connection->kind == CONNECTION_UNDER_WAY && !connection->early ? EALREADY : EINPROGRESS;
	connection->limit = connection->nonblocking ? connection->dial.started + supervision.settings->timeout_ms * CLOCK_NS_PER_MS :
						      kernel_deadline(connection->fd, SO_SNDTIMEO, connection->dial.started);
}

/* Ends the attempt of a non-blocking call after CONVERT_TIMEOUT: connects directly, or fails. */
static void out_of_time(struct connection *connection)
{
	static const char reason[] = "no answer within CONVERT_TIMEOUT";

	if (connection->state == CONNECTION_ASKED && kernel_tcp_info(connection->dial.fd).tcpi_state == TCPINFO_SYN_SENT) {
		dial_blame_silence(&connection->dial);
	} else if (connection->state == CONNECTION_ASKED) {
		/* the converter has the request, and hasn't refused it */
		converters_admitted(connection->dial.attempt.converter, &connection->dial.server);
	}
	connection_disconnect(connection);
	if (supervision.settings->fail_closed) {
		progress_fail(connection, ETIMEDOUT, reason);
		return;
	}
	dial_log_direct(&connection->dial, false, reason);
	progress_go_directly(connection);
}

/*
 * Ends the call with @error, while the socket continues to connect as a direct one would. From now on no byte of Convert may come in its
 * stream. The program notices only that the connection takes a little longer.
 */
static void leave_call(struct connection *connection, int error, bool gone)
{
	struct caller_left left = {
		.direct = connection->state == CONNECTION_DIRECT,
		.stand_in = connection->dial.fd != connection->fd,
		.gone = gone,
		.blind = connection->state == CONNECTION_ASKED,
		.closed = supervision.settings->fail_closed,
	};
	enum caller_way way = caller_way(&left);

	connection->unfinished_errno = error == EINPROGRESS ? connection->unfinished_errno : error;
	connection->nonblocking = true;
	if (way != CALLER_AS_IT_IS)
		connection_disconnect(connection);
	if (way == CALLER_BLINDLY && !dial_blindly(&connection->dial)) {
		left.blind = false;
		left.stand_in = connection->dial.fd != connection->fd;
		way = caller_way(&left);
	}
	switch (way) {
	case CALLER_AS_IT_IS:
		if (progress_hand_over(connection))
			connection_answer(connection, 0, connection->unfinished_errno);
		break;
	case CALLER_BLINDLY:
		progress_blindly(connection);
		break;
	case CALLER_DIRECTLY:
		dial_log_direct(&connection->dial, false, "the program waits no longer");
		progress_go_directly(connection);
		break;
	case CALLER_ENDED:
		connection_answer(connection, 0, error == EINPROGRESS ? ETIMEDOUT : EINTR); /* nothing is in progress any more */
		break;
	}
}

/* Returns whether the program has shut its socket down while we connect a stand-in. Nobody else changes that socket. */
static bool stand_in_was_shut(const struct connection *connection)
{
	return connection->dial.fd != connection->fd && !connection->shut && kernel_is_shut(connection->fd);
}

void caller_look(struct connection *connection, bool caller, int64_t now)
{
	const bool gone = caller && !listener_is_waiting(supervision.listener, &connection->call);
	const struct caller_view view = {
		.limit = connection->limit,
		.interruption = caller && !gone && !connection->nonblocking ? tracee_interruption(connection->call.tid) : 0,
		.nonblocking = connection->nonblocking,
		.direct = connection->state == CONNECTION_DIRECT,
		.gone = gone,
		.shut = caller && !gone && stand_in_was_shut(connection),
	};
	int error;

	if (caller)
		connection->caller_at = now + LOOK_NS;
	switch (caller_judge(&view, now, &error)) {
	case CALLER_WAITS:
		break;
	case CALLER_OUT_OF_TIME:
		log_about(connection->call.tid);
		out_of_time(connection);
		break;
	case CALLER_LEAVE:
		log_about(connection->call.tid);
		leave_call(connection, error, gone);
		break;
	case CALLER_SHUT:
		log_about(connection->call.tid);
		progress_shut(connection);
		break;
	}
}

/* --- the decisions (no I/O) --- */

/*
 * When a call ends early, by a signal or by SO_SNDTIMEO, a direct connection continues in the kernel: the program may wait for it by
 * poll(), call connect() again, or let the kernel do that (SA_RESTART). But nobody would take off a converter's response. So the socket
 * continues with a connection that has no response: a blind request, or a direct connection.
 */

enum caller_verdict caller_judge(const struct caller_view *call, int64_t now, int *error)
{
	const bool over = call->limit && now >= call->limit;

	*error = EINTR;
	if (call->gone)
		return CALLER_LEAVE;
	if (call->shut)
		return CALLER_SHUT;
	if (call->nonblocking)
		return over && !call->direct ? CALLER_OUT_OF_TIME : CALLER_WAITS;
	if (over)
		*error = EINPROGRESS;
	else if (call->interruption && !call->limit) /* a call with a time-out isn't made again: signal(7) */
		*error = call->interruption;
	return over || call->interruption ? CALLER_LEAVE : CALLER_WAITS;
}

enum caller_way caller_way(const struct caller_left *left)
{
	if (left->gone && left->stand_in)
		return CALLER_ENDED; /* the program's socket itself was never connected */
	if (left->direct)
		return CALLER_AS_IT_IS;
	if (left->blind)
		return CALLER_BLINDLY;
	return left->gone || left->closed ? CALLER_ENDED : CALLER_DIRECTLY;
}

int64_t caller_sooner(int64_t one, int64_t other)
{
	return one && (!other || one < other) ? one : other;
}

int caller_wait_ms(int64_t at, int64_t now)
{
	if (!at)
		return -1;
	return at <= now ? 1 : (int)((at - now) / CLOCK_NS_PER_MS) + 1;
}
