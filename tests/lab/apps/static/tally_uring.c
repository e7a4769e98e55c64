/* SPDX-License-Identifier: BSD-3-Clause */
/* tally_uring.c - calls by io_uring: each thread has a ring, and waits for each operation */
#include "tally.h"

#include <errno.h>
#include <liburing.h>

static __thread struct io_uring ring;
static __thread bool is_open;

/* Opens the thread's ring. Programs ask once whether they can have one, and do without it if not. */
static bool open_ring(void)
{
	int error = is_open ? 0 : io_uring_queue_init(4, &ring, 0);

	if (error)
		errno = -error;
	is_open = !error;
	return is_open;
}

static struct io_uring_sqe *entry(void)
{
	return open_ring() ? io_uring_get_sqe(&ring) : NULL;
}

static int result(void)
{
	struct io_uring_cqe *cqe;
	int value = io_uring_submit_and_wait(&ring, 1);

	if (value >= 0)
		value = io_uring_wait_cqe(&ring, &cqe);
	if (value >= 0) {
		value = cqe->res;
		io_uring_cqe_seen(&ring, cqe);
	}
	if (value < 0)
		errno = -value;
	return value < 0 ? -1 : value;
}

static int uring_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	struct io_uring_sqe *sqe = entry();

	if (!sqe)
		return -1;
	io_uring_prep_connect(sqe, fd, to, len);
	return result();
}

static ssize_t uring_send(int fd, const void *data, size_t len)
{
	struct io_uring_sqe *sqe = entry();

	if (!sqe)
		return -1;
	io_uring_prep_send(sqe, fd, data, len, MSG_NOSIGNAL);
	return result();
}

static ssize_t uring_recv(int fd, void *data, size_t len)
{
	struct io_uring_sqe *sqe = entry();

	if (!sqe)
		return -1;
	io_uring_prep_recv(sqe, fd, data, len, 0);
	return result();
}

static int libc_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	return connect(fd, to, len);
}

static ssize_t libc_send(int fd, const void *data, size_t len)
{
	return send(fd, data, len, MSG_NOSIGNAL);
}

const struct way uring_way = { "uring", open_ring, uring_connect, uring_send, uring_recv };
const struct way uring_recv_way = { "uring-recv", open_ring, libc_connect, libc_send, uring_recv };
