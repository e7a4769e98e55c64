/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * follow.c - silent requests whose end other processes learn, too
 *
 * The problem: fork() copies our knowledge of an unfinished connection, and exec() gives its socket to a program. Exactly one process would
 * have to take a response off the stream. So conversion_before_fork() finishes handshakes with a response before.
 *
 * A silent request only needs a look: once the SYN+ACK has come, TCP_INFO shows to each process with the socket that the stream is the
 * server's. Such connections continue in all processes:
 *
 *   the asker      began the connection. It continues as if alone: asks again, takes a response off, connects directly.
 *   a follower     has it from the asker (conn.follows). It looks, and changes nothing about the socket:
 *     the SYN+ACK shows that there is no response     DONE
 *     anything else: a response, a reset, a deadline,
 *     another SYN, which has another local port       FAILED, with an unconnected socket in its place: replace_sever()
 *
 * A silent request that asks whether the server speaks Multipath TCP counts as one with a response, since it gets one if the server does.
 *
 * A follower becomes DONE not at a deadline, but when its application waits for the socket or uses it: follow_is_reached(). DONE restores
 * epoll registrations, which both processes have. If only the asker's application uses the socket, it may have changed them by then.
 *
 * So no follower sees a byte that isn't the server's, or hinders the asker. The price: if the SYN was lost, or the server refuses, a
 * follower gets ECONNREFUSED while the asker continues. If the asker has ended by then, its connection fails as well.
 *
 * Handshakes that couldn't be finished before a fork(), and those that another thread begins during the fork, belong to the asker alone:
 * they fail in the child in the same way.
 *
 * We note the local port before the fork. A look reads the facts first and the port afterwards, so that it never believes the facts of a
 * later SYN, which may not be silent.
 */
#include "config.h"

#include "common/clock.h"
#include "shim/connect/connect.h"
#include "shim/system/next.h"

static uint16_t local_port(int fd)
{
	union sockaddr_ip addr = { .sa.sa_family = AF_UNSPEC };
	socklen_t len = sizeof(addr);

	/* both families have the port in the same place */
	return next.getsockname(fd, &addr.sa, &len) == 0 ? addr.in.sin_port : 0;
}

bool follow_is_silent(const struct conn *conn)
{
	const struct attempt *attempt = &conn->dial.attempt;

	return conn_phase(conn) == CONN_SYN_SENT && attempt->silence_due && !attempt->ask.mptcp && !attempt->want_output;
}

bool follow_is_possible(const struct conn *conn)
{
	return follow_is_silent(conn) && conn->dial.attempt.local_port;
}

void follow_note(struct conn *conn, int fd)
{
	struct conn_claim claim;

	if (!conn_claim_of(conn, fd, PHASE(SYN_SENT), &claim))
		return;
	/* a follower has the asker's port; the socket may have another one by now */
	if (!conn->follows && follow_is_silent(conn))
		conn->dial.attempt.local_port = local_port(fd);
	conn_release(conn, claim.from, &claim);
}

static enum silence silence_of(const struct conn *conn, const struct tcp_info *info)
{
	if (!conn->dial.attempt.silence_due)
		return SILENCE_NONE;
	if (info->tcpi_state == TCPINFO_UNKNOWN || info->tcpi_state == TCPINFO_SYN_SENT)
		return SILENCE_OPEN;
	/* The options are the handshake's. So if a closed connection has them, it was accepted before. */
	return synack_is_silent(info->tcpi_options) ? SILENCE_KEPT : SILENCE_NONE;
}

void follow_adopt(struct conn *conn)
{
	struct attempt *attempt = &conn->dial.attempt;

	attempt->ends = conn->dial.started + dial_host.settings->timeout_ms * CLOCK_NS_PER_MS;
	conn_set_deadline(conn, attempt->ask.blind ? 0 : attempt->ends);
}

enum silence follow_look(const struct conn *conn, int fd)
{
	const struct tcp_info info = kernel_tcp_info(fd);
	const enum silence silence = silence_of(conn, &info);

	if (silence == SILENCE_KEPT && conn->socket.mptcp && kernel_has_fallen_back(fd))
		return SILENCE_NONE;
	return local_port(fd) == conn->dial.attempt.local_port ? silence : SILENCE_NONE;
}

enum conn_phase follow_step(struct conn *conn, int fd)
{
	const enum silence silence = follow_is_possible(conn) ? follow_look(conn, fd) : SILENCE_NONE;

	if (silence == SILENCE_KEPT) {
		dial_log(&conn->dial, "converted", " by another process");
		settle_hand_over(conn, fd);
		return CONN_DONE;
	}
	if (silence == SILENCE_OPEN && !conn_look_is_due(conn))
		return CONN_SYN_SENT;
	if (silence == SILENCE_OPEN && clock_ns() < conn->dial.attempt.ends) {
		conn_set_deadline(conn, conn->dial.attempt.ends);
		return CONN_SYN_SENT;
	}
	return settle_given_up_here(conn);
}

bool follow_is_reached(struct conn *conn, int fd)
{
	struct conn_claim claim;
	bool reached;

	if (!conn->follows || !conn_claim_of(conn, fd, PHASE(SYN_SENT), &claim))
		return false;
	reached = follow_is_possible(conn) && follow_look(conn, fd) == SILENCE_KEPT;
	if (reached)
		conn_set_deadline(conn, 0);
	conn_release(conn, claim.from, &claim);
	return reached;
}

void follow_in_child(void)
{
	struct conn_claim claim;

	path_start_repair_in_child();
	if (conn_none_handled())
		return;
	EACH_CONN (conn, PHASES_UNFINISHED) {
		conn->follows = true;
		if (!follow_is_possible(conn) && conn_claim(conn, PHASES_UNFINISHED, &claim))
			conn_release(conn, settle_given_up_here(conn), &claim);
	}
}
