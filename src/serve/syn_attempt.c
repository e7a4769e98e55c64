/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syn_attempt.c - a withheld SYN, and the attempt to connect to its server
 *
 * syn_judge.c says what becomes of a SYN when, this file carries it out: it connects, watches the server's socket, and gives
 * the packet back to the kernel, changed so that it has the effect that its verdict names.
 *
 * Blind clients (doc/private-tlvs.md) can't be told anything once there is a connection. Their SYNs are released only with
 * the mark, and all else is refused as the network does it, by another mark. While the server is silent they wait as long as
 * a direct attempt would:
 *
 *     the server has answered      released with the mark; refused by a reset once it is late
 *     the server can't be reached  refused: RST, or the ICMP message
 *     its time is over             with Multipath TCP: it is late. A Linux client sends its SYN again after a second, and
 *                                  its third ACK lacks MP_CAPABLE then. After three, so does its SYN, and a connection that
 *                                  is accepted has it leave Multipath TCP alone for an hour
 *     ASK_MS are over              the socket is closed, the SYN waits on: the kernel has sent the server all SYNs that it
 *                                  sends for a client which nothing has proved (downstream.c)
 *     SILENCE_MS are over          dropped
 *     its next repeat comes        dropped; that one is withheld, and has the server's socket
 *
 * A client that numbers its attempt makes the request again before it is too late, by a SYN of another port. So there is always a SYN
 * that isn't late, unless packets are lost; an answer that comes between two of them is kept for the next one.
 */
#include "config.h"

#include "serve/syn_attempt.h"

#include "common/hold_time.h"
#include "common/tcp.h"
#include "convertd/base/clock.h"
#include "convertd/base/log.h"
#include "convertd/base/poller.h"
#include "convertd/config/settings.h"
#include "convertd/config/effective_settings.h"
#include "hold/syn_packet.h"
#include "convertd/net/plain_servers.h"
#include "convertd/policy/demand.h"
#include "convertd/policy/far_clients.h"
#include "serve/blame.h"
#include "serve/request_context.h"
#include "hold/hold_queue.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Less than after what time a Linux client sends its SYN again. */
#define BLIND_MPTCP_MS 900

/* Less than that by the time that a SYN+ACK takes to most clients, so that those which make their request again don't miss it. */
#define BLIND_REPEATED_MS 700

/* How long the next repeat of a request is waited for once the server has answered: two of them, one of which may be lost. */
#define NEXT_REPEAT_MS 2000

/* How long the server of a blind client is asked, from its last SYN on. */
#define ASK_MS 3500

/* How long a direct attempt lasts with Linux's default of net.ipv4.tcp_syn_retries. */
#define SILENCE_MS 130000

/* Linux's default of net.ipv4.tcp_syn_retries. */
#define SYN_RETRIES_MAX 6

static_assert(offsetof(struct syn_attempt, syn) == 0, "freed as its first member");

static struct event *attempt_event(struct syn_attempt *a)
{
	return (struct event *)(a + 1);
}

static bool client_is_v4(const struct syn_attempt *a)
{
	return IN6_IS_ADDR_V4MAPPED(&a->syn.flow.source);
}

/* ----- the end of an attempt ----- */

void syn_attempt_free(struct syn_judge *judge, struct withheld_syn *syn)
{
	limits_leave(judge->context->admission.limits, &syn->member, clock_now_ms());
	if (syn->unproven)
		demand_leave(judge->context->admission.demand);
	poller_forget(judge->context->poller, syn->registration);
	withheld_syn_fini(syn);
	free(syn);
}

static void log_release(const struct withheld_syn *syn, const char *why)
{
	char client[SOCKADDR_STRLEN], server[SOCKADDR_STRLEN];
	union sockaddr_ip address;

	if (!log_enabled(LOG_LEVEL_DEBUG))
		return;
	sockaddr_ip_set(&address, AF_UNSPEC, &syn->flow.source, syn->flow.source_port);
	log_debug("SYN of %s to %s: let go after %llu ms: %s", sockaddr_ip_format(&address, client),
		  sockaddr_ip_format(&syn->grant.server, server),
		  (unsigned long long)(clock_now_us() - syn->came_us) / 1000, why);
}

void syn_attempt_change(uint8_t *packet, struct syn_packet *syn, enum syn_verdict verdict, uint8_t native)
{
	if (verdict == SYN_PASS || verdict == SYN_PASS_CONFIRMED)
		syn_packet_mark(packet, syn);
	else if (verdict == SYN_PASS_REFUSED)
		syn_packet_remove_mp_capable(packet, syn);
	else if (verdict == SYN_REFUSE)
		syn_packet_refuse(packet, syn, native);
}

/* What happens on the server's socket until the client's connection takes it. */
static void on_released(void *arg, uint32_t events)
{
	struct withheld_syn *syn = arg;

	syn->events |= events;
}

/* The server's socket is for the worker that accepts the client's connection. If there is but one, it has it registered already. */
static void leave_server(struct syn_attempt *a)
{
	const struct request_context *context = a->judge->context;

	if (a->syn.registration == POLLER_NONE)
		return;
	if (context->alone) {
		poller_hand_over(context->poller, a->syn.registration, on_released, &a->syn);
	} else {
		poller_remove(context->poller, a->syn.registration, a->syn.fd);
		a->syn.registration = POLLER_NONE;
	}
}

void syn_attempt_release(struct syn_attempt *a, enum syn_verdict verdict, enum metrics_syn counted, bool keep,
			 const char *why)
{
	static const struct timeval expire = { .tv_sec = SYN_ATTEMPT_EXPIRE_SECONDS };
	struct syn_judge *judge = a->judge;
	uint8_t *packet = a->syn.packet;
	size_t len = a->syn.packet_len;
	uint32_t id = a->syn.packet_id;
	struct syn_packet syn;

	log_release(&a->syn, why);
	metrics_add(judge->context->metrics, METRIC_SYNS_WITHHELD, (uint64_t)-1);
	metrics_add(judge->context->metrics, METRIC_SYNS + counted, 1);
	DL_DELETE(judge->attempts, a);
	event_del(attempt_event(a));
	leave_server(a);
	if (syn_packet_parse(packet, len, &syn) == SYN_PACKET_OK)
		syn_attempt_change(packet, &syn, verdict, a->syn.native);
	a->syn.packet = NULL;
	if (!event_pending(judge->expire, EV_TIMEOUT, NULL))
		event_add(judge->expire, &expire);
	withheld_release(judge->table, &a->syn, clock_now_ms());
	/* Nobody has taken it yet: there is no connection before the verdict. */
	if (!keep && withheld_take_back(judge->table, &a->syn))
		syn_attempt_free(judge, &a->syn);
	if (verdict == SYN_DROP_SILENT || verdict == SYN_DROP_REPEATED)
		syn_queue_drop(judge->queue, id);
	else
		syn_queue_pass_changed(judge->queue, id, packet, len);
	event_active(judge->flush, EV_TIMEOUT, 0);
	free(packet);
}

/* Nothing was done for the SYN that its session could use. */
static void give_up_server(struct syn_attempt *a)
{
	poller_forget(a->judge->context->poller, a->syn.registration);
	a->syn.registration = POLLER_NONE;
	withheld_syn_close(&a->syn);
}

void syn_attempt_refuse(struct syn_attempt *a, uint8_t native, const char *why)
{
	give_up_server(a);
	a->syn.native = native;
	syn_attempt_release(a, SYN_REFUSE, METRICS_SYN_REFUSED, false, why);
}

/* The server can't be reached: the session will tell the client so. */
static void release_refused(struct syn_attempt *a, struct downstream_error refusal, const char *why)
{
	if (a->blind) {
		syn_attempt_refuse(a, native_refusal(refusal.code, refusal.value, sockaddr_ip_is_v4(&a->syn.grant.server), client_is_v4(a)), why);
		return;
	}
	a->syn.refusal = refusal;
	give_up_server(a);
	syn_attempt_release(a, SYN_PASS_REFUSED, METRICS_SYN_FAILED, true, why);
}

void syn_attempt_forbid(struct syn_attempt *a, const char *why)
{
	if (a->blind) {
		syn_attempt_refuse(a, native_prohibited(client_is_v4(a)), why);
		return;
	}
	give_up_server(a);
	memset(&a->syn.grant.server, 0, sizeof(a->syn.grant.server));
	syn_attempt_release(a, SYN_PASS_REFUSED, METRICS_SYN_NOT_GRANTED, true, why);
}

void syn_attempts_stop(struct syn_judge *judge)
{
	static const char why[] = "no longer withheld";

	while (judge->attempts) {
		if (judge->attempts->blind)
			syn_attempt_refuse(judge->attempts, NATIVE_RESET, why);
		else
			syn_attempt_release(judge->attempts, SYN_PASS_UNCONFIRMED, METRICS_SYN_STOPPED, true, why);
	}
}

/* ----- limits ----- */

static struct syn_attempt *attempt_of(struct limits_member *member)
{
	return (struct syn_attempt *)((char *)member - offsetof(struct syn_attempt, syn.member));
}

/* A withheld SYN is this thread's; a released one is while nobody has taken it. */
static bool claim(struct limits_member *member)
{
	struct syn_attempt *a = attempt_of(member);

	return a->syn.withheld || withheld_take_back(a->judge->table, &a->syn);
}

static void make_room(struct limits_member *member, enum outcome reason)
{
	static const char why[] = "others need the room";
	struct syn_attempt *a = attempt_of(member);

	(void)reason;
	if (!a->syn.withheld)
		syn_attempt_free(a->judge, &a->syn);
	else if (a->blind)
		syn_attempt_refuse(a, native_prohibited(client_is_v4(a)), why);
	else
		syn_attempt_release(a, SYN_PASS_UNCONFIRMED, METRICS_SYN_STOPPED, false, why);
}

static const struct limits_member_kind member_kind = { .claim = claim, .make_room = make_room };

/* ----- an attempt ----- */

/* Has the server's answer, or anything that says more, be waited for as long as that. */
static int wait_for(struct syn_attempt *a, unsigned ms)
{
	struct timeval limit = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	return event_add(attempt_event(a), &limit);
}

/* Nobody asks the server any more, and its client is told nothing about it, as of a direct attempt. */
static void wait_without_server(struct syn_attempt *a)
{
	unsigned waited_ms = (unsigned)((clock_now_us() - a->syn.came_us) / 1000);

	give_up_server(a);
	wait_for(a, waited_ms < SILENCE_MS ? SILENCE_MS - waited_ms : 1);
}

static void refuse_late(struct syn_attempt *a)
{
	syn_attempt_refuse(a, NATIVE_RESET, "the server has answered too late");
}

/* The server has answered, and the SYN can't be let go any more: the client's next one can be. */
static void wait_for_repeat(struct syn_attempt *a)
{
	a->answered = true;
	wait_for(a, NEXT_REPEAT_MS);
}

static void on_silence(evutil_socket_t fd, short what, void *arg)
{
	struct syn_attempt *a = arg;

	(void)fd;
	(void)what;
	if (!a->blind) {
		syn_attempt_release(a, SYN_PASS_UNCONFIRMED, METRICS_SYN_LATE, true, "the server hasn't answered in time");
	} else if (a->answered) {
		refuse_late(a);
	} else if (a->mptcp && !a->late) {
		a->late = true;
		wait_for(a, ASK_MS - BLIND_MPTCP_MS);
	} else if (a->syn.fd >= 0) {
		wait_without_server(a);
	} else {
		syn_attempt_release(a, SYN_DROP_SILENT, METRICS_SYN_SILENT, false, "nobody has said anything");
	}
}

/*
 * A silent client that asks whether the server speaks Multipath TCP is told by a response if it does, and by silence if it doesn't:
 * a SYN+ACK that confirms nothing has the response follow it. A blind one can't be told.
 */
static enum syn_verdict verdict_on_answer(const struct syn_attempt *a)
{
	const bool asks = a->silent && !a->blind && a->syn.grant.mptcp;

	return asks && multipath_is_spoken(a->syn.fd) ? SYN_PASS_UNCONFIRMED : SYN_PASS_CONFIRMED;
}

static void on_server(void *arg, uint32_t events)
{
	struct syn_attempt *a = arg;
	struct withheld_syn *syn = &a->syn;
	struct tcp_info info;
	int error;

	(void)events;
	/* Its client's next SYN is waited for. */
	if (a->answered)
		return;
	error = downstream_result(syn->fd, &info);
	if (!error && a->late) {
		blame_nobody(&syn->grant.server);
		if (syn->attempt.number)
			wait_for_repeat(a);
		else
			refuse_late(a);
	} else if (!error) {
		blame_nobody(&syn->grant.server);
		syn->answered = true;
		syn_attempt_release(a, verdict_on_answer(a), METRICS_SYN_ANSWERED, true, "the server has answered");
	} else if (a->blind && error == -ETIMEDOUT) {
		wait_without_server(a);
	} else if (error != -EINPROGRESS) {
		release_refused(a, blame_refusal(a->judge->context, syn->fd, &syn->grant.server, syn->came_us / 1000, error),
				strerror(-error));
	}
}

struct syn_attempt *syn_attempt_create(struct syn_judge *judge)
{
	struct syn_attempt *a = calloc(1, sizeof(*a) + event_get_struct_event_size());

	if (!a)
		return NULL;
	a->judge = judge;
	event_assign(attempt_event(a), judge->context->base, -1, 0, on_silence, a);
	a->syn.fd = -1;
	a->syn.registration = POLLER_NONE;
	a->syn.native = NATIVE_NONE;
	a->syn.member.owner = &judge->context->owner;
	a->syn.member.kind = &member_kind;
	return a;
}

/*
 * For how long the SYN may be withheld, so that the SYN+ACK is with its client @until_ms after the SYN has left that one, by what that
 * says and by what is known of it. Without MP_CAPABLE it may be later, unless the client says so: the connection is the same, then, after
 * a SYN that was sent again.
 */
static unsigned hold_ms_of(struct syn_attempt *a, unsigned until_ms)
{
	const struct request_context *context = a->judge->context;
	unsigned hold_ms = context->terms->settings->hold_time, rtt_ms;

	if (a->most_ms < hold_ms)
		hold_ms = a->most_ms;
	if (!a->falls_back)
		return hold_ms;
	rtt_ms = far_clients_rtt_ms(context->far_clients, &a->syn.flow.source, clock_now_ms());
	a->syn.far = rtt_ms > 0;
	return far_clients_hold_ms(hold_ms, rtt_ms, until_ms);
}

static unsigned first_wait_ms(struct syn_attempt *a)
{
	unsigned hold_ms, most_ms;

	a->syn.far = false;
	if (!a->blind)
		return hold_ms_of(a, HOLD_TIME_AGAIN_MS);
	if (!a->mptcp)
		return ASK_MS;
	most_ms = a->syn.attempt.number ? BLIND_REPEATED_MS : BLIND_MPTCP_MS;
	hold_ms = hold_ms_of(a, a->syn.attempt.number ? HOLD_TIME_REPEATED_MS : HOLD_TIME_AGAIN_MS);
	return hold_ms < most_ms ? hold_ms : most_ms;
}

/* Copies the packet, and watches the server's socket. Returns 0, or -errno and nothing is withheld. */
static int withhold(struct syn_attempt *a, const uint8_t *packet, size_t len)
{
	const struct request_context *context = a->judge->context;
	int registration, error;

	a->syn.packet = malloc(len);
	if (!a->syn.packet)
		return -ENOMEM;
	memcpy(a->syn.packet, packet, len);
	a->syn.packet_len = len;
	if (!a->syn.came_us)
		a->syn.came_us = clock_now_us();
	registration = poller_add(context->poller, a->syn.fd, on_server, a);
	error = registration < 0 ? registration : wait_for(a, first_wait_ms(a)) < 0 ? -ENOMEM : 0;
	if (!error)
		error = withheld_add(a->judge->table, &a->syn);
	if (!error)
		a->syn.registration = registration;
	if (error) {
		event_del(attempt_event(a));
		if (registration >= 0)
			poller_forget(context->poller, registration);
		free(a->syn.packet);
		a->syn.packet = NULL;
		return error;
	}
	DL_APPEND(a->judge->attempts, a);
	metrics_add(context->metrics, METRIC_SYNS_WITHHELD, 1);
	if (a->syn.unproven)
		demand_enter(context->admission.demand);
	return 0;
}

/* Connects to the server as a session does. Returns a socket or -errno. */
static int connect_server(const struct syn_judge *judge, const struct syn_packet *syn,
			  const struct judgement_grant *grant, bool data_follows)
{
	const struct settings *settings = judge->context->terms->settings;
	struct downstream_plan plan = {
		.server = &grant->server,
		.route = judge->context->route,
		.congestion = settings->congestion_server,
		.mptcp = grant->mptcp && !plain_servers_has(&grant->server),
		.data_follows = data_follows,
		.last_fd = judge->context->terms->last_fd,
	};
	union sockaddr_ip client;

	sockaddr_ip_set(&client, AF_UNSPEC, &syn->flow.source, syn->flow.source_port);
	plan.choice = sources_choose(&settings->sources, &client, &grant->server, &plan.source);
	return downstream_connect(&plan);
}

/*
 * The SYN takes the place of an earlier one of the same attempt, whose client has left it; with it goes the server's socket, which the
 * kernel has ask as often as usual from now on: each SYN of the client allows for one. Returns false if there is none to be taken over.
 */
static bool take_over(struct syn_attempt *a, struct syn_attempt *earlier)
{
	if (!earlier || earlier->mptcp != a->mptcp ||
	    !sockaddr_ip_equal(&earlier->syn.grant.server, &a->syn.grant.server))
		return false;
	a->syn.came_us = earlier->syn.came_us;
	a->syn.fd = earlier->syn.fd;
	/* When it is registered again, that is told of it as well which was told before. */
	poller_remove(a->judge->context->poller, earlier->syn.registration, earlier->syn.fd);
	earlier->syn.registration = POLLER_NONE;
	earlier->syn.fd = -1;
	syn_attempt_release(earlier, SYN_DROP_REPEATED, METRICS_SYN_REPEATED, false, "its client has asked again");
	if (a->syn.fd < 0)
		return false;
	downstream_confirm(a->syn.fd, a->repeat < SYN_RETRIES_MAX ? a->repeat + 1 : SYN_RETRIES_MAX);
	return true;
}

enum syn_verdict syn_attempt_ask(struct syn_attempt *a, const uint8_t *packet, size_t len, const struct syn_packet *syn,
				 const struct request_decision *request, uint8_t *native)
{
	struct request_context *context = a->judge->context;
	struct downstream_error refusal;
	struct syn_attempt *earlier;

	a->syn.attempt = (struct withheld_attempt){ syn->flow.source, request->silence.blind ? request->silence.attempt : 0 };
	a->repeat = request->silence.repeat;
	earlier = a->syn.attempt.number ?
			  (struct syn_attempt *)withheld_find(a->judge->table, &a->syn.attempt, a->syn.member.owner) :
			  NULL;
	if (earlier && earlier->repeat >= a->repeat)
		return SYN_DROP_REPEATED;
	a->syn.came_us = 0;
	a->syn.flow = syn->flow;
	a->syn.isn = syn->isn;
	a->syn.unproven = !request->proven;
	a->silent = request->silent;
	a->blind = request->silence.blind;
	a->mptcp = request->silence.mptcp;
	a->most_ms = request->has_hold_time ? request->hold_ms : UINT_MAX;
	a->falls_back = syn->mp_capable;
	a->late = a->answered = a->syn.answered = false;
	a->syn.registration = POLLER_NONE;
	a->syn.events = 0;
	a->syn.grant = (struct judgement_grant){ .terms = context->terms->admission.number, .mptcp = request->mptcp };
	sockaddr_ip_set(&a->syn.grant.server, AF_UNSPEC, &request->address, request->port);
	*native = native_prohibited(client_is_v4(a));
	if (!take_over(a, earlier))
		a->syn.fd = connect_server(a->judge, syn, &a->syn.grant, syn->payload_len > request->length);
	/* By the time that the client is accepted there may be a descriptor again: it keeps Multipath TCP. */
	if (a->syn.fd == -EMFILE)
		return a->blind ? SYN_REFUSE : SYN_PASS_UNCONFIRMED;
	if (a->syn.fd < 0 && a->blind) {
		refusal = blame_refusal(context, -1, &a->syn.grant.server, clock_now_ms(), a->syn.fd);
		*native = native_refusal(refusal.code, refusal.value, sockaddr_ip_is_v4(&a->syn.grant.server), client_is_v4(a));
		return SYN_REFUSE;
	}
	if (a->syn.fd < 0)
		return SYN_PASS_REFUSED;
	if (withhold(a, packet, len) == 0)
		return SYN_WITHHOLD;
	withheld_syn_close(&a->syn);
	return a->blind ? SYN_REFUSE : SYN_PASS_UNCONFIRMED;
}
