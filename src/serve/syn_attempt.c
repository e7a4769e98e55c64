/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syn_attempt.c - a withheld SYN, and the attempt to connect to its server
 *
 * An attempt begins when we withhold its SYN. Events of the server's socket, the deadline, the limits, new settings or the client's next
 * SYN end it: syn_decision.c decides how, and syn_attempt_on() carries that out. After the release the connection's session takes the
 * attempt out of the table, with the server's socket, or with the reason why there is none.
 */
#include "config.h"

#include "serve/syn_judge.h"

#include "common/tcp.h"
#include "common/clock.h"
#include "daemon/log.h"
#include "daemon/poller.h"
#include "convertd/config/settings.h"
#include "convertd/config/effective_settings.h"
#include "convertd/net/downstream.h"
#include "convertd/policy/cookies.h"
#include "daemon/far_clients.h"
#include "serve/plugs.h"

#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

/* Linux's default of net.ipv4.tcp_syn_retries. */
#define SYN_RETRIES_MAX 6

static_assert(offsetof(struct syn_attempt, hold) == 0, "the table has it as its first member");

static struct event *attempt_event(struct syn_attempt *a)
{
	return (struct event *)(a + 1);
}

static bool client_is_v4(const struct syn_attempt *a)
{
	return IN6_IS_ADDR_V4MAPPED(&a->hold.flow.addresses.source);
}

/* ----- the end of an attempt ----- */

void syn_attempt_close(struct syn_attempt *a)
{
	if (a->fd < 0)
		return;
	downstream_reset(a->fd);
	close(a->fd);
	a->fd = -1;
}

void syn_attempt_destroy(struct syn_attempt *a)
{
	syn_attempt_close(a);
	free(a);
}

void syn_attempt_free(struct syn_judge *judge, struct syn_attempt *a)
{
	limits_leave(judge->context->admission.limits, &a->member, clock_now_ms());
	if (a->unproven)
		demand_leave(judge->context->admission.demand);
	poller_forget(judge->context->poller, a->registration);
	syn_attempt_destroy(a);
}

static void log_release(const struct syn_attempt *a, const char *why)
{
	char client[SOCKADDR_STRLEN], server[SOCKADDR_STRLEN];
	union sockaddr_ip address;

	if (!log_enabled(LOG_LEVEL_DEBUG))
		return;
	sockaddr_ip_set(&address, AF_UNSPEC, &a->hold.flow.addresses.source, a->hold.flow.addresses.source_port);
	log_debug("SYN of %s to %s: let go after %llu ms: %s", sockaddr_ip_format(&address, client),
		  sockaddr_ip_format(&a->grant.server, server), (unsigned long long)(clock_now_us() - a->came_us) / 1000, why);
}

/* Collects the events of the server's socket until the client's session takes it. */
static void on_released(void *arg, uint32_t events)
{
	struct syn_attempt *a = arg;

	a->events |= events;
}

/* Prepares the server's socket for the worker that accepts the client. A single worker keeps the registration; otherwise we remove it. */
static void leave_server(struct syn_attempt *a)
{
	const struct request_context *context = a->judge->context;

	if (a->registration == POLLER_NONE)
		return;
	if (context->single_worker) {
		poller_hand_over(context->poller, a->registration, on_released, a);
	} else {
		poller_remove(context->poller, a->registration, a->fd);
		a->registration = POLLER_NONE;
	}
}

/* Resets the connection to the server, so that the session finds none. */
static void give_up_server(struct syn_attempt *a)
{
	poller_forget(a->judge->context->poller, a->registration);
	a->registration = POLLER_NONE;
	syn_attempt_close(a);
}

/* Releases the SYN as the step says. */
static void release(struct syn_attempt *a, const struct syn_step *step)
{
	struct syn_judge *judge = a->judge;

	log_release(a, step->why);
	metrics_add(judge->context->metrics, METRIC_SYNS_WITHHELD, (uint64_t)-1);
	metrics_add(judge->context->metrics, METRIC_SYNS + step->counted, 1);
	DL_DELETE(judge->attempts, a);
	event_del(attempt_event(a));
	leave_server(a);
	if (!hold_release(judge->hold, &a->hold, step->verdict, step->keep, clock_now_ms()))
		syn_attempt_free(judge, a);
}

/* Waits for events of the server's socket, for @ms milliseconds at most. */
static int wait_for(struct syn_attempt *a, unsigned ms)
{
	struct timeval limit = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	return event_add(attempt_event(a), &limit);
}

static uint8_t native_of(const struct syn_attempt *a, const struct syn_step *step)
{
	if (step->resets)
		return NATIVE_RESET;
	if (step->tells_refusal)
		return native_refusal(a->refusal.code, a->refusal.value, sockaddr_ip_is_v4(&a->grant.server), client_is_v4(a));
	return native_prohibited(client_is_v4(a));
}

static void take_step(struct syn_attempt *a, struct syn_step step)
{
	a->facts.late |= step.late;
	a->facts.answered |= step.answered;
	if (step.verdict == HOLD_WITHHOLD) {
		if (step.wait_ms)
			wait_for(a, step.wait_ms);
		return;
	}
	if (step.verdict == HOLD_REFUSE)
		a->hold.native = native_of(a, &step);
	if (step.verdict == HOLD_REFUSE || step.verdict == HOLD_PASS_PLAIN || step.verdict == HOLD_DROP_SILENT)
		give_up_server(a);
	release(a, &step);
}

void syn_attempt_on(struct syn_attempt *a, enum syn_event event)
{
	/* Withdraws the grant: the session judges the request anew, and tells the client the error. */
	if (event == SYN_NOT_GRANTED)
		memset(&a->grant.server, 0, sizeof(a->grant.server));
	take_step(a, syn_decide(&a->facts, event));
}

/* ----- limits ----- */

static struct syn_attempt *attempt_of(struct limits_member *member)
{
	return (struct syn_attempt *)((char *)member - offsetof(struct syn_attempt, member));
}

/* A withheld SYN belongs to this thread; a released one only until a session takes it. */
static bool claim(struct limits_member *member)
{
	struct syn_attempt *a = attempt_of(member);

	return a->hold.withheld || hold_table_take_back(a->judge->context->withheld, &a->hold);
}

static void make_room(struct limits_member *member, enum outcome reason)
{
	struct syn_attempt *a = attempt_of(member);

	(void)reason;
	if (a->hold.withheld)
		syn_attempt_on(a, SYN_ROOM_IS_NEEDED);
	else
		syn_attempt_free(a->judge, a);
}

static const struct limits_member_kind member_kind = { .claim = claim, .make_room = make_room };

/* ----- an attempt ----- */

static void on_time_over(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	syn_attempt_on(arg, SYN_TIME_IS_OVER);
}

static void on_server(void *arg, uint32_t events)
{
	struct syn_attempt *a = arg;
	const struct serve_dial *dial = &a->judge->context->plugs->dial;
	struct tcp_info info;
	struct syn_step step;
	int error;

	(void)events;
	/* We wait for the client's next SYN. */
	if (a->facts.answered)
		return;
	error = dial->result(a->fd, &info);
	if (error == -EINPROGRESS)
		return;
	if (!error) {
		dial->reached(&a->grant.server);
		a->reached = !a->facts.late;
		syn_attempt_on(a, a->facts.asks && dial->speaks_mptcp(a->fd) ? SYN_SERVER_ANSWERED_MPTCP : SYN_SERVER_ANSWERED);
		return;
	}
	step = syn_decide(&a->facts, error == -ETIMEDOUT ? SYN_SERVER_TIMED_OUT : SYN_SERVER_FAILED);
	if (step.tells_refusal) {
		a->refusal = dial->refusal(a->judge->context, a->fd, &a->grant.server, a->came_us / 1000, error);
		step.why = strerror(-error);
	}
	take_step(a, step);
}

struct syn_attempt *syn_attempt_create(struct syn_judge *judge)
{
	struct syn_attempt *a = calloc(1, sizeof(*a) + event_get_struct_event_size());

	if (!a)
		return NULL;
	a->judge = judge;
	event_assign(attempt_event(a), judge->context->base, -1, 0, on_time_over, a);
	a->fd = -1;
	a->registration = POLLER_NONE;
	a->hold.native = NATIVE_NONE;
	a->hold.owner = judge;
	a->member.owner = &judge->context->owner;
	a->member.kind = &member_kind;
	return a;
}

static unsigned first_wait_ms(struct syn_attempt *a)
{
	const struct request_context *context = a->judge->context;
	unsigned rtt_ms = 0;

	if (a->facts.falls_back && (!a->facts.blind || a->facts.mptcp))
		rtt_ms = far_clients_rtt_ms(context->far_clients, &a->hold.flow.addresses.source, clock_now_ms());
	a->far = rtt_ms > 0;
	return syn_first_wait_ms(&a->facts, context->effective->settings->hold_time, rtt_ms);
}

/* Withholds the SYN, and watches the server's socket. Returns 0, or -errno with nothing withheld. */
static int withhold(struct syn_attempt *a, const struct hold_packet *packet)
{
	const struct request_context *context = a->judge->context;
	int registration = poller_add(context->poller, a->fd, on_server, a);
	int error = registration < 0 ? registration : wait_for(a, first_wait_ms(a)) < 0 ? -ENOMEM : 0;

	if (!a->came_us)
		a->came_us = clock_now_us();
	if (!error)
		error = hold_withhold(a->judge->hold, &a->hold, packet);
	if (error) {
		event_del(attempt_event(a));
		if (registration >= 0)
			poller_forget(context->poller, registration);
		return error;
	}
	a->registration = registration;
	DL_APPEND(a->judge->attempts, a);
	metrics_add(context->metrics, METRIC_SYNS_WITHHELD, 1);
	if (a->unproven)
		demand_enter(context->admission.demand);
	return 0;
}

/* Connects to the server as a session does. Returns a socket or -errno. */
static int connect_server(const struct syn_judge *judge, const struct syn_packet *syn, const struct judgement_grant *grant,
			  bool data_follows)
{
	const struct settings *settings = judge->context->effective->settings;
	struct downstream_plan plan = {
		.server = &grant->server,
		.route = judge->context->route,
		.congestion = settings->congestion_server,
		.mptcp = grant->mptcp && !plain_servers_has(&grant->server),
		.data_follows = data_follows,
		.last_fd = judge->context->effective->last_fd,
	};
	union sockaddr_ip client;

	sockaddr_ip_set(&client, AF_UNSPEC, &syn->flow.source, syn->flow.source_port);
	plan.choice = sources_choose(&settings->sources, &client, &grant->server, &plan.source);
	return judge->context->plugs->dial.connect(&plan);
}

/*
 * Replaces an earlier SYN of the same attempt, which the client has given up, and takes over the server's socket. From now on the kernel
 * may send the server more SYNs: one for each SYN of the client. Returns false if there is no socket to take over.
 */
static bool take_over(struct syn_attempt *a, struct syn_attempt *earlier)
{
	const unsigned retries = a->facts.repeat < SYN_RETRIES_MAX ? a->facts.repeat + 1u : SYN_RETRIES_MAX;

	a->came_us = earlier->came_us;
	a->fd = earlier->fd;
	/* The new registration will report the earlier events again. */
	poller_remove(a->judge->context->poller, earlier->registration, earlier->fd);
	earlier->registration = POLLER_NONE;
	earlier->fd = -1;
	syn_attempt_on(earlier, SYN_REPEATED);
	if (a->fd >= 0)
		downstream_confirm(a->fd, (int)retries);
	return a->fd >= 0;
}

static void prepare(struct syn_attempt *a, const struct hold_packet *packet, const struct request_decision *request)
{
	const struct convert_silence *silence = &request->silence;

	a->hold.attempt = (struct hold_attempt){ packet->flow.addresses.source, silence->blind ? silence->attempt : 0 };
	a->facts = (struct syn_facts){
		.silent = request->silent,
		.blind = silence->blind,
		.mptcp = silence->mptcp,
		.asks = request->mptcp,
		.falls_back = packet->syn.mp_capable,
		.numbered = a->hold.attempt.number != 0,
		.repeat = silence->repeat,
		.most_ms = request->has_hold_time ? request->hold_ms : UINT_MAX,
	};
	a->hold.flow = packet->flow;
	a->came_us = 0;
	a->unproven = !request->proven;
	a->reached = false;
	a->registration = POLLER_NONE;
	a->events = 0;
	a->grant = (struct judgement_grant){ .rules = a->judge->context->effective->admission.number, .mptcp = request->mptcp };
	sockaddr_ip_set(&a->grant.server, AF_UNSPEC, &request->address, request->port);
}

enum hold_verdict syn_attempt_ask(struct syn_attempt *a, const struct hold_packet *packet, const struct request_decision *request,
				  uint8_t *native)
{
	struct request_context *context = a->judge->context;
	struct syn_attempt *earlier = NULL;
	enum syn_repeat repeat = SYN_REPEAT_NEW;

	prepare(a, packet, request);
	if (a->facts.numbered)
		earlier = (struct syn_attempt *)hold_table_find(context->withheld, &a->hold.attempt, a->judge);
	if (earlier)
		repeat = syn_decide_repeat(&a->facts, &earlier->facts,
					   sockaddr_ip_equal(&earlier->grant.server, &a->grant.server));
	if (repeat == SYN_REPEAT_DROP)
		return HOLD_DROP_REPEATED;
	if (repeat == SYN_REPEAT_NEW || !take_over(a, earlier))
		a->fd = connect_server(a->judge, &packet->syn, &a->grant, packet->syn.payload_len > request->length);
	/* Keeps Multipath TCP: when we accept the client there may be a descriptor again. */
	if (a->fd == -EMFILE)
		return HOLD_PASS_UNCONFIRMED;
	if (a->fd < 0 && a->facts.blind) {
		a->refusal = context->plugs->dial.refusal(context, -1, &a->grant.server, clock_now_ms(), a->fd);
		*native = native_refusal(a->refusal.code, a->refusal.value, sockaddr_ip_is_v4(&a->grant.server), client_is_v4(a));
		return HOLD_REFUSE;
	}
	if (a->fd < 0)
		return HOLD_PASS_PLAIN;
	if (withhold(a, packet) == 0)
		return HOLD_WITHHOLD;
	syn_attempt_close(a);
	return HOLD_PASS_UNCONFIRMED;
}
