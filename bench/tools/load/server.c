/* SPDX-License-Identifier: BSD-3-Clause */
/* server.c - answers requests (payload.h); a connection costs it as few system calls as possible */
#include "config.h"

#include "server.h"

#include "loop.h"
#include "payload.h"

#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG    65535
#define ROUNDS_MAX 16 /* reads and writes before others have their turn */

struct served {
	struct loop_handle handle; /* first */
	struct payload_request request;
	uint64_t received; /* bytes of the request */
	uint64_t sent;     /* bytes of the response */
	uint8_t head[PAYLOAD_HEAD];
};

static bool verify_requests;
static uint8_t scratch[PAYLOAD_CHUNK];

static bool has_request(const struct served *served)
{
	return served->received >= PAYLOAD_HEAD && served->received == served->request.request;
}

/* Takes bytes of a request, first its head and then the rest. Returns false if they are neither. */
static bool take(struct served *served, const uint8_t *data, size_t len)
{
	while (served->received < PAYLOAD_HEAD && len) {
		served->head[served->received++] = *data++;
		len--;
		if (served->received == PAYLOAD_HEAD &&
		    payload_head_read(&served->request, served->head) < 0)
			return false;
	}
	if (!len)
		return true;
	/* a client waits for its response before it sends the next request */
	if (len > served->request.request - served->received)
		return false;
	if (verify_requests && !payload_matches(data, len, served->received))
		return false;
	served->received += len;
	return true;
}

/* Returns false when the connection is over. */
static bool receive(struct served *served)
{
	ssize_t got = recv(served->handle.fd, scratch, sizeof(scratch), MSG_DONTWAIT);

	if (got > 0 && !take(served, scratch, (size_t)got))
		errx(1, "a connection brought bytes that are no request, or not the ones that "
			"belong there");
	if (got < (ssize_t)sizeof(scratch))
		served->handle.readable = served->handle.hung && got > 0;
	return got > 0 || (got < 0 && errno == EAGAIN);
}

static bool respond(struct served *served)
{
	uint64_t left = served->request.response - served->sent;
	size_t piece = payload_chunk(left);
	ssize_t put = send(served->handle.fd, payload_at(served->sent), piece,
			   MSG_DONTWAIT | MSG_NOSIGNAL);

	if (put < 0 && errno != EAGAIN)
		return false;
	if (put < (ssize_t)piece)
		served->handle.writable = false;
	if (put > 0)
		served->sent += (uint64_t)put;
	if (served->sent < served->request.response)
		return true;
	served->received = served->sent = 0;
	return !served->request.close;
}

static void served_run(struct loop_handle *handle)
{
	struct served *served = (struct served *)handle;
	bool alive = true;

	for (int round = 0; alive; round++) {
		if (round == ROUNDS_MAX) {
			loop_again(handle);
			return;
		}
		if (has_request(served) && handle->writable)
			alive = respond(served);
		else if (!has_request(served) && handle->readable)
			alive = receive(served);
		else
			return;
	}
	loop_close(handle);
	free(served);
}

static void listener_run(struct loop_handle *listener)
{
	for (int round = 0; round < ROUNDS_MAX; round++) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct served *served;

		if (fd < 0 && errno == EAGAIN)
			return;
		if (fd < 0) {
			/* the client may be gone again; without descriptors, the next event is
			 * another try */
			if (errno == EMFILE || errno == ENFILE)
				warn("accept4");
			continue;
		}
		served = calloc(1, sizeof(*served));
		if (!served)
			errx(1, "no memory");
		served->handle = (struct loop_handle){ .fd = fd, .run = served_run };
		loop_add(&served->handle);
	}
	loop_again(listener);
}

void server_run(uint16_t port, bool mptcp, bool no_delay, bool verify)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct loop_handle listener = { .run = listener_run };
	int on = 1, off = 0;

	verify_requests = verify;
	payload_init();
	loop_init();
	listener.fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			     mptcp ? IPPROTO_MPTCP : IPPROTO_TCP);
	if (listener.fd < 0 ||
	    setsockopt(listener.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    setsockopt(listener.fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0 ||
	    (no_delay && setsockopt(listener.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0) ||
	    bind(listener.fd, (struct sockaddr *)&any, sizeof(any)) < 0 ||
	    listen(listener.fd, BACKLOG) < 0)
		err(1, "port %u", port);
	loop_add(&listener);
	for (;;)
		loop_once(-1);
}
