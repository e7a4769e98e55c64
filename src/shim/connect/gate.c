/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gate.c - may the application send or receive now?
 *
 * An application that was never told "writable" can still send and receive: it may not wait at all, wait where the hooks can't see it, or
 * use another thread. Before input we take the response off the stream; without one, input fails as on a socket in SYN_SENT. Before output
 * we send the rest of the request; then we leave output to the kernel, and the converter keeps the bytes for the server.
 */
#include "config.h"

#include "shim/connect/gate.h"

#include "shim/connect/conversion.h"
#include "shim/system/next.h"

#include <errno.h>
#include <fcntl.h>

static const struct gate gate_open = { .pass = true };

static struct gate gate_closed(int ret)
{
	return (struct gate){ .pass = false, .ret = ret };
}

bool gate_may_block(const struct conn *conn, int fd, int flags)
{
	uint32_t mode_changes;
	int status;

	if (flags & MSG_DONTWAIT)
		return false;
	mode_changes = conn ? atomic_load(&conn->mode_changes) : 0;
	status = next.fcntl(fd, F_GETFL);
	if (status < 0 || !(status & O_NONBLOCK))
		return status >= 0;
	/* If the count is odd or has changed, another thread has set O_NONBLOCK for a moment, which it does only on blocking sockets. */
	return conn && ((mode_changes & 1) || atomic_load(&conn->mode_changes) != mode_changes);
}

static struct gate input_at_last(struct conn *conn, int fd, int flags)
{
	enum conn_phase phase;
	int ret;

	if (conn_phase(conn) == CONN_HELD) /* the application waits for the server to speak first */
		conversion_send_held(conn, fd);
	phase = conversion_progress(conn, fd);
	if (phase_in(phase, PHASES_PENDING | PHASES_CONFIRMED)) {
		if (!gate_may_block(conn, fd, flags))
			return gate_closed(-EAGAIN);
		ret = conversion_wait_for(conn, fd, SO_RCVTIMEO);
		if (ret)
			return gate_closed(ret);
		phase = conn_phase(conn);
	}
	/* The error once, then the end of the stream, like TCP after a refused connection. */
	return phase_in(phase, PHASES_FAILED) ? gate_closed(-conn_take_error(conn)) : gate_open;
}

struct gate gate_input_slow(struct conn *conn, int fd, int flags)
{
	int saved_errno = errno;
	struct gate gate = input_at_last(conn, fd, flags);

	errno = saved_errno;
	return gate;
}

bool gate_is_writable(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };

	return next_poll_now(&ready, 1) > 0;
}

/*
 * Notes that output follows the request, which was sent: from now on we can't ask another converter. It does so under the claim, so that a
 * thread that is about to begin anew can't miss it. Returns false if output can't follow the request.
 */
static bool note_output(struct conn *conn, int fd)
{
	struct conn_claim claim;
	bool follows;

	if (!conn_claim(conn, PHASE(ASKED) | PHASE(BYPASS), &claim))
		return false;
	follows = gate_is_writable(fd);
	if (follows)
		conn_note(conn, CONN_WROTE);
	conn_release(conn, claim.from, &claim);
	return follows;
}

/*
 * Decides about output before the server's answer. A socket in SYN_SENT takes none, and neither does this one while its application waits
 * where the hooks see it. If it waits out of their sight, the kernel may have reported "writable" at the SYN+ACK, and won't do so again:
 * then we must take its output.
 */
static struct gate gate_output_pending(struct conn *conn, int fd, int flags)
{
	int ret;

	if (gate_may_block(conn, fd, flags)) {
		ret = conversion_wait_for(conn, fd, SO_SNDTIMEO);
		return ret ? gate_closed(ret) : gate_open;
	}
	/*
	 * An edge-triggered registration that we couldn't see has reported "writable" after the handshake with the converter, and won't do
	 * so again. So we let output go, and the converter keeps it. But it must not overtake the request, nor early data, of which we keep
	 * only the first bytes for another converter.
	 */
	if (conn_has(conn, CONN_TOLD_CONNECTED) || !conn_has(conn, CONN_TOLD_WRITABLE))
		return gate_closed(-EAGAIN);
	return note_output(conn, fd) || !conn_is_pending(conn) ? gate_open : gate_closed(-EAGAIN);
}

struct gate gate_output_slow(struct conn *conn, int fd, int flags)
{
	int error = 0, saved_errno = errno;
	struct gate gate = gate_open;

	if (conn_phase(conn) == CONN_HELD)
		conversion_send_held(conn, fd);
	if (phase_in(conversion_progress(conn, fd), PHASES_PENDING))
		gate = gate_output_pending(conn, fd, flags);
	if (gate.pass && conn_has_failed(conn))
		error = conn_take_error(conn);
	errno = saved_errno;
	return error ? gate_closed(-error) : gate;
}
