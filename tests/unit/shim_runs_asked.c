/* SPDX-License-Identifier: BSD-3-Clause */
/* shim_runs_asked.c - runs in which the shim asks a converter, which answers, refuses, isn't one, or can't be reached */
#include "config.h"

#include "shim_runs.h"

#include "client/converters.h"
#include "common/clock.h"
#include "common/thread.h"
#include "shim/connect/conversion.h"
#include "shim/system/next.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static struct world_message reset;

/* --- before a connection --- */

static void made_and_closed(void *arg)
{
	int fd;

	(void)arg;
	world_begin(NULL);
	fd = world_socket(false);
	run_expect(fd, WORLD_IDLE);
	run_finish(fd);
}

static void no_route_to_the_converter(void *arg)
{
	char expected[128]; /* C libraries differ in their words */
	int fd;

	(void)arg;
	snprintf(expected, sizeof(expected), SERVER ": direct: %s", error_text(ENETUNREACH));
	run_begin(NULL, (struct fake_host){ .address = CONVERTER, .at_once = ENETUNREACH }, NULL);
	run_add_server((struct fake_host){ .synack_ms = 20 });
	fd = world_socket(false);
	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	run_expect(fd, WORLD_DIRECT);
	world_expect(strcmp(fake_log_last(), expected) == 0, "the log says \"%s\"", fake_log_last());
	run_finish(fd);
}

static void no_route_to_anything(void *arg)
{
	int fd;

	(void)arg;
	run_begin(NULL, (struct fake_host){ .address = CONVERTER, .at_once = ENETUNREACH }, NULL);
	fd = world_socket(false);
	world_expect(world_connect(fd, SERVER) == ENETUNREACH, "errno %d", errno);
	run_expect(fd, WORLD_IDLE);
	run_finish(fd);
}

/* The attempt leaves an IPv6 socket, on which an application of IPv4 reaches its server all the same. */
static void no_route_to_an_ipv6_converter(void *arg)
{
	static const struct world_options options = { .converters = "[2001:db8::1]" };
	const union sockaddr_ip server = world_address(SERVER);
	const bool blocking = *(const int *)arg & 1, fastopen = *(const int *)arg & 2;
	char text[SOCKADDR_STRLEN];
	const uint8_t *bytes;
	ssize_t sent = -1;
	int fd;

	run_begin(&options, (struct fake_host){ .address = "[2001:db8::1]:1234", .at_once = ENETUNREACH, .no_route = true }, NULL);
	run_add_server((struct fake_host){ .synack_ms = 20 });
	fd = world_socket(blocking);
	if (fastopen)
		sent = hook_sendto(fd, "data", 4, MSG_FASTOPEN, &server.sa, sockaddr_ip_len(&server));
	else
		world_expect(world_connect(fd, SERVER) == (blocking ? 0 : EINPROGRESS), "errno %d", errno);
	world_expect(!fastopen || (blocking ? sent == 4 : sent < 0 && errno == EINPROGRESS), "%zd, errno %d", sent, errno);
	run_expect(fd, WORLD_DIRECT);
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	world_expect(strcmp(world_peer(fd, text), SERVER) == 0, "%s", text);
	world_expect(fake_protocol(fd) == IPPROTO_TCP, "over MPTCP");
	world_expect(sent == 4 || hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	world_expect(fake_host_received(SERVER, &bytes) == 4, "%zu bytes", fake_host_received(SERVER, &bytes));
	run_finish(fd);
}

/* The SYN would have waited for early data. That to the server must not, nor that of a later connect() where there is no fallback. */
static void no_route_for_early_data(void *arg)
{
	const struct fake_host converter = { .address = CONVERTER, .at_once = ENETUNREACH, .no_route = true };
	int fd;

	run_begin(arg ? &run_closed : &run_early, converter, NULL);
	paths_note_fallback(&(struct path_id){ .converter = 0 }, clock_ns());
	run_add_server((struct fake_host){ .synack_ms = 20 });
	fd = world_socket(false);
	world_expect(world_connect(fd, SERVER) == (arg ? ENETUNREACH : EINPROGRESS), "errno %d", errno);
	run_expect(fd, arg ? WORLD_IDLE : WORLD_DIRECT);
	world_expect(fake_option(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT) == 0, "the SYN waits");
	world_expect(fake_host_syns(SERVER) == (arg ? 0 : 1), "%u SYNs", fake_host_syns(SERVER));
	run_finish(fd);
}

/* --- early data --- */

static void deferred_and_sent(void *arg)
{
	int fd;

	(void)arg;
	run_begin(&run_early, run_accepting, &world_ok);
	fd = run_connected_early();
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	run_expect(fd, WORLD_PENDING);
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	run_expect(fd, WORLD_DONE);
	run_finish(fd);
}

static void deferred_and_sent_over_tcp(void *arg)
{
	int fd;

	(void)arg;
	run_begin(&run_early, (struct fake_host){ .address = CONVERTER, .synack_ms = 10 }, &world_ok);
	paths_note_fallback(&(struct path_id){ .converter = 0 }, clock_ns());
	fd = run_connected_early();
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	world_expect(world_phase(fd) == CONN_ASKED, "%s", phase_name(world_phase(fd)));
	world_wait(fd, 60000);
	run_expect(fd, WORLD_DONE);
	run_finish(fd);
}

static void deferred_and_closed(void *arg)
{
	(void)arg;
	run_begin(&run_early, run_accepting, &world_ok);
	run_finish(run_connected_early());
}

/* The deferred SYN can't be sent, since no route leads to the converter. Without a fallback that is the end. */
static void deferred_and_unreachable(void *arg)
{
	int fd;

	run_begin(arg ? &run_closed : &run_early, (struct fake_host){ .address = CONVERTER, .at_once = ENETUNREACH }, NULL);
	run_add_server((struct fake_host){ .synack_ms = 20 });
	fd = run_connected_early();
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	run_expect(fd, arg ? WORLD_FAILED : WORLD_PENDING);
	world_wait(fd, 60000);
	run_expect(fd, arg ? WORLD_FAILED : WORLD_DIRECT);
	run_finish(fd);
}

/* An epoll instance unknown to the shim reports "writable" at the SYN+ACK of a host that isn't a converter: the server gets the bytes. */
static void written_unseen(void *arg)
{
	struct epoll_event event;
	const uint8_t *bytes;
	size_t len;
	int fd;

	(void)arg;
	run_begin(NULL, (struct fake_host){ .address = CONVERTER, .synack_ms = 5, .answer_count = 1,
					.answers = { { .bytes = "HTTP", .len = 4, .after_ms = 10 } } }, NULL);
	run_add_server((struct fake_host){ .synack_ms = 20 });
	fd = run_connecting();
	world_expect(hook_epoll_wait(fake_epoll_create(), &event, 1, 7) == 0, "an event");
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	fake_pass_ms(20);
	world_wait(fd, 60000);
	fake_pass_ms(100);
	run_expect(fd, WORLD_DIRECT);
	len = fake_host_received(SERVER, &bytes);
	world_expect(len == 4 && memcmp(bytes, "data", 4) == 0, "%zu bytes", len);
}

/* The same, and the application ends the connection before the response has come: the converter gets the bytes all the same. */
static void written_unseen_and_ended(void *arg)
{
	const bool closed = *(const int *)arg;
	struct epoll_event event;
	const uint8_t *bytes;
	size_t len;
	int fd, epfd;

	run_begin(NULL, run_accepting, &world_ok);
	epfd = fake_epoll_create();
	fd = run_connecting();
	world_expect(hook_epoll_wait(epfd, &event, 1, 12) == 0, "an event");
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	if (!closed) {
		world_expect(hook_shutdown(fd, SHUT_WR) == 0, "errno %d", errno);
		run_expect(fd, WORLD_PENDING);
		world_expect(world_wait(fd, 60000) & POLLOUT, "not writable");
		run_expect(fd, WORLD_DONE);
		world_expect(hook_send(fd, "more", 4, MSG_NOSIGNAL) < 0 && errno == EPIPE, "errno %d", errno);
	}
	hook_close(epfd);
	run_finish(fd);
	world_expect(fake_now_ms() == 30, "after %lld ms", (long long)fake_now_ms()); /* when the response comes */
	len = fake_host_received(CONVERTER, &bytes);
	world_expect(len > 4 && memcmp(bytes + len - 4, "data", 4) == 0, "%zu bytes", len);
}

static void wait_elsewhere(void *arg)
{
	struct epoll_event event;

	for (int i = 0; i < 10; i++)
		world_expect(hook_epoll_wait(*(int *)arg, &event, 1, 0) == 0, "an event");
}

/* The thread registers the socket past the hooks, after others have waited in their own instance: it is told of the server's refusal. */
static void registered_unseen(void *arg)
{
	fake_thread *const others[FAKE_THREADS_MAX] = { wait_elsewhere, wait_elsewhere };
	struct epoll_event event = { .events = EPOLLOUT };
	int fd, epfd, other;

	(void)arg;
	reset = world_error(96, 0);
	run_begin(NULL, run_accepting, &reset);
	epfd = fake_epoll_create();
	other = fake_epoll_create();
	fd = run_connecting();
	fake_threads_run(others, &other, NULL, 0, 0);
	world_expect(next.epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) == 0, "errno %d", errno);
	world_expect(hook_epoll_wait(epfd, &event, 1, 60000) == 1 && event.events & EPOLLERR, "told %#x", event.events);
	world_expect(world_error_of(fd) == ECONNREFUSED, "the error");
	hook_close(epfd);
	hook_close(other);
	run_finish(fd);
}

/* --- pending --- */

static void converted(void *arg)
{
	int fd;

	(void)arg;
	run_begin(NULL, run_accepting, &world_ok);
	fd = run_connecting();
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	run_expect(fd, WORLD_DONE);
	run_finish(fd);
}

static void refused_by_the_server(void *arg)
{
	struct world_message message;
	int fd;

	(void)arg;
	world_begin(NULL);
	message = world_error(96, 0);
	run_accepting.answers[0] = world_answer(&message, 20);
	run_accepting.answer_count = 1;
	fake_host_add(&run_accepting);
	fd = run_connecting();
	world_expect(world_wait(fd, 60000) & POLLERR, "no error");
	run_expect(fd, WORLD_FAILED);
	run_finish(fd);
}

static void refused_and_connected_again(void *arg)
{
	int fd;

	(void)arg;
	run_begin(&run_closed, run_refusing, NULL);
	fd = world_socket(true);
	world_expect(world_connect(fd, SERVER) == 0, "errno %d", errno); /* early data */
	world_expect(hook_send(fd, "data", 4, 0) != 0, "nothing was sent");
	world_wait(fd, 60000);
	run_expect(fd, WORLD_FAILED);
	world_expect(world_connect(fd, SERVER) == ECONNREFUSED, "errno %d", errno);
	run_expect(fd, WORLD_IDLE);
	run_finish(fd);
}

static void register_in(int epfd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT, .data.u64 = 5 };

	world_expect(hook_epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) == 0, "errno %d", errno);
}

/*
 * The server refuses, over Multipath TCP, and the application connects the same socket again, now directly: after the converter has failed
 * (0) or while it rests (1 to 3). If an epoll registration can't follow to a TCP socket (2: made before; 3: made after the failure), that
 * is an error: Multipath TCP would fall back.
 */
static void connected_again_directly(void *arg)
{
	const int which = *(const int *)arg;
	const struct world_message refusal = world_error(96, 0), fault = world_error(64, 0);
	struct fake_host converter = run_accepting;
	int fd, other, epfd;

	run_begin(NULL, converter, &refusal);
	run_add_server((struct fake_host){ .synack_ms = 20 });
	epfd = fake_epoll_create();
	fd = world_socket(false);
	if (which == 2)
		register_in(epfd, fd);
	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	world_expect(world_wait(fd, 60000) & POLLERR, "no error");
	if (which == 3)
		register_in(epfd, fd);
	world_expect(world_connect(fd, SERVER) == ECONNREFUSED, "errno %d", errno);
	world_expect(fake_protocol(fd) == IPPROTO_MPTCP, "over TCP");
	fake_host_remove(CONVERTER);
	converter.answers[converter.answer_count++] = world_answer(&fault, 20);
	fake_host_add(&converter);
	if (which > 0) {
		other = run_connecting();
		world_wait(other, 60000);
		hook_close(other);
		world_expect(converters_rests(0, clock_seconds()), "%s", fake_log_last());
	}
	world_expect(world_connect(fd, SERVER) == (which < 2 ? EINPROGRESS : ECONNABORTED), "errno %d", errno);
	world_wait(fd, 60000);
	run_expect(fd, which < 2 ? WORLD_DIRECT : WORLD_IDLE);
	world_expect(which >= 2 || fake_protocol(fd) == IPPROTO_TCP, "over MPTCP");
	hook_close(epfd);
	run_finish(fd);
}

static void refused_by_the_converter(void *arg)
{
	int fd;

	(void)arg;
	run_begin(NULL, run_refusing, NULL);
	run_add_server((struct fake_host){ .synack_ms = 20 });
	fd = run_connecting();
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	run_expect(fd, WORLD_DIRECT);
	run_finish(fd);
}

/* A converter's bytes are no response: the shim asks the next one, or connects directly. */
static void not_a_converter(void *arg)
{
	static const struct world_options both = { .converters = "192.0.2.1,192.0.2.2" };
	struct fake_host host = { .address = CONVERTER, .synack_ms = 5, .answer_count = 1,
				  .answers = { { .bytes = "HTTP", .len = 4, .after_ms = 10 } } };
	const int which = *(const int *)arg;
	int fd;

	world_begin(which == 2 ? &both : which == 1 ? &run_early : NULL);
	fake_host_add(&host);
	host.address = OTHER_CONVERTER;
	host.answers[0] = world_answer(&world_ok, 10);
	fake_host_add(&host);
	run_add_server((struct fake_host){ .synack_ms = 20 });
	fd = which == 1 ? run_connected_early() : run_connecting();
	if (which == 1)
		world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	fake_pass_ms(6);
	world_wait(fd, 0);
	world_expect(world_phase(fd) == CONN_ASKED, "%s", phase_name(world_phase(fd)));
	world_wait(fd, 60000);
	run_expect(fd, which == 2 ? WORLD_DONE : WORLD_DIRECT);
	run_finish(fd);
}

static void pending_and_closed(void *arg)
{
	(void)arg;
	run_begin(NULL, run_accepting, &world_ok);
	run_finish(run_connecting());
}

/* --- confirmed by the SYN+ACK --- */

static void confirmed_and_answered(void *arg)
{
	struct pollfd poller = { .events = POLLIN };
	char byte;

	(void)arg;
	poller.fd = run_confirmed(&world_ok);
	world_expect(hook_poll(&poller, 1, 100) == 0, "input");
	fake_pass_ms(600);
	world_expect(hook_poll(&poller, 1, 0) == 0, "the response is input");
	world_expect(hook_recv(poller.fd, &byte, 1, 0) < 0 && errno == EAGAIN, "errno %d", errno);
	run_expect(poller.fd, WORLD_DONE);
	run_finish(poller.fd);
}

static void confirmed_and_not_reached(void *arg)
{
	char byte;
	int fd;

	(void)arg;
	reset = world_error(96, 0);
	fd = run_confirmed(&reset);
	fake_pass_ms(600);
	world_expect(hook_recv(fd, &byte, 1, 0) < 0 && errno == ECONNRESET, "errno %d", errno);
	run_expect(fd, WORLD_FAILED);
	run_finish(fd);
}

/* The application isn't told twice, by the step's event and by the kernel's report of the end. */
static void confirmed_once_and_not_reached(void *arg)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };
	int fd, epfd;

	(void)arg;
	reset = world_error(96, 0);
	fd = run_confirmed(&reset);
	epfd = fake_epoll_create();
	world_expect(hook_epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) == 0, "errno %d", errno);
	world_expect(hook_epoll_wait(epfd, &event, 1, 60000) == 1 && event.events & EPOLLERR, "told %#x", event.events);
	run_expect(fd, WORLD_FAILED);
	world_expect(hook_epoll_wait(epfd, &event, 1, 0) == 0, "told %#x as well", event.events);
	hook_close(epfd);
	run_finish(fd);
}

/* close() waits a second for the response. */
static void confirmed_and_closed(void *arg)
{
	static struct world_message late;

	(void)arg;
	run_finish(run_confirmed(&late));
	world_expect(fake_now_ms() == 1010, "after %lld ms", (long long)fake_now_ms());
}

/* --- the next converter has a name --- */

/* The first converter refuses, sends bytes that are no response, or can't be reached; the second one is a name. */
struct naming {
	const struct world_options options;
	const char *resolved;
	bool answers; /* the first one sends bytes that are no response; else it refuses */
	bool at_once; /* the kernel says at once that it can't be reached */
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
	run_add_server((struct fake_host){ .synack_ms = 20 });
	fake_resolved = naming->resolved;
	if (naming->options.early_data) {
		fd = run_connected_early();
		world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
		if (!naming->resolved)
			fake_pass_ms(1);
	} else {
		fd = run_connecting();
	}
	world_wait(fd, 60000);
	run_expect(fd, naming->end);
	run_finish(fd);
}

/* The shim keeps output until the name is resolved, and blames no converter meanwhile. */
static void named_and_written(void *arg)
{
	static const struct world_options three = { .converters = "192.0.2.1,192.0.2.2,_convert._tcp.example", .early_data = "1" };
	static const char resolved[] = "192.0.2.3:1234";
	struct fake_host host = { .address = OTHER_CONVERTER, .at_once = ENETUNREACH };
	const uint8_t *bytes;
	size_t len;
	int fd;

	run_begin(&three, (struct fake_host){ .address = CONVERTER, .at_once = ENETUNREACH }, NULL);
	fake_host_add(&host);
	host = (struct fake_host){ .address = resolved, .synack_ms = 5, .answer_count = 1 };
	host.answers[0] = world_answer(&world_ok, 5);
	fake_host_add(&host);
	run_add_server((struct fake_host){ .synack_ms = 20 });
	fd = run_connected_early();
	conversion_send_deferred(conn_of(fd), fd);
	world_expect(world_phase(fd) == CONN_RESOLVING, "%s", phase_name(world_phase(fd)));
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	world_expect(world_phase(fd) == CONN_RESOLVING, "%s", phase_name(world_phase(fd)));
	world_expect(!converters_rests(1, clock_seconds()), "a converter that wasn't asked is to blame: %s", fake_log_last());
	fake_resolved = arg ? NULL : resolved;
	world_wait(fd, 60000);
	fake_pass_ms(100);
	run_expect(fd, arg ? WORLD_DIRECT : WORLD_DONE);
	len = fake_host_received(arg ? SERVER : resolved, &bytes);
	world_expect(len >= 4 && memcmp(bytes + len - 4, "data", 4) == 0, "%zu bytes", len);
	run_finish(fd);
}

static void named_and_closed(void *arg)
{
	int fd;

	(void)arg;
	run_begin(&named[3].options, (struct fake_host){ .address = CONVERTER, .at_once = ENETUNREACH }, NULL);
	fd = run_connected_early();
	conversion_send_deferred(conn_of(fd), fd);
	world_expect(world_phase(fd) == CONN_RESOLVING, "%s", phase_name(world_phase(fd)));
	run_finish(fd);
}

static int zero, one = 1, two = 2, three = 3;

const struct shim_run runs_asked[] = {
	{ "made and closed", made_and_closed, NULL },
	{ "no route to the converter", no_route_to_the_converter, NULL },
	{ "no route to anything", no_route_to_anything, NULL },
	{ "no route to an IPv6 converter", no_route_to_an_ipv6_converter, &zero },
	{ "no route to an IPv6 converter, blocking", no_route_to_an_ipv6_converter, &one },
	{ "no route to an IPv6 converter, MSG_FASTOPEN", no_route_to_an_ipv6_converter, &two },
	{ "no route to an IPv6 converter, blocking MSG_FASTOPEN", no_route_to_an_ipv6_converter, &three },
	{ "no route for early data", no_route_for_early_data, NULL },
	{ "no route for early data, no fallback", no_route_for_early_data, &one },
	{ "pending and closed", pending_and_closed, NULL },
	{ "deferred and closed", deferred_and_closed, NULL },
	{ "deferred and sent", deferred_and_sent, NULL },
	{ "deferred and unreachable", deferred_and_unreachable, NULL },
	{ "deferred and unreachable", deferred_and_unreachable, &one },
	{ "converted", converted, NULL },
	{ "refused by the server", refused_by_the_server, NULL },
	{ "refused by the converter", refused_by_the_converter, NULL },
	{ "confirmed and answered", confirmed_and_answered, NULL },
	{ "confirmed and not reached", confirmed_and_not_reached, NULL },
	{ "confirmed and not reached, one-shot", confirmed_once_and_not_reached, NULL },
	{ "confirmed and closed", confirmed_and_closed, NULL },
	{ "refused and connected again", refused_and_connected_again, NULL },
	{ "refused and connected again directly, zero", connected_again_directly, &zero },
	{ "refused and connected again directly, one", connected_again_directly, &one },
	{ "refused and connected again directly, two", connected_again_directly, &two },
	{ "refused and connected again directly, three", connected_again_directly, &three },
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
	{ "output that nobody waits for, and shutdown()", written_unseen_and_ended, &zero },
	{ "output that nobody waits for, and close()", written_unseen_and_ended, &one },
	{ "registered past the hooks, beside busy threads", registered_unseen, NULL },
	{ "no converter, zero", not_a_converter, &zero },
	{ "no converter, one", not_a_converter, &one },
	{ "no converter, two", not_a_converter, &two },
	{ "early data over TCP", deferred_and_sent_over_tcp, NULL },
};
const size_t runs_asked_count = sizeof(runs_asked) / sizeof(runs_asked[0]);
