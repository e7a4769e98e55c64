/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * holder.c - a worker's part of withholding SYNs: what becomes of each (hold.c says why)
 *
 * A SYN with a whole request that is granted stays in the queue while we connect to the server. What
 * happens then:
 *
 *     the server answers        the SYN goes on, marked: its SYN+ACK is the confirmation
 *     the server can't be       the SYN goes on without MP_CAPABLE: on plain TCP the Error TLV leaves
 *     reached                   at once, behind the SYN+ACK
 *     neither, for hold-time    the SYN goes on: the response comes when it comes
 *
 * Who doesn't take the SYN+ACK for the confirmation has nothing of a late one, and gets the response
 * later: so a request that asks what we support isn't withheld.
 *
 * The kernel then makes the connection at once (Fast Open), it is accepted as any other, by whichever
 * worker, and its session finds the server's socket, or the error, in the table (hold_table.h). All
 * else in a session is as it is without: it reads the request from the stream, and if that is another
 * one than the SYN's, the server's socket is closed again.
 *
 * A request that is refused needs no server, so its SYN goes on at once, without MP_CAPABLE, and
 * its session finds out again what is wrong. Everything that isn't a whole request in a SYN that
 * TCP would take goes on as it is: joins, SYNs without data, fragments, damaged packets. Among these
 * are the SYNs that Linux clients send again, which have no data: while the first one is withheld
 * they are dropped, whatever is in them, so that a client SYN makes one to the server (Section 9.3).
 *
 * Not longer than hold-time: a Linux client sends its third SYN after 3 s, without MP_CAPABLE.
 *
 * What a SYN may cost. Nothing is known of whoever sends it. Clients and destinations that aren't
 * allowed and cookies that are missing are found out before, and a SYN that is withheld is a pending
 * session of its client, so that limits hold before any packet goes to a server. Forged SYNs can't
 * take all that may be pending: a quarter may be withheld, and half wait in the kernel for
 * their third ACK (listener_set_pending()). Beyond that, one of whoever has most is let go as if it had never been
 * withheld, or the newcomer at once (limits.c); these clients have to complete a handshake before they are heard,
 * and are told to wait for the response. If the kernel has
 * no connection for it after EXPECT_MS, which is so when its queue for Fast Open is full and the
 * address was forged, the server's socket is reset.
 *
 * The window of SYNs that have MP_CAPABLE and data is put right on the way: see syn_window.c.
 */
#include "config.h"

#include "convertd/syn/holder.h"

#include "convertd/base/clock.h"
#include "convertd/session/blame.h"
#include "convertd/policy/demand.h"
#include "convertd/policy/judgement.h"
#include "convertd/syn/hold_table.h"
#include "convertd/base/log.h"
#include "convertd/base/memory.h"
#include "convertd/observe/metrics.h"
#include "convertd/net/own_look.h"
#include "convertd/policy/own.h"
#include "convertd/net/plain_servers.h"
#include "convertd/session/session.h"
#include "convertd/config/settings.h"
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

/* A client whose data in the SYN wasn't taken needs a round trip more, and may lose a packet. */
#define EXPECT_MS 5000

/* How often it is looked whether that is over. */
#define EXPIRE_SECONDS 1

/* What becomes of a SYN. */
enum fate {
	FATE_HOLD,
	FATE_DROP_REPEATED,
	FATE_DROP_FOREIGN,
	FATE_PASS, /* as it is, but for its window: it asks for nothing that is to be confirmed */
	FATE_PASS_CONFIRMED,
	FATE_PASS_UNCONFIRMED,
	FATE_PASS_REFUSED, /* an Error TLV comes behind its SYN+ACK */
	FATE_COUNT
};

/* How those are counted that aren't withheld, as which none is confirmed. */
static const enum metrics_syn fate_metrics[] = {
	[FATE_HOLD] = METRICS_SYN_COUNT,
	[FATE_DROP_REPEATED] = METRICS_SYN_REPEATED,
	[FATE_DROP_FOREIGN] = METRICS_SYN_FOREIGN,
	[FATE_PASS] = METRICS_SYN_PASSED,
	[FATE_PASS_CONFIRMED] = METRICS_SYN_COUNT,
	[FATE_PASS_UNCONFIRMED] = METRICS_SYN_UNCONFIRMED,
	[FATE_PASS_REFUSED] = METRICS_SYN_NOT_GRANTED,
};
static_assert(sizeof(fate_metrics) / sizeof(fate_metrics[0]) == FATE_COUNT, "a place for each");

struct holder {
	struct session_pool *pool; /* its base, terms and route */
	struct limits *limits;
	struct metrics *metrics;
	struct hold_table *table;
	struct syn_queue *queue; /* NULL: off */
	struct event *readable;
	struct event *flush; /* active: verdicts wait for the end of this round of the loop */
	struct event *expire; /* pending: some that were let go aren't accepted yet */
	uint32_t next_id; /* of the next packet, unless some were missed; 0: none has come yet */
	struct holding *waiting; /* the SYNs that it withholds */
	struct holding *spare;   /* for the next one; NULL: none is at hand */
};

/* A SYN on its way through here, with what drives it. The event is behind the struct. */
struct holding {
	struct held_syn syn; /* first: it is what the table knows, and is freed as */
	struct holder *holder;
	struct holding *prev, *next; /* holder->waiting */
};
static_assert(offsetof(struct holding, syn) == 0, "freed as its first member");

static struct event *holding_event(struct holding *h)
{
	return (struct event *)(h + 1);
}

/* ----- one SYN ----- */

static void free_held(struct holder *holder, struct held_syn *held)
{
	limits_leave(holder->limits, &held->member, clock_now_ms());
	if (held->unproven)
		demand_leave(holder->pool->shared->demand);
	held_syn_fini(held);
	free(held);
}

static void log_let_go(const struct held_syn *held, const char *why)
{
	char client[SOCKADDR_STRLEN], server[SOCKADDR_STRLEN];
	union sockaddr_ip address;

	if (!log_enabled(LOG_LEVEL_DEBUG))
		return;
	sockaddr_ip_set(&address, AF_UNSPEC, &held->flow.source, held->flow.source_port);
	log_debug("SYN of %s to %s: let go after %llu ms: %s", sockaddr_ip_format(&address, client),
		  sockaddr_ip_format(&held->grant.server, server),
		  (unsigned long long)(clock_now_us() - held->came_us) / 1000, why);
}

/* What distinguishes the fates of those that go on. */
static void change(uint8_t *packet, struct syn_packet *syn, enum fate fate)
{
	if (fate == FATE_PASS || fate == FATE_PASS_CONFIRMED)
		syn_packet_mark(packet, syn);
	else if (fate == FATE_PASS_REFUSED)
		syn_packet_remove_mp_capable(packet, syn);
}

/*
 * @fate: one of FATE_PASS_…; @counted: as what; @keep: its connection finds what was done for it
 * Without @keep, that is as if it had never been withheld.
 */
static void pass_on(struct holding *h, enum fate fate, enum metrics_syn counted, bool keep, const char *why)
{
	static const struct timeval expire = { .tv_sec = EXPIRE_SECONDS };
	struct holder *holder = h->holder;
	uint8_t *packet = h->syn.packet;
	size_t len = h->syn.packet_len;
	uint32_t id = h->syn.packet_id;
	struct syn_packet syn;

	log_let_go(&h->syn, why);
	metrics_add(holder->metrics, METRIC_SYNS_WITHHELD, (uint64_t)-1);
	metrics_add(holder->metrics, METRIC_SYNS + counted, 1);
	DL_DELETE(holder->waiting, h);
	event_del(holding_event(h));
	if (syn_packet_parse(packet, len, &syn) == SYN_PACKET_OK)
		change(packet, &syn, fate);
	h->syn.packet = NULL;
	if (!event_pending(holder->expire, EV_TIMEOUT, NULL))
		event_add(holder->expire, &expire);
	hold_table_let_go(holder->table, &h->syn, clock_now_ms());
	/* Nobody has taken it yet: the verdict makes the connection. */
	if (!keep && hold_table_take_back(holder->table, &h->syn))
		free_held(holder, &h->syn);
	/* From here on it may be gone. */
	syn_queue_pass_changed(holder->queue, id, packet, len);
	event_active(holder->flush, EV_TIMEOUT, 0);
	free(packet);
}

static void let_go(struct holding *h, enum fate fate, enum metrics_syn counted, const char *why)
{
	pass_on(h, fate, counted, true, why);
}

static struct holding *holding_of(struct limits_member *member)
{
	return (struct holding *)((char *)member - offsetof(struct holding, syn.member));
}

/* It is withheld, which only this thread changes, or it can still be taken. */
static bool claim(struct limits_member *member)
{
	struct holding *h = holding_of(member);

	return h->syn.waiting || hold_table_take_back(h->holder->table, &h->syn);
}

/* It has to make room, and was claimed. */
static void drop_held(struct session_pool *pool, struct limits_member *member)
{
	struct holding *h = holding_of(member);

	(void)pool;
	if (h->syn.waiting)
		pass_on(h, FATE_PASS_UNCONFIRMED, METRICS_SYN_STOPPED, false, "others need the room");
	else
		free_held(h->holder, &h->syn);
}

static struct downstream_plan plan_of(const struct holder *holder, const struct held_syn *held)
{
	const struct settings *settings = holder->pool->terms->settings;
	struct downstream_plan plan = {
		.server = &held->grant.server,
		.route = holder->pool->route,
		.congestion = settings->congestion_server,
	};
	union sockaddr_ip client;

	sockaddr_ip_set(&client, AF_UNSPEC, &held->flow.source, held->flow.source_port);
	plan.choice = sources_choose(&settings->sources, &client, &held->grant.server, &plan.source);
	return plan;
}

/* The server isn't to be had: the session will say this. */
static void let_go_as(struct holding *h, struct downstream_error refusal, const char *why)
{
	h->syn.refusal = refusal;
	event_del(holding_event(h));
	if (h->syn.fd >= 0) {
		downstream_reset(h->syn.fd);
		close(h->syn.fd);
	}
	h->syn.fd = -1;
	let_go(h, FATE_PASS_REFUSED, METRICS_SYN_FAILED, why);
}

static void let_go_refused(struct holding *h, int error)
{
	let_go_as(h, blame_refusal(h->holder->pool, h->syn.fd, &h->syn.grant.server, h->syn.came_us / 1000, error),
		  strerror(-error));
}

/* Has the connection to the server come back to this host, which no rule opens? */
static bool leads_here(const struct holding *h, const struct tcp_info *info)
{
	const struct session_pool *pool = h->holder->pool;
	const struct settings *settings = pool->terms->settings;
	struct in6_addr address = sockaddr_ip_in6(&h->syn.grant.server);

	if (!own_look_meets(pool->own_look, settings->listen, settings->listen_count, pool->route,
			    h->syn.fd, &h->syn.grant.server, info))
		return false;
	own_learn(&address, 0, clock_now_ms());
	return !admission_still_allows(&pool->admission, &h->syn.grant.server);
}

static void on_server(evutil_socket_t fd, short what, void *arg)
{
	struct holding *h = arg;
	struct tcp_info info;
	int error = what & EV_TIMEOUT ? 0 : downstream_result(fd, &info);

	if (what & EV_TIMEOUT) {
		let_go(h, FATE_PASS_UNCONFIRMED, METRICS_SYN_LATE,
		       "the server hasn't answered in time");
	} else if (!error && leads_here(h, &info)) {
		let_go_as(h, (struct downstream_error){ .code = CONVERT_ERROR_NOT_AUTHORIZED },
			  "the server is this host");
	} else if (!error) {
		blame_nobody(&h->syn.grant.server);
		let_go(h, FATE_PASS_CONFIRMED, METRICS_SYN_ANSWERED, "the server has answered");
	} else if (error != -EINPROGRESS) {
		let_go_refused(h, error);
	}
}

/* A SYN that isn't withheld yet, without anything; NULL without memory. */
static struct holding *holding_create(struct holder *holder)
{
	struct holding *h = calloc(1, sizeof(*h) + event_get_struct_event_size());

	if (!h)
		return NULL;
	h->holder = holder;
	h->syn.fd = -1;
	h->syn.member.owner = &holder->pool->owner;
	h->syn.member.claim = claim;
	return h;
}

/* Copies the packet, and watches the server's socket. Returns 0 or -errno, and all is as before. */
static int hold_syn(struct holding *h, const uint8_t *packet, size_t len)
{
	struct holder *holder = h->holder;
	unsigned ms = holder->pool->terms->settings->hold_time;
	struct timeval limit = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	int error = -ENOMEM;

	h->syn.packet = malloc(memory_size(len));
	if (!h->syn.packet)
		return -ENOMEM;
	memcpy(h->syn.packet, packet, len);
	h->syn.packet_len = len;
	h->syn.came_us = clock_now_us();
	if (event_assign(holding_event(h), holder->pool->base, h->syn.fd, EV_WRITE | EV_PERSIST,
			 on_server, h) == 0 &&
	    event_add(holding_event(h), &limit) == 0) {
		error = hold_table_add(holder->table, &h->syn);
		if (error)
			event_del(holding_event(h));
	}
	if (error) {
		free(h->syn.packet);
		return error;
	}
	DL_APPEND(holder->waiting, h);
	metrics_add(holder->metrics, METRIC_SYNS_WITHHELD, 1);
	if (h->syn.unproven)
		demand_enter(holder->pool->shared->demand);
	return 0;
}

/* @syn: of a packet with a request; @h: who is to be counted, NULL where that was done when it came */
static void judge(const struct holder *holder, enum judgement_place place, const struct syn_packet *syn,
		  struct holding *h, struct judgement *judgement)
{
	const struct judgement_case c = {
		.place = place,
		.bytes = syn->payload,
		.len = syn->payload_len,
		.client.address = syn->flow.source,
		.member = h ? &h->syn.member : NULL,
		.now_ms = clock_now_ms(),
	};

	judgement_make(&holder->pool->admission, &c, judgement);
}

/* By the terms of now. */
static bool is_still_granted(const struct holder *holder, const struct held_syn *held)
{
	struct judgement judgement;
	struct syn_packet syn;

	if (syn_packet_parse(held->packet, held->packet_len, &syn) != SYN_PACKET_OK)
		return false;
	judge(holder, JUDGEMENT_WITHHELD, &syn, NULL, &judgement);
	return judgement.request.action == REQUEST_CONNECT;
}

void holder_judge_again(struct holder *holder)
{
	struct holding *h, *next;

	DL_FOREACH_SAFE(holder->waiting, h, next) {
		if (is_still_granted(holder, &h->syn)) {
			h->syn.grant.terms = holder->pool->terms->admission.number;
			continue;
		}
		/* The session finds nothing that was done for it, and says what is wrong. */
		event_del(holding_event(h));
		held_syn_close(&h->syn);
		memset(&h->syn.grant.server, 0, sizeof(h->syn.grant.server));
		let_go(h, FATE_PASS_REFUSED, METRICS_SYN_NOT_GRANTED, "no longer granted");
	}
}

/* ----- what comes from the queue ----- */

/* Where the connection fails at once, it is for the session to fail again and to say so. */
static enum fate ask_server(struct holding *h, const uint8_t *packet, size_t len,
			    const struct syn_packet *syn, const struct request_decision *decision)
{
	struct holder *holder = h->holder;
	struct downstream_plan plan;
	size_t taken;

	h->syn.grant.terms = holder->pool->terms->admission.number;
	h->syn.flow = syn->flow;
	h->syn.isn = syn->isn;
	h->syn.grant.mptcp = decision->mptcp;
	h->syn.unproven = !decision->proven;
	sockaddr_ip_set(&h->syn.grant.server, AF_UNSPEC, &decision->address, decision->port);
	plan = plan_of(holder, &h->syn);
	plan.mptcp = decision->mptcp && !plain_servers_has(&h->syn.grant.server);
	plan.data_follows = syn->payload_len > decision->length;
	h->syn.fd = downstream_connect(&plan, &taken);
	/* The kernel hands out the lowest number that is free: the last one is for the client. */
	if (h->syn.fd == holder->pool->terms->last_fd) {
		close(h->syn.fd);
		return FATE_PASS_REFUSED;
	}
	if (h->syn.fd < 0)
		return FATE_PASS_REFUSED;
	if (hold_syn(h, packet, len) == 0)
		return FATE_HOLD;
	downstream_reset(h->syn.fd);
	close(h->syn.fd);
	return FATE_PASS_UNCONFIRMED;
}

/* What becomes of a SYN by what was judged of its request. FATE_HOLD: if its server can be asked */
static enum fate fate_of(const struct judgement *judgement, bool drop_foreign)
{
	const struct request_decision *request = &judgement->request;

	switch (request->action) {
	case REQUEST_CONNECT:
		if (judgement->withhold)
			return FATE_HOLD;
		return request->info ? FATE_PASS : FATE_PASS_UNCONFIRMED;
	case REQUEST_PROVE:
		return FATE_PASS_UNCONFIRMED;
	case REQUEST_ANSWER:
		/* MP_CAPABLE stays: with its third ACK the client may have the server after all. */
		if (request->demanded)
			return FATE_PASS_UNCONFIRMED;
		return request->refused ? FATE_PASS_REFUSED : FATE_PASS;
	case REQUEST_IGNORE:
		return drop_foreign ? FATE_DROP_FOREIGN : FATE_PASS;
	case REQUEST_WAIT:
	case REQUEST_RESET:
	case REQUEST_ACTION_COUNT:
		break;
	}
	return FATE_PASS;
}

/* The one that is at hand for the next SYN, made if need be. NULL without memory. */
static struct holding *spare(struct holder *holder)
{
	if (!holder->spare)
		holder->spare = holding_create(holder);
	return holder->spare;
}

/* What becomes of a SYN with data that isn't known yet. */
static enum fate decide_new(struct holder *holder, uint32_t id, const uint8_t *packet, size_t len,
			    const struct syn_packet *syn)
{
	struct holding *h = spare(holder);
	struct judgement judgement;
	enum fate fate;

	if (!h)
		return FATE_PASS_UNCONFIRMED;
	judge(holder, JUDGEMENT_SYN, syn, h, &judgement);
	fate = fate_of(&judgement, holder->pool->terms->settings->drop_foreign_syns);
	if (fate != FATE_HOLD)
		return fate;
	h->syn.packet_id = id;
	fate = ask_server(h, packet, len, syn, &judgement.request);
	holder->spare = NULL;
	if (fate != FATE_HOLD) {
		limits_leave(holder->limits, &h->syn.member, clock_now_ms());
		free(h);
	}
	return fate;
}

static enum fate decide(struct holder *holder, uint32_t id, uint8_t *packet, size_t len,
			struct syn_packet *syn)
{
	enum hold_known known = hold_table_look(holder->table, &syn->flow, syn->isn);

	if (known == HOLD_HELD)
		return FATE_DROP_REPEATED;
	/* Its connection may be another one than the first would have made. */
	if (known == HOLD_LET_GO)
		return FATE_PASS_UNCONFIRMED;
	if (syn->mp_join)
		return FATE_PASS;
	if (!syn->payload_len)
		return holder->pool->terms->settings->drop_foreign_syns ? FATE_DROP_FOREIGN : FATE_PASS;
	return decide_new(holder, id, packet, len, syn);
}

/* Packets have consecutive numbers: those between passed, since there was no room to tell of them. */
static void count_missed(struct holder *holder, uint32_t id)
{
	if (holder->next_id)
		metrics_add(holder->metrics, METRIC_SYNS + METRICS_SYN_MISSED, id - holder->next_id);
	holder->next_id = id + 1;
}

static void on_syn(void *arg, uint32_t id, uint8_t *packet, size_t len)
{
	struct holder *holder = arg;
	enum syn_packet_status status;
	struct syn_packet syn;
	enum fate fate;

	count_missed(holder, id);
	status = syn_packet_parse(packet, len, &syn);
	if (status != SYN_PACKET_OK || !holder->pool->terms) {
		log_debug("SYN not looked at: %s", syn_packet_status_name(status));
		metrics_add(holder->metrics, METRIC_SYNS + METRICS_SYN_UNREADABLE, 1);
		syn_queue_pass(holder->queue, id);
		return;
	}
	if (syn.mp_capable && syn.payload_len && !holder->pool->terms->settings->no_syn_window_fix)
		syn_packet_shift_window(packet, &syn);
	fate = decide(holder, id, packet, len, &syn);
	if (fate == FATE_HOLD)
		return;
	metrics_add(holder->metrics, METRIC_SYNS + fate_metrics[fate], 1);
	if (syn.payload_len)
		change(packet, &syn, fate);
	if (fate == FATE_DROP_REPEATED || fate == FATE_DROP_FOREIGN)
		syn_queue_drop(holder->queue, id);
	else if (syn.payload_len)
		syn_queue_pass_changed(holder->queue, id, packet, len);
	else
		syn_queue_pass(holder->queue, id);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct holder *holder = arg;

	(void)fd;
	(void)what;
	syn_queue_read(holder->queue);
	syn_queue_flush(holder->queue);
}

static void on_flush(evutil_socket_t fd, short what, void *arg)
{
	struct holder *holder = arg;

	(void)fd;
	(void)what;
	if (holder->queue)
		syn_queue_flush(holder->queue);
}

static void on_expire(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval again = { .tv_sec = EXPIRE_SECONDS };
	struct holder *holder = arg;
	uint64_t now_ms = clock_now_ms();
	struct held_syn *held;

	(void)fd;
	(void)what;
	while ((held = hold_table_expire(holder->table, now_ms - EXPECT_MS)))
		free_held(holder, held);
	if (hold_table_count(holder->table))
		event_add(holder->expire, &again);
}

/* ----- on and off ----- */

int holder_open(struct holder *holder, size_t index)
{
	holder->next_id = 0;
	return syn_queue_open(&holder->queue, index, on_syn, holder);
}

int holder_start(struct holder *holder)
{
	holder->readable = event_new(holder->pool->base, syn_queue_fd(holder->queue),
				     EV_READ | EV_PERSIST, on_readable, holder);
	return holder->readable && event_add(holder->readable, NULL) == 0 ? 0 : -ENOMEM;
}

void holder_stop(struct holder *holder, bool read)
{
	if (!holder->queue)
		return;
	while (read && syn_queue_read(holder->queue))
		;
	while (holder->waiting)
		let_go(holder->waiting, FATE_PASS_UNCONFIRMED, METRICS_SYN_STOPPED,
		       "no longer withheld");
	if (holder->readable)
		event_free(holder->readable);
	syn_queue_close(holder->queue);
	holder->queue = NULL;
	holder->readable = NULL;
}

struct holder *holder_create(struct session_pool *pool)
{
	struct holder *holder = calloc(1, sizeof(*holder));

	if (!holder)
		return NULL;
	holder->pool = pool;
	pool->drop_held = drop_held;
	holder->limits = pool->shared->limits;
	holder->metrics = pool->metrics;
	holder->table = pool->shared->held;
	holder->expire = event_new(pool->base, -1, 0, on_expire, holder);
	holder->flush = event_new(pool->base, -1, 0, on_flush, holder);
	if (holder->expire && holder->flush)
		return holder;
	if (holder->expire)
		event_free(holder->expire);
	if (holder->flush)
		event_free(holder->flush);
	free(holder);
	return NULL;
}

void holder_forget(struct holder *holder)
{
	struct held_syn *held;

	/* Others' as well: it is the end for all. */
	while ((held = hold_table_expire(holder->table, UINT64_MAX)))
		free_held(holder, held);
}

void holder_destroy(struct holder *holder)
{
	if (!holder)
		return;
	holder_stop(holder, false);
	holder_forget(holder);
	event_free(holder->expire);
	event_free(holder->flush);
	free(holder->spare);
	free(holder);
}
