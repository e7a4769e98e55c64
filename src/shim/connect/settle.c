/* SPDX-License-Identifier: BSD-3-Clause */
/* settle.c - turns the result of a step of the engine into a phase, shows the end to the application, and connects directly */
#include "config.h"

#include "client/client_log.h"
#include "client/converters.h"
#include "common/thread.h"
#include "shim/socket/app_options.h"
#include "shim/connect/connect.h"
#include "shim/system/next.h"
#include "shim/wait/watch.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>

/*
 * If the server causes the end, the application gets its error. We disconnect the socket, which sends the reset that Section 6.2.8 wants;
 * to poll and epoll it then looks as if its connection was refused.
 */

void settle_hand_over(struct conn *conn, int fd)
{
	operations_end(conn, fd);
	if (conn->call.shut)
		next.shutdown(fd, conn->call.shut - 1); /* SHUT_RD, SHUT_WR, SHUT_RDWR */
	conn_drop_early(conn);
	watch_restore(conn);
}

static enum conn_phase settle_confirmed(struct conn *conn, int fd)
{
	kernel_keepalive_end(fd, &conn->socket.keepalive);
	conn_drop_early(conn);
	watch_show(conn);
	return CONN_CONFIRMED;
}

/* Disconnects a socket whose server wasn't reached. @error: the errno for the application */
static enum conn_phase settle_failed(struct conn *conn, int fd, int error, const char *reason)
{
	if (conn_is_confirmed(conn) || conn_has(conn, CONN_WROTE))
		watch_mask(conn); /* so that the kernel reports its events anew */
	operations_end(conn, fd);
	conn_drop_early(conn);
	dial_log(&conn->dial, "failed: ", reason);
	kernel_disconnect(fd);
	replace_note_address(conn, fd);
	atomic_store(&conn->error, error);
	watch_resume(conn);
	watch_fail(conn);
	return CONN_FAILED;
}

/* Does the same with the kernel's error for the socket, or else with @error. */
static enum conn_phase settle_broken(struct conn *conn, int fd, int error)
{
	error = operations_error(conn, fd, error);
	return settle_failed(conn, fd, error, error_text(error));
}

/* Returns 0 or -errno. */
static int connect_directly(struct conn *conn, int fd)
{
	union sockaddr_ip server = conn->dial.server;
	int ret = operations_fit(conn, fd, &server, false);

	if (ret < 0)
		return ret;
	conn->dial.attempt = (struct attempt){
		.addr = conn->dial.server,
		.direct = true,
		/* We may also have bytes of an application that was only told "writable". */
		.want_output = conn_has(conn, CONN_TOLD_CONNECTED) || conn->early.bytes,
	};
	conn_set_deadline(conn, 0);
	operations_fastopen_off(conn, fd);
	kernel_set(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 0);
	operations_leave_device(conn, fd);
	ret = path_start_bind_directly(&conn->dial.start, fd, &server);
	if (ret == 0)
		ret = operations_connect(conn, fd, &server);
	replace_note_address(conn, fd);
	watch_resume(conn);
	if (ret < 0 && ret != -EINPROGRESS)
		return ret;
	dial_note_direct(operations_dial(conn, fd));
	if (conn->dial.attempt.want_output)
		watch_mask(conn);
	return 0;
}

/*
 * settle_directly() - connect to the server over plain TCP
 * Returns EARLY_DIRECT if there is early data to send, or the application believes that it is connected; else DIRECT, which leaves the
 * socket to the kernel; FAILED if the kernel refuses.
 */
static enum conn_phase settle_directly(struct conn *conn, int fd)
{
	int ret = connect_directly(conn, fd);

	if (ret < 0)
		return settle_failed(conn, fd, -ret, error_text(-ret));
	if (conn->dial.attempt.want_output)
		return CONN_EARLY_DIRECT;
	settle_hand_over(conn, fd);
	return CONN_DIRECT;
}

enum conn_phase settle_early_data(struct conn *conn, int fd)
{
	int ret = dial_send_rest(operations_dial(conn, fd));

	if (ret == -EAGAIN)
		return CONN_EARLY_DIRECT;
	if (ret < 0)
		return settle_broken(conn, fd, -ret);
	settle_hand_over(conn, fd);
	return CONN_DIRECT;
}

/*
 * Goes on after a failed blind request. If the application hasn't used the connection and waits for it now (ring_use.c), we make the
 * request again, not blindly. If it was reset or refused after CONVERT_TIMEOUT, or we can't replace the socket, we connect directly.
 * Otherwise the application gets the error, and the next request isn't silent, so that it shows a failure of the converter.
 */
static enum conn_phase settle_blind(struct conn *conn, int fd, struct dial_end *end)
{
	const struct attempt *attempt = &conn->dial.attempt;
	const bool in_time = clock_ns() < attempt->ends;
	const int converter = attempt->converter;
	char text[SOCKADDR_STRLEN];

	/* The reset may come from a converter that has lost the request, or has waited as long as it may for a slow server. */
	if ((in_time || end->error == ECONNRESET || end->error == ECONNREFUSED) && ring_use_take_back(conn, fd)) {
		if (in_time && ring_use_renew(conn, fd)) {
			log_line("%s: the blind request failed: %s; asked again for an application that waits",
				 sockaddr_ip_format(&conn->dial.server, text), end->reason);
			return settle(conn, fd, dial_anew(operations_dial(conn, fd), end->way, end), end);
		}
		if (!dial_host.settings->fail_closed) {
			dial_log_direct(&conn->dial, true, end->reason);
			return settle_directly(conn, fd);
		}
	}
	converters_doubt_silence(converter);
	return settle_failed(conn, fd, end->error, end->reason);
}

enum conn_phase settle(struct conn *conn, int fd, enum dial_state state, struct dial_end *end)
{
	switch (state) {
	case DIAL_IN_PROGRESS:
		return conn->dial.confirmed ? CONN_CONFIRMED : conn_phase_asked(conn);
	case DIAL_DEFERRED:
		return CONN_DEFERRED;
	case DIAL_RESOLVING:
		return CONN_RESOLVING;
	case DIAL_CONFIRMED:
		return settle_confirmed(conn, fd);
	case DIAL_REACHED:
		settle_hand_over(conn, fd);
		return CONN_DONE;
	case DIAL_REFUSED:
	case DIAL_DIRECT:
		return settle_directly(conn, fd);
	case DIAL_BLIND:
		return settle_blind(conn, fd, end);
	case DIAL_FAILED:
		break;
	}
	return settle_failed(conn, fd, end->error, end->reason);
}

enum conn_phase settle_unfinished(struct conn *conn, int fd)
{
	static const char reason[] = "nobody can wait for the handshake";

	if (conn->follows)
		return settle_given_up_here(conn);
	if (conn_has(conn, CONN_WROTE) || conn_is_confirmed(conn))
		return settle_failed(conn, fd, ECONNRESET, reason);
	if (dial_host.settings->fail_closed)
		return settle_failed(conn, fd, ETIMEDOUT, reason);
	operations_end(conn, fd);
	kernel_disconnect(fd);
	dial_log_direct(&conn->dial, false, reason);
	return settle_directly(conn, fd);
}

enum conn_phase settle_given_up_here(struct conn *conn)
{
	dial_log(&conn->dial, "failed here: ", "the handshake is another process's");
	watch_forget(conn);
	conn_drop_early(conn);
	conn->socket.rcvlowat = 0;
	conn->socket.keepalive.probing = false;
	conn_set_deadline(conn, 0);
	replace_sever(conn);
	atomic_store(&conn->error, ECONNREFUSED); /* only the other process knows the result */
	return CONN_FAILED;
}

/* --- connections over Multipath TCP to a server that speaks it, without a converter --- */

int bypass_begin(struct conn *conn, int fd)
{
	union sockaddr_ip server = conn->dial.server;
	int ret;

	conn->dial.attempt = (struct attempt){ .addr = server, .direct = true };
	ret = operations_fit(conn, fd, &server, replace_may_be_mptcp(conn));
	if (ret < 0)
		return ret;
	if (conn->socket.mptcp) {
		lowat_hold(conn, fd);
		operations_fastopen_off(conn, fd);
		conn->dial.attempt.synack_due = true;
		watch_mask(conn);
		conn_set_deadline(conn, 0);
		ret = operations_connect(conn, fd, &server);
		ret = ret == -EINPROGRESS ? 0 : ret;
	} else {
		ret = 1;
	}
	watch_resume(conn);
	return ret;
}

/* Connects over TCP to a server that doesn't speak Multipath TCP after all. */
static enum conn_phase fall_back(struct conn *conn, int fd)
{
	char text[SOCKADDR_STRLEN];

	log_line("%s: no Multipath TCP without the converter", sockaddr_ip_format(&conn->dial.server, text));
	servers_note_no_bypass(&conn->dial.server);
	conn->dial.direct_reason = "no Multipath TCP without the converter";
	if (conn_has(conn, CONN_WROTE) || conn_is_confirmed(conn))
		return settle_failed(conn, fd, ECONNRESET, "Multipath TCP to the server was lost behind the handshake");
	operations_end(conn, fd);
	kernel_disconnect(fd);
	return settle_directly(conn, fd);
}

enum conn_phase bypass_step(struct conn *conn, int fd)
{
	const struct tcp_info info = kernel_tcp_info(fd);
	const bool accepted = conn_is_confirmed(conn);
	bool lost;
	char byte;

	if (info.tcpi_state == TCPINFO_SYN_SENT)
		return CONN_BYPASS;
	if (info.tcpi_state == TCPINFO_CLOSE && !accepted)
		return settle_broken(conn, fd, ECONNREFUSED);
	lost = kernel_has_fallen_back(fd);
	if (!accepted && !lost && !conn->socket.streamed) {
		conn->dial.attempt.synack_due = false;
		watch_show(conn);
		return CONN_BYPASSED;
	}
	if (accepted && next.recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN)
		return CONN_BYPASSED;
	if (lost && info.tcpi_state != TCPINFO_CLOSE)
		return fall_back(conn, fd);
	settle_hand_over(conn, fd);
	return CONN_DIRECT;
}
