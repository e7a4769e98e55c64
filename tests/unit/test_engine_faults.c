/* SPDX-License-Identifier: BSD-3-Clause */
/* test_engine_faults.c - what the kernel refuses, doesn't say, or says late, and what a small stack leaves to others */
#include "config.h"

#include "client/converters.h"
#include "engine_world.h"
#include "run.h"

#include <errno.h>
#include <string.h>

/* --- the kernel refuses --- */

/* Check allocates in the signal handler that stands for a small stack, which is nothing that ThreadSanitizer needs to report. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "report_signal_unsafe=0";
}

START_TEST(second_attempt_that_fails_at_once_lets_no_converter_rest)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(COOKIE);
	kernel.syn_takes = -EPERM;
	ck_assert_int_eq(step(), DIAL_DIRECT);
	ck_assert_int_eq(end.error, EPERM);
	ck_assert_str_eq(end.reason, "Operation not permitted");
	ck_assert(is_logged("converter 192.0.2.1:1234: Operation not permitted, before a packet was sent"));
	ck_assert(!converters_rests(0, clock_seconds()));
	ck_assert_uint_eq(kernel.begun, 3); /* the first one, the one with the cookie, and the other converter */
}
END_TEST

START_TEST(safer_way_that_the_socket_cannot_take_is_the_converters_failure)
{
	expect_on(dial_begin(false));
	synack(TCPI_OPT_TIMESTAMPS);
	kernel.fits = -EPERM;
	ck_assert_int_eq(step(), DIAL_DIRECT);
	ck_assert_str_eq(end.reason, "Operation not permitted");
	expect_said("end; end; "); /* no SYN on a socket that isn't fit for it */
}
END_TEST

START_TEST(syn_that_is_refused_without_data_fails)
{
	kernel.syn_takes = -EOPNOTSUPP;
	kernel.connects = -EPERM;
	ck_assert_int_eq(dial_begin(false), DIAL_REFUSED);
	expect_said("syn 1 data; connect 1; syn 2 data; connect 2; ");
	ck_assert_int_eq(end.error, EPERM);
	ck_assert_int_eq(kernel.wake_at, dial.attempt.wake_at);
}
END_TEST

START_TEST(syn_in_progress_goes_on_without_its_data)
{
	kernel.syn_takes = -EINPROGRESS; /* Fast Open is out of order for a while */
	expect_on(dial_begin(false));
	expect_said("syn 1 data; ");
	ck_assert(!dial.attempt.syn_data && dial.attempt.want_output);
	ck_assert_uint_eq(dial.attempt.ask.hold_ms, 0);
	ck_assert_uint_eq(kernel.watched, 1);
}
END_TEST

START_TEST(request_that_cannot_be_sent_fails_with_its_errno)
{
	kernel.syn_takes = -EOPNOTSUPP;
	expect_on(dial_begin(false));
	kernel.syn_takes = 4096;
	synack(TCPI_OPT_TIMESTAMPS);
	kernel.takes = -EPERM;
	expect_on(step());
	ck_assert(is_logged("converter 192.0.2.1:1234: Operation not permitted, left alone for 30 s"));
	expect_said("end; syn 2 data; ");
}
END_TEST

START_TEST(early_data_that_cannot_be_sent_to_a_silent_server_is_the_servers_failure)
{
	learn(SILENCE);
	expect_on(dial_begin(false));
	kernel.syn_takes = dial.attempt.request_len + 2;
	dial = (struct dial){ .ops = &ops, .started = kernel.now, .early = (const uint8_t *)"early data", .early_len = 10 };
	ck_assert_int_eq(sockaddr_ip_parse(&dial.server, "203.0.113.1", 443), 0);
	path_start_init(&dial.start, true, &in6addr_any);
	expect_on(dial_next(&dial, false, &end));
	ck_assert(dial.attempt.silence_due && dial.attempt.want_output);
	synack(TAKEN);
	kernel.takes = -EPIPE;
	ck_assert_int_eq(step(), DIAL_FAILED);
	ck_assert_int_eq(end.error, EPIPE);
	ck_assert_str_eq(end.reason, "Broken pipe");
	expect_said("");
}
END_TEST

START_TEST(deferred_syn_that_has_gone_or_waits_still_is_no_failure)
{
	static const int may[] = { -EINPROGRESS, -EAGAIN };

	for (size_t i = 0; i < sizeof(may) / sizeof(may[0]); i++) {
		kernel.takes = 4096;
		ck_assert_int_eq(dial_begin(true), DIAL_DEFERRED);
		ck_assert_uint_eq(kernel.begun, i + 1);
		ck_assert_uint_eq(kernel.watched, 2 * i);
		kernel.takes = may[i];
		ck_assert_int_eq(dial_send_deferred(&dial), 0);
		ck_assert(!dial.attempt.syn_data && dial.attempt.want_output);
		ck_assert_uint_eq(kernel.watched, 2 * i + 2);
	}
}
END_TEST

START_TEST(syn_is_not_deferred_where_the_request_may_not_be_in_it)
{
	kernel.no_mptcp = true;
	ck_assert_int_eq(dial_begin(true), DIAL_DEFERRED);
	expect_said("defer 1; ");
	paths_note_failure(&dial.start.path.id, CACHE_PATH_DATALESS);
	expect_on(dial_begin(true));
	expect_said("connect 1; ");
	ck_assert(dial.attempt.want_output && !dial.mptcp);
	ck_assert_int_eq(dial.attempt.way, ASK_TCP);
}
END_TEST

START_TEST(blind_request_that_stayed_out_of_its_syn_is_undone)
{
	learn(SILENCE);
	kernel.blind = true;
	expect_on(dial_begin(false));
	said();
	kernel.syn_takes = -EOPNOTSUPP;
	ck_assert(!dial_blindly(&dial));
	expect_said("syn 1 data; connect 1; end; ");
	ck_assert_int_eq(dial.start.look_at, 0);
}
END_TEST

/* --- the kernel says little --- */

START_TEST(response_of_a_connection_that_was_reset_since_says_nothing_of_the_path)
{
	static const uint8_t states[] = { TCPINFO_UNKNOWN, TCPINFO_CLOSE };

	for (size_t i = 0; i < sizeof(states); i++) {
		expect_on(dial_begin(false));
		answer(WHOLE);
		dial.attempt.synack_due = dial.attempt.confirmable = false;
		kernel.info = (struct tcp_info){ .tcpi_state = states[i], .tcpi_rtt = 10000 };
		kernel.now += 12500 * CLOCK_NS_PER_MS / 1000;
		ck_assert_int_eq(step(), DIAL_REACHED);
		ck_assert(is_logged("converted over MPTCP, reset since after 12.5 ms\n"));
		ck_assert(!paths_syn_data_is_doubted(&dial.start.path.id));
		ck_assert_uint_eq(paths_facts_kept(&dial.start.path.id).rtt_ms, 0);
	}
}
END_TEST

START_TEST(request_that_was_not_taken_in_the_syn_is_noted_of_the_path)
{
	kernel.no_mptcp = true;
	expect_on(dial_begin(false));
	synack(TCPI_OPT_TIMESTAMPS);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	ck_assert(is_logged("converted over TCP, request not taken in the SYN after "));
	ck_assert(paths_syn_data_is_doubted(&dial.start.path.id));
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_UNKNOWN);
}
END_TEST

START_TEST(round_trip_that_the_kernel_does_not_know_is_not_noted)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	kernel.info.tcpi_rtt = 0;
	expect_on(step());
	ck_assert(!dial.attempt.answered);
	ck_assert_uint_eq(paths_facts_kept(&dial.start.path.id).rtt_ms, 0);
	kernel.info.tcpi_rtt = 10000;
	dial.attempt.synack_due = true;
	expect_on(step());
	ck_assert(dial.attempt.answered);
	ck_assert_uint_eq(paths_facts_kept(&dial.start.path.id).rtt_ms, 11);
	/* once: what is acknowledged later isn't the SYN */
	kernel.info.tcpi_rtt = 2000;
	dial.attempt.synack_due = true;
	expect_on(step());
	ck_assert_uint_eq(paths_facts_kept(&dial.start.path.id).rtt_ms, 11);
}
END_TEST

START_TEST(round_trip_over_tcp_is_noted_when_the_request_follows)
{
	kernel.no_mptcp = true;
	kernel.syn_takes = -EOPNOTSUPP;
	expect_on(dial_begin(false));
	ck_assert(!dial.attempt.synack_due);
	synack(TCPI_OPT_TIMESTAMPS);
	expect_on(step());
	expect_said("send 28; peek; ");
	ck_assert(dial.attempt.answered);
	ck_assert_uint_eq(paths_facts_kept(&dial.start.path.id).rtt_ms, 11);
}
END_TEST

START_TEST(converter_that_has_closed_its_end_has_answered_the_syn)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	kernel.info.tcpi_state = 8; /* TCP_CLOSE_WAIT */
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	ck_assert_uint_eq(paths_facts_kept(&dial.start.path.id).rtt_ms, 11);
}
END_TEST

START_TEST(silence_is_still_due_where_the_kernel_says_nothing)
{
	learn(SILENCE);
	expect_on(dial_begin(false));
	kernel.info = (struct tcp_info){ .tcpi_state = TCPINFO_UNKNOWN };
	answer(WHOLE);
	said();
	expect_on(step());
	expect_said(""); /* the server's bytes, perhaps: they aren't read */
	ck_assert(dial.attempt.silence_due);
	synack(TAKEN);
	ck_assert_int_eq(step(), DIAL_REACHED);
	expect_said("");
}
END_TEST

/* Either an acknowledgement or data is a sign of life: the later one counts. */
START_TEST(converter_is_alive_by_acknowledgements_or_by_data)
{
	learn(WHOLE);
	for (int i = 0; i < 2; i++) {
		expect_on(dial_begin(false));
		synack(TAKEN);
		kernel.now = dial.started + S;
		expect_on(step());
		kernel.now = dial.started + 6 * S;
		kernel.info.tcpi_last_ack_recv = i ? 6000 : 100;
		kernel.info.tcpi_last_data_recv = i ? 100 : 6000;
		expect_on(step());
		ck_assert(!is_logged("no answer in time"));
		dial_stop(&dial);
	}
	kernel.now = kernel.wake_at;
	kernel.info.tcpi_last_data_recv = 6000;
	expect_on(step());
	ck_assert(is_logged("no answer in time"));
}
END_TEST

/* --- what the request says --- */

START_TEST(request_says_for_how_long_its_syn_may_be_withheld)
{
	learn(HOLDING);
	ck_assert_uint_eq(paths_facts_kept(&dial.start.path.id).rtt_ms, 11);
	expect_on(dial_begin(false));
	ck_assert(kernel.request.has_hold_time);
	ck_assert_uint_eq(kernel.request.hold_ms, 888); /* 1000, less 11, an eighth of that, and 100 */
	ck_assert_uint_eq(dial.attempt.ask.hold_ms, 888);
	ck_assert_uint_eq(dial.attempt.withheld_ms, 2000);
	/* a SYN that waits for the program's first bytes says so, too */
	ck_assert_int_eq(dial_begin(true), DIAL_DEFERRED);
	ck_assert_int_eq(dial_send_deferred(&dial), 0);
	ck_assert_uint_eq(kernel.request.hold_ms, 888);
	/* a request behind the handshake isn't withheld */
	kernel.syn_takes = -EOPNOTSUPP;
	expect_on(dial_begin(false));
	ck_assert_uint_eq(dial.attempt.ask.hold_ms, 0);
	synack(TCPI_OPT_TIMESTAMPS);
	expect_on(step());
	ck_assert(!kernel.request.has_hold_time);
}
END_TEST

START_TEST(blind_request_is_not_risked_on_a_path_whose_last_data_was_lost)
{
	learn(SILENCE);
	kernel.blind = true;
	expect_on(dial_begin(false));
	ck_assert(dial.attempt.ask.blind);
	ck_assert_uint_eq(dial.attempt.ask.attempt, 77);
	paths_note_syn_data(&dial.start.path.id, false, kernel.now);
	expect_on(dial_begin(false));
	ck_assert(!dial.attempt.ask.blind && dial.attempt.syn_data);
	ck_assert_uint_eq(dial.attempt.ask.attempt, 0);
}
END_TEST

START_TEST(front_end_without_numbers_asks_blindly_without_one)
{
	struct dial_ops numberless = ops;

	learn(SILENCE);
	kernel.blind = true;
	numberless.repeat_key = NULL;
	dial = (struct dial){ .ops = &numberless, .started = kernel.now };
	ck_assert_int_eq(sockaddr_ip_parse(&dial.server, "203.0.113.1", 443), 0);
	path_start_init(&dial.start, true, &in6addr_any);
	expect_on(dial_next(&dial, false, &end));
	ck_assert(dial.attempt.ask.blind);
	ck_assert_uint_eq(dial.attempt.ask.attempt, 0);
}
END_TEST

START_TEST(one_byte_in_the_syn_is_data_in_the_syn)
{
	kernel.syn_takes = kernel.takes = 1;
	expect_on(dial_begin(false));
	ck_assert(dial.attempt.syn_data && dial.attempt.want_output);
	ck_assert_int_eq(dial_begin(true), DIAL_DEFERRED);
	ck_assert_int_eq(dial_send_deferred(&dial), 0);
	ck_assert(dial.attempt.syn_data && dial.attempt.want_output);
}
END_TEST

START_TEST(silent_request_has_all_of_itself_in_the_syn)
{
	learn(SILENCE);
	kernel.syn_takes = 8;
	expect_on(dial_begin(false));
	ck_assert(dial.attempt.ask.silent && !dial.attempt.silence_due);
	kernel.syn_takes = dial.attempt.request_len;
	expect_on(dial_begin(false));
	ck_assert(dial.attempt.silence_due && !dial.attempt.confirmable);
	kernel.syn_takes = -EOPNOTSUPP;
	expect_on(dial_begin(false));
	ck_assert(!dial.attempt.ask.silent && !dial.attempt.silence_due);
}
END_TEST

START_TEST(converter_that_corrects_no_windows_gets_data_on_one_path_only)
{
	settings.withheld_ms = 0;
	learn(WHOLE);
	kernel.several = true;
	expect_on(dial_begin(false));
	expect_said("connect 1; ");
	kernel.several = false;
	expect_on(dial_begin(false));
	expect_said("syn 1 data; ");
}
END_TEST

START_TEST(message_has_room_for_request_and_early_data)
{
	uint8_t out[64];

	dial_begin(false);
	ck_assert_int_eq(dial_message(&dial, out, sizeof(out)), 28);
	ck_assert_int_lt(dial_message(&dial, out, 10), 0);
	dial.early = (const uint8_t *)"hello";
	dial.early_len = 5;
	ck_assert_int_eq(dial_message(&dial, out, 33), 33);
	ck_assert_mem_eq(out + 28, "hello", 5);
	ck_assert_int_eq(dial_message(&dial, out, 32), -ENOBUFS);
}
END_TEST

/* --- ends --- */

START_TEST(direct_connection_has_no_request)
{
	dial_begin(false);
	said();
	dial.attempt = (struct attempt){ .addr = dial.attempt.addr, .direct = true };
	dial.early = (const uint8_t *)"hello";
	dial.early_len = 5;
	ck_assert_int_eq(dial_send_rest(&dial), 0);
	expect_said("send 5; ");
	ck_assert_mem_eq(kernel.message, "hello", 5);
	ck_assert_int_eq(dial.start.request_at, 0);
	ck_assert_int_eq(dial_failed(&dial, ECONNREFUSED, &end), DIAL_FAILED);
	ck_assert_int_eq(end.error, ECONNREFUSED);
	ck_assert_str_eq(end.reason, "Connection refused");
	expect_said("");
}
END_TEST

START_TEST(error_of_a_confirmed_connection_is_the_servers)
{
	dial_begin(false);
	said();
	dial.confirmed = true;
	kernel.error = EPIPE;
	ck_assert_int_eq(dial_failed(&dial, ECONNRESET, &end), DIAL_FAILED);
	ck_assert_int_eq(end.error, EPIPE);
	expect_said("");
	ck_assert(!end.told);
	expect_on(dial_begin(false)); /* the converter isn't at fault */
	expect_said("syn 1 data; ");
}
END_TEST

START_TEST(bytes_that_are_no_response_prove_nothing)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(GARBAGE);
	expect_on(step());
	ck_assert(!converters_is_proven(0));
	ck_assert(!converters_rests(0, clock_seconds())); /* something on the path may have sent them, to one connection */
	expect_said("peek; end; syn 1 data; ");
	synack(TAKEN);
	answer(GARBAGE);
	expect_on(step());
	ck_assert(converters_rests(0, clock_seconds()));
	synack(TAKEN);
	answer(FULL);
	ck_assert_int_eq(step(), DIAL_DIRECT);
	ck_assert(converters_is_proven(1));
}
END_TEST

START_TEST(multipath_tcp_that_holds_is_noted_of_the_converter)
{
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_UNKNOWN);
	learn(WHOLE);
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_HOLDS);
	ck_assert(converters_is_proven(0));
	ck_assert_int_eq(dial.start.look_at, 0);
}
END_TEST

START_TEST(part_of_a_response_ends_the_watch_over_the_path)
{
	unsigned int watched;

	settings.withheld_ms = 700;
	expect_on(dial_begin(false));
	synack(TAKEN & ~TCPI_OPT_TIMESTAMPS);
	dial.start.look_at = kernel.now + S;
	answer(WHOLE);
	kernel.len = 1;
	watched = kernel.watched;
	expect_on(step());
	ck_assert_int_eq(dial.start.look_at, 0);
	ck_assert(!dial.attempt.confirmable);
	ck_assert_uint_gt(kernel.watched, watched);
}
END_TEST

START_TEST(read_error_is_the_converters_failure)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	kernel.read_error = EIO;
	expect_on(step());
	ck_assert(is_logged("converter 192.0.2.1:1234: Input/output error, left alone for 30 s"));
	expect_said("peek; end; syn 2 data; ");
}
END_TEST

START_TEST(refusal_without_an_attempt_has_a_reason)
{
	converters_rest(0, 30);
	converters_rest(1, 30);
	ck_assert_int_eq(dial_begin(false), DIAL_REFUSED);
	ck_assert_int_eq(end.verdict, POLICY_CONVERT);
	ck_assert_ptr_nonnull(end.reason);
	ck_assert_int_eq(end.error, ENETUNREACH);
	expect_said("");
}
END_TEST

/* What is waited for doesn't change as long as there is output. */
START_TEST(output_that_is_left_is_watched_once)
{
	unsigned int watched;

	kernel.syn_takes = -EOPNOTSUPP;
	kernel.takes = -EAGAIN;
	expect_on(dial_begin(false));
	watched = kernel.watched;
	synack(TCPI_OPT_TIMESTAMPS);
	expect_on(step());
	ck_assert_uint_eq(kernel.watched, watched);
	ck_assert(dial.attempt.want_output && !dial.attempt.synack_due);
	kernel.takes = 4096;
	expect_on(step());
	ck_assert_uint_eq(kernel.watched, watched + 1);
}
END_TEST

START_TEST(end_of_a_step_says_nothing_of_an_earlier_one)
{
	expect_on(dial_begin(false));
	end = (struct dial_end){ .error = ENOENT, .reason = "of before", .way = ASK_TCP, .told = true };
	expect_on(step());
	ck_assert_int_eq(end.error, 0);
	ck_assert_ptr_null(end.reason);
	ck_assert(!end.told);
	ck_assert_int_eq(end.way, ASK_MPTCP_SYN);
}
END_TEST

/* --- a signal handler on a stack of its own --- */

START_TEST(small_stack_learns_nothing_from_a_response)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(WHOLE);
	ck_assert_int_eq(step_on_small_stack(), DIAL_REACHED);
	expect_said("peek; take 8; ");
	ck_assert(!converters_is_proven(0));
	ck_assert_uint_eq(paths_facts_kept(&dial.start.path.id).rtt_ms, 0);
	ck_assert(is_logged("converted over MPTCP, request taken in the SYN after "));
	/* nor that the SYN's data wasn't taken */
	kernel.no_mptcp = true;
	expect_on(dial_begin(false));
	synack(TCPI_OPT_TIMESTAMPS);
	answer(WHOLE);
	ck_assert_int_eq(step_on_small_stack(), DIAL_REACHED);
	ck_assert(!paths_syn_data_is_doubted(&dial.start.path.id));
}
END_TEST

START_TEST(small_stack_learns_nothing_from_silence)
{
	learn(SILENCE);
	for (int i = 0; i < 2; i++) {
		expect_on(dial_begin(false));
		ck_assert_int_eq(sockaddr_ip_parse(&dial.server, "198.51.100.9", 443), 0);
		synack(TAKEN);
		ck_assert_int_eq(i ? step() : step_on_small_stack(), DIAL_REACHED);
		ck_assert_int_eq(converters_admits(0, &dial.server), i);
	}
}
END_TEST

START_TEST(small_stack_learns_nothing_from_a_way_that_fails)
{
	expect_on(dial_begin(false));
	synack(TCPI_OPT_TIMESTAMPS);
	expect_on(step_on_small_stack());
	expect_said("end; connect 1; ");
	ck_assert(!paths_syn_data_is_doubted(&dial.start.path.id));
	expect_on(dial_begin(false));
	synack(TCPI_OPT_TIMESTAMPS);
	expect_on(step());
	ck_assert(paths_syn_data_is_doubted(&dial.start.path.id));
}
END_TEST

START_TEST(small_stack_puts_off_the_look_at_the_path)
{
	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	expect_on(step_on_small_stack());
	ck_assert_uint_eq(nets.open, 0);
	ck_assert_uint_eq(nets.looks, 0);
	ck_assert_int_eq(dial.start.look_at, kernel.now + 20 * MS);
	ck_assert_int_eq(kernel.wake_at, dial.start.look_at);
	kernel.now = dial.start.look_at;
	expect_on(step());
	ck_assert_uint_eq(nets.looks, 1);
}
END_TEST

START_TEST(small_stack_looks_for_no_other_network)
{
	nets.elsewhere = 0;
	nets.list = (struct path_list){ .count = 1, .names = { "wlan0" } };
	expect_on(dial_begin(false));
	said();
	kernel.info.tcpi_state = TCPINFO_CLOSE;
	kernel.read_error = EHOSTUNREACH;
	expect_on(step_on_small_stack());
	ck_assert(is_logged("converter 192.0.2.1:1234: No route to host, left alone for 30 s"));
	ck_assert_uint_eq(dial.start.moves, 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		second_attempt_that_fails_at_once_lets_no_converter_rest,
		safer_way_that_the_socket_cannot_take_is_the_converters_failure, syn_that_is_refused_without_data_fails,
		syn_in_progress_goes_on_without_its_data, request_that_cannot_be_sent_fails_with_its_errno,
		early_data_that_cannot_be_sent_to_a_silent_server_is_the_servers_failure,
		deferred_syn_that_has_gone_or_waits_still_is_no_failure, syn_is_not_deferred_where_the_request_may_not_be_in_it,
		blind_request_that_stayed_out_of_its_syn_is_undone,
		response_of_a_connection_that_was_reset_since_says_nothing_of_the_path,
		request_that_was_not_taken_in_the_syn_is_noted_of_the_path, round_trip_that_the_kernel_does_not_know_is_not_noted,
		round_trip_over_tcp_is_noted_when_the_request_follows, converter_that_has_closed_its_end_has_answered_the_syn,
		silence_is_still_due_where_the_kernel_says_nothing, end_of_a_step_says_nothing_of_an_earlier_one,
		read_error_is_the_converters_failure, refusal_without_an_attempt_has_a_reason, output_that_is_left_is_watched_once,
		converter_is_alive_by_acknowledgements_or_by_data, request_says_for_how_long_its_syn_may_be_withheld,
		silent_request_has_all_of_itself_in_the_syn, converter_that_corrects_no_windows_gets_data_on_one_path_only,
		message_has_room_for_request_and_early_data, direct_connection_has_no_request,
		error_of_a_confirmed_connection_is_the_servers, bytes_that_are_no_response_prove_nothing,
		multipath_tcp_that_holds_is_noted_of_the_converter, part_of_a_response_ends_the_watch_over_the_path,
		small_stack_learns_nothing_from_a_response, small_stack_learns_nothing_from_a_way_that_fails,
		small_stack_puts_off_the_look_at_the_path, small_stack_looks_for_no_other_network,
		small_stack_learns_nothing_from_silence, blind_request_is_not_risked_on_a_path_whose_last_data_was_lost,
		front_end_without_numbers_asks_blindly_without_one, one_byte_in_the_syn_is_data_in_the_syn,
	};
	Suite *suite = suite_create("engine_faults");
	TCase *tcase = tcase_create("engine_faults");

	tcase_add_checked_fixture(tcase, setup, NULL);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
