/* SPDX-License-Identifier: BSD-3-Clause */
/* loop_glib.c - the task of task.h with GLib's main loop and GIO's streams */
#include "task.h"

#include <gio/gio.h>

struct connection {
	struct task_conversation conversation;
	GSocketConnection *stream;
	char buf[65536];
};

static GSocketClient *client;
static const char *host;

static void on_refused(GObject *object, GAsyncResult *result, gpointer data)
{
	GError *error = NULL;

	(void)data;
	g_socket_client_connect_to_host_finish(G_SOCKET_CLIENT(object), result, &error);
	task_refused(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CONNECTION_REFUSED),
		     error ? error->message : "connected");
}

static void on_read(GObject *object, GAsyncResult *result, gpointer data)
{
	struct connection *c = data;
	GError *error = NULL;
	gssize n = g_input_stream_read_finish(G_INPUT_STREAM(object), result, &error);

	if (n < 0)
		task_die("read", error->message);
	if (n > 0) {
		task_received(&c->conversation, c->buf, (size_t)n);
		g_input_stream_read_async(G_INPUT_STREAM(object), c->buf, sizeof(c->buf),
					  G_PRIORITY_DEFAULT, NULL, on_read, c);
		return;
	}
	g_io_stream_close(G_IO_STREAM(c->stream), NULL, NULL);
	g_object_unref(c->stream);
	if (task_end(&c->conversation))
		g_socket_client_connect_to_host_async(client, host, atoi(TASK_REFUSED), NULL,
						      on_refused, NULL);
	g_free(c);
}

static void on_written(GObject *object, GAsyncResult *result, gpointer data)
{
	struct connection *c = data;
	GError *error = NULL;

	if (!g_output_stream_write_all_finish(G_OUTPUT_STREAM(object), result, NULL, &error) ||
	    !g_socket_shutdown(g_socket_connection_get_socket(c->stream), FALSE, TRUE, &error))
		task_die("write", error->message);
}

static void on_connected(GObject *object, GAsyncResult *result, gpointer data)
{
	struct connection *c = data;
	GError *error = NULL;

	c->stream = g_socket_client_connect_to_host_finish(G_SOCKET_CLIENT(object), result, &error);
	if (!c->stream)
		task_die("connect", error->message);
	g_output_stream_write_all_async(g_io_stream_get_output_stream(G_IO_STREAM(c->stream)),
					task_pattern, task_size(&c->conversation),
					G_PRIORITY_DEFAULT, NULL, on_written, c);
	g_input_stream_read_async(g_io_stream_get_input_stream(G_IO_STREAM(c->stream)), c->buf,
				  sizeof(c->buf), G_PRIORITY_DEFAULT, NULL, on_read, c);
}

int main(int argc, char **argv)
{
	task_init(argc, 1);
	host = argv[1];
	client = g_socket_client_new();
	g_socket_client_set_enable_proxy(client, FALSE);
	for (size_t i = 0; i < TASK_COUNT; i++) {
		struct connection *c = g_new0(struct connection, 1);

		c->conversation.number = i;
		g_socket_client_connect_to_host_async(client, host, atoi(TASK_ECHO), NULL,
						      on_connected, c);
	}
	g_main_loop_run(g_main_loop_new(NULL, FALSE));
	return 1;
}
