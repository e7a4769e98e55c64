/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_engine_front_end.c - a third front end of the engine, with sockets of the kernel: one blocking call, over TCP
 *
 * The converters are processes on the loopback interface that answer what a test wants. All that a front end has to do itself stands
 * between the two lines.
 */
#include "config.h"

#include "client/cache.h"
#include "convert/convert.h"
#include "engine/dial.h"
#include "host/networks.h"
#include "run.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct settings settings;
static char addresses[64];

__attribute__((format(printf, 1, 2))) static void log_nothing(const char *format, ...)
{
	(void)format;
}

/* ---------------------------------------- */

struct call {
	struct dial dial;
	int fd;
	int64_t wake_at;
};

static struct call *call_of(const struct dial *dial)
{
	return (struct call *)((char *)(uintptr_t)dial - offsetof(struct call, dial));
}

static struct converters_query query(const struct dial *dial)
{
	return (struct converters_query){ .destination = &dial->server, .family = AF_INET, .tried = dial->tried };
}

static bool allows(struct dial *dial, enum dial_use use)
{
	(void)dial, (void)use;
	return false;
}

static int fit(struct dial *dial, union sockaddr_ip *to, bool mptcp)
{
	(void)dial, (void)to, (void)mptcp;
	return 0;
}

static int prepare(struct dial *dial)
{
	return path_start_bind(&dial->start, call_of(dial)->fd);
}

static int connect_to(struct dial *dial, const union sockaddr_ip *to)
{
	return connect(call_of(dial)->fd, &to->sa, sockaddr_ip_len(to)) == 0 || errno == EINPROGRESS ? 0 : -errno;
}

static ssize_t output(struct dial *dial, const struct iovec iov[static 2], const union sockaddr_ip *to)
{
	union sockaddr_ip addr = to ? *to : (union sockaddr_ip){ 0 };
	const struct msghdr header = {
		.msg_name = to ? &addr : NULL, .msg_namelen = to ? sockaddr_ip_len(to) : 0, .msg_iov = (struct iovec *)iov, .msg_iovlen = 2,
	};
	const ssize_t sent = sendmsg(call_of(dial)->fd, &header, (to ? MSG_FASTOPEN : 0) | MSG_NOSIGNAL);

	return sent < 0 ? -errno : sent;
}

static void info(struct dial *dial, struct tcp_info *out)
{
	socklen_t len = sizeof(*out);

	memset(out, 0, sizeof(*out));
	(void)getsockopt(call_of(dial)->fd, IPPROTO_TCP, TCP_INFO, out, &len);
}

static int socket_error(struct dial *dial)
{
	int error = 0;
	socklen_t len = sizeof(error);

	(void)getsockopt(call_of(dial)->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	return error;
}

static ssize_t peek(struct dial *dial, uint8_t *buffer, size_t size, bool *ended)
{
	struct pollfd end = { .fd = call_of(dial)->fd, .events = POLLRDHUP };
	ssize_t got;

	if (ended)
		*ended = poll(&end, 1, 0) > 0;
	got = recv(end.fd, buffer, size, MSG_PEEK);
	return got < 0 ? -errno : got;
}

static bool take(struct dial *dial, size_t bytes)
{
	uint8_t buffer[CONVERT_MESSAGE_MAX];

	return recv(call_of(dial)->fd, buffer, bytes, 0) == (ssize_t)bytes;
}

static bool keepalive(struct dial *dial, int seconds)
{
	(void)dial, (void)seconds;
	return false;
}

static void nothing(struct dial *dial)
{
	(void)dial;
}

static void wake(struct dial *dial, int64_t at)
{
	call_of(dial)->wake_at = at;
}

static void disconnect(struct dial *dial)
{
	connect(call_of(dial)->fd, &(struct sockaddr){ .sa_family = AF_UNSPEC }, sizeof(struct sockaddr));
	socket_error(dial);
}

static const struct dial_ops ops = {
	.query = query, .allows = allows, .fit = fit, .prepare = prepare, .connect = connect_to, .send = output, .begun = nothing,
	.info = info, .error = socket_error, .peek = peek, .take = take, .keepalive = keepalive, .watch = nothing, .wake = wake,
	.disconnect = disconnect,
};

/* Waits for something to happen on the socket, or for the time of the next step. */
static void wait_on(const struct call *call)
{
	struct pollfd ready = { .fd = call->fd, .events = POLLIN | (dial_wants_output(&call->dial) ? POLLOUT : 0) };
	const int64_t left = call->wake_at - clock_ns();

	poll(&ready, 1, !call->wake_at ? -1 : left > 0 ? (int)(left / CLOCK_NS_PER_MS) + 1 : 0);
}

/* Connects to @server. Returns a descriptor, with how in @state; or -1, with the errno in @end. */
static int front_end_connect(const char *server, enum dial_state *state, struct dial_end *end)
{
	struct call call = { .dial = { .ops = &ops, .started = clock_ns() } };

	ck_assert_int_eq(sockaddr_ip_parse(&call.dial.server, server, 443), 0);
	call.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	path_start_init(&call.dial.start, true, &in6addr_any);
	*state = dial_next(&call.dial, false, end);
	while (*state == DIAL_IN_PROGRESS) {
		wait_on(&call);
		*state = dial_step(&call.dial, end);
	}
	dial_stop(&call.dial);
	if (*state == DIAL_REACHED)
		return call.fd;
	close(call.fd);
	return -1;
}

/* ---------------------------------------- */

enum way { ANSWERS, CRUMBS, REFUSES, WANTS_COOKIE, RESETS, ENDS, SAYS_NOTHING };

static size_t response_to(enum way way, const struct convert_request *request, uint8_t response[CONVERT_MESSAGE_MAX])
{
	struct convert_writer writer;

	convert_writer_init(&writer, response, CONVERT_MESSAGE_MAX);
	if (way == REFUSES)
		convert_write_error(&writer, CONVERT_ERROR_CONNECTION_RESET, 0);
	else if (way == WANTS_COOKIE && !request->has_cookie)
		convert_write_error_cookie(&writer, (const uint8_t *)"biscuit", 7);
	else
		convert_write_tcp_header(&writer, NULL, 0);
	return (size_t)convert_writer_finish(&writer);
}

static void serve(int fd, enum way way)
{
	static const struct linger at_once = { .l_onoff = 1 };
	uint8_t bytes[CONVERT_MESSAGE_MAX], response[CONVERT_MESSAGE_MAX];
	struct convert_request request;
	const ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
	size_t len;

	if (got > 0 && convert_request_parse(bytes, (size_t)got, &request) == CONVERT_STATUS_OK && way < RESETS) {
		len = response_to(way, &request, response);
		for (size_t i = 0; i < len && way == CRUMBS; i++)
			if (send(fd, response + i, 1, MSG_NOSIGNAL) == 1)
				poll(NULL, 0, 1);
		if ((way == CRUMBS || send(fd, response, len, MSG_NOSIGNAL) == (ssize_t)len) && way != REFUSES)
			(void)send(fd, "hello", 5, MSG_NOSIGNAL);
	}
	if (way == RESETS)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	if (way == SAYS_NOTHING)
		recv(fd, bytes, sizeof(bytes), 0);
	close(fd);
}

/* Starts a converter that answers so. Returns its port. */
static in_port_t converter_start(enum way way)
{
	union sockaddr_ip addr = { .in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(addr.in);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert(bind(listener, &addr.sa, len) == 0 && listen(listener, 8) == 0 && getsockname(listener, &addr.sa, &len) == 0);
	if (fork() == 0)
		for (;;)
			serve(accept(listener, NULL, NULL), way); /* the test's end is this process's: Check ends the group */
	close(listener);
	return sockaddr_ip_port(&addr);
}

static const char *timeout;

static const char *lookup(const char *name)
{
	return strcmp(name, "CONVERT_ADDR") == 0    ? addresses :
	       strcmp(name, "CONVERT_CACHE") == 0   ? "/dev/null" :
	       strcmp(name, "CONVERT_TIMEOUT") == 0 ? timeout :
						      NULL;
}

static const struct {
	enum way first, second;
	enum dial_state state;
	int error;
	const char *reason;
} runs[] = {
	{ ANSWERS, RESETS, DIAL_REACHED, 0, NULL },
	{ CRUMBS, RESETS, DIAL_REACHED, 0, NULL },
	{ WANTS_COOKIE, RESETS, DIAL_REACHED, 0, NULL },
	{ REFUSES, ANSWERS, DIAL_FAILED, ECONNREFUSED, "Connection Reset" },
	{ RESETS, ANSWERS, DIAL_REACHED, 0, NULL }, /* asked twice, then the second converter */
	{ ENDS, ANSWERS, DIAL_REACHED, 0, NULL },
	{ SAYS_NOTHING, ANSWERS, DIAL_REACHED, 0, NULL },
	{ ENDS, ENDS, DIAL_DIRECT, ECONNREFUSED, "closed without a response" },
};

START_TEST(what_a_call_comes_to)
{
	enum dial_state state;
	struct dial_end end;
	char hello[8];
	int fd;

	snprintf(addresses, sizeof(addresses), "127.0.0.1:%u,127.0.0.1:%u", converter_start(runs[_i].first), converter_start(runs[_i].second));
	timeout = runs[_i].first == SAYS_NOTHING ? "3" : "60"; /* on a busy machine an answer takes long, too */
	settings_read(&settings, lookup);
	ck_assert_msg(settings.enabled, "%s", settings.problem);
	user_cache_init(&settings);
	converters_init(&settings);
	dial_init(&(struct dial_host){ .settings = &settings, .log = log_nothing, .clock = clock_ns });
	for (int i = 0; i < 2; i++) {
		fd = front_end_connect("203.0.113.1", &state, &end);
		ck_assert_int_eq(state, (i && runs[_i].state == DIAL_DIRECT ? DIAL_REFUSED : runs[_i].state));
		if (runs[_i].reason && !i)
			ck_assert_str_eq(end.reason, runs[_i].reason);
		if (runs[_i].error && !i)
			ck_assert_int_eq(end.error, runs[_i].error);
		if (fd < 0)
			continue;
		fcntl(fd, F_SETFL, 0);
		ck_assert_int_eq(recv(fd, hello, sizeof(hello), MSG_WAITALL), 5);
		ck_assert_mem_eq(hello, "hello", 5);
		close(fd);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("engine_front_end");
	TCase *tcase = tcase_create("front_end");

	tcase_add_loop_test(tcase, what_a_call_comes_to, 0, sizeof(runs) / sizeof(runs[0]));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
