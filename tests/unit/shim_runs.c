/* SPDX-License-Identifier: BSD-3-Clause */
/* shim_runs.c - common parts of the runs of test_shim_transitions */
#include "config.h"

#include "shim_runs.h"

#include <errno.h>

struct fake_host run_accepting = { .address = CONVERTER, .synack_ms = 10 };
const struct fake_host run_refusing = { .address = CONVERTER, .refuses = ECONNREFUSED };
const struct world_options run_early = { .early_data = "1" }, run_withholding = { .withholding = "1000" },
			   run_bypass = { .bypass_mptcp = "1" }, run_closed = { .fallback = "none", .early_data = "1" };

void run_begin(const struct world_options *options, struct fake_host host, const struct world_message *message)
{
	world_begin(options);
	if (message) {
		host.answers[0] = world_answer(message, 20);
		host.answer_count = 1;
	}
	fake_host_add(&host);
}

void run_add_server(struct fake_host host)
{
	static const char hello[] = "hello";

	host.address = SERVER;
	host.is_server = true;
	host.answers[0] = (struct fake_answer){ .bytes = hello, .len = 5, .after_ms = 20 };
	host.answer_count = 1;
	fake_host_add(&host);
}

void run_expect(int fd, enum world_state state)
{
	world_expect(world_state(fd) == state, "%s, and should be %s", world_state_name(world_state(fd)), world_state_name(state));
}

int run_connecting(void)
{
	int fd = world_socket(false);

	world_expect(world_connect(fd, SERVER) == EINPROGRESS, "errno %d", errno);
	run_expect(fd, WORLD_PENDING);
	return fd;
}

int run_connected_early(void)
{
	int fd = world_socket(false);

	world_expect(world_connect(fd, SERVER) == 0, "errno %d", errno);
	run_expect(fd, WORLD_DEFERRED);
	return fd;
}

void run_dissolve(int fd)
{
	const struct sockaddr unspec = { .sa_family = AF_UNSPEC };

	world_expect(hook_connect(fd, &unspec, sizeof(unspec)) == 0, "errno %d", errno);
}

void run_finish(int fd)
{
	world_expect(hook_close(fd) == 0, "errno %d", errno);
	world_is_empty();
}

int run_confirmed(const struct world_message *message)
{
	int fd;

	run_begin(&run_withholding, run_accepting, NULL);
	fake_host_remove(CONVERTER);
	run_accepting.answers[0] = world_answer(message, 500);
	run_accepting.answer_count = 1;
	fake_host_add(&run_accepting);
	fd = run_connecting();
	world_expect(world_wait(fd, 60000) == POLLOUT, "not writable");
	world_expect(fake_now_ms() == 10, "after %lld ms", (long long)fake_now_ms());
	run_expect(fd, WORLD_CONFIRMED);
	return fd;
}
