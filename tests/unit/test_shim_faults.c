/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shim_faults.c - each system call of the shim's fails once, with each error that its man page names
 *
 * A scenario (hosts, and an application that connects, sends and receives) runs once to count its calls. Then it runs anew
 * for each call and error. The application may be told of the failure, by an errno that the man page of *its* call has; but never
 * reads a byte that the server hasn't sent, nor loses one that was taken from it; and nothing is left when it has closed its descriptors.
 */
#include "config.h"

#include "shim_world.h"

#include "convert/convert.h"
#include "run.h"

#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_MAX 400 /* of one scenario, that are made to fail */
#define PATIENCE_MS 300000
#define TRIES 6 /* of a call that failed with what may pass */

/* Each run is a fork, which is dear under sanitizers. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static const char hello[] = "hello", data[] = "data";

enum application { NON_BLOCKING, BLOCKING, EPOLL, EARLY, FASTOPEN };

struct scenario {
	const char *name;
	enum application application;
	struct world_options options;
	struct fake_host hosts[3]; /* CONVERTER, and others; SERVER is added */
	unsigned int error;        /* code of an Error TLV that the converter answers with first; 0: none */
	bool withholds;            /* the first connection has told that SYNs are withheld, and this is the second */
	bool mptcp_server;         /* and that the server speaks Multipath TCP */
	bool every_error;          /* each call fails with each documented error, else with two of them */
};

struct run {
	const struct scenario *scenario;
	int number, error;
	struct {
		int count;
		uint8_t calls[CALLS_MAX];
		bool reached;
	} *shared;
};

/* --- what is documented --- */

/* connect(2), and tcp(7), ip(7) for what it says of the path. */
static const int connect_errors[] = { EACCES,	  EPERM,	EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN,   EALREADY,
				      EBADF,	  ECONNREFUSED, EINPROGRESS, EINTR,	   EISCONN,	 ENETUNREACH,
				      ENOTSOCK,	  EPROTOTYPE,	ETIMEDOUT,  EHOSTUNREACH,  ECONNRESET,	 ECONNABORTED, 0 };

static bool is_in(const int *list, int error)
{
	for (; *list; list++)
		if (*list == error)
			return true;
	return false;
}

/*
 * @error is one that the application's call @call may have. Input and output say what has become of the connection. And where the shim
 * connects by sendmsg(MSG_FASTOPEN), or waits by poll(2) because the application blocks, what these say is told.
 */
static void expect_documented(enum fake_call call, int error)
{
	const bool connecting = call == FAKE_connect || call == FAKE_send || call == FAKE_recv || call == FAKE_sendto;
	const bool instead = fake_has_failed() && (fake_failed_call() == FAKE_sendmsg || fake_failed_call() == FAKE_poll);

	world_expect(is_in(fake_errors_of(call), error) || (connecting && is_in(connect_errors, error)) ||
			     (connecting && instead && is_in(fake_errors_of(fake_failed_call()), error)),
		     "%s() says %d (%s)", fake_call_name(call), error, strerror(error));
}

/* The wait must end, unless epoll_ctl() has failed: then the shim can't restore the registration that would wake the application. */
static void expect_ready(int ready, int fd)
{
	world_expect(ready != 0 || (fake_has_failed() && fake_failed_call() == FAKE_epoll_ctl), "never ready, the shim says %s",
		     world_state_name(world_state(fd)));
}

/* --- the application --- */

static bool is_worth_another_try(int error)
{
	return error == EINTR || error == EAGAIN || error == ENOMEM || error == ENOBUFS;
}

/* Waits for the connection. Returns SO_ERROR, or the errno of a wait that can't be. */
static int wait_by_poll(int fd)
{
	for (int tries = 0; tries < TRIES; tries++) {
		struct pollfd poller = { .fd = fd, .events = POLLOUT };
		int ready = hook_poll(&poller, 1, PATIENCE_MS);

		expect_ready(ready, fd);
		if (ready > 0)
			return world_error_of(fd);
		expect_documented(FAKE_poll, errno);
	}
	return ETIMEDOUT;
}

static int wait_by_epoll(int epfd, int fd)
{
	struct epoll_event event;

	for (int tries = 0; tries < TRIES; tries++) {
		int ready = hook_epoll_wait(epfd, &event, 1, PATIENCE_MS);

		expect_ready(ready, fd);
		if (ready == 0)
			return ETIMEDOUT;
		if (ready > 0)
			return world_error_of(fd);
		expect_documented(FAKE_epoll_wait, errno);
	}
	return ETIMEDOUT;
}

/* Connects as the application does. @sent: bytes of data that were taken meanwhile. Returns 0 or a positive errno. */
static int establish(enum application application, int fd, int epfd, size_t *sent)
{
	union sockaddr_ip server = world_address(SERVER);
	ssize_t taken;
	int error;

	if (application == FASTOPEN) {
		taken = hook_sendto(fd, data, 4, MSG_FASTOPEN, &server.sa, sockaddr_ip_len(&server));
		*sent = taken > 0 ? (size_t)taken : 0;
		error = taken < 0 ? errno : 0;
		if (error)
			expect_documented(FAKE_sendto, error);
		return error == EINPROGRESS ? wait_by_poll(fd) : error;
	}
	error = world_connect(fd, SERVER);
	if (error)
		expect_documented(FAKE_connect, error);
	if (error != EINPROGRESS && error != EINTR)
		return error;
	return application == EPOLL ? wait_by_epoll(epfd, fd) : wait_by_poll(fd);
}

static size_t send_all(int fd, size_t sent)
{
	for (int tries = 0; sent < 4 && tries < TRIES; tries++) {
		ssize_t taken = hook_send(fd, data + sent, 4 - sent, 0);

		if (taken > 0) {
			sent += (size_t)taken;
			continue;
		}
		expect_documented(FAKE_send, errno);
		if (!is_worth_another_try(errno))
			break;
		wait_by_poll(fd);
	}
	return sent;
}

static void receive(int fd)
{
	char bytes[64];
	size_t got = 0;

	for (int tries = 0; got < 5 && tries < TRIES; tries++) {
		struct pollfd poller = { .fd = fd, .events = POLLIN };
		ssize_t more;

		hook_poll(&poller, 1, PATIENCE_MS);
		more = hook_recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (more < 0)
			expect_documented(FAKE_recv, errno);
		if (more == 0 || (more < 0 && !is_worth_another_try(errno)))
			return;
		for (ssize_t i = 0; i < more; i++)
			world_expect(got < 5 && bytes[i] == hello[got++], "a byte that the server hasn't sent: %#x", bytes[i]);
	}
}

/* What the application has sent is behind a request, or at the server; and nothing else is. */
static void expect_sent(const char *host, bool converter, size_t sent)
{
	const uint8_t *bytes;
	size_t len = fake_host_received(host, &bytes), request = 0;

	if (converter)
		world_expect(convert_message_length(bytes, len, &request) == CONVERT_STATUS_OK && request <= len, "half a request");
	world_expect(len - request == sent && (!sent || memcmp(bytes + request, data, sent) == 0), "%zu of %zu bytes at %s",
		     len - request, sent, host);
}

/* Could the shim restore the options and registrations, and find out whose socket it is? */
static bool is_clean(void)
{
	return !fake_has_failed() || (fake_failed_call() != FAKE_epoll_ctl && fake_failed_call() != FAKE_setsockopt &&
				      fake_failed_call() != FAKE_getsockopt);
}

static void application_run(const struct scenario *scenario, int epfd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT, .data.u64 = 5 };
	int fd = world_socket(scenario->application == BLOCKING), error;
	enum world_state state;
	size_t sent = 0;

	if (fd < 0) {
		expect_documented(FAKE_socket, errno);
		return;
	}
	if (epfd >= 0 && hook_epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) != 0) {
		expect_documented(FAKE_epoll_ctl, errno);
		hook_close(fd);
		return;
	}
	error = establish(scenario->application, fd, epfd, &sent);
	if (error == 0) {
		sent = send_all(fd, sent);
		receive(fd);
		state = world_state(fd);
		world_expect(state != WORLD_PENDING && state != WORLD_DEFERRED, "%s", world_state_name(state));
		if (is_clean())
			world_is_restored(fd, epfd, EPOLLIN | EPOLLOUT);
		if (fake_is_connected(fd))
			expect_sent(fake_port(fd) == 80 ? SERVER :
				    fake_host_syns(CONVERTER) && scenario->hosts[1].address == NULL ? CONVERTER : OTHER_CONVERTER,
				    fake_port(fd) != 80, sent);
	}
	if (hook_close(fd) != 0)
		expect_documented(FAKE_close, errno);
}

/* --- the hosts --- */

static void hosts_add(const struct scenario *scenario)
{
	static struct world_message ok, failed;
	struct fake_host server = { .address = SERVER, .is_server = true, .synack_ms = 20, .no_mptcp = !scenario->mptcp_server,
				    .answers = { { .bytes = hello, .len = 5 } }, .answer_count = 1 };

	ok = scenario->withholds ? world_ok_withholds : world_ok;
	memcpy(ok.bytes + ok.len, hello, 5);
	ok.len += 5;
	failed = world_error(scenario->error, 0);
	for (int i = 0; i < 3 && scenario->hosts[i].address; i++) {
		struct fake_host host = scenario->hosts[i];

		if (scenario->error && i == 0)
			host.answers[host.answer_count++] = world_answer(&failed, 10);
		if (!host.answer_count || (scenario->error && i == 0))
			host.answers[host.answer_count++] = world_answer(&ok, 10);
		fake_host_add(&host);
	}
	fake_host_add(&server);
}

/* A connection before, from which something is known of the converter. */
static void learn(void)
{
	int fd = world_socket(true);

	world_expect(world_connect(fd, SERVER) == 0, "errno %d", errno);
	hook_close(fd);
}

static void scenario_body(void *arg)
{
	const struct run *run = arg;
	const struct scenario *scenario = run->scenario;
	int epfd = -1;

	snprintf(fake_context, sizeof(fake_context), "%s, call %d (%s) fails with %s", scenario->name, run->number,
		 run->number >= 0 ? fake_call_name((enum fake_call)run->shared->calls[run->number]) : "none",
		 strerror(run->error));
	world_begin(&scenario->options);
	hosts_add(scenario);
	if (scenario->withholds)
		learn();
	if (scenario->application == EPOLL)
		epfd = fake_epoll_create();
	fake_fail(run->number, run->error);
	application_run(scenario, epfd);
	if (run->number < 0) {
		run->shared->count = fake_call_count() < CALLS_MAX ? fake_call_count() : CALLS_MAX;
		for (int i = 0; i < run->shared->count; i++)
			run->shared->calls[i] = (uint8_t)fake_call_at(i);
	}
	run->shared->reached = fake_has_failed();
	fake_fail(-1, 0);
	if (epfd >= 0)
		hook_close(epfd);
	world_is_empty();
}

#define TWO_CONVERTERS { .converters = "192.0.2.1,192.0.2.2" }
#define ONE { { .address = CONVERTER, .synack_ms = 10 } }

static const struct scenario scenarios[] = {
	{ .name = "converted, poll()", .application = NON_BLOCKING, .hosts = ONE, .every_error = true },
	{ .name = "converted, blocking", .application = BLOCKING, .hosts = ONE },
	{ .name = "converted, epoll", .application = EPOLL, .hosts = ONE, .every_error = true },
	{ .name = "early data", .application = EARLY, .hosts = ONE, .options = { .early_data = "1" }, .every_error = true },
	{ .name = "MSG_FASTOPEN", .application = FASTOPEN, .hosts = ONE },
	{ .name = "the converter refuses", .application = EPOLL, .hosts = { { .address = CONVERTER, .refuses = ECONNREFUSED } },
	  .every_error = true },
	{ .name = "the converter refuses, early data", .application = EARLY, .options = { .early_data = "1" },
	  .hosts = { { .address = CONVERTER, .refuses = ECONNREFUSED } } },
	{ .name = "fail closed", .application = NON_BLOCKING, .options = { .fallback = "none" },
	  .hosts = { { .address = CONVERTER, .refuses = ECONNREFUSED } } },
	{ .name = "the second converter", .application = EPOLL, .options = TWO_CONVERTERS,
	  .hosts = { { .address = CONVERTER, .refuses = ECONNREFUSED }, { .address = OTHER_CONVERTER } } },
	{ .name = "Multipath TCP is lost at the SYN+ACK", .application = EPOLL, .hosts = { { .address = CONVERTER, .no_mptcp = true } } },
	{ .name = "Multipath TCP is lost behind it", .application = EPOLL, .hosts = { { .address = CONVERTER, .loses_mptcp = true } } },
	{ .name = "data in the SYN isn't taken", .application = NON_BLOCKING, .hosts = { { .address = CONVERTER, .takes_no_data = true } } },
	{ .name = "a cookie is wanted", .application = NON_BLOCKING, .hosts = ONE, .error = 3 },
	{ .name = "the server refuses", .application = EPOLL, .hosts = ONE, .error = 96 },
	{ .name = "the SYN+ACK confirms", .application = EPOLL, .hosts = ONE, .withholds = true, .options = { .withholding = "1000" },
	  .every_error = true },
	{ .name = "silence", .application = NON_BLOCKING, .hosts = { { .address = CONVERTER, .silent = true } } },
};
#define SCENARIOS (int)(sizeof(scenarios) / sizeof(scenarios[0]))

/* Two of a call's errors, others for each call; or all. */
static bool is_chosen(const struct scenario *scenario, int number, int which, int count)
{
	return (scenario->every_error && !SANITIZED) || which == number % count || which == (number * 7 + 3) % count;
}

START_TEST(each_call_fails)
{
	struct run run = { .scenario = &scenarios[_i], .number = -1, .shared = world_shared_memory(sizeof(*run.shared)) };
	int runs = 0, failed = 0, unreached = 0;

	ck_assert(world_run(scenario_body, &run, scenarios[_i].name));
	for (int number = 0; number < run.shared->count; number++) {
		const int *errors = fake_errors_of((enum fake_call)run.shared->calls[number]);
		int count = 0;

		while (errors[count])
			count++;
		ck_assert_int_gt(count, 0);
		for (int which = 0; which < count; which++) {
			if (!is_chosen(run.scenario, number, which, count))
				continue;
			run.number = number;
			run.error = errors[which];
			failed += !world_run(scenario_body, &run, scenarios[_i].name);
			unreached += !run.shared->reached;
			runs++;
		}
	}
	if (getenv("FAKE_COUNTS"))
		printf("%s: %d calls, %d runs, %d wrong\n", run.scenario->name, run.shared->count, runs, failed);
	ck_assert_int_eq(failed, 0);
	ck_assert_int_eq(unreached, 0); /* a run repeats exactly up to the call that fails */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shim_faults");
	TCase *tcase = tcase_create("shim_faults");

	tcase_add_loop_test(tcase, each_call_fails, 0, SCENARIOS);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
