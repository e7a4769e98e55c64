/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shared_handshake.c - unfinished handshakes that other processes have, too
 *
 * fork() copies what we know of a pending socket, but both processes go on with the same
 * stream. Nothing is agreed upon in memory: a process may be killed at any moment, and
 * another program has none in common with us. Instead the kernel is asked what has happened:
 *
 * - Bytes received less bytes that can be read are the bytes taken off the stream. A response is
 *   taken in one call, so either none are, or a response was.
 * - A socket whose peer is the server was connected directly; one that has neither a peer nor
 *   an error, and isn't connecting, was given up, or a process was killed before it could connect
 *   it again. TCP_FASTOPEN_NO_COOKIE, which is set before each SYN, is cleared in the first case. Where
 *   another socket has taken its place in the other process, SO_RCVLOWAT has a value that nobody sets.
 * - Another local port than before means another SYN: the next converter was asked, or the
 *   same one with a cookie.
 * - Bytes sent and to be sent tell how much of the message is on its way, and a segment
 *   that was sent that a held SYN has gone.
 *
 * Looking and acting is one step to other processes by a POSIX record lock on the socket
 * itself (fcntl(2); Linux has them for any file). It belongs to the process, so a child
 * doesn't inherit it and the kernel drops it when the process ends. Threads of a process
 * exclude each other by conn_claim() before. Closing a duplicate in another thread at the very
 * moment of a step would drop the lock as well: that we live with.
 *
 * Before a fork() each pending conn is marked, while no thread is in the middle of a step of
 * it; steps that begin afterwards take the lock.
 */
#include "config.h"

#include "shim/connect/shared_handshake.h"

#include "shim/socket/mptcpinfo.h"
#include "shim/system/next.h"
#include "shim/system/sockopt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>

#define MOVED_MARK 0x6c63 /* bytes */

/* A response has 4 bytes at least; the end of the stream may count as one, on either side. */
#define FEWEST_TAKEN 3

/* Reads TCP's counters; of an MPTCP socket those of its first subflow, on which the response comes. Returns whether the kernel has them. */
static bool tcp_counters(int fd, struct tcp_info *out)
{
	socklen_t len = sizeof(*out);

	return next.getsockopt(fd, IPPROTO_TCP, TCP_INFO, out, &len) == 0 && len == sizeof(*out);
}

/* Returns how many bytes of the stream have arrived in order, -1 if the kernel doesn't say. */
static int64_t bytes_received(int fd)
{
	struct mptcpinfo mptcp;
	struct tcp_info tcp;

	if (mptcpinfo_of(fd, &mptcp))
		return (int64_t)mptcp.bytes_received;
	return tcp_counters(fd, &tcp) ? (int64_t)tcp.tcpi_bytes_received : -1;
}

/*
 * Has something been taken off the stream? What arrives between the two questions can hide that
 * something was, so they are asked again until nothing has.
 */
static bool response_is_taken(int fd)
{
	int64_t before, after = bytes_received(fd);
	int readable;

	do {
		before = after;
		if (before < 0 || next.ioctl(fd, FIONREAD, &readable) < 0)
			return false;
		if (before - readable >= FEWEST_TAKEN)
			return true;
		after = bytes_received(fd);
	} while (after != before);
	return false;
}

/* Is the socket neither connected nor connecting, with no error waiting to be told? */
static bool is_disconnected(int fd)
{
	struct pollfd state = { .fd = fd, .events = POLLOUT };

	return next_poll_now(&state, 1) > 0 && (state.revents & (POLLHUP | POLLERR)) == POLLHUP;
}

enum shared_handshake_news shared_handshake_look(const struct conn *conn, int fd)
{
	union sockaddr_ip peer;
	socklen_t len = sizeof(peer);
	bool connected;

	if (conn_in(conn, PHASE(EARLY_DIRECT) | PHASE(BYPASS) | PHASE(BYPASSED)))
		return SHARED_HANDSHAKE_PENDING; /* what is sent, and the SYN+ACK, tell the rest */
	connected = next.getpeername(fd, &peer.sa, &len) == 0;
	if (connected && sockaddr_ip_equal(&peer, &conn->call.peer))
		return SHARED_HANDSHAKE_DIRECT;
	if (response_is_taken(fd))
		return SHARED_HANDSHAKE_DONE;
	if (connected || conn_phase(conn) == CONN_RESOLVING || !is_disconnected(fd))
		return SHARED_HANDSHAKE_PENDING;
	if (sockopt_get(fd, SOL_SOCKET, SO_RCVLOWAT, 0) == MOVED_MARK)
		return SHARED_HANDSHAKE_MOVED;
	return sockopt_get(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 0) ? SHARED_HANDSHAKE_LEFT : SHARED_HANDSHAKE_FAILED;
}

void shared_handshake_move(int fd)
{
	const int mark = MOVED_MARK;

	next.setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark));
}

void shared_handshake_give_up(int fd)
{
	const int off = 0;

	next.setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &off, sizeof(off));
}

uint16_t shared_handshake_local_port(int fd)
{
	union sockaddr_ip addr = { .sa.sa_family = AF_UNSPEC };
	socklen_t len = sizeof(addr);

	/* the port is at the same place in both families */
	return next.getsockname(fd, &addr.sa, &len) == 0 ? addr.in.sin_port : 0;
}

bool shared_handshake_is_new(const struct conn *conn, int fd)
{
	if (conn_phase(conn) == CONN_EARLY_DIRECT)
		return false;
	if (conn_phase(conn) == CONN_RESOLVING)
		return !is_disconnected(fd);
	return conn->attempt.local_port && conn->attempt.local_port != shared_handshake_local_port(fd);
}

void shared_handshake_note(struct conn *conn, int fd)
{
	conn->attempt.local_port = shared_handshake_local_port(fd);
}

bool shared_handshake_is_held(int fd)
{
	struct tcp_info tcp;

	return tcp_counters(fd, &tcp) && tcp.tcpi_segs_out == 0;
}

bool shared_handshake_has_sent_nothing(int fd)
{
	struct tcp_info tcp;

	return tcp_counters(fd, &tcp) && tcp.tcpi_bytes_sent == 0;
}

static bool lock_try(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	/* Another error than "busy", such as a security module's, would never go away: the step is taken without the lock. */
	return next.fcntl(fd, F_SETLK, &lock) == 0 || errno != EAGAIN;
}

bool shared_handshake_lock(int fd)
{
	for (int i = 0; i < 16; i++) {
		if (lock_try(fd))
			return true;
		sched_yield();
	}
	next.poll(NULL, 0, 1);
	return false;
}

void shared_handshake_unlock(int fd)
{
	struct flock lock = { .l_type = F_UNLCK, .l_whence = SEEK_SET };

	next.fcntl(fd, F_SETLK, &lock);
}

/* Returns how many bytes were sent or are to be sent. MPTCP's counters leave out the data of the SYN, TCP's have it. */
static uint64_t bytes_sent(const struct conn *conn, int fd)
{
	struct mptcpinfo mptcp;
	struct tcp_info tcp;

	if (mptcpinfo_of(fd, &mptcp))
		return conn->attempt.message_in_syn + mptcp.bytes_acked + mptcp.write_seq - mptcp.snd_una;
	if (tcp_counters(fd, &tcp))
		return tcp.tcpi_bytes_sent - tcp.tcpi_bytes_retrans + tcp.tcpi_notsent_bytes;
	return conn->attempt.message_sent;
}

void shared_handshake_follow(struct conn *conn, int fd)
{
	uint64_t sent = bytes_sent(conn, fd);

	if (sent <= conn->attempt.message_sent)
		return;
	if (conn->attempt.want_output)
		conn->attempt.message_sent = sent < UINT16_MAX ? (uint16_t)sent : UINT16_MAX;
	else
		conn_note(conn, CONN_WROTE);
}

int shared_handshake_stretch(const struct conn *conn, int left_ms)
{
	const int most = (int)(SHARED_HANDSHAKE_STRETCH_NS / CLOCK_NS_PER_MS);

	return conn_is_shared(conn) && (left_ms < 0 || left_ms > most) ? most : left_ms;
}

/* Notes what other processes may change from now on: the application's SO_RCVLOWAT, and the local port of the SYN. */
static void mark(struct conn *conn, int fd)
{
	socklen_t len = sizeof(int);
	int lowat;

	if (fd >= 0 && next.getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &lowat, &len) == 0 &&
	    !conn->socket.rcvlowat)
		conn->socket.rcvlowat = lowat;
	if (fd >= 0 && !conn->attempt.local_port)
		shared_handshake_note(conn, fd);
	conn_mark_shared(conn);
}

/*
 * The claim may have to be waited for, and @fd and @conn may both be other sockets' by then: the local port of one, noted for the other,
 * would look like a new SYN of another process.
 */
static void mark_claimed(struct conn *conn, int fd)
{
	struct conn_claim claim;
	bool claimed = fd < 0 ? conn_claim(conn, PHASES_UNFINISHED, &claim) : conn_claim_of(conn, fd, PHASES_UNFINISHED, &claim);

	if (!claimed)
		return;
	mark(conn, fd);
	conn_release(conn, claim.from, &claim);
}

/*
 * A vfork() child shares its parent's memory and may be killed at any moment, so it must not claim the parent's conn. Without
 * a claim it may note a wrong SO_RCVLOWAT, if a thread of the parent takes a step at this very moment.
 */
void shared_handshake_give(struct conn *conn, int fd)
{
	bool unfinished = conn_in(conn, PHASES_UNFINISHED);

	if (unfinished && conn_is_owner())
		mark_claimed(conn, fd);
	else if (unfinished)
		mark(conn, fd);
	else
		conn_mark_shared(conn);
}

static bool mark_visit(struct conn *conn, void *arg)
{
	int fd = conn->fd;

	(void)arg;
	mark_claimed(conn, conn_of(fd) == conn ? fd : -1);
	return true;
}

void shared_handshake_give_all(void)
{
	if (!conn_none_attentive())
		conn_each_pending(mark_visit, NULL);
}
