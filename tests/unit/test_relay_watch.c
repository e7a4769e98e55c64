/* SPDX-License-Identifier: BSD-3-Clause */
/* test_relay_watch.c - when a relay is given up because too few bytes move */
#include "config.h"

#include "relay/relay.h"

#include "run.h"

#include <check.h>
#include <sys/socket.h>
#include <unistd.h>

static struct relay relay;
static struct relay_watch watch;

static void start(void)
{
	relay_init(&relay, NULL);
	relay_watch_start(&watch, 1000);
}

START_TEST(no_limits)
{
	static const struct relay_watch_settings settings;

	start();
	relay.flow[RELAY_UPSTREAM].eof = true;
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, UINT64_MAX), RELAY_WATCH_NONE);
}
END_TEST

START_TEST(idle)
{
	static const struct relay_watch_settings settings = { .idle_ms = 100 };

	start();
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 1099), RELAY_WATCH_NONE);
	relay.flow[_i].bytes++;
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 1150), RELAY_WATCH_NONE);
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 1249), RELAY_WATCH_NONE);
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 1250), RELAY_WATCH_IDLE);
}
END_TEST

START_TEST(half_closed)
{
	static const struct relay_watch_settings settings = { .half_close_ms = 100 };

	start();
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 5000), RELAY_WATCH_NONE);
	relay.flow[_i].eof = true;
	relay.flow[!_i].bytes++;
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 6000), RELAY_WATCH_NONE);
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 6099), RELAY_WATCH_NONE);
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 6100),
			 RELAY_WATCH_HALF_CLOSED);
}
END_TEST

/* Bytes that the relay itself could not write. */
START_TEST(stalled_relay)
{
	static const struct relay_watch_settings settings = { .stall_ms = 100 };
	static const uint8_t bytes[3];
	enum relay_watch_verdict expected = _i == RELAY_UPSTREAM ? RELAY_WATCH_SERVER_STALLED : RELAY_WATCH_CLIENT_STALLED;

	start();
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 4000), RELAY_WATCH_NONE);
	ck_assert_int_eq(relay_prepend(&relay, (enum relay_end)_i, bytes, sizeof(bytes)), 0);
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 5000), RELAY_WATCH_NONE);
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 5099), RELAY_WATCH_NONE);
	/* One byte is enough. */
	relay.flow[_i].bytes++;
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 5150), RELAY_WATCH_NONE);
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 5249), RELAY_WATCH_NONE);
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 5250), expected);
	/* And it is over once all is written. */
	relay_fini(&relay);
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 5251), RELAY_WATCH_NONE);
}
END_TEST

/* Bytes that the kernel has, and the peer hasn't taken. */
START_TEST(stalled_socket)
{
	static const struct relay_watch_settings settings = { .stall_ms = 100 };
	enum relay_end end = (enum relay_end)_i;
	char bytes[100] = { 0 };
	int fds[2];

	start();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	relay.side[end].fd = fds[0];
	relay.flow[!end].bytes = sizeof(bytes);
	ck_assert_int_eq(send(fds[0], bytes, sizeof(bytes), 0), sizeof(bytes));
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 2000), RELAY_WATCH_NONE);
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 2050), RELAY_WATCH_NONE);
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 2100),
			 end == RELAY_UPSTREAM ? RELAY_WATCH_CLIENT_STALLED : RELAY_WATCH_SERVER_STALLED);
	/* Something more comes behind it: that isn't taken either. */
	relay.flow[!end].bytes += sizeof(bytes);
	ck_assert_int_eq(send(fds[0], bytes, sizeof(bytes), 0), sizeof(bytes));
	ck_assert_int_eq(recv(fds[1], bytes, sizeof(bytes), 0), sizeof(bytes));
	ck_assert_int_eq(recv(fds[1], bytes, sizeof(bytes), 0), sizeof(bytes));
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 3000), RELAY_WATCH_NONE);
	/* All is taken: it may stay so. */
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 9000), RELAY_WATCH_NONE);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

/* The watch looks only now and then; a time that has passed in between counts as passed. */
START_TEST(looked_at_late)
{
	static const struct relay_watch_settings settings = { .idle_ms = 100 };

	start();
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 1050), RELAY_WATCH_NONE);
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 1777), RELAY_WATCH_IDLE);
}
END_TEST

/* As many bytes have moved in one direction as in the other, and not none. */
START_TEST(as_much_both_ways)
{
	static const struct relay_watch_settings settings = { .idle_ms = 100 };

	start();
	relay.flow[RELAY_UPSTREAM].bytes++;
	relay.flow[RELAY_DOWNSTREAM].bytes++;
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 1090), RELAY_WATCH_NONE);
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 1150), RELAY_WATCH_NONE);
	ck_assert_int_eq(relay_watch_look(&watch, &relay, &settings, 1190), RELAY_WATCH_IDLE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("relay_watch");
	TCase *tcase = tcase_create("relay_watch");

	tcase_add_test(tcase, no_limits);
	tcase_add_loop_test(tcase, idle, 0, RELAY_ENDS);
	tcase_add_loop_test(tcase, half_closed, 0, RELAY_ENDS);
	tcase_add_loop_test(tcase, stalled_relay, 0, RELAY_ENDS);
	tcase_add_loop_test(tcase, stalled_socket, 0, RELAY_ENDS);
	tcase_add_test(tcase, looked_at_late);
	tcase_add_test(tcase, as_much_both_ways);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
