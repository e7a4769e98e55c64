/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ways.c - a proxy that moves bytes in the way that it is told to: what a relay could do
 *
 * As plain as can be, so that nothing but the way makes the difference: one thread, poll(), a
 * buffer or a pipe for each direction of each connection.
 */
#include "config.h"

#include "common/sockaddr.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FLOWS_MAX 256

/* Buffers of a flow that sends without copying: one is filled while others are on their way. */
#define ZEROCOPY_BUFFERS 32

enum way { WAY_COPY, WAY_SPLICE, WAY_ZEROCOPY, WAY_COUNT };

static const char *const way_names[] = { "copy", "splice", "zerocopy" };

/* One direction of a connection. */
struct flow {
	int from, to;
	int pipe[2];    /* splice */
	char *buffers; /* others: one, or ZEROCOPY_BUFFERS of them */
	size_t have;    /* bytes that are to be written, */
	size_t off;     /* from there in the buffer */
	unsigned sent;  /* zerocopy: calls that have been made, */
	unsigned freed; /* and those whose buffer may be used again */
	unsigned ends[ZEROCOPY_BUFFERS]; /* and the number of calls when each buffer was written */
	unsigned filled;                 /* buffers that have been filled */
	bool patient;                    /* SO_RCVLOWAT is set */
	bool done;
};

static struct {
	enum way way;
	size_t size;
	int lowat, protocol;
	union sockaddr_ip to;
} options = { .lowat = 1 };

static struct flow flows[FLOWS_MAX];
static size_t flow_count;
static unsigned long copied; /* sends without copying that were copied after all */

static void flow_init(struct flow *flow, int from, int to)
{
	static const int on = 1;

	memset(flow, 0, sizeof(*flow));
	flow->from = from;
	flow->to = to;
	if (options.way == WAY_ZEROCOPY &&
	    setsockopt(to, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)) < 0)
		err(1, "SO_ZEROCOPY");
	if (options.way == WAY_SPLICE) {
		if (pipe2(flow->pipe, O_NONBLOCK) < 0 ||
		    fcntl(flow->pipe[0], F_SETPIPE_SZ, (int)options.size) < 0)
			err(1, "a pipe of %zu bytes", options.size);
		return;
	}
	flow->buffers = malloc(options.size *
			       (options.way == WAY_ZEROCOPY ? ZEROCOPY_BUFFERS : 1));
	if (!flow->buffers)
		err(1, NULL);
}

/* Tells whether there is room to read into. */
static bool flow_may_read(const struct flow *flow)
{
	unsigned next = flow->filled % ZEROCOPY_BUFFERS;

	if (flow->have)
		return false;
	return options.way != WAY_ZEROCOPY || flow->filled < ZEROCOPY_BUFFERS ||
	       (int)(flow->freed - flow->ends[next]) >= 0;
}

static char *flow_buffer(struct flow *flow)
{
	unsigned last = (flow->filled - 1) % ZEROCOPY_BUFFERS;

	return flow->buffers + (options.way == WAY_ZEROCOPY ? last * options.size : 0);
}

static ssize_t flow_read(struct flow *flow)
{
	if (options.way == WAY_SPLICE)
		return splice(flow->from, NULL, flow->pipe[1], NULL, options.size,
			      SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	flow->filled++;
	flow->off = 0;
	return recv(flow->from, flow_buffer(flow), options.size, MSG_DONTWAIT);
}

/* Sets SO_RCVLOWAT only once a transfer is long: a small request would wait for more bytes, which never come. */
static void flow_set_lowat(struct flow *flow)
{
	if (options.lowat == 1 || flow->patient || flow->have < (size_t)options.lowat / 2)
		return;
	flow->patient = true;
	setsockopt(flow->from, SOL_SOCKET, SO_RCVLOWAT, &options.lowat, sizeof(options.lowat));
}

static ssize_t flow_write(struct flow *flow)
{
	bool zerocopy = options.way == WAY_ZEROCOPY;
	ssize_t n;

	if (options.way == WAY_SPLICE)
		return splice(flow->pipe[0], NULL, flow->to, NULL, flow->have,
			      SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	n = send(flow->to, flow_buffer(flow) + flow->off, flow->have,
		 MSG_DONTWAIT | MSG_NOSIGNAL | (zerocopy ? MSG_ZEROCOPY : 0));
	if (n > 0 && zerocopy)
		flow->ends[(flow->filled - 1) % ZEROCOPY_BUFFERS] = ++flow->sent;
	return n;
}

/* Reads from the error queue which of the buffers that were sent without copying can be used again. */
static void flow_reap(struct flow *flow)
{
	char control[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6))];
	struct sock_extended_err done;

	for (;;) {
		struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };

		if (recvmsg(flow->to, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0 ||
		    !CMSG_FIRSTHDR(&msg))
			return;
		memcpy(&done, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(done));
		if (done.ee_origin != SO_EE_ORIGIN_ZEROCOPY)
			return;
		flow->freed = done.ee_data + 1;
		if (done.ee_code & SO_EE_CODE_ZEROCOPY_COPIED)
			copied += done.ee_data - done.ee_info + 1;
	}
}

static void flow_end(struct flow *flow)
{
	shutdown(flow->to, SHUT_WR);
	flow->done = true;
}

/* Reads once, and writes until the socket takes no more. */
static void flow_move(struct flow *flow)
{
	ssize_t n;

	if (flow_may_read(flow)) {
		n = flow_read(flow);
		if (n == 0 || (n < 0 && errno != EAGAIN)) {
			flow_end(flow);
			return;
		}
		if (n < 0 && options.way != WAY_SPLICE)
			flow->filled--;
		flow->have = n > 0 ? (size_t)n : 0;
		flow_set_lowat(flow);
	}
	while (flow->have) {
		n = flow_write(flow);
		if (n < 0 && errno != EAGAIN)
			flow_end(flow);
		if (n <= 0)
			return;
		flow->have -= (size_t)n;
		flow->off += (size_t)n;
	}
}

static void flow_fini(struct flow *flow)
{
	if (options.way == WAY_SPLICE) {
		close(flow->pipe[0]);
		close(flow->pipe[1]);
	}
	free(flow->buffers);
}

static void add_connection(int listener)
{
	static const int on = 1;
	int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	int server = socket(options.to.sa.sa_family, SOCK_STREAM, IPPROTO_TCP);

	if (client < 0)
		return;
	if (flow_count + 2 > FLOWS_MAX)
		errx(1, "more than %d connections at a time", FLOWS_MAX / 2);
	if (server < 0 || connect(server, &options.to.sa, sockaddr_ip_len(&options.to)) < 0)
		err(1, "the server");
	fcntl(server, F_SETFL, O_NONBLOCK);
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	flow_init(&flows[flow_count++], client, server);
	flow_init(&flows[flow_count++], server, client);
}

/* Closes connections both of whose flows have ended. Flows are stored in pairs. */
static void remove_connections(void)
{
	for (size_t i = 0; i < flow_count; i += 2) {
		while (i < flow_count && flows[i].done && flows[i + 1].done) {
			close(flows[i].from);
			close(flows[i].to);
			flow_fini(&flows[i]);
			flow_fini(&flows[i + 1]);
			flow_count -= 2;
			memcpy(&flows[i], &flows[flow_count], 2 * sizeof(flows[0]));
		}
	}
}

static void serve(int listener)
{
	struct pollfd fds[FLOWS_MAX + 1];

	for (;;) {
		size_t count = flow_count;

		fds[0] = (struct pollfd){ .fd = listener, .events = POLLIN };
		for (size_t i = 0; i < count; i++) {
			const struct flow *flow = &flows[i];
			bool read = flow_may_read(flow);

			fds[i + 1].fd = flow->done ? -1 : read ? flow->from : flow->to;
			/* Without room it is the error queue that tells of some. */
			fds[i + 1].events = read ? POLLIN : flow->have ? POLLOUT : 0;
		}
		if (poll(fds, count + 1, -1) < 0)
			err(1, "poll");
		for (size_t i = 0; i < count; i++) {
			if (!fds[i + 1].revents)
				continue;
			if (options.way == WAY_ZEROCOPY)
				flow_reap(&flows[i]);
			flow_move(&flows[i]);
		}
		remove_connections();
		if (fds[0].revents)
			add_connection(listener);
	}
}

static size_t number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (!*text || *end || !value)
		errx(2, "\"%s\" is no number", text);
	return value;
}

int main(int argc, char *argv[])
{
	union sockaddr_ip here;
	static const int on = 1;
	int listener;

	if (argc != 7)
		errx(2, "usage: ways copy|splice|zerocopy BYTES LOWAT tcp|mptcp ADDR:PORT TO:PORT");
	while (options.way < WAY_COUNT && strcmp(argv[1], way_names[options.way]) != 0)
		options.way++;
	options.size = number(argv[2]);
	options.lowat = (int)number(argv[3]);
	options.protocol = strcmp(argv[4], "mptcp") == 0 ? IPPROTO_MPTCP : IPPROTO_TCP;
	if (options.way == WAY_COUNT || sockaddr_ip_parse(&here, argv[5], 0) < 0 ||
	    sockaddr_ip_parse(&options.to, argv[6], 0) < 0)
		errx(2, "no such way, or no such address");
	/* splice() has no MSG_NOSIGNAL. */
	signal(SIGPIPE, SIG_IGN);
	listener = socket(here.sa.sa_family, SOCK_STREAM, options.protocol);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, &here.sa, sockaddr_ip_len(&here)) < 0 || listen(listener, FLOWS_MAX) < 0)
		err(1, "%s", argv[5]);
	serve(listener);
}
