/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shim_states.c - a connection of the shim's through each of its states, on the fake kernel
 *
 * test_shim_transitions.c looks at the transitions between phases.
 */
#include "config.h"

#include "shim_world.h"

#include "run.h"

#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <string.h>

static const char hello[] = "hello";

/* The converter, with @count answers from @first on, one for each of its connections. */
static struct fake_host converter(const struct fake_answer *answers, size_t count)
{
	struct fake_host host = { .address = CONVERTER, .synack_ms = 10, .answer_count = count };

	for (size_t i = 0; i < count; i++)
		host.answers[i] = answers[i];
	return host;
}

static void add_converter(struct fake_answer answer)
{
	const struct fake_host host = converter(&answer, 1);

	fake_host_add(&host);
}

/* A server that says hello. */
static void add_server(bool mptcp)
{
	fake_host_add(&(struct fake_host){ .address = SERVER, .is_server = true, .synack_ms = 20, .no_mptcp = !mptcp,
					   .answers = { { .bytes = hello, .len = 5 } }, .answer_count = 1 });
}

/* The converter's response, and the server's first bytes right behind it. */
static struct fake_answer ok_and_hello(int after_ms)
{
	static struct world_message message;

	message = world_ok;
	memcpy(message.bytes + message.len, hello, 5);
	message.len += 5;
	return world_answer(&message, after_ms);
}

/* The application gets the server's bytes and nothing else, and its own arrive behind the request. */
static void exchange(int fd)
{
	char bytes[64];
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	world_expect(hook_poll(&poller, 1, 60000) == 1, "no input");
	world_expect(hook_recv(fd, bytes, sizeof(bytes), 0) == 5, "%s", fake_log_last());
	world_expect(memcmp(bytes, hello, 5) == 0, "others than hello");
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
}

/* The last bytes that @host has received are @bytes. */
static void expect_received(const char *host, const char *bytes)
{
	const uint8_t *received;
	size_t len = fake_host_received(host, &received), tail = strlen(bytes);

	world_expect(len >= tail && memcmp(received + len - tail, bytes, tail) == 0, "%zu bytes", len);
}

static void finish(int fd)
{
	world_expect(hook_close(fd) == 0, "errno %d", errno);
	world_is_empty();
}

/* Non-blocking, with poll(): in progress until the response is there, then writable. */
static void converted(void *arg)
{
	char text[SOCKADDR_STRLEN];
	int fd;

	(void)arg;
	world_begin(NULL);
	add_converter(ok_and_hello(20));
	fd = world_socket(false);
	world_expect(world_state(fd) == WORLD_IDLE, "%s", world_state_name(world_state(fd)));
	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	world_expect(world_state(fd) == WORLD_PENDING, "%s", world_state_name(world_state(fd)));
	world_expect(world_connect(fd, SERVER) == EALREADY, "errno %d", errno);
	world_expect(world_wait(fd, 15) == 0, "writable after the converter's SYN+ACK");
	world_expect(strcmp(world_peer(fd, text), "203.0.113.5:80") != 0, "too early");
	world_expect(hook_send(fd, "x", 1, 0) < 0 && errno == EAGAIN, "errno %d", errno);
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	world_expect(fake_now_ms() == 30, "after %lld ms", (long long)fake_now_ms());
	world_expect(world_state(fd) == WORLD_DONE, "%s", world_state_name(world_state(fd)));
	world_expect(world_error_of(fd) == 0, "an error");
	world_expect(strcmp(world_peer(fd, text), SERVER) == 0, "%s", text);
	world_expect(fake_protocol(fd) == IPPROTO_MPTCP, "over TCP");
	world_is_restored(fd, -1, 0);
	exchange(fd);
	expect_received(CONVERTER, "data");
	finish(fd);
}

static void converted_blocking(void *arg)
{
	int fd;

	(void)arg;
	world_begin(NULL);
	add_converter(ok_and_hello(20));
	fd = world_socket(true);
	world_expect(world_connect(fd, SERVER) == 0, "errno %d", errno);
	world_expect(world_state(fd) == WORLD_DONE, "%s", world_state_name(world_state(fd)));
	world_expect(world_connect(fd, SERVER) == EISCONN, "errno %d", errno);
	exchange(fd);
	finish(fd);
}

/* With epoll, edge- or level-triggered: masked meanwhile, and as the application made it afterwards. */
static void converted_epoll(void *arg)
{
	const uint32_t events = EPOLLIN | EPOLLOUT | (*(int *)arg ? EPOLLET : 0u);
	struct epoll_event event = { .events = events, .data.u64 = 77 };
	int fd, epfd;

	world_begin(NULL);
	add_converter(ok_and_hello(20));
	epfd = fake_epoll_create();
	fd = world_socket(false);
	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	world_expect(hook_epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) == 0, "errno %d", errno);
	world_expect(fake_registered(epfd, fd) != events, "not masked");
	event.events = 0;
	world_expect(hook_epoll_wait(epfd, &event, 1, 60000) == 1, "no event");
	world_expect(event.data.u64 == 77 && event.events & EPOLLOUT, "%#x", event.events);
	world_is_restored(fd, epfd, events);
	exchange(fd);
	world_expect(hook_epoll_wait(epfd, &event, 1, 0) == (*(int *)arg ? 0 : 1), "an event");
	hook_close(epfd);
	finish(fd);
}

/* In pieces of one byte: the socket isn't readable before all of the response is there. */
static void converted_in_pieces(void *arg)
{
	struct fake_answer answer = { 0 };
	int fd;

	(void)arg;
	world_begin(NULL);
	answer = ok_and_hello(1);
	answer.piece = 1;
	add_converter(answer);
	fd = world_socket(false);
	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	fake_pass_ms(12);
	world_expect(world_wait(fd, 0) == 0, "%s", fake_log_last());
	world_expect(fake_option(fd, SOL_SOCKET, SO_RCVLOWAT) > 1, "%d", fake_option(fd, SOL_SOCKET, SO_RCVLOWAT));
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	world_is_restored(fd, -1, 0);
	fake_pass_ms(10);
	exchange(fd);
	finish(fd);
}

/*
 * The SYN+ACK has confirmed the server, and the application waits for its bytes, behind a response in pieces. The fake kernel ends the test
 * where Linux 6.12 would never return: fake_recv().
 */
static void confirmed_in_pieces(void *arg)
{
	static const struct world_options options = { .withholding = "1000" };
	struct fake_answer answers[2];
	char byte;
	int fd;

	(void)arg;
	world_begin(&options);
	answers[0] = world_answer(&world_ok_withholds, 1);
	answers[1] = ok_and_hello(20);
	answers[1].piece = 1;
	fake_host_add(&(struct fake_host){ .address = CONVERTER, .synack_ms = 10, .answer_count = 2,
					   .answers = { answers[0], answers[1] } });
	fd = world_socket(true);
	world_expect(world_connect(fd, SERVER) == 0, "errno %d", errno);
	finish(fd);
	fd = world_socket(true);
	world_expect(world_connect(fd, SERVER) == 0, "errno %d", errno);
	world_expect(world_state(fd) == WORLD_CONFIRMED, "%s", world_state_name(world_state(fd)));
	for (size_t i = 0; i < strlen(hello); i++)
		world_expect(hook_recv(fd, &byte, 1, 0) == 1 && byte == hello[i], "%s", fake_log_last());
	finish(fd);
}

/* The server refuses, as the converter says: the application's errno, once, and the socket can be used again. */
static void refused_by_server(void *arg)
{
	struct world_message reset;
	int fd;

	(void)arg;
	world_begin(NULL);
	reset = world_error(96, 0);
	add_converter(world_answer(&reset, 20));
	fd = world_socket(false);
	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	world_expect(world_wait(fd, 60000) & POLLERR, "no error");
	world_expect(world_state(fd) == WORLD_FAILED, "%s", world_state_name(world_state(fd)));
	world_is_restored(fd, -1, 0);
	world_expect(world_error_of(fd) == ECONNREFUSED, "%s", fake_log_last());
	world_expect(world_error_of(fd) == 0, "twice");
	world_expect(world_connect(fd, SERVER) == ECONNABORTED, "errno %d", errno);
	world_expect(world_state(fd) == WORLD_IDLE, "%s", world_state_name(world_state(fd)));
	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	finish(fd);
}

/* The converter, and what the application finds: a direct connection, or an error where it may not have that. */
static void converter_fails(void *arg)
{
	struct fake_host host = *(struct fake_host *)arg;
	char text[SOCKADDR_STRLEN];
	int fd;

	world_begin(NULL);
	host.address = CONVERTER;
	fake_host_add(&host);
	add_server(false);
	fd = world_socket(false);
	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	world_expect(world_wait(fd, 60000) == POLLOUT, "%s", fake_log_last());
	world_expect(world_state(fd) == WORLD_DIRECT, "%s", world_state_name(world_state(fd)));
	world_expect(strcmp(world_peer(fd, text), SERVER) == 0, "%s", text);
	world_expect(fake_protocol(fd) == IPPROTO_TCP, "over MPTCP");
	world_is_restored(fd, -1, 0);
	exchange(fd);
	expect_received(SERVER, "data");
	finish(fd);
}

static void converter_fails_closed(void *arg)
{
	struct fake_host host = *(struct fake_host *)arg;
	int fd;

	world_begin(&(struct world_options){ .fallback = "none" });
	host.address = CONVERTER;
	fake_host_add(&host);
	add_server(false);
	fd = world_socket(true);
	world_expect(world_connect(fd, SERVER) != 0, "connected");
	world_expect(fake_host_syns(SERVER) == 0, "directly");
	world_expect(world_state(fd) == WORLD_IDLE, "%s", world_state_name(world_state(fd)));
	world_is_restored(fd, -1, 0);
	finish(fd);
}

/* The second one is asked, on the same descriptor. */
static void next_converter(void *arg)
{
	struct fake_host host = *(struct fake_host *)arg;
	struct fake_answer answer;
	int fd;

	world_begin(&(struct world_options){ .converters = "192.0.2.1,192.0.2.2" });
	host.address = CONVERTER;
	fake_host_add(&host);
	answer = ok_and_hello(5);
	host = converter(&answer, 1);
	host.address = OTHER_CONVERTER;
	fake_host_add(&host);
	fd = world_socket(false);
	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	world_expect(world_wait(fd, 60000) == POLLOUT, "%s", fake_log_last());
	world_expect(world_state(fd) == WORLD_DONE, "%s", world_state_name(world_state(fd)));
	world_expect(fake_host_syns(OTHER_CONVERTER) == 1, "%u SYNs", fake_host_syns(OTHER_CONVERTER));
	exchange(fd);
	finish(fd);
}

/*
 * The socket is registered before connect(), and no converter can be asked: the registration has to survive that a Multipath TCP socket
 * took the place of the application's for a moment.
 */
static void unreachable_and_registered(void *arg)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u64 = 77 };
	int fd, epfd;

	(void)arg;
	world_begin(NULL);
	fake_host_add(&(struct fake_host){ .address = CONVERTER, .at_once = ENETUNREACH });
	add_server(false);
	epfd = fake_epoll_create();
	fd = world_socket(false);
	world_expect(hook_epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) == 0, "errno %d", errno);
	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	world_is_restored(fd, epfd, EPOLLIN | EPOLLOUT | EPOLLET);
	world_expect(hook_epoll_wait(epfd, &event, 1, 60000) == 1, "no event");
	world_expect(event.data.u64 == 77, "another one's");
	exchange(fd);
	hook_close(epfd);
	finish(fd);
}

/* The application's loop never sleeps, since it polls: the silent converter is given up all the same. */
static void silent_and_polled(void *arg)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT, .data.u64 = 77 };
	int fd, epfd;

	(void)arg;
	world_begin(NULL);
	fake_host_add(&(struct fake_host){ .address = CONVERTER, .silent = true });
	add_server(false);
	epfd = fake_epoll_create();
	fd = world_socket(false);
	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	world_expect(hook_epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) == 0, "errno %d", errno);
	while (hook_epoll_wait(epfd, &event, 1, 0) == 0) {
		fake_pass_ms(1);
		world_expect(fake_now_ms() < 10000, "nothing after %lld ms", (long long)fake_now_ms());
	}
	world_expect(event.data.u64 == 77 && event.events & EPOLLOUT, "%#x", event.events);
	exchange(fd);
	hook_close(epfd);
	finish(fd);
}

static const struct fake_host bad[] = {
	{ .refuses = ECONNREFUSED, .synack_ms = 5 },
	{ .refuses = EHOSTUNREACH, .synack_ms = 5 },
	{ .at_once = ENETUNREACH },
	{ .silent = true },
	{ .dead = true, .synack_ms = 5 },
	{ .synack_ms = 5 },
	{ .synack_ms = 5, .answer_count = 1, .answers = { { .bytes = "HTTP/1.1 400", .len = 12 } } },
	{ .synack_ms = 5, .answer_count = 1, .answers = { { .fin = true } } },
	{ .synack_ms = 5, .answer_count = 1, .answers = { { .bytes = "\x01\x01\x22", .len = 3, .fin = true } } },
	{ .synack_ms = 5, .answer_count = 1, .answers = { { .error = ECONNRESET } } },
};
#define BAD (int)(sizeof(bad) / sizeof(bad[0]))

#define RUN(body, arg) ck_assert(world_run(body, arg, #body))

START_TEST(a_converted_connection)
{
	RUN(converted, NULL);
	RUN(converted_blocking, NULL);
	RUN(converted_epoll, &(int){ 0 });
	RUN(converted_epoll, &(int){ 1 });
	RUN(converted_in_pieces, NULL);
	RUN(confirmed_in_pieces, NULL);
	RUN(unreachable_and_registered, NULL);
	RUN(silent_and_polled, NULL);
}
END_TEST

START_TEST(a_server_that_refuses)
{
	RUN(refused_by_server, NULL);
}
END_TEST

START_TEST(a_converter_that_fails)
{
	struct fake_host host = bad[_i];

	RUN(converter_fails, &host);
	RUN(converter_fails_closed, &host);
	RUN(next_converter, &host);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shim_states");
	TCase *tcase = tcase_create("shim_states");

	tcase_add_test(tcase, a_converted_connection);
	tcase_add_test(tcase, a_server_that_refuses);
	tcase_add_loop_test(tcase, a_converter_that_fails, 0, BAD);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
