/* SPDX-License-Identifier: BSD-3-Clause */
/* test_front_end_ways.c - ways of asking: where the request goes, and what the SYN+ACK says */
#include "config.h"

#include "front_end_world.h"

#include "client/exchange.h"
#include "common/clock.h"

#include "run.h"

#include <check.h>
#include <linux/tcp.h>

#define MS INT64_C(1000000)

static const struct {
	struct synack_seen seen;
	bool goes_on;
	enum ask_way next;
} synacks[] = {
	{ { .syn_data = true, .acknowledged = true }, true, ASK_MPTCP },
	{ { .syn_data = true }, false, ASK_MPTCP },
	{ { .syn_data = true, .acknowledged = true, .sent_again = true }, false, ASK_MPTCP },
	{ { .syn_data = true, .acknowledged = true, .fallen_back = true }, true, ASK_MPTCP }, /* the response tells */
	{ { .syn_data = false }, true, ASK_TCP },
	{ { .sent_again = true }, true, ASK_TCP },
	{ { .fallen_back = true }, false, ASK_TCP },
};

START_TEST(what_a_synack_leads_to)
{
	enum ask_way next = ASK_WAY_COUNT;

	ck_assert_int_eq(synack_keeps_way(&synacks[_i].seen, &next), synacks[_i].goes_on);
	if (!synacks[_i].goes_on)
		ck_assert_int_eq(next, synacks[_i].next);
}
END_TEST

START_TEST(when_the_syn_carries_the_request)
{
	for (int way = 0; way < ASK_WAY_COUNT; way++)
		ck_assert_int_eq(ask_way_syn_data((enum ask_way)way, way != ASK_TCP, false, true), SYN_DATA_NEVER);
	ck_assert_int_eq(ask_way_syn_data(ASK_MPTCP, true, true, true), SYN_DATA_NEVER);
	ck_assert_int_eq(ask_way_syn_data(ASK_MPTCP_SYN, true, true, true), SYN_DATA_ALWAYS);
	ck_assert_int_eq(ask_way_syn_data(ASK_MPTCP_SYN, true, true, false), SYN_DATA_ON_ONE_PATH);
	ck_assert_int_eq(ask_way_syn_data(ASK_TCP, false, true, false), SYN_DATA_ALWAYS);
}
END_TEST

START_TEST(when_a_synack_confirms_the_server)
{
	const uint8_t both = TCPI_OPT_SYN_DATA | TCPI_OPT_TIMESTAMPS;

	ck_assert(synack_confirms(both, 700, 1000 * MS, 1700 * MS - 1));
	ck_assert(synack_confirms(both | TCPI_OPT_SACK, 700, 1000 * MS, 1000 * MS));
	ck_assert(!synack_confirms(both, 700, 1000 * MS, 1700 * MS));
	ck_assert(!synack_confirms(TCPI_OPT_SYN_DATA, 700, 1000 * MS, 1001 * MS));
	ck_assert(!synack_confirms(TCPI_OPT_TIMESTAMPS, 700, 1000 * MS, 1001 * MS));
	ck_assert(!synack_confirms(both, 0, 1000 * MS, 1000 * MS));
}
END_TEST

/* The client remembers a way of asking that failed, and the next connection takes the safer one. */
START_TEST(a_failed_way_is_remembered)
{
	const struct path_id usual = { .converter = 0 }, other = { .converter = 0, .source.s6_addr = { 0xfd, [15] = 1 } };

	begin();
	exchange_way_failed(&usual, ASK_MPTCP, clock_ns());
	exchange_way_failed(&other, ASK_MPTCP, clock_ns());
	ck_assert(paths_take_syn_data(&usual));
	exchange_way_failed(&usual, ASK_MPTCP, clock_ns() + CLOCK_NS_PER_MS);
	ck_assert(!paths_take_syn_data(&usual));
	ck_assert(paths_take_syn_data(&other));
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_UNKNOWN);
	exchange_way_failed(&usual, ASK_TCP, clock_ns());
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_LOST);
	ck_assert(!exchange_keeps_mptcp(&settings, &(struct path_id){ .converter = 0 }));
	expect("203.0.113.1", CONVERTED, 1, 0); /* over Multipath TCP, as this front end always says */
	ck_assert(exchange_keeps_mptcp(&settings, &(struct path_id){ .converter = 0 }));
}
END_TEST

START_TEST(bypass_is_for_servers_that_some_converter_vouches_for)
{
	union sockaddr_ip server;

	begin();
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.1", 443), 0);
	/* a converter that isn't the one to be asked */
	servers_note_mptcp(1, &server, HANDSHAKE_SERVER_MPTCP);
	ck_assert(!exchange_bypasses(&settings, &server));
	servers_note_mptcp(0, &server, HANDSHAKE_SERVER_MPTCP);
	ck_assert(exchange_bypasses(&settings, &server));
	settings.fail_closed = true;
	ck_assert(!exchange_bypasses(&settings, &server));
	settings.fail_closed = false;
	settings.bypass_mptcp = false;
	ck_assert(!exchange_bypasses(&settings, &server));
	settings.bypass_mptcp = true;
	/* no converter can be asked: that isn't a bypass */
	converters_rest(0, 30);
	converters_rest(1, 30);
	ck_assert(!exchange_bypasses(&settings, &server));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("front_end_ways");
	TCase *tcase = tcase_create("ways");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, what_a_synack_leads_to, 0, ARRAY_SIZE(synacks));
	tcase_add_test(tcase, when_the_syn_carries_the_request);
	tcase_add_test(tcase, when_a_synack_confirms_the_server);
	tcase_add_test(tcase, a_failed_way_is_remembered);
	tcase_add_test(tcase, bypass_is_for_servers_that_some_converter_vouches_for);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
