/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shim_threads.c - two threads on one socket of the shim's, in every order that matters
 *
 * Each pair of calls runs again and again on the fake kernel, with the turn going from one thread to the other at other points: at none,
 * at each one, and at each two that aren't far apart (fake_threads.c says where the points are). A run that goes wrong
 * is named by its points, and goes wrong again.
 */
#include "config.h"

#include "shim_world.h"

#include "convert/convert.h"
#include "run.h"

#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many unforced changes of turns, and how far apart: each run is a fork, which is dear under sanitizers. */
#if defined(__SANITIZE_THREAD__)
#define CHANGES 1
#define WINDOW 0
#elif defined(__SANITIZE_ADDRESS__)
#define CHANGES 2
#define WINDOW 1
#else
#define CHANGES 2
#define WINDOW 12
#endif

static const char hello[] = "hello";

/* The application's things, for both threads. */
static struct {
	int fd, other, epfd;
	int first, second; /* what the calls said: 0 or a positive errno */
	char bytes[64];
	size_t got;
	size_t sent;
	uint32_t told; /* events */
} app;

struct pair {
	const char *name;
	void (*setup)(void);
	void (*first)(void *arg), (*second)(void *arg);
	void (*check)(void);
	struct world_options options;
};

static struct world_message response;

/* CONVERTER and SERVER; the server's hello comes behind the response. */
static void hosts(struct fake_host converter)
{
	response = world_ok;
	memcpy(response.bytes + response.len, hello, 5);
	response.len += 5;
	converter.address = CONVERTER;
	if (!converter.answer_count)
		converter.answers[converter.answer_count++] = world_answer(&response, 0);
	fake_host_add(&converter);
	fake_host_add(&(struct fake_host){ .address = SERVER, .is_server = true, .no_mptcp = true,
					   .answers = { { .bytes = hello, .len = 5 } }, .answer_count = 1 });
	fake_host_add(&(struct fake_host){ .address = OTHER_SERVER, .is_server = true, .no_mptcp = true,
					   .answers = { { .bytes = hello, .len = 5 } }, .answer_count = 1 });
}

/* A connection that is pending, whose response is there already. */
static void response_is_there(void)
{
	hosts((struct fake_host){ .synack_ms = 0 });
	app.fd = world_socket(false);
	world_expect(world_connect(app.fd, SERVER) == EINPROGRESS, "errno %d", errno);
	fake_pass_ms(1);
}

static void response_is_there_and_registered(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT, .data.u64 = 1 };

	response_is_there();
	app.epfd = fake_epoll_create();
	world_expect(hook_epoll_ctl(app.epfd, EPOLL_CTL_ADD, app.fd, &event) == 0, "errno %d", errno);
}

/* The converter has refused. */
static void refusal_is_there(void)
{
	hosts((struct fake_host){ .refuses = ECONNREFUSED });
	app.fd = world_socket(false);
	world_expect(world_connect(app.fd, SERVER) == EINPROGRESS, "errno %d", errno);
	fake_pass_ms(1);
}

/* And there is another connection, which is established, and has something to be read. */
static void response_is_there_and_another(void)
{
	response_is_there();
	app.other = world_socket(true);
	world_expect(world_connect(app.other, OTHER_SERVER) == 0, "errno %d", errno);
}

static void a_socket(void)
{
	hosts((struct fake_host){ .synack_ms = 0 });
	app.fd = world_socket(false);
}

static void a_blocking_socket(void)
{
	hosts((struct fake_host){ .synack_ms = 5 });
	app.fd = world_socket(true);
}

/* TCP_FASTOPEN_CONNECT, as it were: connect() has returned, and the SYN waits. */
static void held(void)
{
	int fd;

	hosts((struct fake_host){ .synack_ms = 5 });
	fd = world_socket(false);
	world_expect(world_connect(fd, SERVER) == 0, "errno %d", errno);
	app.fd = fd;
}

/* The SYN+ACK is there, and confirms the server; the response comes later. */
static void confirmed_and_registered(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u64 = 3 };
	int fd;

	hosts((struct fake_host){ .synack_ms = 1, .answer_count = 2,
				  .answers = { world_answer(&world_ok_withholds, 0), world_answer(&world_ok, 5000) } });
	fd = world_socket(true);
	world_expect(world_connect(fd, SERVER) == 0, "errno %d", errno);
	hook_close(fd);
	app.fd = world_socket(false);
	world_expect(world_connect(app.fd, SERVER) == EINPROGRESS, "errno %d", errno);
	app.epfd = fake_epoll_create();
	world_expect(hook_epoll_ctl(app.epfd, EPOLL_CTL_ADD, app.fd, &event) == 0, "errno %d", errno);
	fake_pass_ms(2);
}

static void poll_it(void *arg)
{
	struct pollfd poller = { .fd = app.fd, .events = POLLOUT };

	(void)arg;
	hook_poll(&poller, 1, 0);
}

/* Confirmed as well, but registered one-shot. The response is there by now, and nothing behind it. */
static void confirmed_one_shot_and_response(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT, .data.u64 = 1 };

	confirmed_and_registered();
	world_expect(hook_epoll_ctl(app.epfd, EPOLL_CTL_MOD, app.fd, &event) == 0, "errno %d", errno);
	poll_it(NULL);
	world_expect(world_state(app.fd) == WORLD_CONFIRMED, "%s", world_state_name(world_state(app.fd)));
	fake_pass_ms(5000);
}

/* A connection with two descriptors, which no wait knows; its response is there. */
static void response_is_there_by_two_descriptors(void)
{
	response_is_there();
	app.other = hook_dup(app.fd);
	app.epfd = fake_epoll_create();
}

/* --- what the threads do --- */

static void poll_until_ready(void *arg)
{
	struct pollfd poller = { .fd = app.fd, .events = POLLOUT };

	(void)arg;
	world_expect(hook_poll(&poller, 1, 60000) == 1, "errno %d", errno);
}

static void ask_for_error(void *arg)
{
	(void)arg;
	app.second = world_error_of(app.fd);
}

/* So that the converter's next answer comes between any two calls of the other thread. */
static void let_time_pass(void *arg)
{
	(void)arg;
	fake_pass_ms(1);
}

static void close_it(void *arg)
{
	int fd = app.fd;

	(void)arg;
	app.fd = -1;
	hook_close(fd);
}

static void receive_it(void *arg)
{
	char bytes[64];
	ssize_t got = hook_recv(app.fd, bytes, 2, 0);

	(void)arg;
	world_expect(got > 0 || errno == EAGAIN, "errno %d", errno);
	for (ssize_t i = 0; i < got; i++)
		app.bytes[app.got++] = bytes[i];
}

static void send_it(void *arg)
{
	ssize_t sent = hook_send(app.fd, "data", 4, 0);

	(void)arg;
	world_expect(sent == 4 || errno == EAGAIN || (errno == EBADF && app.fd < 0), "errno %d", errno);
	app.sent += sent == 4 ? 4 : 0;
}

static void put_another_over_it(void *arg)
{
	(void)arg;
	world_expect(hook_dup2(app.other, app.fd) == app.fd, "errno %d", errno);
}

static void shut_it(void *arg)
{
	(void)arg;
	hook_shutdown(app.fd, SHUT_RDWR);
}

static void connect_to_server(void *arg)
{
	(void)arg;
	app.first = world_connect(app.fd, SERVER);
}

static void connect_to_other_server(void *arg)
{
	(void)arg;
	app.second = world_connect(app.fd, OTHER_SERVER);
}

static void connect_to_server_too(void *arg)
{
	(void)arg;
	app.second = world_connect(app.fd, SERVER);
}

/* Whatever the state is, there is no other server's name to be told. */
static void ask_for_peer(void *arg)
{
	char text[SOCKADDR_STRLEN];
	const char *peer;

	(void)arg;
	for (int i = 0; i < 3; i++) {
		peer = world_peer(app.fd, text);
		world_expect(peer != text || strcmp(peer, SERVER) == 0, "%s", peer);
	}
}

static void register_for_input(void *arg)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = 2 };

	(void)arg;
	world_expect(hook_epoll_ctl(app.epfd, EPOLL_CTL_MOD, app.fd, &event) == 0, "errno %d", errno);
}

static void register_for_one_output(void *arg)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLONESHOT, .data.u64 = 2 };

	(void)arg;
	world_expect(hook_epoll_ctl(app.epfd, EPOLL_CTL_MOD, app.fd, &event) == 0, "errno %d", errno);
}

/* The other connection gets the number of the closed descriptor. */
static void close_it_and_connect_another(void *arg)
{
	const int number = app.fd;

	close_it(arg);
	app.fd = world_socket(true);
	world_expect(app.fd == number, "another number");
	world_expect(world_connect(app.fd, OTHER_SERVER) == 0, "errno %d", errno);
}

static void unregister(void *arg)
{
	(void)arg;
	world_expect(hook_epoll_ctl(app.epfd, EPOLL_CTL_DEL, app.fd, NULL) == 0, "errno %d", errno);
}

static void wait_in_epoll(void *arg)
{
	struct epoll_event event;

	(void)arg;
	hook_epoll_wait(app.epfd, &event, 1, 0);
}

static void note_events(void *arg)
{
	struct epoll_event event;

	(void)arg;
	if (hook_epoll_wait(app.epfd, &event, 1, 0) == 1)
		app.told |= event.events;
}

/* --- what has to come of it --- */

/* The server's bytes that nobody has read yet follow those that were. */
static void all_is_read(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	ssize_t more;

	while (app.got < 5 && hook_poll(&poller, 1, 60000) == 1 &&
	       (more = hook_recv(fd, app.bytes + app.got, sizeof(app.bytes) - app.got, 0)) > 0)
		app.got += (size_t)more;
	world_expect(app.got == 5 && memcmp(app.bytes, hello, 5) == 0, "%zu bytes: %#x …", app.got, app.bytes[0]);
}

static void is_converted(void)
{
	char text[SOCKADDR_STRLEN];

	world_expect(world_wait(app.fd, 60000) == POLLOUT, "not writable");
	world_expect(world_state(app.fd) == WORLD_DONE, "%s", world_state_name(world_state(app.fd)));
	world_expect(strcmp(world_peer(app.fd, text), SERVER) == 0, "%s", text);
	world_expect(world_error_of(app.fd) == 0, "an error");
	world_is_restored(app.fd, -1, 0);
	all_is_read(app.fd);
}

/* One of the threads, or who waits afterwards, is told that it is writable, and doesn't have to wait for the response. */
static void is_told_writable(void)
{
	struct epoll_event event = { 0 };

	if (!(app.told & EPOLLOUT))
		world_expect(hook_epoll_wait(app.epfd, &event, 1, 1000) == 1 && event.events & EPOLLOUT, "the edge is lost");
	world_expect(world_state(app.fd) == WORLD_CONFIRMED, "%s", world_state_name(world_state(app.fd)));
}

static void is_told_of_output_once(void)
{
	struct epoll_event event = { 0 };

	if (!(app.told & EPOLLOUT))
		world_expect(hook_epoll_wait(app.epfd, &event, 1, 1000) == 1 && event.events & EPOLLOUT && event.data.u64 == 2,
			     "told %#x of %u", event.events, (unsigned int)event.data.u64);
	world_expect(hook_epoll_wait(app.epfd, &event, 1, 0) == 0, "told %#x again", event.events);
}

static void is_direct(void);

/* The application isn't told of the converter's refusals. */
static void is_direct_without_error(void)
{
	world_expect(app.second == 0, "SO_ERROR was %d", app.second);
	is_direct();
}

static void is_converted_for_input(void)
{
	world_expect(world_wait(app.fd, 60000) == POLLOUT, "not writable");
	world_is_restored(app.fd, app.epfd, EPOLLIN | EPOLLET);
	all_is_read(app.fd);
}

static void is_converted_and_not_registered(void)
{
	world_expect(world_wait(app.fd, 60000) == POLLOUT, "not writable");
	world_is_restored(app.fd, app.epfd, 0);
}

/* The converter has refused twice; one SYN went to the server itself, and the connection is that. */
static void is_direct(void)
{
	world_expect(world_wait(app.fd, 60000) == POLLOUT, "not writable");
	world_expect(world_state(app.fd) == WORLD_DIRECT, "%s", world_state_name(world_state(app.fd)));
	world_expect(fake_host_syns(SERVER) == 1 && fake_host_syns(CONVERTER) == 2, "%u SYNs", fake_host_syns(CONVERTER));
	world_is_restored(app.fd, -1, 0);
	all_is_read(app.fd);
}

/* The other connection is whole, by both of its descriptors. */
static void other_is_whole(void)
{
	char text[SOCKADDR_STRLEN];

	world_expect(strcmp(world_peer(app.fd, text), OTHER_SERVER) == 0, "%s", world_peer(app.fd, text));
	world_expect(world_state(app.fd) == WORLD_DONE || world_state(app.fd) == WORLD_DIRECT, "%s",
		     world_state_name(world_state(app.fd)));
	all_is_read(app.other);
}

/* The first connection is converted, and the other one, by the number that the first one had, is whole. */
static void both_are_whole(void)
{
	int fd = app.fd;

	all_is_read(fd);
	app.got = 0;
	app.fd = app.other;
	is_converted();
	app.fd = fd;
}

/* The server that the application is told of is the one in the request. */
static void peer_is_who_was_asked_for(void)
{
	struct convert_request request;
	union sockaddr_ip asked;
	char text[SOCKADDR_STRLEN], peer[SOCKADDR_STRLEN];
	const uint8_t *bytes;
	size_t len;

	world_expect(world_wait(app.fd, 60000) == POLLOUT, "not writable");
	world_expect(world_peer(app.fd, peer) == peer, "%s", world_peer(app.fd, peer));
	len = fake_host_received(CONVERTER, &bytes);
	world_expect(convert_request_parse(bytes, len, &request) == CONVERT_STATUS_OK && request.has_connect, "no request");
	sockaddr_ip_set(&asked, AF_INET, &request.address, request.port);
	world_expect(strcmp(sockaddr_ip_format(&asked, text), peer) == 0, "%s in place of %s", peer, text);
	world_expect(fake_host_syns(CONVERTER) == 1, "%u SYNs", fake_host_syns(CONVERTER));
	world_expect(app.first == EINPROGRESS || app.first == EALREADY || app.first == 0 || app.first == EISCONN, "%d", app.first);
	world_expect(app.second == EINPROGRESS || app.second == EALREADY || app.second == 0 || app.second == EISCONN, "%d", app.second);
}

static void both_are_connected(void)
{
	world_expect(app.first == 0 || app.first == EISCONN, "errno %d", app.first);
	world_expect(app.second == 0 || app.second == EISCONN, "errno %d", app.second);
	is_converted();
}

/* What was sent early went once, behind a whole request. */
static void data_went_once(void)
{
	const uint8_t *bytes;
	size_t len, request = 0;

	world_wait(app.fd, 60000);
	all_is_read(app.fd);
	len = fake_host_received(CONVERTER, &bytes);
	world_expect(convert_message_length(bytes, len, &request) == CONVERT_STATUS_OK, "half a request");
	world_expect(len - request == app.sent, "%zu of %zu bytes", len - request, app.sent);
}

static void nothing(void)
{
}

/*
 * If close() came before connect(), and the kernel closed the descriptor after it, the conn that connect() made is left without
 * a socket, until the next one that gets the number.
 */
static void number_is_used_again(void)
{
	int fd = world_socket(false);

	world_expect(hook_close(fd) == 0, "errno %d", errno);
}

static const struct pair pairs[] = {
	{ "poll and SO_ERROR", response_is_there, poll_it, ask_for_error, is_converted, { 0 } },
	{ "poll and close", response_is_there, poll_it, close_it, nothing, { 0 } },
	{ "recv and recv", response_is_there, receive_it, receive_it, is_converted, { 0 } },
	{ "poll and getpeername", response_is_there, poll_it, ask_for_peer, is_converted, { 0 } },
	{ "poll and dup2", response_is_there_and_another, poll_it, put_another_over_it, other_is_whole, { 0 } },
	{ "poll and shutdown", response_is_there, poll_it, shut_it, nothing, { 0 } },
	{ "connect and getpeername", a_socket, connect_to_server, ask_for_peer, is_converted, { 0 } },
	{ "connect and connect elsewhere", a_socket, connect_to_server, connect_to_other_server, peer_is_who_was_asked_for, { 0 } },
	{ "connect and close", a_socket, connect_to_server, close_it, number_is_used_again, { 0 } },
	{ "blocking connects", a_blocking_socket, connect_to_server, connect_to_server_too, both_are_connected, { 0 } },
	{ "poll and EPOLL_CTL_MOD", response_is_there_and_registered, poll_it, register_for_input, is_converted_for_input, { 0 } },
	{ "epoll_wait and EPOLL_CTL_MOD", response_is_there_and_registered, wait_in_epoll, register_for_input, is_converted_for_input, { 0 } },
	{ "poll and EPOLL_CTL_DEL", response_is_there_and_registered, poll_it, unregister, is_converted_and_not_registered, { 0 } },
	{ "a confirmation: poll and epoll_wait", confirmed_and_registered, poll_it, note_events, is_told_writable, { 0 } },
	{ "a confirmation: epoll_wait and epoll_wait", confirmed_and_registered, note_events, note_events, is_told_writable, { 0 } },
	{ "a confirmation: epoll_wait and EPOLL_CTL_MOD, one-shot", confirmed_one_shot_and_response, note_events, register_for_one_output,
	  is_told_of_output_once, { 0 } },
	{ "two descriptors: epoll_wait and close", response_is_there_by_two_descriptors, wait_in_epoll, close_it_and_connect_another,
	  both_are_whole, { 0 } },
	{ "a refusal: poll and SO_ERROR", refusal_is_there, poll_until_ready, ask_for_error, is_direct, { 0 } },
	{ "a refusal: SO_ERROR while another refusal comes", refusal_is_there, ask_for_error, let_time_pass, is_direct_without_error, { 0 } },
	{ "a refusal: poll and close", refusal_is_there, poll_it, close_it, nothing, { 0 } },
	{ "early data: send and recv", held, send_it, receive_it, data_went_once, { .early_data = "1" } },
	{ "early data: send and close", held, send_it, close_it, nothing, { .early_data = "1" } },
};
#define PAIRS (int)(sizeof(pairs) / sizeof(pairs[0]))

struct run {
	const struct pair *pair;
	int first, schedule[2];
	size_t count;
	int *points;
};

static void run_body(void *arg)
{
	const struct run *run = arg;
	fake_thread *const bodies[FAKE_THREADS_MAX] = { run->pair->first, run->pair->second };

	snprintf(fake_context, sizeof(fake_context), "%s, thread %d first, %zu changes of turns, at %d and %d", run->pair->name,
		 run->first, run->count, run->schedule[0], run->schedule[1]);
	app.fd = app.other = app.epfd = -1;
	world_begin(&run->pair->options);
	run->pair->setup();
	*run->points = fake_threads_run(bodies, NULL, run->schedule, run->count, run->first);
	run->pair->check();
	if (app.fd >= 0)
		hook_close(app.fd);
	if (app.other >= 0)
		hook_close(app.other);
	if (app.epfd >= 0)
		hook_close(app.epfd);
	world_is_empty();
}

/* Tries all orders with up to CHANGES unforced changes of turns. Returns how many went wrong. */
static int explore(struct run *run, int *runs)
{
	int failed = 0, points, last;

	(*runs)++;
	if (!world_run(run_body, run, run->pair->name))
		return 1;
	points = *run->points;
	if (run->count == CHANGES)
		return 0;
	last = run->count && run->schedule[0] + WINDOW < points - 1 ? run->schedule[0] + WINDOW : points - 1;
	for (int at = run->count ? run->schedule[0] + 1 : 0; at <= last && failed < 5; at++) {
		run->schedule[run->count++] = at;
		failed += explore(run, runs);
		run->count--;
		run->schedule[run->count] = 0;
	}
	return failed;
}

START_TEST(in_every_order)
{
	struct run run = { .pair = &pairs[_i], .points = world_shared_memory(sizeof(int)) };
	int failed = 0, runs = 0;

	for (run.first = 0; run.first < FAKE_THREADS_MAX; run.first++)
		failed += explore(&run, &runs);
	if (getenv("FAKE_COUNTS"))
		printf("%s: %d points, %d runs, %d wrong\n", run.pair->name, *run.points, runs, failed);
	ck_assert_int_eq(failed, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shim_threads");
	TCase *tcase = tcase_create("shim_threads");

	tcase_add_loop_test(tcase, in_every_order, 0, PAIRS);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
