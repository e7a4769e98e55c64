/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hold_serve.c - withheld SYNs from the queue to the release, with a judge, a dialler, a queue and a clock of the test's
 *
 * A SYN's payload says what the judge makes of it: the last byte of its server's address, and flags. No packet leaves the process. The judge
 * of a transparent gateway reads no payload: the packet's own destination is the server.
 */
#include "config.h"

#include "daemon/log.h"
#include "daemon/metrics.h"
#include "hold/hold.h"
#include "hold/hold_queue.h"
#include "serve/plugs.h"
#include "serve/syn_judge.h"

#include "common/clock.h"

#include "fake_events.h"
#include "run.h"
#include "syn_build.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { BLIND = 1, MPTCP = 2, NUMBERED = 4, PROVEN = 8 };

/* What a SYN asks for, as its payload has it. */
struct ask {
	uint8_t server, flags, repeat, number;
};

static struct hold_table *table;
static struct serve_context context;
static struct metrics metrics;
static struct serve_settings settings;
static struct syn_judge *judge;
static int unproven; /* clients that haven't proved their addresses */

/* ----- the queue: what became of each packet ----- */

#define PACKETS_MAX 64

static enum { WAITS, PASSED, CHANGED, DROPPED } packets[PACKETS_MAX];
static uint16_t urgent[PACKETS_MAX], window[PACKETS_MAX]; /* of changed ones: the mark, and the window */
static int reads, closes;
static hold_queue_handler *handler;
static void *handler_arg;
static uint32_t last_id;

int hold_queue_open(struct hold_queue **queue, size_t index, hold_queue_handler *on_packet, void *arg)
{
	(void)index;
	*queue = (struct hold_queue *)&packets;
	handler = on_packet;
	handler_arg = arg;
	return 0;
}

void hold_queue_close(struct hold_queue *queue)
{
	(void)queue;
	closes++;
}

int hold_queue_fd(const struct hold_queue *queue)
{
	(void)queue;
	return -1;
}

bool hold_queue_read(struct hold_queue *queue)
{
	(void)queue;
	reads++;
	return false;
}

bool hold_queue_flush(struct hold_queue *queue)
{
	(void)queue;
	return true;
}

void hold_queue_verdict(struct hold_queue *queue, uint32_t id, bool accept, const uint8_t *packet, size_t len)
{
	struct syn_packet syn;

	(void)queue;
	ck_assert_int_eq(packets[id], WAITS);
	packets[id] = !accept ? DROPPED : packet ? CHANGED : PASSED;
	if (!packet)
		return;
	ck_assert(accept);
	ck_assert_int_eq(syn_packet_parse(packet, len, &syn), SYN_PACKET_OK);
	urgent[id] = (uint16_t)(packet[syn.tcp + 18] << 8 | packet[syn.tcp + 19]);
	window[id] = syn.window;
}

static bool with_mptcp; /* SYNs have MP_CAPABLE, and a window scale of 7 */

/* Puts a SYN into the queue. Returns its number. */
static uint32_t send_syn(uint16_t port, uint32_t isn, const struct ask *ask)
{
	static const uint8_t options[] = { 0x1e, 4, 1, 1, 3, 3, 7, 1 };
	uint8_t packet[20 + 20 + sizeof(options) + sizeof(*ask)] = { 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 198, 51, 100, 7, 192, 0, 2, 1 };
	const size_t options_len = with_mptcp ? sizeof(options) : 0, len = 40 + options_len + (ask ? sizeof(*ask) : 0);
	const uint8_t header[] = { (uint8_t)(port >> 8), (uint8_t)port, 4, 0xd2, (uint8_t)(isn >> 24), (uint8_t)(isn >> 16),
				   (uint8_t)(isn >> 8), (uint8_t)isn, 0, 0, 0, 0, with_mptcp ? 0x70 : 0x50, 2, 0xff, 0xff };

	packet[3] = (uint8_t)len;
	memcpy(packet + 20, header, sizeof(header));
	memcpy(packet + 40, options, options_len);
	if (ask)
		memcpy(packet + 40 + options_len, ask, sizeof(*ask));
	syn_build_checksums(packet, len);
	ck_assert_uint_lt(++last_id, PACKETS_MAX);
	handler(handler_arg, last_id, packet, len);
	fake_events_run();
	return last_id;
}

/* ----- the judge ----- */

static bool demanded, has_room, refuses;
static struct judgement_case last_case;

static void judge_it(struct serve_context *of, const struct judgement_case *c, struct serve_verdict *verdict, struct serve_answer *answer)
{
	const struct ask *ask = (const struct ask *)c->bytes;
	const bool missing = demanded && !(ask->flags & PROVEN);
	struct in6_addr server = c->client.address;

	last_case = *c;
	ck_assert_ptr_null(answer);
	ck_assert_uint_eq(c->len, sizeof(*ask));
	server.s6_addr[15] = ask->server;
	*verdict = (struct serve_verdict){
		.action = missing || refuses ? REQUEST_ANSWER : REQUEST_CONNECT,
		.demanded = missing,
		.refused = missing || refuses,
		.proven = ask->flags & PROVEN,
		.length = c->len,
		.silent = ask->flags & BLIND,
		.blind = ask->flags & BLIND,
		.needs_mptcp = ask->flags & MPTCP,
		.attempt = ask->flags & NUMBERED ? ask->number : 0,
		.repeat = ask->repeat,
		.hold_ms = UINT_MAX,
		.voice = ask->flags & BLIND ? JUDGEMENT_SILENT : JUDGEMENT_RESPONSE,
	};
	sockaddr_ip_set(&verdict->server, AF_UNSPEC, &server, 80);
	if (c->place != JUDGEMENT_SYN || missing || refuses || !has_room)
		return;
	ck_assert_int_eq(limits_enter(of->limits, c->member, &c->client.address, LIMITS_WITHHELD), 0);
	verdict->withhold = true;
}

static void count_unproven(struct serve_context *of, bool more)
{
	(void)of;
	unproven += more ? 1 : -1;
}

/* ----- the dialler: a socket is a descriptor of /dev/null ----- */

static int server_result, dials, last_fd, resets, steps;
static unsigned step_ms;      /* after so many ms each, steps are due without an event; 0: never */
static bool replaces_sockets; /* each step goes on with another socket */

static int dial_begin(struct serve_context *of, const struct serve_plan *plan, struct serve_dial *dial)
{
	(void)of, (void)plan;
	dials++;
	last_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	*dial = (struct serve_dial){ .fd = last_fd, .wake_ms = step_ms ? clock_now_ms() + step_ms : 0 };
	return 0;
}

static int dial_step(struct serve_context *of, struct serve_dial *dial, struct tcp_info *info)
{
	(void)of;
	memset(info, 0, sizeof(*info));
	steps++;
	if (step_ms)
		dial->wake_ms = clock_now_ms() + step_ms;
	if (replaces_sockets) {
		const int before = dial->fd;

		last_fd = dial->fd = fcntl(before, F_DUPFD_CLOEXEC, 0);
		close(before);
	}
	return server_result;
}

static void dial_proven(struct serve_context *of, struct serve_dial *dial, unsigned repeat)
{
	(void)of, (void)dial, (void)repeat;
}

static void dial_reached(struct serve_context *of, const union sockaddr_ip *server)
{
	(void)of, (void)server;
}

static void dial_stop(struct serve_context *of, struct serve_dial *dial)
{
	(void)of;
	if (dial->fd < 0)
		return;
	close(dial->fd);
	dial->fd = -1;
	resets++;
}

static struct serve_refusal dial_refusal(struct serve_context *of, const struct serve_dial *dial, const union sockaddr_ip *server,
					 bool client_v4, uint64_t asked_ms, int error)
{
	(void)of, (void)dial, (void)server, (void)asked_ms;
	return (struct serve_refusal){ .passes = error == -ENETDOWN, .native = error == -ECONNREFUSED ? NATIVE_RESET : native_prohibited(client_v4) };
}

static const struct serve_plugs plugs = {
	.judge = judge_it,
	.unproven = count_unproven,
	.dial = { .begin = dial_begin, .step = dial_step, .proven = dial_proven, .reached = dial_reached, .stop = dial_stop,
		  .refusal = dial_refusal },
};

static void server_says(int result)
{
	server_result = result;
	fake_poller_tell(last_fd, EPOLLOUT);
	fake_events_run();
}

/* ----- the stage ----- */

static void on_wake(struct limits_owner *owner)
{
	(void)owner;
}

static void setup(void)
{
	const struct limits_settings limits = { .pending.total = 4096, .prefix_v4 = 32, .prefix_v6 = 64 };

	log_set_level(LOG_LEVEL_ERROR);
	memset(packets, 0, sizeof(packets));
	last_id = 0;
	dials = resets = steps = 0;
	step_ms = 0;
	replaces_sockets = false;
	server_result = -EINPROGRESS;
	unproven = 0;
	reads = closes = 0;
	with_mptcp = demanded = refuses = false;
	has_room = true;
	settings = (struct serve_settings){ .number = 1, .hold_ms = 700, .refuses_syns = true };
	table = hold_table_create();
	context = (struct serve_context){
		.settings = &settings, .metrics = &metrics, .plugs = &plugs, .withheld = table,
		.owner = { .wake = on_wake }, .limits = limits_create(),
	};
	limits_configure(context.limits, &limits);
	judge = syn_judge_create(&context);
	ck_assert_ptr_nonnull(judge);
	ck_assert_int_eq(syn_judge_open(judge, 0), 0);
	syn_judge_again(judge);
}

static void teardown(void)
{
	syn_judge_destroy(judge);
	ck_assert_uint_eq(hold_table_count(table), 0);
	ck_assert_uint_eq(limits_members(context.limits), 0);
	ck_assert_int_eq(unproven, 0);
	ck_assert_uint_eq(fake_poller_count(), 0);
	limits_destroy(context.limits);
	hold_table_destroy(table);
}

/* Takes what is in the table for the connection from that port. Returns how many SYNs that is. */
static unsigned take(uint16_t port)
{
	struct syn_packet_flow addresses = { .source_port = port, .destination_port = 1234 };
	union sockaddr_ip client, local;
	struct hold_syn *syn, *next;
	unsigned count = 0;

	ck_assert_int_eq(sockaddr_ip_parse(&client, "198.51.100.7", port), 0);
	ck_assert_int_eq(sockaddr_ip_parse(&local, "192.0.2.1", 1234), 0);
	addresses.source = sockaddr_ip_in6(&client);
	addresses.destination = sockaddr_ip_in6(&local);
	for (syn = hold_table_take(table, &addresses); syn; syn = next, count++) {
		next = syn->next;
		syn_attempt_free(judge, (struct syn_attempt *)syn);
	}
	return count;
}

#define CONFIRMED SYN_PACKET_MARK

/* The SYN of an ordinary client goes on when its server has answered, and its connection finds that. */
START_TEST(confirmed)
{
	const struct ask ask = { .server = 1 };
	uint32_t id = send_syn(1000, 1, &ask);

	ck_assert_int_eq(packets[id], WAITS);
	ck_assert_int_eq(unproven, 1);
	fake_clock_advance(699);
	server_says(-EINPROGRESS);
	ck_assert_int_eq(packets[id], WAITS);
	server_says(0);
	ck_assert_int_eq(packets[id], CHANGED);
	ck_assert_uint_eq(urgent[id], CONFIRMED);
	ck_assert_uint_eq(take(1000), 1);
	ck_assert_uint_eq(take(1000), 0);
}
END_TEST

/* After --hold-time it goes on without a mark; a connection that doesn't come leaves nothing behind. */
START_TEST(late_and_never_accepted)
{
	const struct ask ask = { .server = 1 };
	uint32_t id = send_syn(1000, 1, &ask);

	fake_clock_advance(700);
	ck_assert_int_eq(packets[id], CHANGED);
	ck_assert_uint_eq(urgent[id], 0);
	ck_assert_uint_eq(hold_table_count(table), 1);
	fake_clock_advance(7000);
	ck_assert_uint_eq(hold_table_count(table), 0);
	ck_assert_int_eq(resets, 1);
	/* the same SYN again may make another connection */
	id = send_syn(1000, 1, &ask);
	ck_assert_int_eq(packets[id], CHANGED);
	ck_assert_uint_eq(urgent[id], 0);
	ck_assert_int_eq(dials, 1);
}
END_TEST

/* Another sequence number is another connection, whoever has sent the first one, and whatever is waited for. */
START_TEST(forged_syn_of_the_same_port)
{
	const struct ask forged = { .server = 1, .flags = BLIND }, own = { .server = 2 };
	uint32_t first = send_syn(1000, 1, &forged), again = send_syn(1000, 1, NULL), second = send_syn(1000, 2, &own);

	ck_assert_int_eq(packets[first], WAITS);
	ck_assert_int_eq(packets[again], DROPPED);
	ck_assert_int_eq(packets[second], WAITS);
	ck_assert_int_eq(dials, 2);
	server_says(0);
	ck_assert_int_eq(packets[first], WAITS);
	ck_assert_int_eq(packets[second], CHANGED);
	ck_assert_uint_eq(urgent[second], CONFIRMED);
	ck_assert_uint_eq(take(1000), 1);
}
END_TEST

/* A blind client whose server is silent: 3.5 s, then nothing is counted any more, and what repeats the SYN is dropped for as long as it may come. */
START_TEST(silence)
{
	for (int i = 0; i < 2; i++) {
		const struct ask ask = { .server = 1, .flags = (uint8_t)(BLIND | (i ? MPTCP : 0)) };
		const uint16_t port = (uint16_t)(1000 + i);
		uint32_t id = send_syn(port, 1, &ask);

		fake_clock_advance(3000);
		ck_assert_int_eq(packets[send_syn(port, 1, NULL)], DROPPED);
		ck_assert_int_eq(unproven, 1);
		ck_assert_int_eq(packets[id], WAITS);
		fake_clock_advance(500);
		ck_assert_int_eq(packets[id], DROPPED);
		ck_assert_int_eq(unproven, 0);
		ck_assert_uint_eq(hold_table_count(table), 0);
		ck_assert_int_eq(resets, 2 * i + 1); /* and one for what take() gives up */
		fake_clock_advance(120000);
		ck_assert_int_eq(packets[send_syn(port, 1, NULL)], DROPPED);
		/* the client's next connection from that port */
		id = send_syn(port, 2, &ask);
		ck_assert_int_eq(packets[id], WAITS);
		server_says(0);
		ck_assert_uint_eq(urgent[id], CONFIRMED);
		ck_assert_uint_eq(take(port), 1);
	}
}
END_TEST

/* Neither want of a cookie nor of room has a blind client refused; what its server says has. */
START_TEST(refusals_of_blind_clients)
{
	const struct ask ask = { .server = 1, .flags = BLIND };
	uint32_t id;

	demanded = true;
	id = send_syn(1000, 1, &ask);
	ck_assert_int_eq(packets[id], CHANGED);
	ck_assert_uint_eq(urgent[id], 0);
	demanded = has_room = false;
	id = send_syn(1001, 1, &ask);
	ck_assert_uint_eq(urgent[id], 0);
	ck_assert_int_eq(dials, 0);
	has_room = true;
	id = send_syn(1002, 1, &ask);
	server_says(-ECONNREFUSED);
	ck_assert_int_eq(packets[id], CHANGED);
	ck_assert_uint_eq(urgent[id], SYN_PACKET_REFUSED | NATIVE_RESET);
	/* the kernel limits such messages: the SYN comes again, and is refused again */
	id = send_syn(1002, 1, NULL);
	ck_assert_uint_eq(urgent[id], SYN_PACKET_REFUSED | NATIVE_RESET);
	ck_assert_int_eq(dials, 1);
}
END_TEST

/* A client that makes its request again has one connection to the server, and the answer between two SYNs is for the next one. */
START_TEST(made_again)
{
	struct ask ask = { .server = 1, .flags = BLIND | MPTCP | NUMBERED, .number = 9 };
	uint32_t first = send_syn(1000, 1, &ask), second, old;

	fake_clock_advance(900);
	ask.repeat = 1;
	second = send_syn(1001, 2, &ask);
	ck_assert_int_eq(packets[first], DROPPED);
	ck_assert_int_eq(packets[second], WAITS);
	ask.repeat = 0;
	old = send_syn(1002, 3, &ask);
	ck_assert_int_eq(packets[old], DROPPED);
	fake_clock_advance(800);
	server_says(0);
	ck_assert_int_eq(packets[second], WAITS);
	fake_clock_advance(100);
	ask.repeat = 2;
	first = send_syn(1003, 4, &ask);
	ck_assert_int_eq(packets[second], DROPPED);
	server_says(0);
	ck_assert_uint_eq(urgent[first], CONFIRMED);
	ck_assert_int_eq(dials, 1);
	ck_assert_int_eq(resets, 0);
	ck_assert_uint_eq(take(1003), 1);
}
END_TEST

/* The end of withholding: ordinary SYNs go on, blind ones are reset, and neither is counted. */
START_TEST(stopped)
{
	const struct ask ordinary = { .server = 1 }, blind = { .server = 1, .flags = BLIND };
	uint32_t first = send_syn(1000, 1, &ordinary), second = send_syn(1001, 1, &blind);

	syn_judge_stop(judge, true);
	ck_assert_int_eq(reads, 1);
	syn_judge_stop(judge, true);
	ck_assert_int_eq(reads, 1);
	ck_assert_int_eq(closes, 1);
	ck_assert_int_eq(packets[first], CHANGED);
	ck_assert_uint_eq(urgent[first], 0);
	ck_assert_uint_eq(urgent[second], SYN_PACKET_REFUSED | NATIVE_RESET);
	ck_assert_uint_eq(take(1000), 1);
	ck_assert_uint_eq(take(1001), 0);
}
END_TEST

/* New settings that grant the request no more. */
START_TEST(no_longer_granted)
{
	const struct ask ordinary = { .server = 1 }, blind = { .server = 1, .flags = BLIND };
	uint32_t first = send_syn(1000, 1, &ordinary), second = send_syn(1001, 1, &blind);

	syn_judge_again(judge);
	ck_assert_int_eq(packets[first], WAITS);
	demanded = true;
	syn_judge_again(judge);
	ck_assert_uint_eq(urgent[first], 0);
	ck_assert_uint_eq(urgent[second], SYN_PACKET_REFUSED | 13);
	ck_assert_int_eq(resets, 2);
	ck_assert_uint_eq(take(1000), 1);
}
END_TEST

static uint64_t counted(enum metrics_syn what)
{
	return metrics.values[METRIC_SYNS + what];
}

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
		send_syn((uint16_t)(1000 + i), 1, &ask);
		ck_assert_int_eq(last_case.place, JUDGEMENT_SYN);
		ck_assert_mem_eq(&last_case.client.address, &client, sizeof(client));
		ck_assert(!last_case.client.proven);
		ck_assert_ptr_nonnull(last_case.member);
		ck_assert_ptr_nonnull(last_case.flow);
		ck_assert_uint_eq(last_case.now_ms, clock_now_ms());
		ck_assert_int_eq(last_case.mptcp, i);
	}
	syn_judge_again(judge);
	ck_assert_int_eq(last_case.place, JUDGEMENT_WITHHELD);
	ck_assert_ptr_null(last_case.member);
}
END_TEST

/* The window of a Multipath TCP SYN with data is corrected, but not by a gateway, which routes the SYN. */
START_TEST(windows)
{
	const struct ask ask = { .server = 1 };
	struct serve_plugs gateway = plugs;
	uint32_t id;

	with_mptcp = true;
	has_room = false;
	id = send_syn(1000, 1, &ask);
	ck_assert_uint_eq(window[id], 0xffff >> 7);
	gateway.at_once = true;
	context.plugs = &gateway;
	syn_judge_again(judge);
	id = send_syn(1001, 1, &ask);
	ck_assert_uint_eq(window[id], 0xffff);
}
END_TEST

/* What isn't a first SYN with data is nobody's business; packets that passed unseen are counted by the gap in the numbers. */
START_TEST(what_passes)
{
	const uint64_t missed = counted(METRICS_SYN_MISSED), unreadable = counted(METRICS_SYN_UNREADABLE);
	uint8_t cut[20] = { 0x45 };

	ck_assert_int_eq(packets[send_syn(1000, 1, NULL)], PASSED);
	ck_assert_uint_eq(counted(METRICS_SYN_MISSED), missed);
	last_id += 5;
	ck_assert_int_eq(packets[send_syn(1001, 1, NULL)], PASSED);
	ck_assert_uint_eq(counted(METRICS_SYN_MISSED), missed + 5);
	handler(handler_arg, ++last_id, cut, sizeof(cut));
	ck_assert_int_eq(packets[last_id], PASSED);
	ck_assert_uint_eq(counted(METRICS_SYN_UNREADABLE), unreadable + 1);
	ck_assert_uint_eq(counted(METRICS_SYN_MISSED), missed + 5);
	settings.drop_foreign = true;
	syn_judge_again(judge);
	ck_assert_int_eq(packets[send_syn(1002, 1, NULL)], DROPPED);
	ck_assert_int_eq(dials, 0);
}
END_TEST

/* Each fate has a counter of its own. */
START_TEST(fates_are_counted)
{
	const struct ask ordinary = { .server = 1 }, blind = { .server = 2, .flags = BLIND };
	const enum metrics_syn fates[] = { METRICS_SYN_PASSED, METRICS_SYN_UNCONFIRMED, METRICS_SYN_NOT_GRANTED, METRICS_SYN_REFUSED,
					   METRICS_SYN_REPEATED, METRICS_SYN_FOREIGN };
	uint64_t before[METRICS_SYN_COUNT];

	for (unsigned i = 0; i < METRICS_SYN_COUNT; i++)
		before[i] = counted(i);
	send_syn(1000, 1, NULL);
	has_room = false;
	send_syn(1001, 1, &ordinary);
	refuses = true;
	send_syn(1002, 1, &ordinary);
	ck_assert_uint_eq(urgent[send_syn(1003, 1, &blind)], SYN_PACKET_REFUSED | 13);
	refuses = false;
	has_room = true;
	send_syn(1004, 1, &ordinary);
	send_syn(1004, 1, NULL);
	settings.drop_foreign = true;
	syn_judge_again(judge);
	send_syn(1005, 1, NULL);
	for (size_t i = 0; i < sizeof(fates) / sizeof(fates[0]); i++)
		ck_assert_msg(counted(fates[i]) == before[fates[i]] + 1, "fate %d", (int)fates[i]);
}
END_TEST

/* The limits want the room of a SYN: withheld, or released and not yet accepted. */
START_TEST(makes_room)
{
	const struct ask ordinary = { .server = 1 }, late = { .server = 2, .flags = BLIND | MPTCP };
	uint32_t first = send_syn(1000, 1, &late), second;
	struct syn_attempt *a = judge->attempts;

	fake_clock_advance(700);
	second = send_syn(1001, 1, &ordinary);
	a->member.kind->make_room(&a->member, OUTCOME_LIMIT_PENDING);
	ck_assert_int_eq(packets[first], DROPPED);
	a = judge->attempts;
	a->member.kind->make_room(&a->member, OUTCOME_LIMIT_PENDING);
	ck_assert_int_eq(packets[second], CHANGED);
	ck_assert_uint_eq(urgent[second], 0);
	ck_assert_uint_eq(take(1001), 0);
	send_syn(1002, 1, &ordinary);
	a = judge->attempts;
	ck_assert(a->member.kind->claim(&a->member));
	fake_clock_advance(700);
	ck_assert(a->member.kind->claim(&a->member));
	a->member.kind->make_room(&a->member, OUTCOME_LIMIT_PENDING);
	ck_assert_uint_eq(take(1002), 0);
	ck_assert_int_eq(resets, 3);
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

static void judge_by_destination(struct serve_context *of, const struct judgement_case *c, struct serve_verdict *verdict, struct serve_answer *answer)
{
	(void)answer;
	*verdict = (struct serve_verdict){
		.action = REQUEST_CONNECT, .voice = JUDGEMENT_SILENT, .silent = true, .blind = true, .hold_ms = UINT_MAX,
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

START_TEST(server_by_the_packets_destination)
{
	struct serve_plugs gateway = plugs;
	char text[SOCKADDR_STRLEN];
	uint32_t first, second, third;

	gateway.judge = judge_by_destination;
	gateway.dial.begin = dial_asked;
	gateway.at_once = true;
	context.plugs = &gateway;
	syn_judge_again(judge);
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

/* Which settings count for SYNs: those in force, for a newcomer and for one that is withheld. */
START_TEST(settings_in_force)
{
	const struct ask blind = { .server = 1, .flags = BLIND };
	struct syn_attempt *a;

	send_syn(1000, 1, &blind);
	a = judge->attempts;
	ck_assert_uint_eq(a->grant.rules, 1);
	settings.number = 2;
	syn_judge_again(judge);
	ck_assert_uint_eq(a->grant.rules, 2);
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
	Suite *suite = suite_create("hold_serve");
	TCase *tcase = tcase_create("SYNs");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, confirmed);
	tcase_add_test(tcase, late_and_never_accepted);
	tcase_add_test(tcase, forged_syn_of_the_same_port);
	tcase_add_test(tcase, silence);
	tcase_add_test(tcase, refusals_of_blind_clients);
	tcase_add_test(tcase, made_again);
	tcase_add_test(tcase, stopped);
	tcase_add_test(tcase, no_longer_granted);
	tcase_add_test(tcase, what_passes);
	tcase_add_test(tcase, fates_are_counted);
	tcase_add_test(tcase, case_of_a_syn);
	tcase_add_test(tcase, windows);
	tcase_add_test(tcase, makes_room);
	tcase_add_test(tcase, dialler_replaces_its_socket);
	tcase_add_test(tcase, dialler_has_times_of_its_own);
	tcase_add_test(tcase, server_by_the_packets_destination);
	tcase_add_test(tcase, settings_in_force);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
