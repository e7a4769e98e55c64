/* SPDX-License-Identifier: BSD-3-Clause */
/* shim_runs_otherwise.c - runs in which the application dissolves its connection or shuts it down, or it goes to the server itself */
#include "config.h"

#include "shim_runs.h"

#include "client/converters.h"
#include "shim/system/next.h"

#include <errno.h>
#include <netinet/in.h>
#include <linux/tcp.h>

/* --- dissolved --- */

static void deferred_and_dissolved(void *arg)
{
	int fd;

	(void)arg;
	run_begin(&run_early, run_accepting, &world_ok);
	fd = run_connected_early();
	run_dissolve(fd);
	run_expect(fd, WORLD_FAILED);
	world_expect(world_error_of(fd) == ECONNRESET, "another error");
	run_expect(fd, WORLD_IDLE);
	run_finish(fd);
}

/* shutdown(2) in SYN_SENT. */
static void pending_and_shut(void *arg)
{
	int fd;

	(void)arg;
	run_begin(NULL, (struct fake_host){ .address = CONVERTER, .synack_ms = 100 }, &world_ok);
	fd = run_connecting();
	world_expect(hook_shutdown(fd, SHUT_WR) == 0, "errno %d", errno);
	world_expect(fake_now_ms() == 20, "after %lld ms", (long long)fake_now_ms());
	run_expect(fd, WORLD_FAILED);
	run_finish(fd);
}

/* The same, but the server is so near that a direct connection would be there already. */
static void pending_near_and_shut(void *arg)
{
	struct fake_host host = { .address = CONVERTER, .synack_ms = 5, .answer_count = 1 };
	const int how = *(const int *)arg;
	int fd;

	world_begin(NULL);
	host.answers[0] = world_answer(&world_ok, 5);
	fake_host_add(&host);
	fd = run_connecting();
	world_expect(hook_shutdown(fd, how) == 0, "errno %d", errno);
	world_expect(fake_now_ms() == 10, "after %lld ms", (long long)fake_now_ms());
	world_expect(world_phase(fd) == CONN_DONE, "%s", phase_name(world_phase(fd)));
	world_expect(world_error_of(fd) == 0, "an error");
	world_expect((hook_send(fd, "x", 1, MSG_NOSIGNAL) == 1) == (how == SHUT_RD), "errno %d", errno);
	run_finish(fd);
}

static void asked_and_shut(void *arg)
{
	int fd;

	(void)arg;
	run_begin(NULL, (struct fake_host){ .address = CONVERTER }, NULL);
	fd = run_connecting();
	world_wait(fd, 0);
	world_expect(world_phase(fd) == CONN_ASKED, "%s", phase_name(world_phase(fd)));
	world_expect(hook_shutdown(fd, SHUT_RDWR) == 0, "errno %d", errno);
	run_finish(fd);
}

static void confirmed_and_dissolved(void *arg)
{
	int fd;

	(void)arg;
	fd = run_confirmed(&world_ok);
	run_dissolve(fd);
	run_expect(fd, WORLD_FAILED);
	run_finish(fd);
}

static void converted_and_dissolved(void *arg)
{
	int fd;

	run_begin(NULL, arg ? (struct fake_host){ .address = CONVERTER, .no_mptcp = true } : run_accepting, &world_ok);
	fd = run_connecting();
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	run_expect(fd, WORLD_DONE);
	run_dissolve(fd);
	run_expect(fd, arg ? WORLD_IDLE : WORLD_FAILED); /* for TCP the kernel says ECONNRESET itself */
	world_expect(world_error_of(fd) == ECONNRESET, "no error");
	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	run_finish(fd);
}

static void direct_and_dissolved(void *arg)
{
	int fd;

	(void)arg;
	run_begin(NULL, run_refusing, NULL);
	run_add_server((struct fake_host){ .synack_ms = 20 });
	fd = run_connecting();
	world_wait(fd, 60000);
	run_expect(fd, WORLD_DIRECT);
	run_dissolve(fd);
	run_expect(fd, WORLD_IDLE);
	run_finish(fd);
}

/* A server of this host: the kernel connects the application's own socket. */
static void never_converted(void *arg)
{
	static const struct fake_host here = { .address = "127.0.0.1:80", .is_server = true, .synack_ms = 1 };
	int fd;

	(void)arg;
	run_begin(NULL, run_refusing, NULL);
	fake_host_add(&here);
	fd = world_socket(false);
	world_expect(world_connect(fd, here.address) == EINPROGRESS, "errno %d", errno);
	world_wait(fd, 60000);
	run_expect(fd, WORLD_DIRECT);
	run_finish(fd);
}

static void failed_and_dissolved(void *arg)
{
	int fd;

	(void)arg;
	run_begin(&run_closed, run_refusing, NULL);
	fd = run_connected_early();
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	world_wait(fd, 60000);
	run_expect(fd, WORLD_FAILED);
	run_dissolve(fd);
	run_finish(fd);
}

/* --- to a server that speaks Multipath TCP itself --- */

static int bypassed(void)
{
	union sockaddr_ip server = world_address(SERVER);
	int fd;

	run_begin(&run_bypass, run_accepting, &world_ok);
	run_add_server((struct fake_host){ .synack_ms = 10 });
	servers_note_mptcp(0, &server, HANDSHAKE_SERVER_MPTCP);
	fd = run_connecting();
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	run_expect(fd, WORLD_CONFIRMED);
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
	run_expect(fd, WORLD_DIRECT);
	run_dissolve(fd);
	run_expect(fd, WORLD_FAILED);
	run_finish(fd);
}

/* 0: the server refuses; 1: it speaks only TCP; before its SYN+ACK 2: shutdown(), 3: close(); 4: it loses Multipath TCP; 6: dissolved */
static void bypass_ends(void *arg)
{
	union sockaddr_ip server = world_address(SERVER);
	const int which = *(const int *)arg;
	int fd;

	run_begin(&run_bypass, (struct fake_host){ .address = CONVERTER }, NULL);
	run_add_server((struct fake_host){ .synack_ms = which == 2 ? 30 : 10, .refuses = which == 0 ? ECONNREFUSED : 0, .no_mptcp = which == 1,
				       .loses_mptcp = which == 4 });
	servers_note_mptcp(0, &server, HANDSHAKE_SERVER_MPTCP);
	fd = run_connecting();
	if (which == 2)
		world_expect(hook_shutdown(fd, SHUT_RDWR) == 0, "errno %d", errno);
	if (which != 2 && which != 3)
		world_wait(fd, 60000);
	if (which == 4) {
		char byte;

		run_expect(fd, WORLD_CONFIRMED);
		fake_pass_ms(100);
		world_expect(hook_recv(fd, &byte, 1, 0) < 0 && errno == ECONNRESET, "errno %d", errno);
	}
	if (which == 6)
		run_dissolve(fd);
	run_finish(fd);
}

/* --- early data on its way to the server itself --- */

/* 0: the server refuses; 1: it is silent until close(); 2: it is silent, and the application dissolves the connection */
static void early_to_the_server(void *arg)
{
	const int which = *(const int *)arg;
	int fd;

	run_begin(&run_early, run_refusing, NULL);
	run_add_server((struct fake_host){ .silent = which != 0, .refuses = ECONNREFUSED, .synack_ms = 20 });
	fd = run_connected_early();
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	for (int asked = 0; asked < 2; asked++) { /* a converter that refuses is asked once more */
		fake_pass_ms(1);
		world_wait(fd, 0);
	}
	world_expect(world_phase(fd) == CONN_EARLY_DIRECT, "%s", phase_name(world_phase(fd)));
	if (which == 0)
		world_wait(fd, 60000);
	if (which == 2)
		run_dissolve(fd);
	if (which != 1)
		run_expect(fd, WORLD_FAILED);
	run_finish(fd);
}

static int zero, one = 1, two = 2, three = 3, four = 4, five = 5, six = 6;

const struct shim_run runs_otherwise[] = {
	{ "deferred and dissolved", deferred_and_dissolved, NULL },
	{ "pending and shut", pending_and_shut, NULL },
	{ "pending, near, shut for reading", pending_near_and_shut, &zero },
	{ "pending, near, shut for writing", pending_near_and_shut, &one },
	{ "pending, near, shut", pending_near_and_shut, &two },
	{ "bypassed and spoken to", bypassed_and_spoken_to, NULL },
	{ "converted and dissolved", converted_and_dissolved, &one },
	{ "converted and dissolved", converted_and_dissolved, NULL },
	{ "direct and dissolved", direct_and_dissolved, NULL },
	{ "never converted", never_converted, NULL },
	{ "shutdown() behind the SYN+ACK", asked_and_shut, NULL },
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
const size_t runs_otherwise_count = sizeof(runs_otherwise) / sizeof(runs_otherwise[0]);
