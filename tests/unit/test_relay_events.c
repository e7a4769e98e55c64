/* SPDX-License-Identifier: BSD-3-Clause */
/* test_relay_events.c - the relay between two socket pairs, driven by what epoll says of them */
#include "relay/relay.h"

#include "relay_pairs.h"
#include "run.h"

#include <check.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int epoll;

static void setup_events(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET };

	setup();
	epoll = epoll_create1(0);
	for (int i = 0; i < RELAY_ENDS; i++) {
		relay_set_tcp(&relay, (enum relay_end)i);
		event.data.u32 = (uint32_t)i;
		ck_assert_int_eq(epoll_ctl(epoll, EPOLL_CTL_ADD, relay.side[i].fd, &event), 0);
	}
}

static void teardown_events(void)
{
	close(epoll);
	teardown();
}

/* Notes what has happened, and runs the relay; as long as events come. */
static enum relay_result run_events(void)
{
	enum relay_result result = RELAY_WAIT;
	struct epoll_event events[RELAY_ENDS];
	int count;

	while (result == RELAY_WAIT && (count = epoll_wait(epoll, events, RELAY_ENDS, 0)) > 0) {
		for (int i = 0; i < count; i++) {
			struct relay_side *side = &relay.side[events[i].data.u32];

			side->writable |= relay_side_note(side, events[i].events);
		}
		result = relay_run(&relay, scratch);
	}
	return result;
}

/* An event of bytes alone needs no read that fails: what comes later raises another. */
START_TEST(bytes_alone)
{
	ck_assert_int_eq(run_events(), RELAY_WAIT);
	for (int i = 0; i < 3; i++) {
		put(client, "abc");
		ck_assert_int_eq(run_events(), RELAY_WAIT);
		ck_assert(!relay.side[RELAY_UPSTREAM].readable);
		expect(server, "abc");
	}
	/* The next bytes come between the event and the read. */
	put(client, "a");
	relay.side[RELAY_UPSTREAM].readable = relay.side[RELAY_UPSTREAM].bytes_only = true;
	ck_assert_int_eq(relay_run(&relay, scratch), RELAY_WAIT);
	put(client, "b");
	ck_assert_int_eq(run_events(), RELAY_WAIT);
	expect(server, "ab");
}
END_TEST

/* One event tells of both, or the second one of the failure. */
START_TEST(bytes_and_a_failure)
{
	bool together = _i;

	put(client, "abc");
	if (!together)
		ck_assert_int_eq(run_events(), RELAY_WAIT);
	reset(&client);
	ck_assert_int_eq(run_events(), RELAY_UPSTREAM_LOST);
	/* Linux throws away what was not read before a reset. */
	if (!together)
		expect(server, "abc");
}
END_TEST

START_TEST(bytes_and_the_end)
{
	bool together = _i;

	put(client, "abc");
	if (!together)
		ck_assert_int_eq(run_events(), RELAY_WAIT);
	shutdown(client, SHUT_WR);
	ck_assert_int_eq(run_events(), RELAY_WAIT);
	expect(server, "abc");
	expect(server, "");
	put(server, "def");
	close(server);
	server = -1;
	ck_assert_int_eq(run_events(), RELAY_DONE);
	/* The last bytes go with the FIN. */
	close(relay.side[RELAY_UPSTREAM].fd);
	relay.side[RELAY_UPSTREAM].fd = -1;
	expect(client, "def");
}
END_TEST

/* A read stops in front of it, though there is more. */
START_TEST(bytes_and_urgent_ones)
{
	ck_assert_int_eq(run_events(), RELAY_WAIT);
	put(client, "abc");
	ck_assert_int_eq(send(client, "!", 1, MSG_OOB), 1);
	put(client, "def");
	ck_assert_int_eq(run_events(), RELAY_WAIT);
	expect(server, "abc!def");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("relay_events");
	TCase *tcase = tcase_create("events");

	tcase_add_checked_fixture(tcase, setup_events, teardown_events);
	tcase_add_test(tcase, bytes_alone);
	tcase_add_loop_test(tcase, bytes_and_a_failure, 0, 2);
	tcase_add_loop_test(tcase, bytes_and_the_end, 0, 2);
	tcase_add_test(tcase, bytes_and_urgent_ones);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
