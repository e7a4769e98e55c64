/* SPDX-License-Identifier: BSD-3-Clause */
/* loop_libev.c - the task of task.h with libev, whose users make the system calls themselves */
#include "task.h"

#include <ev.h>
#include <unistd.h>

struct connection {
	ev_io io;
	struct task_conversation conversation;
	size_t sent;
	bool connected, refuse;
};

static const char *host;

static void start(struct ev_loop *loop, size_t number, bool refuse);

static void read_all(struct ev_loop *loop, struct connection *c)
{
	char buf[65536];
	ssize_t n;

	while ((n = read(c->io.fd, buf, sizeof(buf))) > 0)
		task_received(&c->conversation, buf, (size_t)n);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0)
		task_die("read", strerror(errno));
	ev_io_stop(loop, &c->io);
	close(c->io.fd);
	if (task_end(&c->conversation))
		start(loop, 0, true);
	free(c);
}

static void write_some(struct ev_loop *loop, struct connection *c)
{
	size_t left = task_size(&c->conversation) - c->sent;
	ssize_t n = write(c->io.fd, task_pattern + c->sent, left);

	if (n < 0 && errno != EAGAIN)
		task_die("write", strerror(errno));
	c->sent += n < 0 ? 0 : (size_t)n;
	if (c->sent < task_size(&c->conversation))
		return;
	shutdown(c->io.fd, SHUT_WR);
	ev_io_stop(loop, &c->io);
	ev_io_set(&c->io, c->io.fd, EV_READ);
	ev_io_start(loop, &c->io);
}

static void connected(struct ev_loop *loop, struct connection *c)
{
	int error = 0;
	socklen_t len = sizeof(error);

	getsockopt(c->io.fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (c->refuse)
		task_refused(error == ECONNREFUSED, strerror(error));
	if (error)
		task_die("connect", strerror(error));
	c->connected = true;
	ev_io_stop(loop, &c->io);
	ev_io_set(&c->io, c->io.fd, EV_READ | EV_WRITE);
	ev_io_start(loop, &c->io);
}

static void on_event(struct ev_loop *loop, ev_io *io, int events)
{
	struct connection *c = (struct connection *)io;

	if (!c->connected)
		connected(loop, c);
	else if (events & EV_WRITE)
		write_some(loop, c);
	else
		read_all(loop, c);
}

static void start(struct ev_loop *loop, size_t number, bool refuse)
{
	const struct addrinfo *address = task_resolve(host, refuse ? TASK_REFUSED : TASK_ECHO);
	struct connection *c = calloc(1, sizeof(*c));
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (!c || fd < 0)
		task_die("socket", strerror(errno));
	c->conversation.number = number;
	c->refuse = refuse;
	if (connect(fd, address->ai_addr, address->ai_addrlen) == 0 || errno != EINPROGRESS)
		task_die("connect", strerror(errno));
	ev_io_init(&c->io, on_event, fd, EV_WRITE);
	ev_io_start(loop, &c->io);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		unsigned int backend;
	} methods[] = { { "select", EVBACKEND_SELECT },
			{ "poll", EVBACKEND_POLL },
			{ "epoll", EVBACKEND_EPOLL } };
	struct ev_loop *loop = NULL;

	task_init(argc, 2);
	host = argv[1];
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (strcmp(argv[2], methods[i].name) == 0)
			loop = ev_loop_new(methods[i].backend | EVFLAG_NOENV);
	if (!loop)
		task_die(argv[2], "no such method");
	for (size_t i = 0; i < TASK_COUNT; i++)
		start(loop, i, false);
	ev_run(loop, 0);
	return 1;
}
