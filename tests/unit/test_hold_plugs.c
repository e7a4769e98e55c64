/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hold_plugs.c - withheld SYNs by what a daemon brings: its judge, its dialler, its settings
 *
 * The judge of a transparent gateway reads no payload: the packet's own destination is the server.
 */
#include "config.h"

#include "syn_world.h"

#include "common/clock.h"
#include "fake_events.h"
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>

/* The judge is told who asks, how and when. */
START_TEST(case_of_a_syn)
{
	const struct ask ask = { .server = 1 };
	struct in6_addr client;
	union sockaddr_ip address;

	ck_assert_int_eq(sockaddr_ip_parse(&address, "198.51.100.7", 1000), 0);
	client = sockaddr_ip_in6(&address);
	for (int i = 0; i < 2; i++) {
		with_mptcp = i;
		with_urgent = (uint16_t)(i * 0x6e61);
		send_syn((uint16_t)(1000 + i), 1, &ask);
		ck_assert_int_eq(last_case.place, JUDGEMENT_SYN);
		ck_assert_mem_eq(&last_case.client.address, &client, sizeof(client));
		ck_assert(!last_case.client.proven);
		ck_assert_ptr_nonnull(last_case.member);
		ck_assert_ptr_nonnull(last_case.flow);
		ck_assert_uint_eq(last_case.now_ms, clock_now_ms());
		ck_assert_int_eq(last_case.mptcp, i);
		ck_assert_uint_eq(last_case.urgent, with_urgent);
	}
	syn_judge_again(judge);
	ck_assert_int_eq(last_case.place, JUDGEMENT_WITHHELD);
	ck_assert_ptr_null(last_case.member);
}
END_TEST

/* The dialler goes from socket to socket: the events of the latest count, and each is closed once. */
START_TEST(dialler_replaces_its_socket)
{
	const struct ask ask = { .server = 1 };
	uint32_t id = send_syn(1000, 1, &ask);
	const int first = last_fd;

	replaces_sockets = true;
	server_says(-EINPROGRESS);
	ck_assert_int_ne(last_fd, first);
	ck_assert_int_eq(fcntl(first, F_GETFD), -1);
	server_says(-EINPROGRESS);
	ck_assert_uint_eq(fake_poller_count(), 1);
	ck_assert_int_eq(packets[id], WAITS);
	server_says(0);
	ck_assert_int_eq(packets[id], CHANGED);
	ck_assert_uint_eq(urgent[id], CONFIRMED);
	ck_assert_int_eq(dials, 1);
	ck_assert_uint_eq(take(1000), 1);
	ck_assert_int_eq(resets, 1);
}
END_TEST

/* A descriptor's number may return within one step: the socket is another one, and isn't registered yet. */
START_TEST(dialler_replaces_its_socket_twice)
{
	const struct ask ask = { .server = 1 };
	unsigned registered;
	int first;

	send_syn(1000, 1, &ask);
	first = last_fd;
	registered = fake_poller_adds();
	replaces_twice = true;
	server_says(-EINPROGRESS);
	ck_assert_int_eq(last_fd, first);
	ck_assert_uint_eq(fake_poller_adds(), registered + 1);
	ck_assert_uint_eq(fake_poller_count(), 1);
	replaces_twice = false;
	server_says(-EINPROGRESS);
	ck_assert_uint_eq(fake_poller_adds(), registered + 1);
	server_says(0);
	ck_assert_uint_eq(take(1000), 1);
}
END_TEST

/* An event without an error says that the server has answered, so that the dialler needn't ask the kernel. */
START_TEST(dialler_knows_the_event)
{
	const struct ask ask = { .server = 1 };
	static const struct {
		uint32_t events;
		bool writable;
	} cases[] = { { EPOLLOUT, true }, { EPOLLOUT | EPOLLIN | EPOLLRDHUP, true }, { EPOLLIN, false },
		      { EPOLLOUT | EPOLLERR | EPOLLHUP, false }, { EPOLLOUT | EPOLLIN | EPOLLRDHUP | EPOLLHUP, false } };

	send_syn(1000, 1, &ask);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fake_poller_tell(last_fd, cases[i].events);
		ck_assert_int_eq(steps, (int)i + 1);
		ck_assert_int_eq(last_writable, cases[i].writable);
	}
	server_says(0);
	ck_assert_uint_eq(take(1000), 1);
}
END_TEST

/* A single worker's session has the registration of the server's socket, and what was reported before: it isn't reported again. */
START_TEST(events_of_a_late_worker)
{
	static const struct ask ask = { .server = 1 };
	static const struct {
		uint32_t with_answer, later, want;
	} cases[] = {
		{ EPOLLOUT, 0, 0 },
		{ EPOLLOUT | EPOLLIN, 0, EPOLLIN },
		{ EPOLLOUT | EPOLLIN | EPOLLRDHUP, 0, EPOLLIN | EPOLLRDHUP },
		{ EPOLLOUT, EPOLLIN | EPOLLOUT, EPOLLIN | EPOLLOUT },
		{ EPOLLOUT | EPOLLIN, EPOLLIN | EPOLLRDHUP, EPOLLIN | EPOLLRDHUP },
	};

	context.single_worker = true;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		server_result = -EINPROGRESS;
		send_syn((uint16_t)(1000 + i), 1, &ask);
		server_result = 0;
		fake_poller_tell(last_fd, cases[i].with_answer);
		fake_events_run();
		if (cases[i].later)
			fake_poller_tell(last_fd, cases[i].later);
		ck_assert_uint_eq(take((uint16_t)(1000 + i)), 1);
		ck_assert_uint_eq(taken_events, cases[i].want);
	}
}
END_TEST

/* A dialler with times of its own: its steps come when they are due, and the end of the SYN's time when that is. */
START_TEST(dialler_has_times_of_its_own)
{
	const struct ask ask = { .server = 1 };
	uint32_t id;

	step_ms = 250;
	id = send_syn(1000, 1, &ask);
	fake_clock_advance(249);
	ck_assert_int_eq(steps, 0);
	fake_clock_advance(1);
	ck_assert_int_eq(steps, 1);
	fake_clock_advance(250);
	ck_assert_int_eq(steps, 2);
	fake_clock_advance(199);
	ck_assert_int_eq(packets[id], WAITS);
	fake_clock_advance(1);
	ck_assert_int_eq(packets[id], CHANGED);
	ck_assert_uint_eq(urgent[id], 0);
	ck_assert_int_eq(steps, 2);
	ck_assert_uint_eq(take(1000), 1);
	/* a step may be the last one */
	id = send_syn(1001, 1, &ask);
	server_result = -ECONNREFUSED;
	fake_clock_advance(250);
	ck_assert_int_eq(packets[id], CHANGED);
	ck_assert_uint_eq(take(1001), 1);
}
END_TEST

/* ----- a transparent gateway: the packet's own destination is the server, the network tells all errors ----- */

static int judged;

static void judge_by_destination(struct serve_context *of, const struct judgement_case *c, struct serve_verdict *verdict, struct serve_answer *answer)
{
	(void)answer;
	judged++;
	*verdict = (struct serve_verdict){ .action = REQUEST_WAIT };
	if (!has_room)
		return;
	*verdict = (struct serve_verdict){
		.action = REQUEST_CONNECT, .reply = JUDGEMENT_SILENT, .silent = true, .blind = true, .hold_ms = UINT_MAX,
	};
	sockaddr_ip_set(&verdict->server, AF_UNSPEC, &c->flow->destination, c->flow->destination_port);
	ck_assert_int_eq(limits_enter(of->limits, c->member, &c->client.address, LIMITS_WITHHELD), 0);
	verdict->withhold = true;
}

static union sockaddr_ip asked;

static int dial_asked(struct serve_context *of, const struct serve_plan *plan, struct serve_dial *dial)
{
	asked = *plan->server;
	return dial_begin(of, plan, dial);
}

static int dial_fails(struct serve_context *of, const struct serve_plan *plan, struct serve_dial *dial)
{
	(void)of, (void)plan;
	*dial = (struct serve_dial){ .fd = -1 };
	return -ENETDOWN;
}

/* The plugs of a gateway, for its worker. */
static struct serve_plugs gateway;

static void be_a_gateway(void)
{
	judged = 0;
	gateway = plugs;
	gateway.judge = judge_by_destination;
	gateway.dial.begin = dial_asked;
	gateway.no_request = true;
	context.plugs = &gateway;
	syn_judge_again(judge);
}

START_TEST(server_by_the_packets_destination)
{
	char text[SOCKADDR_STRLEN];
	uint32_t first, second, third;

	be_a_gateway();
	first = send_syn(1000, 1, NULL);
	ck_assert_str_eq(sockaddr_ip_format(&asked, text), "192.0.2.1:1234");
	ck_assert_int_eq(packets[first], WAITS);
	/* sent again meanwhile: no other connection */
	ck_assert_int_eq(packets[send_syn(1000, 1, NULL)], DROPPED);
	server_says(0);
	ck_assert_int_eq(packets[first], CHANGED);
	ck_assert_uint_eq(take(1000), 1);
	second = send_syn(1001, 1, NULL);
	server_says(-ECONNREFUSED);
	ck_assert_uint_eq(urgent[second], SYN_PACKET_REFUSED | NATIVE_RESET);
	third = send_syn(1002, 1, NULL);
	server_says(-EHOSTUNREACH);
	ck_assert_uint_eq(urgent[third], SYN_PACKET_REFUSED | 13);
	/* what the dialler can't do is routed: the SYN goes on as it came, and what repeats it does, too */
	first = send_syn(1003, 1, NULL);
	server_says(-ENETDOWN);
	ck_assert_int_eq(packets[first], CHANGED);
	ck_assert_uint_eq(urgent[first], 0);
	second = send_syn(1003, 1, NULL);
	ck_assert_int_ne(packets[second], DROPPED);
	ck_assert_uint_eq(urgent[second], 0);
	ck_assert_uint_eq(take(1003), 0);
	ck_assert_int_eq(dials, 4);
}
END_TEST

/* A SYN that is routed at once: what repeats it is routed, too, and isn't judged, whatever has changed meanwhile. */
START_TEST(routed_syn_comes_again)
{
	const struct ask data = { .server = 1 };
	uint32_t other;

	be_a_gateway();
	has_room = false;
	ck_assert_int_eq(packets[send_syn(1000, 1, NULL)], PASSED);
	has_room = true;
	gateway.dial.begin = dial_fails;
	ck_assert_int_eq(packets[send_syn(1001, 1, NULL)], PASSED);
	gateway.dial.begin = dial_asked;
	ck_assert_int_eq(judged, 2);
	ck_assert_int_eq(packets[send_syn(1000, 1, NULL)], PASSED);
	ck_assert_int_eq(packets[send_syn(1001, 1, NULL)], PASSED);
	ck_assert_int_eq(judged, 2);
	ck_assert_int_eq(dials, 0);
	/* another connection from the same port */
	other = send_syn(1000, 2, NULL);
	ck_assert_int_eq(judged, 3);
	ck_assert_int_eq(packets[other], WAITS);
	server_says(-ECONNREFUSED);
	ck_assert_int_eq(packets[other], CHANGED);
	/* with data: unchanged, or it would go to this host's listener */
	has_room = false;
	ck_assert_uint_eq(urgent[send_syn(1002, 1, &data)], 0);
	ck_assert_uint_eq(urgent[send_syn(1002, 1, &data)], 0);
	ck_assert_int_eq(judged, 4);
}
END_TEST

/* Which settings count for SYNs: those in force, for a newcomer and for one that is withheld. */
START_TEST(settings_in_force)
{
	const struct ask blind = { .server = 1, .flags = BLIND };
	struct syn_attempt *a;

	send_syn(1000, 1, &blind);
	a = judge->attempts;
	ck_assert_uint_eq(a->grant.settings_number, 1);
	settings.number = 2;
	syn_judge_again(judge);
	ck_assert_uint_eq(a->grant.settings_number, 2);
	server_says(0);
	ck_assert_uint_eq(take(1000), 1);
	/* rules that can't refuse let a blind SYN pass */
	settings.refuses_syns = false;
	demanded = true;
	ck_assert_uint_eq(urgent[send_syn(1001, 1, &blind)], 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hold_plugs");
	TCase *tcase = tcase_create("SYNs");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, case_of_a_syn);
	tcase_add_test(tcase, dialler_replaces_its_socket);
	tcase_add_test(tcase, dialler_replaces_its_socket_twice);
	tcase_add_test(tcase, dialler_knows_the_event);
	tcase_add_test(tcase, events_of_a_late_worker);
	tcase_add_test(tcase, dialler_has_times_of_its_own);
	tcase_add_test(tcase, server_by_the_packets_destination);
	tcase_add_test(tcase, routed_syn_comes_again);
	tcase_add_test(tcase, settings_in_force);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
