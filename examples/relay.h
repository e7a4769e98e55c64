/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay.h - copies bytes between two ends; for client.c and converter.c, once the Convert messages are through
 *
 * A connection has two directions, each with a buffer that is filled only when it is empty: an end that doesn't read stops the
 * other one from sending. The end of one direction is handed on (half-close) while the other goes on.
 */
#ifndef EXAMPLES_RELAY_H
#define EXAMPLES_RELAY_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

struct direction {
	int from, to; /* sockets must not block; other files may */
	char buf[65536];
	size_t start, end; /* the bytes of buf that were read and not written yet */
	bool ended;
};

/* Reads if the buffer is empty, then writes. Returns false if the connection has failed. */
static bool direction_copy(struct direction *d)
{
	ssize_t n;

	if (d->start == d->end) {
		n = read(d->from, d->buf, sizeof(d->buf));
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		if (n == 0) {
			shutdown(d->to, SHUT_WR); /* fails if it isn't a socket, which does no harm */
			d->ended = true;
			return true;
		}
		d->start = 0;
		d->end = (size_t)n;
	}
	n = write(d->to, d->buf + d->start, d->end - d->start);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	d->start += (size_t)n;
	return true;
}

/* Waits until a byte can be copied in one direction or the other, and copies. Returns false if the connection has failed. */
static bool relay_step(struct direction both[2])
{
	struct pollfd fds[2];

	for (int i = 0; i < 2; i++) {
		bool empty = both[i].start == both[i].end;

		fds[i].fd = both[i].ended ? -1 : empty ? both[i].from : both[i].to;
		fds[i].events = empty ? POLLIN : POLLOUT;
	}
	if (poll(fds, 2, -1) < 0)
		return errno == EINTR;
	for (int i = 0; i < 2; i++)
		if (fds[i].fd >= 0 && fds[i].revents && !direction_copy(&both[i]))
			return false;
	return true;
}

#endif
