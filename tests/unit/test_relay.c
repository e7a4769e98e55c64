/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_relay.c - the relay between two socket pairs: order, back-pressure, ends, failures, fairness
 *
 * The outer ends of the pairs are the client and the server. Readiness is what the test says, as
 * events would.
 */
#include "relay/relay.h"

#include "relay_pairs.h"
#include "run.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct relay_pipes pipes;

/* The same on plain TCP with pipes, where large transfers are spliced. */
static void setup_pipes(void)
{
	setup();
	relay_pipes_init(&pipes);
	pipes.max = 2;
	relay.pipes = &pipes;
	relay_set_tcp(&relay, RELAY_UPSTREAM);
	relay_set_tcp(&relay, RELAY_DOWNSTREAM);
}

/* However the relay has ended, one pipe is kept for the next and no other is open. */
static void teardown_pipes(void)
{
	teardown();
	ck_assert_ptr_nonnull(pipes.spare);
	ck_assert_uint_eq(pipes.count, 1);
	relay_pipes_fini(&pipes);
	ck_assert_uint_eq(pipes.count, 0);
}

/* Returns how many bytes are kept because the other side hasn't taken them. */
static size_t kept(enum relay_end from)
{
	const struct relay_flow *flow = &relay.flow[from];

	return flow->pending_len + (flow->pipe ? relay_pipe_len(flow->pipe) : 0);
}

START_TEST(both_ways)
{
	put(client, "question");
	put(server, "answer");
	ck_assert_int_eq(run(), RELAY_WAIT);
	expect(server, "question");
	expect(client, "answer");
	ck_assert_uint_eq(relay.flow[RELAY_UPSTREAM].bytes, 8);
	ck_assert_uint_eq(relay.flow[RELAY_DOWNSTREAM].bytes, 6);
	ck_assert_ptr_null(relay.flow[RELAY_UPSTREAM].pending);
}
END_TEST

START_TEST(prepended_goes_first)
{
	ck_assert_int_eq(relay_prepend(&relay, RELAY_DOWNSTREAM, (const uint8_t *)"one ", 4), 0);
	ck_assert_int_eq(relay_prepend(&relay, RELAY_DOWNSTREAM, (const uint8_t *)"two ", 4), 0);
	ck_assert_int_eq(relay_prepend(&relay, RELAY_DOWNSTREAM, NULL, 0), 0);
	put(server, "three");
	/* No byte is written to a socket that isn't known to be writable. */
	relay.side[RELAY_DOWNSTREAM].readable = true;
	ck_assert_int_eq(relay_run(&relay, scratch), RELAY_WAIT);
	expect_nothing(client);
	ck_assert_int_eq(run(), RELAY_WAIT);
	expect(client, "one two three");
}
END_TEST

START_TEST(half_close)
{
	put(client, "last");
	shutdown(client, SHUT_WR);
	ck_assert_int_eq(run(), RELAY_WAIT);
	expect(server, "last");
	expect(server, "");
	put(server, "still here");
	ck_assert_int_eq(run(), RELAY_WAIT);
	expect(client, "still here");
	shutdown(server, SHUT_WR);
	ck_assert_int_eq(run(), RELAY_DONE);
	/* The relay has ended and its sockets are closed, which sends the last FIN. */
	close(relay.side[RELAY_UPSTREAM].fd);
	relay.side[RELAY_UPSTREAM].fd = -1;
	expect(client, "");
}
END_TEST

/* While the server doesn't read, little is kept in the relay and the client has to wait. All bytes arrive in the end. */
START_TEST(back_pressure)
{
	static uint8_t block[65536];
	size_t sent = 0, got = 0, bad = 0, kept_max = 0;
	bool spliced = false;
	ssize_t n;

	fcntl(client, F_SETFL, O_NONBLOCK);
	for (int idle = 0; idle < 3;) {
		for (size_t i = 0; i < sizeof(block); i++)
			block[i] = (uint8_t)((sent + i) % 251);
		n = write(client, block, sizeof(block));
		idle = n < 0 ? idle + 1 : 0;
		sent += n < 0 ? 0 : (size_t)n;
		ck_assert_int_ne(run(), RELAY_DONE);
		if (kept(RELAY_UPSTREAM) > kept_max)
			kept_max = kept(RELAY_UPSTREAM);
		spliced |= relay.flow[RELAY_UPSTREAM].pipe != NULL;
	}
	ck_assert(spliced == (relay.pipes != NULL));
	ck_assert_uint_gt(kept_max, 0);
	ck_assert_uint_le(kept_max, RELAY_SCRATCH_SIZE);
	shutdown(client, SHUT_WR);
	while ((n = recv(server, block, sizeof(block), MSG_DONTWAIT)) != 0) {
		if (n < 0)
			run();
		for (ssize_t i = 0; i < n; i++)
			bad += block[i] != (got + (size_t)i) % 251;
		got += n < 0 ? 0 : (size_t)n;
	}
	ck_assert_uint_eq(got, sent);
	ck_assert_uint_eq(bad, 0);
	ck_assert(!relay_has_pending(&relay, RELAY_UPSTREAM));
}
END_TEST

/* A pipe holds bytes for the server when that resets the connection (1), or when the relay is ended (0). They are dropped. */
START_TEST(reset_with_bytes_in_hand)
{
	static uint8_t block[65536];

	fcntl(client, F_SETFL, O_NONBLOCK);
	while (!kept(RELAY_UPSTREAM)) {
		while (write(client, block, sizeof(block)) > 0)
			;
		ck_assert_int_ne(run(), RELAY_DONE);
	}
	ck_assert(relay_has_pending(&relay, RELAY_UPSTREAM));
	if (_i) {
		reset(&server);
		ck_assert_int_eq(run(), RELAY_DOWNSTREAM_LOST);
	}
}
END_TEST

/* Few descriptors are for connections, and all that are allowed aren't for pipes. */
START_TEST(pipes_that_fit)
{
	ck_assert_uint_eq(relay_pipes_fit(511), 0);
	ck_assert_uint_eq(relay_pipes_fit(1024), 2);
	ck_assert_uint_eq(relay_pipes_fit(1 << 20), 256);
	ck_assert_uint_eq(relay_pipes_fit(UINT64_MAX), 256);
}
END_TEST

/* Bytes are copied if all pipes are in use or none can be made. */
START_TEST(pipes_are_few)
{
	struct relay_pipe *others[2] = { relay_pipe_get(&pipes), relay_pipe_get(&pipes) };

	ck_assert_ptr_nonnull(others[1]);
	ck_assert_ptr_null(relay_pipe_get(&pipes));
	put(client, "one");
	relay.flow[RELAY_UPSTREAM].bulk = true;
	ck_assert_int_eq(run(), RELAY_WAIT);
	expect(server, "one");
	relay_pipe_put(&pipes, others[0]);
	put(client, "two");
	relay.flow[RELAY_UPSTREAM].bulk = true;
	ck_assert_int_eq(run(), RELAY_WAIT);
	expect(server, "two");
	/* It was little: the next is copied again. */
	ck_assert(!relay.flow[RELAY_UPSTREAM].bulk);
	relay_pipe_put(&pipes, others[1]);
}
END_TEST

START_TEST(reset_by_server)
{
	put(server, "before");
	ck_assert_int_eq(run(), RELAY_WAIT);
	reset(&server);
	ck_assert_int_eq(run(), RELAY_DOWNSTREAM_LOST);
	expect(client, "before");
}
END_TEST

/* A write fails before a read does; the bytes that the server had sent are passed on all the same. */
START_TEST(answer_before_a_reset)
{
	put(server, "go away");
	put(client, "upload");
	reset(&server);
	ck_assert_int_eq(run(), RELAY_DOWNSTREAM_LOST);
	expect(client, "go away");
}
END_TEST

START_TEST(reset_by_client_after_its_fin)
{
	shutdown(client, SHUT_WR);
	ck_assert_int_eq(run(), RELAY_WAIT);
	reset(&client);
	ck_assert_int_eq(run(), RELAY_UPSTREAM_LOST);
}
END_TEST

/* One run moves no more than its share, however many bytes there are. */
START_TEST(share_of_a_round)
{
	static uint8_t block[RELAY_SCRATCH_SIZE], sink[RELAY_SCRATCH_SIZE];
	enum relay_result result = RELAY_WAIT;

	fcntl(client, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 100 && result != RELAY_AGAIN; i++) {
		uint64_t before = relay.flow[RELAY_UPSTREAM].bytes;

		while (write(client, block, sizeof(block)) > 0)
			;
		while (recv(server, sink, sizeof(sink), MSG_DONTWAIT) > 0)
			;
		result = run();
		ck_assert_uint_le(relay.flow[RELAY_UPSTREAM].bytes - before,
				  1024 * 1024 + 2 * RELAY_SCRATCH_SIZE);
	}
	ck_assert_int_eq(result, RELAY_AGAIN); /* the kernel's buffers have become large enough for a whole share */
}
END_TEST

static unsigned segments_sent(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	return info.tcpi_segs_out;
}

/* If the end is known, the FIN goes out with the last bytes on plain TCP (1); otherwise when it comes. */
START_TEST(the_end_goes_with_the_last_bytes)
{
	int to = relay.side[RELAY_UPSTREAM].fd;
	unsigned before = segments_sent(to);

	put(server, "all that there is");
	shutdown(server, SHUT_WR);
	relay.side[RELAY_UPSTREAM].tcp = relay.side[RELAY_DOWNSTREAM].tcp = _i;
	relay.side[RELAY_DOWNSTREAM].ended = true;
	ck_assert_int_eq(run(), RELAY_WAIT);
	ck_assert(relay.flow[RELAY_DOWNSTREAM].shut);
	ck_assert_uint_eq(segments_sent(to) - before, _i ? 1 : 2);
	expect(client, "all that there is");
	expect(client, "");
}
END_TEST

/* Prepended bytes, the first bytes of the stream and the FIN are one segment (1) if all of them are there. */
START_TEST(the_first_bytes_go_with_what_was_prepended)
{
	int to = relay.side[RELAY_UPSTREAM].fd;
	unsigned before = segments_sent(to);

	ck_assert_int_eq(relay_prepend(&relay, RELAY_DOWNSTREAM, (const uint8_t *)"answer, ", 8), 0);
	put(server, "greeting");
	if (_i)
		shutdown(server, SHUT_WR);
	relay.side[RELAY_UPSTREAM].tcp = relay.side[RELAY_DOWNSTREAM].tcp = true;
	relay.side[RELAY_DOWNSTREAM].ended = _i;
	ck_assert_int_eq(run(), RELAY_WAIT);
	ck_assert_uint_eq(segments_sent(to) - before, 1);
	expect(client, "answer, greeting");
	if (_i)
		expect(client, "");
	else
		expect_nothing(client);
}
END_TEST

/* The server resets the connection behind its bytes, or without any; all that it has sent arrives. */
START_TEST(reset_behind_what_was_prepended)
{
	ck_assert_int_eq(relay_prepend(&relay, RELAY_DOWNSTREAM, (const uint8_t *)"answer", 6), 0);
	if (_i)
		put(server, ", bye");
	reset(&server);
	ck_assert_int_eq(run(), RELAY_DOWNSTREAM_LOST);
	expect(client, _i ? "answer, bye" : "answer");
}
END_TEST

/* The end was announced, but there is more before it than one read takes. */
START_TEST(the_end_is_behind_more)
{
	static uint8_t block[2 * RELAY_SCRATCH_SIZE];
	size_t sent = 0, got = 0;

	setsockopt(client, SOL_SOCKET, SO_SNDBUF, &(int){ 4 * RELAY_SCRATCH_SIZE }, sizeof(int));
	fcntl(client, F_SETFL, O_NONBLOCK);
	relay.side[RELAY_UPSTREAM].tcp = relay.side[RELAY_DOWNSTREAM].tcp = true;
	relay.side[RELAY_UPSTREAM].ended = true;
	while (!relay.flow[RELAY_UPSTREAM].shut) {
		ssize_t n = sent < sizeof(block) ? write(client, block, sizeof(block) - sent) : 0;

		sent += n > 0 ? (size_t)n : 0;
		if (sent == sizeof(block))
			shutdown(client, SHUT_WR);
		ck_assert_int_ne(run(), RELAY_UPSTREAM_LOST);
		while ((n = recv(server, block, sizeof(block), MSG_DONTWAIT)) > 0)
			got += (size_t)n;
	}
	for (ssize_t n; (n = recv(server, block, sizeof(block), 0)) > 0;)
		got += (size_t)n;
	ck_assert_uint_eq(got, sizeof(block));
}
END_TEST

/* It stays in the stream, and what is behind it follows, though splice() goes no further than to it. */
START_TEST(urgent_data)
{
	static uint8_t block[40000], all[sizeof(block) + 2];
	bool ends = _i;
	ssize_t n, got = 0;

	relay_set_tcp(&relay, RELAY_UPSTREAM);
	relay.flow[RELAY_UPSTREAM].bulk = true;
	ck_assert_int_eq(write(client, block, sizeof(block)), sizeof(block));
	ck_assert_int_eq(send(client, "!", 1, MSG_OOB), 1);
	put(client, ".");
	if (ends)
		shutdown(client, SHUT_WR);
	ck_assert_int_eq(run(), RELAY_WAIT);
	while ((n = recv(server, all + got, sizeof(all) - (size_t)got, MSG_DONTWAIT)) > 0)
		got += n;
	ck_assert_int_eq(got, sizeof(all));
	ck_assert_int_eq(all[sizeof(block)], '!');
	ck_assert_int_eq(recv(server, all, 1, MSG_DONTWAIT), ends ? 0 : -1);
}
END_TEST

/* An error that splice() has returned is not reported by the socket again. */
START_TEST(reset_in_bulk)
{
	relay.flow[RELAY_UPSTREAM].bulk = true;
	reset(&client);
	ck_assert_int_eq(run(), RELAY_UPSTREAM_LOST);
}
END_TEST

/* Once the server's side has failed, and bytes are lost, no later byte of the client is written to it. */
START_TEST(nothing_goes_to_a_side_that_has_failed)
{
	put(client, "more");
	relay.side[RELAY_DOWNSTREAM].failed = true;
	ck_assert_int_eq(run(), RELAY_DOWNSTREAM_LOST);
	expect_nothing(server);
	ck_assert_uint_eq(relay.flow[RELAY_UPSTREAM].bytes, 0);
}
END_TEST

/*
 * One peer (0: the client, 1: the server) has sent more than the other takes, and is gone. That can't be read yet, nor does
 * a write tell; the event has to be enough.
 */
START_TEST(reset_behind_what_is_not_taken)
{
	enum relay_end from = _i ? RELAY_DOWNSTREAM : RELAY_UPSTREAM;
	int *peer = _i ? &server : &client;
	static uint8_t block[65536];

	fcntl(*peer, F_SETFL, O_NONBLOCK);
	while (!kept(from)) {
		while (write(*peer, block, sizeof(block)) > 0)
			;
		ck_assert_int_ne(run(), RELAY_DONE);
	}
	ck_assert(!relay_has_failed(&relay));
	reset(peer);
	relay.side[from].news = relay.side[from].readable = true;
	relay_run(&relay, scratch);
	ck_assert(relay.side[from].failed);
}
END_TEST

/* Little may go to the client: whole segments as far as they fit, and no end. What doesn't fit isn't read. */
START_TEST(capped)
{
	int to = relay.side[RELAY_UPSTREAM].fd, waiting = 0;
	unsigned before = segments_sent(to);

	relay.side[RELAY_UPSTREAM].tcp = relay.side[RELAY_DOWNSTREAM].tcp = true;
	relay_cap(&relay, RELAY_UPSTREAM, 100, 40, 1000);
	ck_assert_int_eq(relay_prepend(&relay, RELAY_DOWNSTREAM, (const uint8_t *)"answer, ", 8), 0);
	put(server, "12345678901234567890123456789012345678901234567890123456789");
	if (_i)
		shutdown(server, SHUT_WR);
	relay.side[RELAY_DOWNSTREAM].ended = _i;
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(run(), RELAY_WAIT);
	expect(client, "answer, 1234567890123456789012345678901234567890123456789012");
	expect_nothing(client);
	ck_assert_uint_eq(segments_sent(to) - before, 1);
	ck_assert_uint_eq(kept(RELAY_DOWNSTREAM), 0);
	ck_assert_int_eq(ioctl(relay.side[RELAY_DOWNSTREAM].fd, SIOCINQ, &waiting), 0);
	ck_assert_int_eq(waiting, 7);
	/* The other direction isn't affected. */
	put(client, "more");
	ck_assert_int_eq(run(), RELAY_WAIT);
	expect(server, "more");
	relay_uncap(&relay, RELAY_UPSTREAM);
	ck_assert_int_eq(run(), RELAY_WAIT);
	expect(client, "3456789");
	if (_i)
		expect(client, "");
	else
		expect_nothing(client);
}
END_TEST

/* Each write costs its headers, until no more fits. */
START_TEST(capped_in_bits)
{
	relay_cap(&relay, RELAY_UPSTREAM, 100, 40, 1000);
	for (int i = 0; i < 5; i++) {
		put(server, "bit");
		ck_assert_int_eq(run(), RELAY_WAIT);
	}
	/* Twice 43 of 100: the other 14 hold no header and a byte. */
	expect(client, "bitbit");
	expect_nothing(client);
	relay_uncap(&relay, RELAY_UPSTREAM);
	ck_assert_int_eq(run(), RELAY_WAIT);
	expect(client, "bitbitbit");
}
END_TEST

/* No write is longer than a segment, and without room nothing is written. */
START_TEST(capped_by_segments)
{
	relay_cap(&relay, RELAY_UPSTREAM, 95, 40, 5);
	put(server, "1234567890");
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(run(), RELAY_WAIT);
	expect(client, "1234567890");
	put(server, "x");
	ck_assert_int_eq(run(), RELAY_WAIT);
	expect_nothing(client);
}
END_TEST

/* One byte comes where many were expected, and arrives as well. */
START_TEST(one_byte_in_bulk)
{
	for (int i = 0; i < 3; i++) {
		relay.flow[RELAY_UPSTREAM].bulk = true;
		put(client, "1");
		ck_assert_int_eq(run(), RELAY_WAIT);
		expect(server, "1");
	}
	ck_assert_uint_eq(relay.flow[RELAY_UPSTREAM].bytes, 3);
}
END_TEST

/* Bytes that the other side doesn't take yet stay in the socket, behind those that were prepended. */
START_TEST(nothing_is_read_for_a_side_that_is_full)
{
	ck_assert_int_eq(relay_prepend(&relay, RELAY_DOWNSTREAM, (const uint8_t *)"one ", 4), 0);
	put(server, "two");
	relay.side[RELAY_DOWNSTREAM].readable = true;
	ck_assert_int_eq(relay_run(&relay, scratch), RELAY_WAIT);
	ck_assert_uint_eq(kept(RELAY_DOWNSTREAM), 4);
	ck_assert_int_eq(run(), RELAY_WAIT);
	expect(client, "one two");
}
END_TEST

static int no_delay(enum relay_end end)
{
	int value = -1;
	socklen_t len = sizeof(value);

	ck_assert_int_eq(getsockopt(relay.side[end].fd, IPPROTO_TCP, TCP_NODELAY, &value, &len), 0);
	return value;
}

/* Nagle's algorithm could hold back the second write to a server, copied or spliced, and never the first one. */
START_TEST(no_delay_from_the_second_write_on)
{
	put(client, "first");
	ck_assert_int_eq(run(), RELAY_WAIT);
	expect(server, "first");
	ck_assert_int_eq(no_delay(RELAY_DOWNSTREAM), 0);
	relay.flow[RELAY_UPSTREAM].bulk = _i;
	put(client, "second");
	ck_assert_int_eq(run(), RELAY_WAIT);
	expect(server, "second");
	ck_assert_int_eq(no_delay(RELAY_DOWNSTREAM), 1);
	/* A client's socket has what its listener had. */
	ck_assert_int_eq(no_delay(RELAY_UPSTREAM), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_loop_test(tcase, capped, 0, 2);
	tcase_add_test(tcase, capped_in_bits);
	tcase_add_test(tcase, capped_by_segments);
	tcase_add_test(tcase, both_ways);
	tcase_add_test(tcase, prepended_goes_first);
	tcase_add_test(tcase, half_close);
	tcase_add_test(tcase, back_pressure);
	tcase_add_loop_test(tcase, reset_with_bytes_in_hand, 0, 2);
	tcase_add_test(tcase, reset_by_server);
	tcase_add_test(tcase, answer_before_a_reset);
	tcase_add_test(tcase, reset_by_client_after_its_fin);
	tcase_add_test(tcase, share_of_a_round);
	tcase_add_loop_test(tcase, the_end_goes_with_the_last_bytes, 0, 2);
	tcase_add_loop_test(tcase, the_first_bytes_go_with_what_was_prepended, 0, 2);
	tcase_add_loop_test(tcase, reset_behind_what_was_prepended, 0, 2);
	tcase_add_test(tcase, the_end_is_behind_more);
	tcase_add_loop_test(tcase, urgent_data, 0, 2);
	tcase_add_test(tcase, reset_in_bulk);
	tcase_add_test(tcase, nothing_goes_to_a_side_that_has_failed);
	tcase_add_loop_test(tcase, reset_behind_what_is_not_taken, 0, 2);
	tcase_add_test(tcase, one_byte_in_bulk);
	tcase_add_test(tcase, nothing_is_read_for_a_side_that_is_full);
}

int main(void)
{
	Suite *suite = suite_create("relay");
	TCase *copied = tcase_create("copied"), *spliced = tcase_create("spliced");

	tcase_add_checked_fixture(copied, setup, teardown);
	add_tests(copied);
	suite_add_tcase(suite, copied);
	tcase_add_checked_fixture(spliced, setup_pipes, teardown_pipes);
	add_tests(spliced);
	tcase_add_test(spliced, pipes_are_few);
	tcase_add_test(spliced, pipes_that_fit);
	tcase_add_loop_test(spliced, no_delay_from_the_second_write_on, 0, 2);
	suite_add_tcase(suite, spliced);
	return test_run(suite);
}
