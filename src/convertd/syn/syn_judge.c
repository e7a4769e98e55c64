/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syn_judge.c - one worker's part of withholding SYNs: judges each SYN, and asks its server
 *
 * The problem, and the way out, are described in withholding.c: a SYN whose request is granted stays in a netfilter
 * queue while the converter connects to the server. This file reads one worker's queue, judges each SYN by the same
 * function as a stream (policy/judgement.h), connects, and gives the kernel its verdict on the packet.
 *
 * What becomes of a withheld SYN:
 *
 *     event                            the SYN is released …          SYN+ACK
 *     the server has answered          with a mark                    confirms that
 *     the server can't be reached      without MP_CAPABLE             confirms nothing; the Error TLV comes at once, as
 *                                                                     plain TCP sends it before the third ACK
 *     --hold-time is over              as it is                       confirms nothing; the response comes when it comes
 *     the limits want its room         as it is                       the same; its connection is judged like any other
 *     new terms don't grant it         without MP_CAPABLE             the same as for a server that can't be reached
 *     withholding ends                 as it is                       as when the time is over
 *
 * The kernel then makes the connection at once (Fast Open), some worker accepts it, and its session takes the server's
 * socket, or the error, out of the table (withheld.h). The session reads its request from the stream all the same; if
 * that is another one than the SYN's, it closes the server's socket.
 *
 * A SYN that isn't withheld goes on at once: one whose request is refused without MP_CAPABLE, and its session finds
 * out again what is wrong; everything else that isn't a whole request as it is: joins, SYNs without data, fragments,
 * damaged packets. Linux clients send SYNs again without data: these are dropped while the first one is withheld,
 * whatever is in them, so that a client's SYN makes one SYN to the server (Section 9.3).
 *
 * Limits. A SYN isn't withheld for longer than --hold-time, as a Linux client sends its third SYN after 3 s without
 * MP_CAPABLE. Nothing is known of whoever sends a SYN. Clients and servers that aren't allowed, and missing
 * cookies, are found out before the server is asked, and a withheld SYN counts as a pending session of its client. Forged
 * SYNs can't take all that may be pending: a quarter may be withheld, and half wait in the kernel for their third ACK
 * (listener_set_pending()). Beyond that, limits.h chooses a SYN that is released as if it had never been withheld, or
 * the newcomer itself isn't withheld. Such clients have to complete a handshake before they are heard, and the
 * timestamps of the SYN+ACK tell them to wait for the response.
 *
 * Clean-up. The kernel makes no connection of a released SYN if its queue for Fast Open is full and the address was
 * forged. After EXPECT_MS the server's socket is reset.
 *
 * The window of a SYN that has MP_CAPABLE and data is corrected on the way: see syn_window.c.
 */
#include "config.h"

#include "convertd/syn/syn_judge.h"

#include "convertd/base/clock.h"
#include "convertd/base/log.h"
#include "convertd/config/settings.h"
#include "convertd/config/terms.h"
#include "convertd/net/own_look.h"
#include "convertd/net/plain_servers.h"
#include "convertd/observe/metrics.h"
#include "convertd/policy/demand.h"
#include "convertd/policy/judgement.h"
#include "convertd/policy/own.h"
#include "convertd/session/blame.h"
#include "convertd/session/request_context.h"
#include "convertd/session/withheld.h"
#include "convertd/syn/syn_queue.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

/* How long a released SYN's connection is waited for: without its data it takes a round trip more, and may lose a packet. */
#define EXPECT_MS 5000

/* How often released SYNs are searched for those whose time is over. */
#define EXPIRE_SECONDS 1

/* What becomes of a SYN. */
enum syn_verdict {
	SYN_WITHHOLD,
	SYN_DROP_REPEATED,
	SYN_DROP_FOREIGN,
	SYN_PASS,             /* as it is: it asks for nothing that a SYN+ACK could confirm */
	SYN_PASS_CONFIRMED,   /* with a mark: its SYN+ACK confirms */
	SYN_PASS_UNCONFIRMED, /* as it is, and its SYN+ACK confirms nothing */
	SYN_PASS_REFUSED,     /* without MP_CAPABLE: an Error TLV comes behind its SYN+ACK */
	SYN_VERDICT_COUNT
};

/* How SYNs are counted that aren't withheld; METRICS_SYN_COUNT stands for verdicts that these don't get. */
static const enum metrics_syn verdict_metrics[] = {
	[SYN_WITHHOLD] = METRICS_SYN_COUNT,
	[SYN_DROP_REPEATED] = METRICS_SYN_REPEATED,
	[SYN_DROP_FOREIGN] = METRICS_SYN_FOREIGN,
	[SYN_PASS] = METRICS_SYN_PASSED,
	[SYN_PASS_CONFIRMED] = METRICS_SYN_COUNT,
	[SYN_PASS_UNCONFIRMED] = METRICS_SYN_UNCONFIRMED,
	[SYN_PASS_REFUSED] = METRICS_SYN_NOT_GRANTED,
};
static_assert(sizeof(verdict_metrics) / sizeof(verdict_metrics[0]) == SYN_VERDICT_COUNT, "each verdict is counted");

struct syn_judge {
	struct request_context *context;
	struct withheld_table *table;
	struct syn_queue *queue; /* NULL: off */
	struct event *readable;
	struct event *flush;  /* active: verdicts wait for the end of this round of the loop */
	struct event *expire; /* pending: connections of released SYNs are waited for */
	uint32_t next_id;     /* what the next packet's number is unless some were missed; 0: none has come yet */
	struct syn_attempt *attempts; /* the SYNs that this worker withholds */
	struct syn_attempt *spare;    /* for the next SYN; NULL: none is at hand */
};

/* A withheld SYN, and the attempt to connect to its server. The struct event follows the struct in memory. */
struct syn_attempt {
	struct withheld_syn syn; /* first: others know and free the attempt as this */
	struct syn_judge *judge;
	struct syn_attempt *prev, *next; /* judge->attempts */
};
static_assert(offsetof(struct syn_attempt, syn) == 0, "freed as its first member");

static struct event *attempt_event(struct syn_attempt *a)
{
	return (struct event *)(a + 1);
}

/* ----- the end of an attempt ----- */

static void free_syn(struct syn_judge *judge, struct withheld_syn *syn)
{
	limits_leave(judge->context->admission.limits, &syn->member, clock_now_ms());
	if (syn->unproven)
		demand_leave(judge->context->admission.demand);
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

/* Changes the packet so that it has the effect that the verdict names. */
static void change_packet(uint8_t *packet, struct syn_packet *syn, enum syn_verdict verdict)
{
	if (verdict == SYN_PASS || verdict == SYN_PASS_CONFIRMED)
		syn_packet_mark(packet, syn);
	else if (verdict == SYN_PASS_REFUSED)
		syn_packet_remove_mp_capable(packet, syn);
}

/*
 * Releases a withheld SYN.
 * @verdict: one of SYN_PASS_…
 * @counted: how the metrics count it
 * @keep: its connection finds what was done for it; else that is undone, as if it had never been withheld
 * The attempt may be gone afterwards, as another worker may have accepted the connection already.
 */
static void release(struct syn_attempt *a, enum syn_verdict verdict, enum metrics_syn counted, bool keep,
		    const char *why)
{
	static const struct timeval expire = { .tv_sec = EXPIRE_SECONDS };
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
	if (syn_packet_parse(packet, len, &syn) == SYN_PACKET_OK)
		change_packet(packet, &syn, verdict);
	a->syn.packet = NULL;
	if (!event_pending(judge->expire, EV_TIMEOUT, NULL))
		event_add(judge->expire, &expire);
	withheld_release(judge->table, &a->syn, clock_now_ms());
	/* Nobody has taken it yet: there is no connection before the verdict. */
	if (!keep && withheld_take_back(judge->table, &a->syn))
		free_syn(judge, &a->syn);
	syn_queue_pass_changed(judge->queue, id, packet, len);
	event_active(judge->flush, EV_TIMEOUT, 0);
	free(packet);
}

/* The server can't be reached: the session will tell the client so. */
static void release_refused(struct syn_attempt *a, struct downstream_error refusal, const char *why)
{
	a->syn.refusal = refusal;
	event_del(attempt_event(a));
	withheld_syn_close(&a->syn);
	release(a, SYN_PASS_REFUSED, METRICS_SYN_FAILED, true, why);
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
	struct syn_attempt *a = attempt_of(member);

	(void)reason;
	if (a->syn.withheld)
		release(a, SYN_PASS_UNCONFIRMED, METRICS_SYN_STOPPED, false, "others need the room");
	else
		free_syn(a->judge, &a->syn);
}

static const struct limits_member_kind member_kind = { .claim = claim, .make_room = make_room };

/* ----- an attempt ----- */

/* Has the connection to the server come back to this host, which no rule opens? */
static bool leads_here(const struct syn_attempt *a, const struct tcp_info *info)
{
	const struct request_context *context = a->judge->context;
	const struct settings *settings = context->terms->settings;
	struct in6_addr address = sockaddr_ip_in6(&a->syn.grant.server);

	if (!own_look_meets(context->own_look, settings->listen, settings->listen_count, context->route, a->syn.fd,
			    &a->syn.grant.server, info))
		return false;
	own_learn(&address, 0, clock_now_ms());
	return !admission_still_allows(&context->admission, &a->syn.grant.server);
}

static void on_server(evutil_socket_t fd, short what, void *arg)
{
	struct syn_attempt *a = arg;
	const struct withheld_syn *syn = &a->syn;
	struct tcp_info info;
	int error = what & EV_TIMEOUT ? 0 : downstream_result(fd, &info);

	if (what & EV_TIMEOUT) {
		release(a, SYN_PASS_UNCONFIRMED, METRICS_SYN_LATE, true, "the server hasn't answered in time");
	} else if (!error && leads_here(a, &info)) {
		release_refused(a, (struct downstream_error){ .code = CONVERT_ERROR_NOT_AUTHORIZED },
				"the server is this host");
	} else if (!error) {
		blame_nobody(&syn->grant.server);
		release(a, SYN_PASS_CONFIRMED, METRICS_SYN_ANSWERED, true, "the server has answered");
	} else if (error != -EINPROGRESS) {
		release_refused(a, blame_refusal(a->judge->context, syn->fd, &syn->grant.server, syn->came_us / 1000, error),
				strerror(-error));
	}
}

/* An attempt without a SYN and a socket; NULL without memory. */
static struct syn_attempt *attempt_create(struct syn_judge *judge)
{
	struct syn_attempt *a = calloc(1, sizeof(*a) + event_get_struct_event_size());

	if (!a)
		return NULL;
	a->judge = judge;
	a->syn.fd = -1;
	a->syn.member.owner = &judge->context->owner;
	a->syn.member.kind = &member_kind;
	return a;
}

/* Copies the packet, and watches the server's socket. Returns 0, or -errno and nothing is withheld. */
static int withhold(struct syn_attempt *a, const uint8_t *packet, size_t len)
{
	const struct request_context *context = a->judge->context;
	unsigned ms = context->terms->settings->hold_time;
	struct timeval limit = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	int error = -ENOMEM;

	a->syn.packet = malloc(len);
	if (!a->syn.packet)
		return -ENOMEM;
	memcpy(a->syn.packet, packet, len);
	a->syn.packet_len = len;
	a->syn.came_us = clock_now_us();
	if (event_assign(attempt_event(a), context->base, a->syn.fd, EV_WRITE | EV_PERSIST, on_server, a) == 0 &&
	    event_add(attempt_event(a), &limit) == 0) {
		error = withheld_add(a->judge->table, &a->syn);
		if (error)
			event_del(attempt_event(a));
	}
	if (error) {
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

/* The server is asked as a session asks it, but without data and Fast Open. Returns a socket or -errno. */
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
	size_t taken;

	sockaddr_ip_set(&client, AF_UNSPEC, &syn->flow.source, syn->flow.source_port);
	plan.choice = sources_choose(&settings->sources, &client, &grant->server, &plan.source);
	return downstream_connect(&plan, &taken);
}

/*
 * Asks the server, and withholds the SYN. Where the connection fails at once, the session makes it again and tells the
 * client what is wrong. Unless SYN_WITHHOLD is returned, the attempt is as if nothing had happened.
 */
static enum syn_verdict ask_server(struct syn_attempt *a, const uint8_t *packet, size_t len,
				   const struct syn_packet *syn, const struct request_decision *request)
{
	const struct terms *terms = a->judge->context->terms;

	a->syn.flow = syn->flow;
	a->syn.isn = syn->isn;
	a->syn.unproven = !request->proven;
	a->syn.grant = (struct judgement_grant){ .terms = terms->admission.number, .mptcp = request->mptcp };
	sockaddr_ip_set(&a->syn.grant.server, AF_UNSPEC, &request->address, request->port);
	a->syn.fd = connect_server(a->judge, syn, &a->syn.grant, syn->payload_len > request->length);
	/* By the time that the client is accepted there may be a descriptor again: it keeps Multipath TCP. */
	if (a->syn.fd == -EMFILE)
		return SYN_PASS_UNCONFIRMED;
	if (a->syn.fd < 0)
		return SYN_PASS_REFUSED;
	if (withhold(a, packet, len) == 0)
		return SYN_WITHHOLD;
	withheld_syn_close(&a->syn);
	return SYN_PASS_UNCONFIRMED;
}

/* ----- judgement ----- */

/* @a: the attempt to be counted by the limits, or NULL where it is counted already */
static void judge_request(const struct syn_judge *judge, enum judgement_place place, const struct syn_packet *syn,
			  struct syn_attempt *a, struct judgement *judgement)
{
	const struct judgement_case c = {
		.place = place,
		.bytes = syn->payload,
		.len = syn->payload_len,
		.client.address = syn->flow.source,
		.member = a ? &a->syn.member : NULL,
		.now_ms = clock_now_ms(),
	};

	judgement_make(&judge->context->admission, &c, judgement);
}

/* Does the present terms' judgement of a withheld SYN grant its request? */
static bool is_still_granted(const struct syn_judge *judge, const struct withheld_syn *withheld)
{
	struct judgement judgement;
	struct syn_packet syn;

	if (syn_packet_parse(withheld->packet, withheld->packet_len, &syn) != SYN_PACKET_OK)
		return false;
	judge_request(judge, JUDGEMENT_WITHHELD, &syn, NULL, &judgement);
	return judgement.request.action == REQUEST_CONNECT;
}

void syn_judge_again(struct syn_judge *judge)
{
	struct syn_attempt *a, *next;

	DL_FOREACH_SAFE(judge->attempts, a, next) {
		if (is_still_granted(judge, &a->syn)) {
			a->syn.grant.terms = judge->context->terms->admission.number;
			continue;
		}
		/* The session finds nothing that was done for it, and says what is wrong. */
		event_del(attempt_event(a));
		withheld_syn_close(&a->syn);
		memset(&a->syn.grant.server, 0, sizeof(a->syn.grant.server));
		release(a, SYN_PASS_REFUSED, METRICS_SYN_NOT_GRANTED, true, "no longer granted");
	}
}

/* What the judgement of its request means for a SYN. SYN_WITHHOLD: if its server can be asked */
static enum syn_verdict verdict_of(const struct judgement *judgement, bool drop_foreign)
{
	const struct request_decision *request = &judgement->request;

	switch (request->action) {
	case REQUEST_CONNECT:
		if (judgement->withhold)
			return SYN_WITHHOLD;
		return request->info ? SYN_PASS : SYN_PASS_UNCONFIRMED;
	case REQUEST_PROVE:
		return SYN_PASS_UNCONFIRMED;
	case REQUEST_ANSWER:
		/* With a demanded cookie, MP_CAPABLE stays: after its third ACK the client may have the server after all. */
		if (request->demanded)
			return SYN_PASS_UNCONFIRMED;
		return request->refused ? SYN_PASS_REFUSED : SYN_PASS;
	case REQUEST_IGNORE:
		return drop_foreign ? SYN_DROP_FOREIGN : SYN_PASS;
	case REQUEST_WAIT:
	case REQUEST_RESET:
	case REQUEST_ACTION_COUNT:
		break;
	}
	return SYN_PASS;
}

/* Judges the request of a SYN that has not been seen before. */
static enum syn_verdict judge_new(struct syn_judge *judge, uint32_t id, const uint8_t *packet, size_t len,
				  const struct syn_packet *syn)
{
	struct syn_attempt *a = judge->spare ? judge->spare : attempt_create(judge);
	struct judgement judgement;
	enum syn_verdict verdict;

	judge->spare = a;
	if (!a)
		return SYN_PASS_UNCONFIRMED;
	judge_request(judge, JUDGEMENT_SYN, syn, a, &judgement);
	verdict = verdict_of(&judgement, judge->context->terms->settings->drop_foreign_syns);
	if (verdict != SYN_WITHHOLD)
		return verdict;
	a->syn.packet_id = id;
	verdict = ask_server(a, packet, len, syn, &judgement.request);
	if (verdict == SYN_WITHHOLD)
		judge->spare = NULL;
	else
		limits_leave(judge->context->admission.limits, &a->syn.member, clock_now_ms());
	return verdict;
}

static enum syn_verdict judge_syn(struct syn_judge *judge, uint32_t id, const uint8_t *packet, size_t len,
				  const struct syn_packet *syn)
{
	enum withheld_known known = withheld_look(judge->table, &syn->flow, syn->isn);

	if (known == WITHHELD_NOW)
		return SYN_DROP_REPEATED;
	/* Its connection may be another one than the first SYN would have made. */
	if (known == WITHHELD_BEFORE)
		return SYN_PASS_UNCONFIRMED;
	if (syn->mp_join)
		return SYN_PASS;
	if (!syn->payload_len)
		return judge->context->terms->settings->drop_foreign_syns ? SYN_DROP_FOREIGN : SYN_PASS;
	return judge_new(judge, id, packet, len, syn);
}

/* ----- the queue ----- */

/* Packets have consecutive numbers. Those that are missing went on unseen, as there was no room in the queue's socket. */
static void count_missed(struct syn_judge *judge, uint32_t id)
{
	if (judge->next_id)
		metrics_add(judge->context->metrics, METRIC_SYNS + METRICS_SYN_MISSED, id - judge->next_id);
	judge->next_id = id + 1;
}

static void on_syn(void *arg, uint32_t id, uint8_t *packet, size_t len)
{
	struct syn_judge *judge = arg;
	const struct request_context *context = judge->context;
	enum syn_packet_status status;
	enum syn_verdict verdict;
	struct syn_packet syn;

	count_missed(judge, id);
	status = syn_packet_parse(packet, len, &syn);
	if (status != SYN_PACKET_OK || !context->terms) {
		log_debug("SYN not looked at: %s", syn_packet_status_name(status));
		metrics_add(context->metrics, METRIC_SYNS + METRICS_SYN_UNREADABLE, 1);
		syn_queue_pass(judge->queue, id);
		return;
	}
	if (syn.mp_capable && syn.payload_len && !context->terms->settings->no_syn_window_fix)
		syn_packet_shift_window(packet, &syn);
	verdict = judge_syn(judge, id, packet, len, &syn);
	if (verdict == SYN_WITHHOLD)
		return;
	metrics_add(context->metrics, METRIC_SYNS + verdict_metrics[verdict], 1);
	if (syn.payload_len)
		change_packet(packet, &syn, verdict);
	if (verdict == SYN_DROP_REPEATED || verdict == SYN_DROP_FOREIGN)
		syn_queue_drop(judge->queue, id);
	else if (syn.payload_len)
		syn_queue_pass_changed(judge->queue, id, packet, len);
	else
		syn_queue_pass(judge->queue, id);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct syn_judge *judge = arg;

	(void)fd;
	(void)what;
	syn_queue_read(judge->queue);
	syn_queue_flush(judge->queue);
}

static void on_flush(evutil_socket_t fd, short what, void *arg)
{
	struct syn_judge *judge = arg;

	(void)fd;
	(void)what;
	if (judge->queue)
		syn_queue_flush(judge->queue);
}

/* Frees the released SYNs whose connections have not come by @before_ms. */
static void expire(struct syn_judge *judge, uint64_t before_ms)
{
	struct withheld_syn *syn;

	while ((syn = withheld_expire(judge->table, before_ms)))
		free_syn(judge, syn);
}

static void on_expire(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval again = { .tv_sec = EXPIRE_SECONDS };
	struct syn_judge *judge = arg;

	(void)fd;
	(void)what;
	expire(judge, clock_now_ms() - EXPECT_MS);
	if (withheld_count(judge->table))
		event_add(judge->expire, &again);
}

/* ----- on and off ----- */

int syn_judge_open(struct syn_judge *judge, size_t index)
{
	judge->next_id = 0;
	return syn_queue_open(&judge->queue, index, on_syn, judge);
}

int syn_judge_start(struct syn_judge *judge)
{
	judge->readable = event_new(judge->context->base, syn_queue_fd(judge->queue), EV_READ | EV_PERSIST,
				    on_readable, judge);
	return judge->readable && event_add(judge->readable, NULL) == 0 ? 0 : -ENOMEM;
}

void syn_judge_stop(struct syn_judge *judge, bool read)
{
	if (!judge->queue)
		return;
	while (read && syn_queue_read(judge->queue))
		;
	while (judge->attempts)
		release(judge->attempts, SYN_PASS_UNCONFIRMED, METRICS_SYN_STOPPED, true, "no longer withheld");
	if (judge->readable)
		event_free(judge->readable);
	syn_queue_close(judge->queue);
	judge->queue = NULL;
	judge->readable = NULL;
}

struct syn_judge *syn_judge_create(struct request_context *context)
{
	struct syn_judge *judge = calloc(1, sizeof(*judge));

	if (!judge)
		return NULL;
	judge->context = context;
	judge->table = context->withheld;
	judge->expire = event_new(context->base, -1, 0, on_expire, judge);
	judge->flush = event_new(context->base, -1, 0, on_flush, judge);
	if (judge->expire && judge->flush)
		return judge;
	if (judge->expire)
		event_free(judge->expire);
	if (judge->flush)
		event_free(judge->flush);
	free(judge);
	return NULL;
}

void syn_judge_forget(struct syn_judge *judge)
{
	expire(judge, UINT64_MAX);
}

void syn_judge_destroy(struct syn_judge *judge)
{
	if (!judge)
		return;
	syn_judge_stop(judge, false);
	syn_judge_forget(judge);
	event_free(judge->expire);
	event_free(judge->flush);
	free(judge->spare);
	free(judge);
}
