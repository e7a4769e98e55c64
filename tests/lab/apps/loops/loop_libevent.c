/* SPDX-License-Identifier: BSD-3-Clause */
/* loop_libevent.c - the task of task.h with libevent's bufferevents */
#include "task.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

struct connection {
	struct task_conversation conversation;
	bool refuse;
};

static struct event_base *base;
static const char *host;

static void start(size_t number, bool refuse);

static void on_read(struct bufferevent *bev, void *arg)
{
	struct connection *c = arg;
	char buf[65536];
	size_t n;

	while ((n = bufferevent_read(bev, buf, sizeof(buf))) > 0)
		task_received(&c->conversation, buf, n);
}

/* All has been written. */
static void on_write(struct bufferevent *bev, void *arg)
{
	(void)arg;
	shutdown(bufferevent_getfd(bev), SHUT_WR);
	bufferevent_disable(bev, EV_WRITE);
}

static void on_event(struct bufferevent *bev, short events, void *arg)
{
	struct connection *c = arg;
	int error = EVUTIL_SOCKET_ERROR();

	if (c->refuse)
		task_refused((events & BEV_EVENT_ERROR) && error == ECONNREFUSED, strerror(error));
	if (events & BEV_EVENT_ERROR)
		task_die("connection", strerror(error));
	if (events & BEV_EVENT_CONNECTED) {
		bufferevent_write(bev, task_pattern, task_size(&c->conversation));
		return;
	}
	on_read(bev, c);
	bufferevent_free(bev);
	if (task_end(&c->conversation))
		start(0, true);
	free(c);
}

static void start(size_t number, bool refuse)
{
	const struct addrinfo *address = task_resolve(host, refuse ? TASK_REFUSED : TASK_ECHO);
	struct bufferevent *bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	struct connection *c = calloc(1, sizeof(*c));

	if (!bev || !c)
		task_die("bufferevent", strerror(errno));
	c->conversation.number = number;
	c->refuse = refuse;
	bufferevent_setcb(bev, on_read, on_write, on_event, c);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
	if (bufferevent_socket_connect(bev, address->ai_addr, (int)address->ai_addrlen) < 0)
		task_die("connect", strerror(errno));
}

int main(int argc, char **argv)
{
	struct event_config *config = event_config_new();
	const char **methods = event_get_supported_methods();

	task_init(argc, 2);
	host = argv[1];
	for (; *methods; methods++)
		if (strcmp(*methods, argv[2]) != 0)
			event_config_avoid_method(config, *methods);
	base = event_base_new_with_config(config);
	if (!base)
		task_die(argv[2], "no such method");
	for (size_t i = 0; i < TASK_COUNT; i++)
		start(i, false);
	event_base_dispatch(base);
	return 1;
}
