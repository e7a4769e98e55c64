/* SPDX-License-Identifier: BSD-3-Clause */
/* caller.c - whether a call still waits for its connection, and what becomes of that when it doesn't; course.c says why */
#include "config.h"

#include "supervise/caller.h"

#include "client/converters_destinations.h"
#include "client/exchange.h"
#include "common/clock.h"
#include "supervise/connection_operations.h"
#include "supervise/course.h"
#include "supervise/ends.h"
#include "supervise/kernel.h"
#include "client/client_log.h"
#include "supervise/tracee.h"

#include <errno.h>

/* The kernel tells of no signal, so that is looked for: so soon, and so often from then on, since many that wait would take all of a CPU. */
#define FIRST_LOOK_NS (100 * CLOCK_NS_PER_MS)
#define LOOK_NS (250 * CLOCK_NS_PER_MS)

void caller_begin(struct connection *connection)
{
	const int64_t timeout = connection->nonblocking ? supervision.settings->timeout_ms * CLOCK_NS_PER_MS :
							  kernel_send_timeout(connection->fd);

	connection->caller_at = connection->dial.started + FIRST_LOOK_NS;
	connection->unfinished = EINPROGRESS;
	if (timeout)
		connection->limit = connection->dial.started + timeout;
}

/* The time of a call that must not wait is over. */
static void out_of_time(struct connection *connection)
{
	static const char reason[] = "no answer within CONVERT_TIMEOUT";
	struct handshake_step why;

	if (connection->state == CONNECTION_ASKED && kernel_tcp_info(connection->sock).tcpi_state == TCPINFO_SYN_SENT) {
		why = exchange_silent(connection->dial.attempt.converter, &connection->dial.server, false);
		exchange_failed(connection->dial.attempt.converter, &connection->dial.server, &why);
	} else if (connection->state == CONNECTION_ASKED) {
		converters_admitted(connection->dial.attempt.converter, &connection->dial.server); /* it has the request, and would have refused it */
	}
	connection_disconnect(connection);
	if (supervision.settings->fail_closed) {
		ends_fail(connection, ETIMEDOUT, reason);
		return;
	}
	dial_log(&connection->dial, "direct, ", reason);
	ends_go_directly(connection);
}

/*
 * The call ends with an error, while the socket goes on connecting as a direct one would; but nothing of Convert's may come in its stream
 * any more. Whoever has the socket sees no more of it than that the connection takes a little longer.
 */
static void leave(struct connection *connection, int error, bool gone)
{
	struct course_left left = {
		.direct = connection->state == CONNECTION_DIRECT,
		.stand_in = connection->sock != connection->fd,
		.gone = gone,
		.blind = connection->state == CONNECTION_ASKED,
		.closed = supervision.settings->fail_closed,
	};
	enum course_way way = course_leave(&left);

	connection->unfinished = error;
	connection->nonblocking = true;
	if (way != COURSE_AS_IT_IS) {
		connection_disconnect(connection);
	}
	if (way == COURSE_BLINDLY && !dial_blindly(&connection->dial)) {
		left.blind = false;
		left.stand_in = connection->sock != connection->fd;
		way = course_leave(&left);
	}
	switch (way) {
	case COURSE_AS_IT_IS:
		if (ends_hand_over(connection))
			connection_answer(connection, 0, error);
		break;
	case COURSE_BLINDLY:
		ends_blindly(connection);
		break;
	case COURSE_DIRECTLY:
		dial_log(&connection->dial, "direct, ", "the call was interrupted");
		ends_go_directly(connection);
		break;
	case COURSE_ENDED:
		connection_answer(connection, 0, EINTR);
		break;
	}
}

/* While a stand-in is connected, the program's own socket is as it was, but for what the program does to it. */
static bool was_shut(const struct connection *connection)
{
	return connection->sock != connection->fd && !connection->shut && kernel_is_shut(connection->fd);
}

bool caller_look(struct connection *connection, bool caller, int64_t now)
{
	const bool gone = caller && !listener_is_waiting(supervision.listener, &connection->call);
	const struct course_call view = {
		.limit = connection->limit,
		.interruption = caller && !gone && !connection->nonblocking ? tracee_interruption(connection->call.tid) : 0,
		.nonblocking = connection->nonblocking,
		.direct = connection->state == CONNECTION_DIRECT,
		.gone = gone,
		.shut = caller && !gone && was_shut(connection),
	};
	int error;

	if (caller)
		connection->caller_at = now + LOOK_NS;
	switch (course_of_call(&view, now, &error)) {
	case COURSE_ON:
		return true;
	case COURSE_OUT_OF_TIME:
		log_about(connection->call.tid);
		out_of_time(connection);
		break;
	case COURSE_LEAVE:
		log_about(connection->call.tid);
		leave(connection, error, gone);
		break;
	case COURSE_SHUT:
		log_about(connection->call.tid);
		ends_shut(connection);
		break;
	}
	return false;
}
