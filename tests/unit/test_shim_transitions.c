/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shim_transitions.c - every transition between two phases of a connection (phase.h) by what leads to it
 *
 * Each run takes a connection along some of them. All that phase_may_follow() allows must have been seen afterwards, and none else.
 * FAKE_COUNTS=1 in the environment prints how often each was.
 */
#include "config.h"

#include "shim_world.h"

#include "client/converters_facts.h"
#include "client/servers.h"
#include "common/clock.h"
#include "shim/connect/conversion.h"
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
	world_expect(strcmp(fake_log_last(), SERVER ": direct: Network is unreachable") == 0, "the log says \"%s\"", fake_log_last());
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

/* --- the next converter has a name --- */

/* What the name resolves to, and what the application does; the first converter refuses, or sends what is no response. */
struct naming {
	const struct world_options options;
	const char *resolved;
	bool answers; /* the first one says something behind its SYN+ACK */
	bool at_once; /* it can't be reached, which the kernel says at once */
	enum world_state end;
};

#define NAMED .converters = "192.0.2.1,_convert._tcp.example"
static struct naming named[] = {
	{ { NAMED }, OTHER_CONVERTER, false, false, WORLD_DONE },
	{ { NAMED }, OTHER_CONVERTER, true, false, WORLD_DONE },
	{ { NAMED }, NULL, false, false, WORLD_DIRECT },
	{ { NAMED, .early_data = "1" }, OTHER_CONVERTER, false, true, WORLD_DONE },
	{ { NAMED, .early_data = "1" }, NULL, false, true, WORLD_DIRECT },
	{ { NAMED, .fallback = "none" }, NULL, false, false, WORLD_FAILED },
};

static void named_next(void *arg)
{
	const struct naming *naming = arg;
	struct fake_host host = { .address = CONVERTER, .synack_ms = 5 };
	int fd;

	world_begin(&naming->options);
	host.refuses = naming->answers ? 0 : ECONNREFUSED;
	host.at_once = naming->at_once ? ENETUNREACH : 0;
	host.answers[host.answer_count++] = (struct fake_answer){ .bytes = "HTTP", .len = 4, .after_ms = 5 };
	fake_host_add(&host);
	host = (struct fake_host){ .address = OTHER_CONVERTER, .synack_ms = 5 };
	host.answers[host.answer_count++] = world_answer(&world_ok, 5);
	fake_host_add(&host);
	add_server((struct fake_host){ .synack_ms = 20 });
	fake_resolved = naming->resolved;
	if (naming->options.early_data) {
		fd = connected_early();
		world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
		if (!naming->resolved)
			fake_pass_ms(1);
	} else {
		fd = connecting();
	}
	world_wait(fd, 60000);
	expect(fd, naming->end);
	finish(fd);
}

/* Output while a name is being resolved is kept until there is somebody to send it to, and nobody is to blame for it. */
static void named_and_written(void *arg)
{
	static const struct world_options three = { .converters = "192.0.2.1,192.0.2.2,_convert._tcp.example", .early_data = "1" };
	static const char resolved[] = "192.0.2.3:1234";
	struct fake_host host = { .address = OTHER_CONVERTER, .at_once = ENETUNREACH };
	const uint8_t *bytes;
	size_t len;
	int fd;

	begin(&three, (struct fake_host){ .address = CONVERTER, .at_once = ENETUNREACH }, NULL);
	fake_host_add(&host);
	host = (struct fake_host){ .address = resolved, .synack_ms = 5, .answer_count = 1 };
	host.answers[0] = world_answer(&world_ok, 5);
	fake_host_add(&host);
	add_server((struct fake_host){ .synack_ms = 20 });
	fd = connected_early();
	conversion_send_held(conn_of(fd), fd);
	world_expect(world_phase(fd) == CONN_RESOLVING, "%s", phase_name(world_phase(fd)));
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	world_expect(world_phase(fd) == CONN_RESOLVING, "%s", phase_name(world_phase(fd)));
	world_expect(!converters_rests(1, clock_seconds()), "a converter that wasn't asked is to blame: %s", fake_log_last());
	fake_resolved = arg ? NULL : resolved;
	world_wait(fd, 60000);
	fake_pass_ms(100);
	expect(fd, arg ? WORLD_DIRECT : WORLD_DONE);
	len = fake_host_received(arg ? SERVER : resolved, &bytes);
	world_expect(len >= 4 && memcmp(bytes + len - 4, "data", 4) == 0, "%zu bytes", len);
	finish(fd);
}

/* An epoll instance that the shim knows nothing of says "writable" at the SYN+ACK of what is no converter: the server gets the bytes. */
static void written_unseen(void *arg)
{
	struct epoll_event event;
	const uint8_t *bytes;
	size_t len;
	int fd;

	(void)arg;
	begin(NULL, (struct fake_host){ .address = CONVERTER, .synack_ms = 5, .answer_count = 1,
					.answers = { { .bytes = "HTTP", .len = 4, .after_ms = 10 } } }, NULL);
	add_server((struct fake_host){ .synack_ms = 20 });
	fd = connecting();
	world_expect(hook_epoll_wait(fake_epoll_create(), &event, 1, 7) == 0, "an event");
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	fake_pass_ms(20);
	world_wait(fd, 60000);
	fake_pass_ms(100);
	expect(fd, WORLD_DIRECT);
	len = fake_host_received(SERVER, &bytes);
	world_expect(len == 4 && memcmp(bytes, "data", 4) == 0, "%zu bytes", len);
}

static void named_and_closed(void *arg)
{
	int fd;

	(void)arg;
	begin(&named[3].options, (struct fake_host){ .address = CONVERTER, .at_once = ENETUNREACH }, NULL);
	fd = connected_early();
	conversion_send_held(conn_of(fd), fd);
	world_expect(world_phase(fd) == CONN_RESOLVING, "%s", phase_name(world_phase(fd)));
	finish(fd);
}

/* --- what else there is behind the SYN+ACK, and on the way to the server itself --- */

/* A converter that says what is no response: the next one is asked, or the server. */
static void not_a_converter(void *arg)
{
	static const struct world_options both = { .converters = "192.0.2.1,192.0.2.2" };
	struct fake_host host = { .address = CONVERTER, .synack_ms = 5, .answer_count = 1,
				  .answers = { { .bytes = "HTTP", .len = 4, .after_ms = 10 } } };
	const int which = *(const int *)arg;
	int fd;

	world_begin(which == 2 ? &both : which == 1 ? &early : NULL);
	fake_host_add(&host);
	host.address = OTHER_CONVERTER;
	host.answers[0] = world_answer(&world_ok, 10);
	fake_host_add(&host);
	add_server((struct fake_host){ .synack_ms = 20 });
	fd = which == 1 ? connected_early() : connecting();
	if (which == 1)
		world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	fake_pass_ms(6);
	world_wait(fd, 0);
	world_expect(world_phase(fd) == CONN_ASKED, "%s", phase_name(world_phase(fd)));
	world_wait(fd, 60000);
	expect(fd, which == 2 ? WORLD_DONE : WORLD_DIRECT);
	finish(fd);
}

static void asked_and_shut(void *arg)
{
	int fd;

	(void)arg;
	begin(NULL, (struct fake_host){ .address = CONVERTER }, NULL);
	fd = connecting();
	world_wait(fd, 0);
	world_expect(world_phase(fd) == CONN_ASKED, "%s", phase_name(world_phase(fd)));
	world_expect(hook_shutdown(fd, SHUT_RDWR) == 0, "errno %d", errno);
	finish(fd);
}

static void held_and_sent_over_tcp(void *arg)
{
	int fd;

	(void)arg;
	begin(&early, (struct fake_host){ .address = CONVERTER, .synack_ms = 10 }, &world_ok);
	converters_note_mptcp(0, CACHE_MPTCP_LOST);
	fd = connected_early();
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	world_expect(world_phase(fd) == CONN_ASKED, "%s", phase_name(world_phase(fd)));
	world_wait(fd, 60000);
	expect(fd, WORLD_DONE);
	finish(fd);
}

/* Early data is on its way to the server, which refuses, or says nothing. */
static void early_to_the_server(void *arg)
{
	const int which = *(const int *)arg;
	int fd;

	begin(&early, refusing, NULL);
	add_server((struct fake_host){ .silent = which != 0, .refuses = ECONNREFUSED, .synack_ms = 20 });
	fd = connected_early();
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	fake_pass_ms(1);
	world_wait(fd, 0);
	world_expect(world_phase(fd) == CONN_EARLY_DIRECT, "%s", phase_name(world_phase(fd)));
	if (which == 0)
		world_wait(fd, 60000);
	if (which == 2)
		dissolve(fd);
	if (which != 1)
		expect(fd, WORLD_FAILED);
	finish(fd);
}

static void confirmed_and_dissolved(void *arg)
{
	int fd;

	(void)arg;
	fd = confirmed(&world_ok);
	dissolve(fd);
	expect(fd, WORLD_FAILED);
	finish(fd);
}

static void failed_and_dissolved(void *arg)
{
	int fd;

	(void)arg;
	begin(&closed, refusing, NULL);
	fd = connected_early();
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	world_wait(fd, 60000);
	expect(fd, WORLD_FAILED);
	dissolve(fd);
	finish(fd);
}

/* A server that is said to speak Multipath TCP: it refuses, doesn't, is given up or closed early, loses it later. */
static void bypass_ends(void *arg)
{
	union sockaddr_ip server = world_address(SERVER);
	const int which = *(const int *)arg;
	int fd;

	begin(&bypass, (struct fake_host){ .address = CONVERTER }, NULL);
	add_server((struct fake_host){ .synack_ms = 10, .refuses = which == 0 ? ECONNREFUSED : 0, .no_mptcp = which == 1,
				       .loses_mptcp = which == 4 });
	servers_note_mptcp(&server, HANDSHAKE_SERVER_MPTCP);
	fd = connecting();
	if (which == 2)
		world_expect(hook_shutdown(fd, SHUT_RDWR) == 0, "errno %d", errno);
	if (which != 2 && which != 3)
		world_wait(fd, 60000);
	if (which == 4) {
		char byte;

		expect(fd, WORLD_CONFIRMED);
		fake_pass_ms(100);
		world_expect(hook_recv(fd, &byte, 1, 0) < 0 && errno == ECONNRESET, "errno %d", errno);
	}
	if (which == 6)
		dissolve(fd);
	finish(fd);
}

static int zero, one = 1, two = 2, three = 3, four = 4, five = 5, six = 6;

static const struct {
	const char *what;
	void (*body)(void *arg);
	void *arg;
} runs[] = {
	{ "made and closed", made_and_closed, NULL },
	{ "no route to the converter", no_route_to_the_converter, NULL },
	{ "no route to anything", no_route_to_anything, NULL },
	{ "pending and closed", pending_and_closed, NULL },
	{ "held and closed", held_and_closed, NULL },
	{ "held and sent", held_and_sent, NULL },
	{ "held and unreachable", held_and_unreachable, NULL },
	{ "held and unreachable", held_and_unreachable, &one },
	{ "held and dissolved", held_and_dissolved, NULL },
	{ "converted", converted, NULL },
	{ "refused by the server", refused_by_the_server, NULL },
	{ "pending and shut", pending_and_shut, NULL },
	{ "refused by the converter", refused_by_the_converter, NULL },
	{ "confirmed and answered", confirmed_and_answered, NULL },
	{ "bypassed and spoken to", bypassed_and_spoken_to, NULL },
	{ "others", others, &zero },
	{ "others", others, &one },
	{ "others", others, &two },
	{ "others", others, &three },
	{ "confirmed and not reached", confirmed_and_not_reached, NULL },
	{ "confirmed and closed", confirmed_and_closed, NULL },
	{ "converted and dissolved", converted_and_dissolved, &one },
	{ "converted and dissolved", converted_and_dissolved, NULL },
	{ "direct and dissolved", direct_and_dissolved, NULL },
	{ "refused and connected again", refused_and_connected_again, NULL },
	{ "a name is next", named_next, &named[0] },
	{ "a name is next", named_next, &named[1] },
	{ "a name is next", named_next, &named[2] },
	{ "a name is next", named_next, &named[3] },
	{ "a name is next", named_next, &named[4] },
	{ "a name is next", named_next, &named[5] },
	{ "a name is next, close()", named_and_closed, NULL },
	{ "a name is next, output", named_and_written, NULL },
	{ "a name is next, output", named_and_written, &one },
	{ "output that nobody waits for", written_unseen, NULL },
	{ "no converter, zero", not_a_converter, &zero },
	{ "no converter, one", not_a_converter, &one },
	{ "no converter, two", not_a_converter, &two },
	{ "shutdown() behind the SYN+ACK", asked_and_shut, NULL },
	{ "early data over TCP", held_and_sent_over_tcp, NULL },
	{ "early data to the server, zero", early_to_the_server, &zero },
	{ "early data to the server, one", early_to_the_server, &one },
	{ "early data to the server, two", early_to_the_server, &two },
	{ "confirmed, dissolved", confirmed_and_dissolved, NULL },
	{ "failed, dissolved", failed_and_dissolved, NULL },
	{ "a server of Multipath TCP, zero", bypass_ends, &zero },
	{ "a server of Multipath TCP, one", bypass_ends, &one },
	{ "a server of Multipath TCP, two", bypass_ends, &two },
	{ "a server of Multipath TCP, three", bypass_ends, &three },
	{ "a server of Multipath TCP, four", bypass_ends, &four },
	{ "a server of Multipath TCP, five", bypass_ends, &five },
	{ "a server of Multipath TCP, six", bypass_ends, &six },
};
#define RUNS (sizeof(runs) / sizeof(runs[0]))

/*
 * exec(): a program takes over another one's sockets, which test_handover has. And what more than one process has to do
 * at the right moment, or another thread in the middle of a step: no run here leads to these.
 */
static const struct {
	enum conn_phase from, to;
} elsewhere[] = {
	{ CONN_IDLE, CONN_HELD },	  { CONN_IDLE, CONN_RESOLVING },     { CONN_IDLE, CONN_SYN_SENT },
	{ CONN_IDLE, CONN_ASKED },	  { CONN_IDLE, CONN_BYPASS },	     { CONN_IDLE, CONN_EARLY_DIRECT },
	{ CONN_IDLE, CONN_DONE },	  { CONN_IDLE, CONN_FAILED },	     { CONN_IDLE, CONN_DISSOLVED },
	{ CONN_STARTING, CONN_RESOLVING }, { CONN_RESOLVING, CONN_DONE },     { CONN_RESOLVING, CONN_DISSOLVED },
	{ CONN_RESOLVING, CONN_ASKED },	  { CONN_CONFIRMED, CONN_DIRECT },
};

static bool is_elsewhere(enum conn_phase from, enum conn_phase to)
{
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		if (elsewhere[i].from == from && elsewhere[i].to == to)
			return true;
	return false;
}

START_TEST(each_transition)
{
	int missing = 0;

	for (size_t i = 0; i < RUNS; i++)
		ck_assert_msg(world_run(runs[i].body, runs[i].arg, runs[i].what), "%s", runs[i].what);
	for (enum conn_phase from = 0; from < CONN_PHASE_COUNT; from++)
		for (enum conn_phase to = 0; to < CONN_PHASE_COUNT; to++) {
			unsigned int seen = world_transitions(from, to);

			ck_assert_msg(!seen || phase_may_follow(from, to), "%s -> %s isn't in the table", phase_name(from),
				      phase_name(to));
			if (!phase_may_follow(from, to))
				continue;
			if (getenv("FAKE_COUNTS"))
				printf("%-12s -> %-12s  %u\n", phase_name(from), phase_name(to), seen);
			if (!seen && from != to && !is_elsewhere(from, to)) {
				missing++;
				fprintf(stderr, "%s -> %s was never seen\n", phase_name(from), phase_name(to));
			}
		}
	ck_assert_int_eq(missing, 0);
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
