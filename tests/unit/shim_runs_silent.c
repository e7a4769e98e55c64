/* SPDX-License-Identifier: BSD-3-Clause */
/* shim_runs_silent.c - runs in which the request is silent: the SYN+ACK confirms the server, or it doesn't */
#include "config.h"

#include "shim_runs.h"

#include "client/converters.h"
#include "client/settings.h"
#include "convert/convert.h"
#include "shim/connect/connect.h"
#include "shim/system/next.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

static struct fake_answer hello = { .bytes = "hello", .len = 5, .after_ms = 5 };

/* Returns the request of the last connection to the converter. */
static struct convert_request asked(void)
{
	struct convert_request request;
	const uint8_t *bytes;
	size_t len = fake_host_received(CONVERTER, &bytes);

	world_expect(convert_request_parse(bytes, len, &request) == CONVERT_STATUS_OK, "%zu bytes", len);
	return request;
}

/* Replaces the converter by @host. */
static void become(struct fake_host host)
{
	fake_host_remove(CONVERTER);
	host.address = CONVERTER;
	host.synack_ms = 10;
	fake_host_add(&host);
}

/* A first connection learns that the converter takes silent requests, and that the server speaks only TCP; then it becomes @host. */
static void begin(const struct world_options *options, struct fake_host host)
{
	int fd;

	run_begin(options, run_accepting, &world_ok_silent);
	if (options && options->early_data) {
		fd = run_connected_early();
		world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	} else {
		fd = run_connecting();
	}
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	run_expect(fd, WORLD_DONE);
	world_expect(asked().has_info && !asked().has_silence, "the first request");
	run_finish(fd);
	become(host);
}

static void expect_hello(int fd)
{
	char bytes[8];

	world_expect(hook_recv(fd, bytes, sizeof(bytes), 0) == 5 && memcmp(bytes, "hello", 5) == 0, "errno %d", errno);
}

/* Has the shim read, peeked or counted input since the last fake_fail()? */
static bool has_read(void)
{
	for (int i = 0; i < fake_call_count(); i++)
		if (fake_call_at(i) == FAKE_recv || fake_call_at(i) == FAKE_read || fake_call_at(i) == FAKE_ioctl)
			return true;
	return false;
}

/* The application gets the connection at the SYN+ACK, and the shim doesn't touch the stream. */
static void silent(void *arg)
{
	const int blocking = *(const int *)arg;
	int64_t start;
	int fd;

	begin(NULL, (struct fake_host){ .answers = { hello }, .answer_count = 1 });
	start = fake_now_ms();
	fake_fail(-1, 0);
	if (blocking) {
		fd = world_socket(true);
		world_expect(world_connect(fd, SERVER) == 0, "errno %d", errno);
	} else {
		fd = run_connecting();
		world_expect(world_phase(fd) == CONN_SYN_SENT, "%s", phase_name(world_phase(fd)));
		world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	}
	world_expect(fake_now_ms() == start + 10, "after %lld ms", (long long)(fake_now_ms() - start));
	run_expect(fd, WORLD_DONE);
	world_expect(!has_read(), "the stream was looked at");
	world_expect(asked().has_silence && asked().silence.mptcp && !asked().silence.blind, "the request");
	world_is_restored(fd, -1, 0);
	fake_pass_ms(10);
	expect_hello(fd);
	run_finish(fd);
}

/* The server's bytes, and its end, come together with the SYN+ACK: they are no response. */
static void silent_and_spoken_to(void *arg)
{
	const bool closed = *(const int *)arg;
	struct pollfd poller = { .events = POLLIN };
	struct fake_host host = { .answers = { hello }, .answer_count = 1 };
	char byte;

	host.answers[0].after_ms = 0;
	host.answers[0].fin = closed;
	begin(NULL, host);
	poller.fd = run_connecting();
	fake_pass_ms(20);
	world_expect(hook_poll(&poller, 1, 100) == 1 && poller.revents & POLLIN, "no input: %#x", poller.revents);
	run_expect(poller.fd, WORLD_DONE);
	expect_hello(poller.fd);
	if (closed)
		world_expect(hook_recv(poller.fd, &byte, 1, 0) == 0, "errno %d", errno);
	run_finish(poller.fd);
}

/* An application that doesn't wait at all: it sends, and receives. */
static void silent_and_not_waited_for(void *arg)
{
	int fd;

	(void)arg;
	begin(NULL, (struct fake_host){ .answers = { hello }, .answer_count = 1 });
	fd = run_connecting();
	world_expect(hook_send(fd, "data", 4, 0) < 0 && errno == EAGAIN, "errno %d", errno);
	fake_pass_ms(12);
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	run_expect(fd, WORLD_DONE);
	fake_pass_ms(10);
	expect_hello(fd);
	run_finish(fd);
}

static const uint32_t registrations[] = {
	EPOLLIN | EPOLLOUT, EPOLLIN | EPOLLOUT | EPOLLET, EPOLLOUT | EPOLLONESHOT, EPOLLIN | EPOLLRDHUP, EPOLLIN | EPOLLONESHOT,
};

/* The application's registration is in force afterwards, and no event is lost. */
static void silent_in_epoll(void *arg)
{
	const uint32_t events = *(const uint32_t *)arg;
	struct epoll_event event = { .events = events, .data.u64 = 7 }, told = { .events = 0 };
	int fd, epfd;

	begin(NULL, (struct fake_host){ .answers = { hello }, .answer_count = 1 });
	epfd = fake_epoll_create();
	fd = world_socket(false);
	world_expect(hook_epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) == 0, "errno %d", errno);
	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	world_expect(hook_epoll_wait(epfd, &told, 1, 9) == 0, "told %#x", told.events);
	if (events & EPOLLOUT) {
		world_expect(hook_epoll_wait(epfd, &told, 1, 1000) == 1 && told.events == EPOLLOUT, "told %#x", told.events);
		run_expect(fd, WORLD_DONE);
	} else {
		world_expect(hook_epoll_wait(epfd, &told, 1, 1000) == 1 && told.events == EPOLLIN, "told %#x", told.events);
		expect_hello(fd);
	}
	world_expect(told.data.u64 == 7, "other data");
	if (!(events & EPOLLONESHOT))
		world_is_restored(fd, epfd, events);
	hook_close(epfd);
	run_finish(fd);
}

/* When the response comes, in ms behind the request; -1: the SYN+ACK has confirmed the server */
static const int late_responses[] = { -1, 20, 1500 };

/*
 * The thread that waits runs late by a second. Then the SYN+ACK, the deadline's timer and perhaps the response are ready at once, of two
 * connections. The application has the events of direct connections.
 */
static void late_in_epoll(void *arg)
{
	const int response_ms = *(const int *)arg;
	struct epoll_event events[8], event = { .events = EPOLLOUT };
	struct fake_host host = { .answers = { hello }, .answer_count = 1 };
	int fds[2], epfd, told = 0;

	begin(NULL, host);
	host.answers[0] = world_answer(&world_ok, response_ms);
	host.no_timestamps = true;
	if (response_ms >= 0)
		become(host);
	epfd = fake_epoll_create();
	for (int i = 0; i < 2; i++) {
		fds[i] = run_connecting();
		event.data.u64 = (uint64_t)i;
		world_expect(hook_epoll_ctl(epfd, EPOLL_CTL_ADD, fds[i], &event) == 0, "errno %d", errno);
	}
	fake_late_ms = 1000;
	while (told < 2) {
		const int count = hook_epoll_wait(epfd, &events[told], 8 - told, 5000);

		world_expect(count > 0, "%d events", count);
		for (int i = 0; i < count; i++, told++)
			world_expect(events[told].events == EPOLLOUT, "event %d of %d: %#x", i, count, events[told].events);
	}
	fake_late_ms = 0;
	world_expect(told == 2 && events[0].data.u64 != events[1].data.u64, "%d events", told);
	for (int i = 0; i < 2; i++) {
		run_expect(fds[i], WORLD_DONE);
		world_is_restored(fds[i], epfd, EPOLLOUT);
	}
	hook_close(epfd);
	hook_close(fds[0]);
	run_finish(fds[1]);
}

/* No timestamps: the response comes as usual, and the shim takes it off the stream. */
static void not_silent(void *arg)
{
	static uint8_t both[64];
	struct fake_answer answer = { .bytes = both, .after_ms = 20 };
	int fd;

	answer.piece = *(const int *)arg ? 1 : 0;
	begin(NULL, (struct fake_host){ .address = NULL });
	memcpy(both, world_ok.bytes, world_ok.len);
	memcpy(both + world_ok.len, "hello", 5);
	answer.len = world_ok.len + 5;
	become((struct fake_host){ .no_timestamps = true, .answers = { answer }, .answer_count = 1 });
	fd = run_connecting();
	fake_pass_ms(12);
	world_expect(world_wait(fd, 0) == 0, "writable without the server's answer");
	world_expect(world_phase(fd) == CONN_ASKED, "%s", phase_name(world_phase(fd)));
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	run_expect(fd, WORLD_DONE);
	world_expect(asked().has_silence, "the request");
	fake_pass_ms(1000);
	expect_hello(fd);
	run_finish(fd);
}

static struct world_message refusal;

static void not_silent_and_refused(void *arg)
{
	struct fake_host host = { .no_timestamps = true, .answer_count = 1 };
	int fd;

	(void)arg;
	begin(NULL, host);
	refusal = world_error(96, 0);
	host.answers[0] = world_answer(&refusal, 20);
	become(host);
	fd = run_connecting();
	world_expect(world_wait(fd, 60000) & POLLERR, "no error");
	world_expect(world_error_of(fd) == ECONNREFUSED, "the error");
	run_finish(fd);
}

/* In place of a response come the server's bytes, since timestamps were lost on the way back; the end; a reset. */
static struct fake_answer otherwise[] = {
	{ .bytes = "hello", .len = 5, .after_ms = 5 },
	{ .after_ms = 5, .fin = true },
	{ .after_ms = 5, .error = ECONNRESET },
	{ .bytes = "\1\2", .len = 2, .after_ms = 5, .error = ECONNRESET },
};

static void asked_without_silence(void *arg)
{
	struct fake_host host = { .no_timestamps = true, .answer_count = 2 };
	int fd;

	begin(NULL, host);
	host.answers[0] = *(const struct fake_answer *)arg;
	host.answers[1] = world_answer(&world_ok, 5);
	become(host);
	fd = run_connecting();
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	run_expect(fd, WORLD_DONE);
	world_expect(fake_host_syns(CONVERTER) == 2 && !asked().has_silence, "%u SYNs", fake_host_syns(CONVERTER));
	run_finish(fd);
	fd = run_connecting();
	world_wait(fd, 60000);
	world_expect(!asked().has_silence, "silence isn't forgotten");
	run_finish(fd);
}

/* The converter doesn't take the data in the SYN, so Linux falls back to TCP: the shim asks again behind the handshake. */
static void not_taken(void *arg)
{
	int fd;

	(void)arg;
	begin(NULL, (struct fake_host){ .address = NULL });
	become((struct fake_host){ .takes_no_data = true, .answer_count = 1, .answers = { world_answer(&world_ok, 5) } });
	fd = run_connecting();
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	run_expect(fd, WORLD_DONE);
	world_expect(fake_host_syns(CONVERTER) == 2 && !asked().has_silence, "%u SYNs", fake_host_syns(CONVERTER));
	run_finish(fd);
}

/* The SYN+ACK has no MP_CAPABLE: the application gets no socket that has fallen back. The request over TCP is silent, too. */
static void multipath_is_lost(void *arg)
{
	int fd;

	(void)arg;
	begin(NULL, (struct fake_host){ .address = NULL });
	become((struct fake_host){ .no_mptcp = true, .answer_count = 1, .answers = { hello } });
	fd = run_connecting();
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	run_expect(fd, WORLD_DONE);
	world_expect(fake_protocol(fd) == IPPROTO_TCP, "protocol %d", fake_protocol(fd));
	world_expect(asked().has_silence && !asked().silence.mptcp, "the request");
	fake_pass_ms(10);
	expect_hello(fd);
	run_finish(fd);
}

static void silent_with_early_data(void *arg)
{
	const bool shut = *(const int *)arg;
	const uint8_t *bytes;
	size_t len;
	int fd;

	begin(&run_early, (struct fake_host){ .answers = { hello }, .answer_count = 1 });
	fd = run_connected_early();
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	if (shut)
		world_expect(hook_shutdown(fd, SHUT_WR) == 0, "errno %d", errno);
	world_expect(world_wait(fd, 60000) & POLLOUT, "not writable");
	run_expect(fd, WORLD_DONE);
	world_expect(asked().has_silence, "the request");
	len = fake_host_received(CONVERTER, &bytes);
	world_expect(len > 4 && memcmp(bytes + len - 4, "data", 4) == 0, "%zu bytes", len);
	if (shut)
		world_expect(hook_send(fd, "more", 4, MSG_NOSIGNAL) < 0 && errno == EPIPE, "errno %d", errno);
	fake_pass_ms(10);
	expect_hello(fd);
	run_finish(fd);
}

/* How a silent request ends that another process has sent: this one only looks. */
enum followed { CONFIRMED, ANSWERED, DISCONNECTED, BEGUN_ANEW, NO_SYNACK, NOT_NOTED, ASKING };

static void followed(void *arg)
{
	const enum followed what = *(const enum followed *)arg;
	const struct sockaddr unspec = { .sa_family = AF_UNSPEC };
	const union sockaddr_ip converter = world_address(CONVERTER);
	struct conn *conn;
	uint64_t cookie;
	int fd;

	begin(NULL, (struct fake_host){ .answers = { hello }, .answer_count = 1 });
	if (what == ANSWERED)
		become((struct fake_host){ .no_timestamps = true, .answers = { world_answer(&world_ok, 0) }, .answer_count = 1 });
	fd = run_connecting();
	conn = conn_of(fd);
	cookie = conn->cookie;
	conn->dial.attempt.ask.mptcp = what == ASKING; /* so there is a response, and it ends before a fork() */
	world_expect(follow_is_silent(conn) == (what != ASKING), "is it left on its way?");
	if (what != NOT_NOTED)
		follow_note(conn, fd);
	conn->follows = true;
	if (what == DISCONNECTED || what == BEGUN_ANEW)
		next.connect(fd, &unspec, sizeof(unspec));
	if (what == BEGUN_ANEW)
		next.sendto(fd, "x", 1, MSG_FASTOPEN | MSG_DONTWAIT, &converter.sa, sockaddr_ip_len(&converter));
	if (what == NO_SYNACK) {
		atomic_store(&conn->deadline, conn->dial.attempt.ends = 1);
		world_wait(fd, 0);
	}
	if (what == CONFIRMED)
		world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	fake_pass_ms(20);
	world_wait(fd, 100);
	world_expect((conn->cookie == cookie) == (what == CONFIRMED), "the socket");
	if (what == CONFIRMED) {
		run_expect(fd, WORLD_DONE);
		expect_hello(fd);
	} else {
		run_expect(fd, WORLD_FAILED);
		world_expect(world_error_of(fd) == ECONNREFUSED, "the error");
	}
	run_finish(fd);
}

/* The C library has a stream for the socket, and reads past the hooks. */
static void silent_and_streamed(void *arg)
{
	int fd;

	(void)arg;
	begin(NULL, (struct fake_host){ .answers = { hello }, .answer_count = 1 });
	fd = world_socket(true);
	conn_of(fd)->socket.streamed = true;
	world_expect(world_connect(fd, SERVER) == 0, "errno %d", errno);
	run_expect(fd, WORLD_DONE);
	world_expect(asked().has_silence, "the request");
	run_finish(fd);
}

static void silent_with_lowat(void *arg)
{
	const int lowat = 5;
	int fd;

	(void)arg;
	begin(NULL, (struct fake_host){ .answers = { hello }, .answer_count = 1 });
	fd = world_socket(false);
	world_expect(hook_setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &lowat, sizeof(lowat)) == 0, "errno %d", errno);
	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	world_expect(fake_option(fd, SOL_SOCKET, SO_RCVLOWAT) == lowat, "%d", fake_option(fd, SOL_SOCKET, SO_RCVLOWAT));
	run_finish(fd);
}

/* After ten minutes the shim asks the converter once more, by a request that has a response. */
static void silence_is_old(void *arg)
{
	int fd;

	(void)arg;
	begin(NULL, (struct fake_host){ .answers = { hello }, .answer_count = 1 });
	fake_pass_ms(601 * 1000);
	become((struct fake_host){ .answers = { world_answer(&world_ok_silent, 20), hello }, .answer_count = 2 });
	for (int i = 0; i < 2; i++) {
		fd = run_connecting();
		world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
		run_expect(fd, WORLD_DONE);
		world_expect(asked().has_silence == (i == 1) && asked().has_info == (i == 0), "request %d", i);
		run_finish(fd);
	}
}

/* A reset comes right behind the SYN+ACK, before the shim has looked: the facts are gone then, and it asks again. */
static void silent_and_reset(void *arg)
{
	struct fake_host host = { .answers = { { .after_ms = 1, .error = ECONNRESET } }, .answer_count = 1 };
	int fd;

	(void)arg;
	begin(NULL, host);
	fd = run_connecting();
	fake_pass_ms(20);
	world_wait(fd, 0);
	run_expect(fd, WORLD_PENDING);
	fake_pass_ms(8); /* the second SYN is on its way */
	world_expect(fake_host_syns(CONVERTER) == 2, "%u SYNs", fake_host_syns(CONVERTER));
	run_finish(fd);
}

static int zero, one = 1;

const struct shim_run runs_silent[] = {
	{ "silent", silent, &zero },
	{ "silent, blocking", silent, &one },
	{ "silent, and the server speaks", silent_and_spoken_to, &zero },
	{ "silent, and the server speaks and ends", silent_and_spoken_to, &one },
	{ "silent, and nobody waits", silent_and_not_waited_for, NULL },
	{ "late in epoll, 0", late_in_epoll, (void *)(uintptr_t)&late_responses[0] },
	{ "late in epoll, 1", late_in_epoll, (void *)(uintptr_t)&late_responses[1] },
	{ "late in epoll, 2", late_in_epoll, (void *)(uintptr_t)&late_responses[2] },
	{ "silent in epoll, 0", silent_in_epoll, (void *)(uintptr_t)&registrations[0] },
	{ "silent in epoll, 1", silent_in_epoll, (void *)(uintptr_t)&registrations[1] },
	{ "silent in epoll, 2", silent_in_epoll, (void *)(uintptr_t)&registrations[2] },
	{ "silent in epoll, 3", silent_in_epoll, (void *)(uintptr_t)&registrations[3] },
	{ "silent in epoll, 4", silent_in_epoll, (void *)(uintptr_t)&registrations[4] },
	{ "not silent", not_silent, &zero },
	{ "not silent, in crumbs", not_silent, &one },
	{ "not silent, and refused", not_silent_and_refused, NULL },
	{ "the server's bytes for a response", asked_without_silence, &otherwise[0] },
	{ "the end for a response", asked_without_silence, &otherwise[1] },
	{ "a reset for a response", asked_without_silence, &otherwise[2] },
	{ "a reset in a response", asked_without_silence, &otherwise[3] },
	{ "data in the SYN isn't taken", not_taken, NULL },
	{ "Multipath TCP is lost", multipath_is_lost, NULL },
	{ "silent, with early data", silent_with_early_data, &zero },
	{ "silent, with early data and an end", silent_with_early_data, &one },
	{ "followed, and confirmed", followed, &(enum followed){ CONFIRMED } },
	{ "followed, and answered", followed, &(enum followed){ ANSWERED } },
	{ "followed, and disconnected", followed, &(enum followed){ DISCONNECTED } },
	{ "followed, and begun anew", followed, &(enum followed){ BEGUN_ANEW } },
	{ "followed, without a SYN+ACK", followed, &(enum followed){ NO_SYNACK } },
	{ "followed, but not noted", followed, &(enum followed){ NOT_NOTED } },
	{ "not to be followed, since it asks", followed, &(enum followed){ ASKING } },
	{ "silent and streamed", silent_and_streamed, NULL },
	{ "silent with SO_RCVLOWAT", silent_with_lowat, NULL },
	{ "silence is old", silence_is_old, NULL },
	{ "silent, and reset", silent_and_reset, NULL },
};
const size_t runs_silent_count = sizeof(runs_silent) / sizeof(runs_silent[0]);
