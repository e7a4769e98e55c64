/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_world.c - a worker's part of withholding SYNs, with a judge, a dialler, a queue and a clock of the test's */
#include "config.h"

#include "syn_world.h"

#include "common/clock.h"
#include "daemon/log.h"
#include "fake_events.h"
#include "syn_build.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

struct hold_table *table;
struct serve_context context;
struct metrics metrics;
struct serve_settings settings;
struct syn_judge *judge;
int unproven;

/* ----- the queue: what became of each packet ----- */

enum packet_fate packets[PACKETS_MAX];
uint16_t urgent[PACKETS_MAX], window[PACKETS_MAX];
int reads, closes;
hold_queue_handler *handler;
void *handler_arg;
uint32_t last_id;

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

void hold_queue_flush(struct hold_queue *queue)
{
	(void)queue;
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

bool with_mptcp;
uint16_t with_urgent;

uint32_t send_syn(uint16_t port, uint32_t isn, const struct ask *ask)
{
	static const uint8_t options[] = { 0x1e, 4, 1, 1, 3, 3, 7, 1 };
	uint8_t packet[20 + 20 + sizeof(options) + sizeof(*ask)] = { 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 198, 51, 100, 7, 192, 0, 2, 1 };
	const size_t options_len = with_mptcp ? sizeof(options) : 0, len = 40 + options_len + (ask ? sizeof(*ask) : 0);
	const uint8_t header[] = { (uint8_t)(port >> 8), (uint8_t)port, 4, 0xd2, (uint8_t)(isn >> 24), (uint8_t)(isn >> 16),
				   (uint8_t)(isn >> 8), (uint8_t)isn, 0, 0, 0, 0, with_mptcp ? 0x70 : 0x50, 2, 0xff, 0xff, 0, 0,
				   (uint8_t)(with_urgent >> 8), (uint8_t)with_urgent };

	packet[3] = (uint8_t)len;
	memcpy(packet + 20, header, sizeof(header));
	memcpy(packet + 40, options, options_len);
	if (ask)
		memcpy(packet + 40 + options_len, ask, sizeof(*ask));
	syn_build_checksums(packet, len);
	ck_assert_uint_lt(++last_id, PACKETS_MAX);
	handler(handler_arg, last_id, packet, len, 0, 0);
	fake_events_run();
	return last_id;
}

/* ----- the judge ----- */

bool demanded, has_room, refuses;
struct judgement_case last_case;

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
		.reply = ask->flags & BLIND ? JUDGEMENT_SILENT : JUDGEMENT_RESPONSE,
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

int server_result, dials, last_fd, resets, steps;
bool last_writable;
unsigned step_ms;
bool replaces_sockets, replaces_twice;

int dial_begin(struct serve_context *of, const struct serve_plan *plan, struct serve_dial *dial)
{
	(void)of, (void)plan;
	dials++;
	last_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	*dial = (struct serve_dial){ .fd = last_fd, .wake_ms = step_ms ? clock_now_ms() + step_ms : 0 };
	return 0;
}

static void replace_socket(struct serve_dial *dial)
{
	const int before = dial->fd;

	last_fd = dial->fd = fcntl(before, F_DUPFD_CLOEXEC, 0);
	close(before);
	dial->sockets++;
}

static int dial_step(struct serve_context *of, struct serve_dial *dial, struct tcp_info *info)
{
	(void)of;
	ck_assert_ptr_null(info);
	last_writable = dial->writable;
	steps++;
	if (step_ms)
		dial->wake_ms = clock_now_ms() + step_ms;
	if (replaces_sockets || replaces_twice)
		replace_socket(dial);
	if (replaces_twice)
		replace_socket(dial);
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

const struct serve_plugs plugs = {
	.judge = judge_it,
	.unproven = count_unproven,
	.dial = { .begin = dial_begin, .step = dial_step, .proven = dial_proven, .reached = dial_reached, .stop = dial_stop,
		  .refusal = dial_refusal },
};

void server_says(int result)
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

void setup(void)
{
	const struct limits_settings limits = { .pending.total = 4096, .prefix_v4 = 32, .prefix_v6 = 64 };

	log_set_level(LOG_LEVEL_ERROR);
	memset(packets, 0, sizeof(packets));
	last_id = 0;
	dials = resets = steps = 0;
	step_ms = 0;
	replaces_sockets = replaces_twice = false;
	server_result = -EINPROGRESS;
	unproven = 0;
	reads = closes = 0;
	with_mptcp = demanded = refuses = false;
	with_urgent = 0;
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
	ck_assert_int_eq(hold_open(judge->hold, 0), 0);
	syn_judge_again(judge);
}

void teardown(void)
{
	syn_judge_destroy(judge);
	ck_assert_uint_eq(hold_table_count(table), 0);
	ck_assert_uint_eq(limits_members(context.limits), 0);
	ck_assert_int_eq(unproven, 0);
	ck_assert_uint_eq(fake_poller_count(), 0);
	limits_destroy(context.limits);
	hold_table_destroy(table);
}

uint32_t taken_events;

unsigned take(uint16_t port)
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
		taken_events = ((struct syn_attempt *)syn)->events;
		syn_attempt_free(judge, (struct syn_attempt *)syn);
	}
	return count;
}
