/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_echo.c - what a client sends behind a request for information comes back, if it asks for that
 *
 * So "convertize check" sees with bytes of its own what the paths to this converter carry, each way,
 * without any server (doc/private-tlvs.md, Echo). It can't be used against others: nothing comes back
 * before the client has completed its handshake, so that its address is real, and never more
 * than it has sent. REQUEST_ECHO_KIB and the time-out for requests limit it, and it is one of
 * the answers that --max-errors counts.
 */
#include "config.h"

#include "convertd/session/session_echo.h"

#include "convertd/policy/request.h"
#include "convertd/session/session_queue.h"

#include <errno.h>

/* Reads in one round: others have their turn, too. */
#define ECHO_READS 8

/* No bytes more than this wait in memory for a client that doesn't take them. */
#define ECHO_CHUNK (16 * 1024)

void session_start_echo(struct session *s, const uint8_t *early, size_t len)
{
	if (s->state != SESSION_REFUSING)
		return;
	s->echo_left = REQUEST_ECHO_KIB * 1024;
	/* It has been read, so it has to wait here; it is less than a request's reading takes. */
	if (relay_prepend(&s->relay, RELAY_DOWNSTREAM, early, len) < 0)
		s->echo_left = 0;
	else
		s->echo_left -= (uint32_t)len;
}

/* Reads what there is, once all before it is written. Returns 0, or -errno: -EAGAIN waits for an event. */
static int echo_some(struct session *s, size_t room)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];
	int error = relay_flush(&s->relay, RELAY_DOWNSTREAM);
	ssize_t n;

	if (error)
		return error;
	do
		n = recv(client->fd, s->pool->scratch, room, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		client->readable = false;
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ENODATA;
	s->echo_left -= (uint32_t)n;
	return relay_prepend(&s->relay, RELAY_DOWNSTREAM, s->pool->scratch, (size_t)n);
}

bool session_echo(struct session *s)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];
	int error = 0;

	for (int i = 0; s->echo_left && s->confirmed && client->readable && !error; i++) {
		if (i == ECHO_READS) {
			session_set_hungry(s);
			return false;
		}
		error = echo_some(s, s->echo_left < ECHO_CHUNK ? s->echo_left : ECHO_CHUNK);
	}
	if (!error && s->echo_left && s->confirmed)
		error = relay_flush(&s->relay, RELAY_DOWNSTREAM);
	/* The end of the stream, or of the connection: go on as after any other answer. */
	if (error && error != -EAGAIN)
		s->echo_left = 0;
	return !s->echo_left;
}
