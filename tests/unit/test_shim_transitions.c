/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shim_transitions.c - every transition between two states of a connection, each by what leads to it
 *
 * The table below has all of them. One that its own run doesn't show is a failure, and so is one that any run shows and
 * that isn't in the table. FAKE_COUNTS=1 in the environment prints how often each was seen.
 */
#include "config.h"

#include "shim_world.h"

#include "client/servers.h"
#include "shim/system/next.h"
#include "run.h"

#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fake_host accepting = { .address = CONVERTER, .synack_ms = 10 };
static const struct fake_host refusing = { .address = CONVERTER, .refuses = ECONNREFUSED };
static const struct world_options early = { .early_data = "1" }, withholding = { .withholding = "1000" },
				  bypass = { .bypass_mptcp = "1" }, closed = { .fallback = "none", .early_data = "1" };

/* Begins a run: a converter that answers with @message after 20 ms, or is as @host says. */
static void begin(const struct world_options *options, struct fake_host host, const struct world_message *message)
{
	world_begin(options);
	if (message) {
		host.answers[0] = world_answer(message, 20);
		host.answer_count = 1;
	}
	fake_host_add(&host);
}

static void add_server(struct fake_host host)
{
	static const char hello[] = "hello";

	host.address = SERVER;
	host.is_server = true;
	host.answers[0] = (struct fake_answer){ .bytes = hello, .len = 5, .after_ms = 20 };
	host.answer_count = 1;
	fake_host_add(&host);
}

static void expect(int fd, enum world_state state)
{
	world_expect(world_state(fd) == state, "%s, and should be %s", world_state_name(world_state(fd)), world_state_name(state));
}

/* A socket on which connect() has begun, without waiting. */
static int connecting(void)
{
	int fd = world_socket(false);

	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	expect(fd, WORLD_PENDING);
	return fd;
}

static int connected_early(void)
{
	int fd = world_socket(false);

	world_expect(world_connect(fd, SERVER) == 0, "errno %d", errno);
	expect(fd, WORLD_HELD);
	return fd;
}

static void dissolve(int fd)
{
	const struct sockaddr unspec = { .sa_family = AF_UNSPEC };

	world_expect(hook_connect(fd, &unspec, sizeof(unspec)) == 0, "errno %d", errno);
}

static void finish(int fd)
{
	world_expect(hook_close(fd) == 0, "errno %d", errno);
	world_is_empty();
}

/* --- before a connection --- */

static void made_and_closed(void *arg)
{
	int fd;

	(void)arg;
	world_begin(NULL);
	fd = world_socket(false);
	expect(fd, WORLD_IDLE);
	finish(fd);
}

static void no_route_to_the_converter(void *arg)
{
	int fd;

	(void)arg;
	begin(NULL, (struct fake_host){ .address = CONVERTER, .at_once = ENETUNREACH }, NULL);
	add_server((struct fake_host){ .synack_ms = 20 });
	fd = world_socket(false);
	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	expect(fd, WORLD_DIRECT);
	finish(fd);
}

static void no_route_to_anything(void *arg)
{
	int fd;

	(void)arg;
	begin(NULL, (struct fake_host){ .address = CONVERTER, .at_once = ENETUNREACH }, NULL);
	fd = world_socket(false);
	world_expect(world_connect(fd, SERVER) == ENETUNREACH, "errno %d", errno);
	expect(fd, WORLD_IDLE);
	finish(fd);
}

/* --- early data --- */

static void held_and_sent(void *arg)
{
	int fd;

	(void)arg;
	begin(&early, accepting, &world_ok);
	fd = connected_early();
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	expect(fd, WORLD_PENDING);
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	expect(fd, WORLD_DONE);
	finish(fd);
}

static void held_and_dissolved(void *arg)
{
	int fd;

	(void)arg;
	begin(&early, accepting, &world_ok);
	fd = connected_early();
	dissolve(fd);
	expect(fd, WORLD_FAILED);
	world_expect(world_error_of(fd) == ECONNRESET, "another error");
	expect(fd, WORLD_IDLE);
	finish(fd);
}

static void held_and_closed(void *arg)
{
	(void)arg;
	begin(&early, accepting, &world_ok);
	finish(connected_early());
}

/* The converter turns out to be out of reach when the SYN is to be sent. Without a fallback that is the end. */
static void held_and_unreachable(void *arg)
{
	int fd;

	begin(arg ? &closed : &early, (struct fake_host){ .address = CONVERTER, .at_once = ENETUNREACH }, NULL);
	add_server((struct fake_host){ .synack_ms = 20 });
	fd = connected_early();
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	expect(fd, arg ? WORLD_FAILED : WORLD_PENDING);
	world_wait(fd, 60000);
	expect(fd, arg ? WORLD_FAILED : WORLD_DIRECT);
	finish(fd);
}

/* --- pending --- */

static void converted(void *arg)
{
	int fd;

	(void)arg;
	begin(NULL, accepting, &world_ok);
	fd = connecting();
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	expect(fd, WORLD_DONE);
	finish(fd);
}

static void refused_by_the_server(void *arg)
{
	struct world_message message;
	int fd;

	(void)arg;
	world_begin(NULL);
	message = world_error(96, 0);
	accepting.answers[0] = world_answer(&message, 20);
	accepting.answer_count = 1;
	fake_host_add(&accepting);
	fd = connecting();
	world_expect(world_wait(fd, 60000) & POLLERR, "no error");
	expect(fd, WORLD_FAILED);
	finish(fd);
}

static void refused_and_connected_again(void *arg)
{
	int fd;

	(void)arg;
	begin(&closed, refusing, NULL);
	fd = world_socket(true);
	world_expect(world_connect(fd, SERVER) == 0, "errno %d", errno); /* early data */
	world_expect(hook_send(fd, "data", 4, 0) != 0, "nothing was sent");
	world_wait(fd, 60000);
	expect(fd, WORLD_FAILED);
	world_expect(world_connect(fd, SERVER) == ECONNREFUSED, "errno %d", errno);
	expect(fd, WORLD_IDLE);
	finish(fd);
}

static void refused_by_the_converter(void *arg)
{
	int fd;

	(void)arg;
	begin(NULL, refusing, NULL);
	add_server((struct fake_host){ .synack_ms = 20 });
	fd = connecting();
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	expect(fd, WORLD_DIRECT);
	finish(fd);
}

static void pending_and_closed(void *arg)
{
	(void)arg;
	begin(NULL, accepting, &world_ok);
	finish(connecting());
}

/* shutdown(2) in SYN_SENT. */
static void pending_and_shut(void *arg)
{
	int fd;

	(void)arg;
	begin(NULL, accepting, &world_ok);
	fd = connecting();
	world_expect(hook_shutdown(fd, SHUT_WR) == 0, "errno %d", errno);
	expect(fd, WORLD_FAILED);
	finish(fd);
}

/* --- confirmed by the SYN+ACK --- */

/* A connection that is confirmed, whose converter answers with @message a second later. */
static int confirmed(const struct world_message *message)
{
	int fd;

	begin(&withholding, accepting, NULL);
	fake_host_remove(CONVERTER);
	accepting.answers[0] = world_answer(message, 500);
	accepting.answer_count = 1;
	fake_host_add(&accepting);
	fd = connecting();
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	world_expect(fake_now_ms() == 10, "after %lld ms", (long long)fake_now_ms());
	expect(fd, WORLD_CONFIRMED);
	return fd;
}

static void confirmed_and_answered(void *arg)
{
	struct pollfd poller = { .events = POLLIN };
	char byte;

	(void)arg;
	poller.fd = confirmed(&world_ok);
	world_expect(hook_poll(&poller, 1, 100) == 0, "input");
	fake_pass_ms(600);
	world_expect(hook_poll(&poller, 1, 0) == 0, "the response is input");
	world_expect(hook_recv(poller.fd, &byte, 1, 0) < 0 && errno == EAGAIN, "errno %d", errno);
	expect(poller.fd, WORLD_DONE);
	finish(poller.fd);
}

static struct world_message reset;

static void confirmed_and_not_reached(void *arg)
{
	char byte;
	int fd;

	(void)arg;
	reset = world_error(96, 0);
	fd = confirmed(&reset);
	fake_pass_ms(600);
	world_expect(hook_recv(fd, &byte, 1, 0) < 0 && errno == ECONNRESET, "errno %d", errno);
	expect(fd, WORLD_FAILED);
	finish(fd);
}

/* close() waits for the response, for a second. */
static void confirmed_and_closed(void *arg)
{
	static struct world_message late;

	(void)arg;
	finish(confirmed(&late));
	world_expect(fake_now_ms() == 1010, "after %lld ms", (long long)fake_now_ms());
}

/* --- to a server that speaks Multipath TCP itself --- */

static int bypassed(void)
{
	union sockaddr_ip server = world_address(SERVER);
	int fd;

	begin(&bypass, accepting, &world_ok);
	add_server((struct fake_host){ .synack_ms = 10 });
	servers_note_mptcp(&server, HANDSHAKE_SERVER_MPTCP);
	fd = connecting();
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	expect(fd, WORLD_CONFIRMED);
	world_expect(fake_host_syns(CONVERTER) == 0, "the converter was asked");
	return fd;
}

static void bypassed_and_spoken_to(void *arg)
{
	char bytes[8];
	int fd = bypassed();

	(void)arg;
	fake_pass_ms(100);
	world_expect(hook_recv(fd, bytes, sizeof(bytes), 0) == 5, "errno %d", errno);
	expect(fd, WORLD_DIRECT);
	dissolve(fd);
	expect(fd, WORLD_FAILED);
	finish(fd);
}

/* --- dissolved --- */

static void converted_and_dissolved(void *arg)
{
	int fd;

	begin(NULL, arg ? (struct fake_host){ .address = CONVERTER, .no_mptcp = true } : accepting, &world_ok);
	fd = connecting();
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	expect(fd, WORLD_DONE);
	dissolve(fd);
	expect(fd, arg ? WORLD_IDLE : WORLD_FAILED); /* of TCP the kernel says ECONNRESET itself */
	world_expect(world_error_of(fd) == ECONNRESET, "no error");
	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	finish(fd);
}

static void direct_and_dissolved(void *arg)
{
	int fd;

	(void)arg;
	begin(NULL, refusing, NULL);
	add_server((struct fake_host){ .synack_ms = 20 });
	fd = connecting();
	world_wait(fd, 60000);
	expect(fd, WORLD_DIRECT);
	dissolve(fd);
	expect(fd, WORLD_IDLE);
	finish(fd);
}

/* --- another process has the socket as well, and is first --- */

/* What it does on @fd; the fork() is before. */
static int shared(void (*other)(int fd))
{
	int fd;

	begin(NULL, accepting, &world_ok);
	add_server((struct fake_host){ .synack_ms = 20, .no_mptcp = true });
	fd = connecting();
	conn_note_fork();
	fake_pass_ms(100);
	other(fd);
	world_wait(fd, 100);
	return fd;
}

static void take_response(int fd)
{
	char bytes[64];

	world_expect(next.recv(fd, bytes, world_ok.len, MSG_DONTWAIT) == (ssize_t)world_ok.len, "errno %d", errno);
}

static void give_up(int fd)
{
	const struct sockaddr unspec = { .sa_family = AF_UNSPEC };
	const int off = 0;

	next.connect(fd, &unspec, sizeof(unspec));
	next.setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &off, sizeof(off));
}

static void go_directly(int fd)
{
	union sockaddr_ip server = world_address(SERVER);
	struct sockaddr unspec = { .sa_family = AF_UNSPEC };

	next.connect(fd, &unspec, sizeof(unspec));
	next.connect(fd, &server.sa, sockaddr_ip_len(&server));
	fake_pass_ms(100);
}

static void begun_anew_and_killed(int fd)
{
	const struct sockaddr unspec = { .sa_family = AF_UNSPEC };

	next.connect(fd, &unspec, sizeof(unspec));
}

static void others(void *arg)
{
	static const struct {
		void (*other)(int fd);
		enum world_state state;
	} deeds[] = {
		{ take_response, WORLD_DONE }, { give_up, WORLD_FAILED }, { go_directly, WORLD_DIRECT }, { begun_anew_and_killed, WORLD_DONE },
	};
	const int i = *(const int *)arg;
	int fd = shared(deeds[i].other);

	expect(fd, deeds[i].state);
	world_is_restored(fd, -1, 0);
	finish(fd);
}

static int zero, one = 1, two = 2, three = 3;

/* Each transition, and what leads to it. */
static const struct {
	enum world_state from, to;
	const char *what;
	void (*body)(void *arg);
	void *arg;
} rows[] = {
	{ WORLD_FREE, WORLD_IDLE, "socket()", made_and_closed, NULL },
	{ WORLD_IDLE, WORLD_FREE, "close()", made_and_closed, NULL },
	{ WORLD_IDLE, WORLD_DIRECT, "connect(), and no converter can be asked", no_route_to_the_converter, NULL },
	{ WORLD_DIRECT, WORLD_IDLE, "nor the server", no_route_to_anything, NULL },
	{ WORLD_IDLE, WORLD_PENDING, "connect(): a SYN", pending_and_closed, NULL },
	{ WORLD_IDLE, WORLD_HELD, "connect(): the SYN waits for data", held_and_closed, NULL },
	{ WORLD_HELD, WORLD_PENDING, "output", held_and_sent, NULL },
	{ WORLD_HELD, WORLD_PENDING, "output, and it goes to the server itself", held_and_unreachable, NULL },
	{ WORLD_HELD, WORLD_FAILED, "output that can't be sent", held_and_unreachable, &one },
	{ WORLD_HELD, WORLD_FAILED, "connect() to AF_UNSPEC", held_and_dissolved, NULL },
	{ WORLD_HELD, WORLD_FREE, "close()", held_and_closed, NULL },
	{ WORLD_PENDING, WORLD_DONE, "the response", converted, NULL },
	{ WORLD_PENDING, WORLD_FAILED, "an error of the server's", refused_by_the_server, NULL },
	{ WORLD_PENDING, WORLD_FAILED, "shutdown()", pending_and_shut, NULL },
	{ WORLD_PENDING, WORLD_DIRECT, "no converter is left", refused_by_the_converter, NULL },
	{ WORLD_PENDING, WORLD_CONFIRMED, "the SYN+ACK of a converter that withholds SYNs", confirmed_and_answered, NULL },
	{ WORLD_PENDING, WORLD_CONFIRMED, "the SYN+ACK of a server that speaks Multipath TCP", bypassed_and_spoken_to, NULL },
	{ WORLD_PENDING, WORLD_FREE, "close()", pending_and_closed, NULL },
	{ WORLD_PENDING, WORLD_DONE, "another process takes the response", others, &zero },
	{ WORLD_PENDING, WORLD_FAILED, "another process gives up", others, &one },
	{ WORLD_PENDING, WORLD_DIRECT, "another process goes to the server", others, &two },
	{ WORLD_PENDING, WORLD_DONE, "another process is killed in between: it is asked anew", others, &three },
	{ WORLD_CONFIRMED, WORLD_DONE, "the response", confirmed_and_answered, NULL },
	{ WORLD_CONFIRMED, WORLD_FAILED, "an error in its place", confirmed_and_not_reached, NULL },
	{ WORLD_CONFIRMED, WORLD_DIRECT, "the server's first bytes", bypassed_and_spoken_to, NULL },
	{ WORLD_CONFIRMED, WORLD_FREE, "close(), and no response in a second", confirmed_and_closed, NULL },
	{ WORLD_DONE, WORLD_IDLE, "connect() to AF_UNSPEC, of TCP", converted_and_dissolved, &one },
	{ WORLD_DONE, WORLD_FAILED, "connect() to AF_UNSPEC, of Multipath TCP", converted_and_dissolved, NULL },
	{ WORLD_DONE, WORLD_FREE, "close()", converted, NULL },
	{ WORLD_DIRECT, WORLD_FAILED, "connect() to AF_UNSPEC, of Multipath TCP", bypassed_and_spoken_to, NULL },
	{ WORLD_DIRECT, WORLD_IDLE, "connect() to AF_UNSPEC, of TCP", direct_and_dissolved, NULL },
	{ WORLD_DIRECT, WORLD_FREE, "close()", refused_by_the_converter, NULL },
	{ WORLD_FAILED, WORLD_IDLE, "connect() tells of it", refused_and_connected_again, NULL },
	{ WORLD_FAILED, WORLD_IDLE, "SO_ERROR, of one that was dissolved", held_and_dissolved, NULL },
	{ WORLD_FAILED, WORLD_FREE, "close()", refused_by_the_server, NULL },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static bool is_in_table(enum world_state from, enum world_state to)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].from == from && rows[i].to == to)
			return true;
	return false;
}

START_TEST(each_transition)
{
	for (size_t i = 0; i < ROWS; i++) {
		unsigned int before = world_transitions(rows[i].from, rows[i].to), seen;

		ck_assert_msg(world_run(rows[i].body, rows[i].arg, rows[i].what), "%s", rows[i].what);
		seen = world_transitions(rows[i].from, rows[i].to) - before;
		if (getenv("FAKE_COUNTS"))
			printf("%-9s -> %-9s  %u  %s\n", world_state_name(rows[i].from), world_state_name(rows[i].to), seen, rows[i].what);
		ck_assert_msg(seen, "%s -> %s wasn't seen: %s", world_state_name(rows[i].from), world_state_name(rows[i].to),
			      rows[i].what);
	}
	for (int from = 0; from < WORLD_STATE_COUNT; from++)
		for (int to = 0; to < WORLD_STATE_COUNT; to++)
			ck_assert_msg(!world_transitions(from, to) || is_in_table(from, to), "%s -> %s isn't in the table",
				      world_state_name(from), world_state_name(to));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shim_transitions");
	TCase *tcase = tcase_create("shim_transitions");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, each_transition);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
