/* SPDX-License-Identifier: BSD-3-Clause */
/* loop_libuv.c - the task of task.h with libuv */
#include "task.h"

#include <uv.h>

struct connection {
	uv_tcp_t tcp;
	uv_connect_t connect;
	uv_write_t write;
	uv_shutdown_t shutdown;
	struct task_conversation conversation;
	char buf[65536];
};

static const char *host;

static void start(size_t number, const char *port, uv_connect_cb on_connect);

static void on_refused(uv_connect_t *request, int status)
{
	(void)request;
	task_refused(status == UV_ECONNREFUSED, status ? uv_strerror(status) : "connected");
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct connection *c = handle->data;

	(void)suggested;
	*buf = uv_buf_init(c->buf, sizeof(c->buf));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct connection *c = stream->data;

	if (n > 0)
		task_received(&c->conversation, buf->base, (size_t)n);
	if (n >= 0)
		return;
	if (n != UV_EOF)
		task_die("read", uv_strerror((int)n));
	if (task_end(&c->conversation))
		start(0, TASK_REFUSED, on_refused);
	uv_close((uv_handle_t *)stream, on_closed);
}

static void on_connect(uv_connect_t *request, int status)
{
	struct connection *c = request->handle->data;
	uv_buf_t buf = uv_buf_init((char *)task_pattern, (unsigned int)task_size(&c->conversation));

	if (status)
		task_die("connect", uv_strerror(status));
	uv_write(&c->write, request->handle, &buf, 1, NULL);
	uv_shutdown(&c->shutdown, request->handle, NULL);
	uv_read_start(request->handle, on_alloc, on_read);
}

static void start(size_t number, const char *port, uv_connect_cb on_connected)
{
	const struct addrinfo *address = task_resolve(host, port);
	struct connection *c = calloc(1, sizeof(*c));

	if (!c)
		task_die("connection", strerror(errno));
	c->conversation.number = number;
	uv_tcp_init(uv_default_loop(), &c->tcp);
	c->tcp.data = c;
	if (uv_tcp_connect(&c->connect, &c->tcp, address->ai_addr, on_connected) < 0)
		task_die("connect", strerror(errno));
}

int main(int argc, char **argv)
{
	task_init(argc, 1);
	host = argv[1];
	for (size_t i = 0; i < TASK_COUNT; i++)
		start(i, TASK_ECHO, on_connect);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	return 1;
}
