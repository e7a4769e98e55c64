/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shim_phases.c - what the application may do in phases that pass in a moment, on the fake kernel
 *
 * An application that waits where the shim can't see it, by a system call of its own, may send as soon as the kernel says
 * "writable", and before the shim has seen the SYN+ACK.
 */
#include "config.h"

#include "shim_world.h"

#include "client/converters.h"
#include "run.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#define RUN(body) ck_assert(world_run(body, NULL, #body))

static struct conn *pending(int fd, enum conn_phase phase)
{
	struct conn *conn = conn_of(fd);

	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	world_expect(conn_phase(conn) == phase, "%s", phase_name(conn_phase(conn)));
	/* as epoll_wait() notes it of a socket whose registration it couldn't see */
	conn_note(conn, CONN_TOLD_WRITABLE);
	return conn;
}

/* The server itself was asked: what is sent is the application's alone, and no request of ours in front of it. */
static void to_the_server_itself(void *arg)
{
	union sockaddr_ip server = world_address(SERVER);
	const uint8_t *received;
	int fd;

	(void)arg;
	world_begin(&(struct world_options){ .bypass_mptcp = "1" });
	fake_host_add(&(struct fake_host){ .address = SERVER, .is_server = true, .synack_ms = 20 });
	servers_note_mptcp(0, &server, HANDSHAKE_SERVER_MPTCP);
	fd = world_socket(false);
	pending(fd, CONN_BYPASS);
	fake_pass_ms(25);
	world_expect(hook_send(fd, "data", 4, 0) == 4, "errno %d", errno);
	world_expect(fake_host_received(SERVER, &received) == 4 && !memcmp(received, "data", 4), "%zu bytes",
		     fake_host_received(SERVER, &received));
	world_expect(hook_close(fd) == 0, "errno %d", errno);
	world_is_empty();
}

START_TEST(output_before_the_synack_was_seen)
{
	RUN(to_the_server_itself);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shim_phases");
	TCase *tcase = tcase_create("shim_phases");

	tcase_add_test(tcase, output_before_the_synack_was_seen);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
