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
#include "serve/plugs.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <utlist.h>

static_assert(offsetof(struct syn_attempt, hold) == 0, "the table's pointers are to the first member");

static struct event *attempt_event(struct syn_attempt *a)
{
	return (struct event *)(a + 1);
}

static bool client_is_v4(const struct syn_attempt *a)
{
	return IN6_IS_ADDR_V4MAPPED(&a->hold.flow.addresses.source);
}

/* ----- the end of an attempt ----- */

static void count_unproven(const struct syn_attempt *a, struct serve_context *context, bool more)
{
	if (a->unproven && context->plugs->unproven)
		context->plugs->unproven(context, more);
}

void syn_attempt_uncount(struct syn_attempt *a, struct serve_context *context)
{
	limits_leave(context->limits, &a->member, clock_now_ms());
	count_unproven(a, context, false);
}

void syn_attempt_destroy(struct syn_attempt *a, struct serve_context *context)
{
	context->plugs->dial.stop(context, &a->dial);
	free(a);
}

void syn_attempt_free(struct syn_judge *judge, struct syn_attempt *a)
{
	syn_attempt_uncount(a, judge->context);
	poller_forget(judge->context->poller, a->registration);
	syn_attempt_destroy(a, judge->context);
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
	const struct serve_context *context = a->judge->context;

	if (a->registration == POLLER_NONE)
		return;
	if (context->single_worker) {
		poller_hand_over(context->poller, a->registration, on_released, a);
	} else {
		poller_remove(context->poller, a->registration, a->dial.fd);
		a->registration = POLLER_NONE;
	}
}

/* Gives up the connection to the server, so that the session finds none. */
static void give_up_server(struct syn_attempt *a)
{
	struct serve_context *context = a->judge->context;

	poller_forget(context->poller, a->registration);
	a->registration = POLLER_NONE;
	context->plugs->dial.stop(context, &a->dial);
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
	hold_release(judge->hold, &a->hold, step->verdict, step->keep, clock_now_ms());
	if (!step->keep)
		syn_attempt_free(judge, a);
}

/* Sets the timer for the deadline, or for the dialler's next step if that comes first. */
static int set_timer(struct syn_attempt *a)
{
	const uint64_t now_ms = clock_now_ms(), wake_ms = a->dial.wake_ms;
	const uint64_t at_ms = wake_ms && wake_ms < a->until_ms ? wake_ms : a->until_ms, ms = at_ms > now_ms ? at_ms - now_ms : 0;
	const struct timeval left = { .tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000 * 1000) };

	return event_add(attempt_event(a), &left);
}

/* Waits for events of the server's socket, for @ms milliseconds at most. */
static int wait_for(struct syn_attempt *a, unsigned ms)
{
	a->until_ms = clock_now_ms() + ms;
	return set_timer(a);
}

static uint8_t native_of(const struct syn_attempt *a, const struct syn_step *step)
{
	if (step->resets)
		return NATIVE_RESET;
	if (step->tells_refusal)
		return a->refusal.native;
	return native_prohibited(client_is_v4(a));
}

static void take_step(struct syn_attempt *a, struct syn_step step)
{
	a->facts.late |= step.late;
	a->facts.server_answered |= step.server_answered;
	if (step.verdict == HOLD_WITHHOLD) {
		if (step.wait_ms)
			wait_for(a, step.wait_ms);
		return;
	}
	if (step.verdict == HOLD_REFUSE)
		a->hold.native = native_of(a, &step);
	if (step.verdict == HOLD_REFUSE || step.verdict == HOLD_PASS_TCP || step.verdict == HOLD_DROP_UNANSWERED)
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

/*
 * A withheld SYN belongs to this thread; a released one only until a session takes it. A gateway's released one stays: its client is being
 * connected, and nobody can judge that connection again.
 */
static bool claim(struct limits_member *member)
{
	struct syn_attempt *a = attempt_of(member);

	return a->hold.withheld || (!a->facts.routes && hold_table_take_back(a->judge->context->withheld, &a->hold));
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

static void on_server(void *arg, uint32_t events);

/* Registers the server's socket if the dialler has replaced the one of @before. Returns 0 or -errno. */
static int follow_dialler(struct syn_attempt *a, const struct serve_dial *before)
{
	struct serve_context *context = a->judge->context;

	if (serve_dial_same_socket(before, &a->dial))
		return 0;
	poller_forget(context->poller, a->registration);
	a->events = 0;
	a->registration = poller_add(context->poller, a->dial.fd, on_server, a);
	if (a->registration >= 0)
		return 0;
	a->registration = POLLER_NONE;
	return -ENOMEM;
}

static void fail(struct syn_attempt *a, int error)
{
	struct serve_context *context = a->judge->context;
	struct syn_step step = syn_decide(&a->facts, error == -ETIMEDOUT ? SYN_SERVER_TIMED_OUT : SYN_SERVER_FAILED);

	if (step.tells_refusal) {
		a->refusal = context->plugs->dial.refusal(context, &a->dial, &a->grant.server, client_is_v4(a), a->came_us / 1000, error);
		step.why = strerror(-error);
		if (a->refusal.passes)
			step = syn_decide(&a->facts, SYN_PASSES);
	}
	take_step(a, step);
}

/* Lets the dialler go on. */
static void dial_on(struct syn_attempt *a)
{
	struct serve_context *context = a->judge->context;
	const struct serve_dialler *dialler = &context->plugs->dial;
	const struct serve_dial before = a->dial;
	int error;

	/* We wait for the client's next SYN. */
	if (a->facts.server_answered)
		return;
	error = dialler->step(context, &a->dial, NULL);
	if (follow_dialler(a, &before) < 0)
		error = -ENOMEM;
	if (!error) {
		if (dialler->reached)
			dialler->reached(context, &a->grant.server);
		a->reached = !a->facts.late;
		syn_attempt_on(a, a->facts.asks && multipath_is_spoken(a->dial.fd) ? SYN_SERVER_ANSWERED_MPTCP : SYN_SERVER_ANSWERED);
	} else if (error != -EINPROGRESS) {
		fail(a, error);
	} else if (a->dial.wake_ms) {
		set_timer(a);
	}
}

static void on_server(void *arg, uint32_t events)
{
	struct syn_attempt *a = arg;

	a->dial.writable = (events & EPOLLOUT) && !(events & (EPOLLERR | EPOLLHUP));
	/* A late worker gets the server's first bytes, or its end, in the same event as the answer. The session needs to know of them. */
	a->events = events & ~(uint32_t)EPOLLOUT;
	if (clock_now_ms() >= a->until_ms && syn_ends_in_time(&a->facts))
		syn_attempt_on(a, SYN_TIME_IS_OVER);
	dial_on(a);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct syn_attempt *a = arg;

	(void)fd;
	(void)what;
	if (a->dial.wake_ms && !a->facts.server_answered && clock_now_ms() < a->until_ms)
		dial_on(a);
	else
		syn_attempt_on(a, SYN_TIME_IS_OVER);
}

struct syn_attempt *syn_attempt_create(struct syn_judge *judge)
{
	struct syn_attempt *a = calloc(1, sizeof(*a) + event_get_struct_event_size());

	if (!a)
		return NULL;
	a->judge = judge;
	event_assign(attempt_event(a), judge->context->base, -1, 0, on_timer, a);
	a->dial.fd = -1;
	a->registration = POLLER_NONE;
	a->hold.native = NATIVE_NONE;
	a->hold.owner = judge;
	a->member.owner = &judge->context->owner;
	a->member.kind = &member_kind;
	return a;
}

/* Withholds the SYN, and watches the server's socket. Returns 0, or -errno with nothing withheld. */
static int withhold(struct syn_attempt *a, const struct hold_packet *packet)
{
	struct serve_context *context = a->judge->context;
	int registration = poller_add(context->poller, a->dial.fd, on_server, a);
	int error = registration < 0 ? registration : wait_for(a, syn_first_wait_ms(&a->facts, context->settings->hold_ms)) < 0 ? -ENOMEM : 0;

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
	count_unproven(a, context, true);
	return 0;
}

/* Begins to connect to the server. Returns 0 or -errno. */
static int connect_server(struct syn_attempt *a, const struct syn_packet *syn, bool data_follows)
{
	struct serve_context *context = a->judge->context;
	union sockaddr_ip client;
	const struct serve_plan plan = {
		.client = &client, .server = &a->grant.server, .mptcp = a->grant.mptcp, .data_follows = data_follows, .spares_last = true,
	};

	sockaddr_ip_set(&client, AF_UNSPEC, &syn->flow.source, syn->flow.source_port);
	return context->plugs->dial.begin(context, &plan, &a->dial);
}

/*
 * Takes the place of an earlier SYN with the same Attempt, which the client has given up, and its server's socket. From now on the kernel
 * may send the server more SYNs: one for each SYN of the client. Returns false if there is no socket to take over.
 */
static bool take_over(struct syn_attempt *a, struct syn_attempt *earlier)
{
	struct serve_context *context = a->judge->context;

	a->came_us = earlier->came_us;
	a->dial = earlier->dial;
	/* The new registration will report the earlier events again. */
	poller_remove(context->poller, earlier->registration, earlier->dial.fd);
	earlier->registration = POLLER_NONE;
	earlier->dial = (struct serve_dial){ .fd = -1 };
	syn_attempt_on(earlier, SYN_REPEATED);
	if (a->dial.fd >= 0 && context->plugs->dial.proven)
		context->plugs->dial.proven(context, &a->dial, a->facts.repeat);
	return a->dial.fd >= 0;
}

static void prepare(struct syn_attempt *a, const struct hold_packet *packet, const struct serve_verdict *verdict)
{
	a->hold.attempt = (struct hold_attempt){ packet->flow.addresses.source, verdict->attempt };
	a->facts = (struct syn_facts){
		.silent = verdict->silent,
		.blind = verdict->blind,
		.needs_mptcp = verdict->needs_mptcp,
		.asks = verdict->mptcp,
		.numbered = verdict->attempt != 0,
		.repeat = verdict->repeat,
		.routes = a->judge->context->plugs->no_request,
		.hold_ms = verdict->hold_ms,
	};
	a->hold.flow = packet->flow;
	a->unproven = !verdict->proven;
	a->grant = (struct judgement_grant){
		.settings_number = a->judge->context->settings->number, .server = verdict->server, .mptcp = verdict->mptcp,
	};
}

enum hold_verdict syn_attempt_ask(struct syn_attempt *a, const struct hold_packet *packet, const struct serve_verdict *verdict,
				  uint8_t *native)
{
	struct serve_context *context = a->judge->context;
	struct syn_attempt *earlier = NULL;
	enum syn_repeat repeat = SYN_REPEAT_NEW;
	enum hold_verdict verdict_on_syn = HOLD_PASS_UNCONFIRMED;
	int error = 0;

	prepare(a, packet, verdict);
	if (a->facts.numbered)
		earlier = (struct syn_attempt *)hold_table_find(context->withheld, &a->hold.attempt, a->judge);
	if (earlier)
		repeat = syn_decide_repeat(&a->facts, &earlier->facts,
					   sockaddr_ip_equal(&earlier->grant.server, &a->grant.server));
	if (repeat == SYN_REPEAT_DROP)
		return HOLD_DROP_REPEATED;
	if (repeat == SYN_REPEAT_NEW || !take_over(a, earlier))
		error = connect_server(a, &packet->syn, packet->syn.payload_len > verdict->length);
	if (!error && withhold(a, packet) == 0)
		return HOLD_WITHHOLD;
	/* -EMFILE keeps Multipath TCP: when we accept the client there may be a descriptor again. */
	if (error && error != -EMFILE)
		verdict_on_syn = a->facts.blind ? HOLD_REFUSE : HOLD_PASS_TCP;
	if (verdict_on_syn == HOLD_REFUSE) {
		a->refusal = context->plugs->dial.refusal(context, &a->dial, &a->grant.server, client_is_v4(a), clock_now_ms(), error);
		*native = a->refusal.native;
		if (a->refusal.passes)
			verdict_on_syn = HOLD_PASS_UNCONFIRMED;
	}
	context->plugs->dial.stop(context, &a->dial);
	return verdict_on_syn;
}
