/* SPDX-License-Identifier: BSD-3-Clause */
/* response.c - a converter's response at the head of a stream: what it says, and how it is taken off */
#include "config.h"

#include "supervise/response.h"

#include "supervise/attempt.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static bool peer_has_closed(int fd)
{
	struct pollfd end = { .fd = fd, .events = POLLRDHUP };

	return poll(&end, 1, 0) > 0 && end.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

/*
 * The bytes are read once more before the end of the stream is believed, since the last ones may have come together with it.
 */
int response_judge(const struct connection *connection, struct handshake_step *out)
{
	const struct handshake_ask ask = attempt_ask_of(connection);
	uint8_t response[CONVERT_MESSAGE_MAX];

	for (bool ended = false;; ended = true) {
		int readable;
		ssize_t got;

		/* FIONREAD brings segments together that MSG_PEEK would show only the first of (Linux 6.1 and 6.12). */
		ioctl(connection->sock, FIONREAD, &readable);
		got = recv(connection->sock, response, CONVERT_MESSAGE_MAX, MSG_PEEK | MSG_DONTWAIT);
		if (got < 0)
			return -errno;
		*out = got ? handshake_on_bytes(response, (size_t)got, &connection->peer, &ask) : handshake_on_close();
		if (out->verdict != HANDSHAKE_NEED_MORE)
			return 0;
		if (ended)
			*out = handshake_on_close();
		if (ended || !peer_has_closed(connection->sock))
			return 0;
	}
}

/* What would be left of it would be taken for the server's. */
bool response_take(int fd, size_t length)
{
	uint8_t response[CONVERT_MESSAGE_MAX];

	while (length) {
		ssize_t got = recv(fd, response, length, MSG_DONTWAIT);

		if (got <= 0)
			return false;
		length -= (size_t)got;
	}
	return true;
}
