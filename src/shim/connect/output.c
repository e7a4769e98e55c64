/* SPDX-License-Identifier: BSD-3-Clause */
/* output.c - sends the first output of an application as early data */
#include "config.h"

#include "shim/connect/output.h"

#include "shim/connect/conversion.h"
#include "shim/connect/gate.h"
#include "shim/system/next.h"
#include "shim/connect/replace.h"
#include "shim/wait/watch.h"

#include <errno.h>
#include <string.h>

static size_t iov_total(const struct iovec *iov, size_t count)
{
	size_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += iov[i].iov_len < SIZE_MAX / 2 - total ? iov[i].iov_len : SIZE_MAX / 2 - total;
	return total;
}

/* Sends the bytes after the first @sent. Returns the number of all bytes sent by then, or -errno. */
static ssize_t send_rest(int fd, const struct iovec *iov, size_t count, int flags, size_t sent)
{
	size_t skip = sent;

	for (size_t i = 0; i < count; i++) {
		size_t part = skip < iov[i].iov_len ? skip : iov[i].iov_len;
		struct gate gate = { .pass = true };
		ssize_t more;

		skip -= part;
		if (part == iov[i].iov_len)
			continue;
		gate = gate_output(fd, flags);
		if (!gate.pass)
			return sent ? (ssize_t)sent : gate.ret;
		more = next.send(fd, (const char *)iov[i].iov_base + part, iov[i].iov_len - part,
				 flags);
		if (more < 0)
			return sent ? (ssize_t)sent : -errno;
		sent += (size_t)more;
		if ((size_t)more < iov[i].iov_len - part)
			break;
	}
	return (ssize_t)sent;
}

bool output_takes_early(int fd)
{
	struct conn *conn = conn_attentive(fd);

	return conn && conversion_takes_early(conn);
}

static bool is_early(struct conn *conn, int fd, const struct iovec *iov, size_t count, int flags,
		     ssize_t *result)
{
	bool went;
	size_t taken;

	if (!conn_has(conn, CONN_TOLD_CONNECTED) && !gate_is_writable(fd))
		return false; /* a socket in SYN_SENT takes no output */
	taken = conversion_send_early(conn, fd, iov, count, &went);
	if (!taken && went && !gate_may_block(conn, fd, flags))
		*result = -EINPROGRESS; /* as in the kernel, the SYN is sent even if no data can be copied */
	else if (!taken)
		return false;
	else if (taken == iov_total(iov, count))
		*result = (ssize_t)taken;
	else
		*result = gate_may_block(conn, fd, flags) ?
				  send_rest(fd, iov, count, flags & ~MSG_FASTOPEN, taken) :
				  (ssize_t)taken;
	return true;
}

bool output_is_early(int fd, const struct iovec *iov, size_t count, int flags, ssize_t *result)
{
	struct conn *conn = conn_attentive(fd);
	int saved_errno = errno;
	bool early = (iov || !count) && conn && conversion_takes_early(conn) &&
		     is_early(conn, fd, iov, count, flags, result);

	errno = saved_errno;
	return early;
}

/* Waits, in a blocking sendto(MSG_FASTOPEN), for the server, like connect(2). Returns 0 or -errno. */
static int connected(struct conn *conn, int fd, int flags)
{
	int ret = gate_may_block(conn, fd, flags) ? conversion_wait(conn, fd) : 0;

	if (ret < 0 || !conn_has_failed(conn))
		return ret;
	ret = -conn_take_error(conn);
	conn_move(conn, CONN_FAILED, CONN_IDLE);
	return ret;
}

static bool is_fastopen(int fd, const struct iovec *iov, size_t count, int flags,
			const struct sockaddr *addr, socklen_t addrlen, ssize_t *result)
{
	struct conn *conn = conn_maybe(fd) ? conn_of(fd) : NULL;
	union sockaddr_ip server;
	bool blocking;
	int ret;

	if (!conn || conn_phase(conn) != CONN_IDLE || !sockaddr_ip_from(&server, addr, addrlen))
		return false;
	ret = conversion_start(conn, fd, &server, true);
	if (ret == CONVERSION_DIRECT) {
		replace_with_tcp(conn, fd);
		watch_resume(conn);
		conn_move(conn, CONN_IDLE, CONN_DIRECT);
		return false;
	}
	blocking = gate_may_block(conn, fd, flags);
	if (ret == 0 && output_is_early(fd, iov, count, flags, result)) {
		ret = connected(conn, fd, flags);
		if (ret < 0)
			*result = ret;
		return true;
	}
	/* The SYN was sent without the application's data: a blocking call waits for the server first, others return EINPROGRESS. */
	if (ret == 0)
		ret = blocking ? connected(conn, fd, flags) : -EINPROGRESS;
	*result = ret < 0 ? ret : send_rest(fd, iov, count, flags & ~MSG_FASTOPEN, 0);
	return true;
}

bool output_fastopen_slow(int fd, const struct iovec *iov, size_t count, int flags,
			  const struct sockaddr *addr, socklen_t addrlen, ssize_t *result)
{
	int saved_errno = errno;
	bool fastopen = is_fastopen(fd, iov, count, flags, addr, addrlen, result);

	errno = saved_errno;
	return fastopen;
}
