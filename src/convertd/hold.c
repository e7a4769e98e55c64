/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold.c - withhold SYNs until their servers have answered (RFC 8803 4.2)
 *
 * The problem. A converter of user space hears of a connection when the kernel has sent the SYN+ACK,
 * so that the client has to wait for the Convert response to know whether the server was reached. On
 * MPTCP the kernel doesn't even send that response before the third ACK: with 50 ms to the
 * converter and 5 ms from there to the server, a connection takes 100 ms instead of 55.
 *
 * The way out. A netfilter queue gives us the SYNs to our addresses before TCP sees them. A SYN with
 * a whole request that is granted stays in the queue while we connect to the server. What happens
 * then:
 *
 *     the server answers        the SYN goes on, marked: its SYN+ACK is the confirmation
 *     the server can't be       the SYN goes on without MP_CAPABLE: on plain TCP the Error TLV leaves
 *     reached                   at once, behind the SYN+ACK
 *     neither, for hold-time    the SYN goes on: the response comes when it comes
 *
 * A SYN with a Convert message that isn't marked loses its timestamps on its further way (syn_rules.c),
 * and by these a client tells a SYN+ACK that confirms from others (doc/private-tlvs.md). So it is the
 * confirmation that takes something to be done: SYNs that pass us by, because we are too slow, stopped
 * or gone, confirm nothing.
 *
 * Who doesn't take the SYN+ACK for the confirmation has nothing of a late one, and gets the response
 * later: so a request that asks what we support isn't withheld.
 *
 * The kernel then makes the connection at once (Fast Open), it is accepted as any other, and
 * its session finds the server's socket, or the error, in the table (hold_table.h). All else
 * in a session is as it is without: it reads the request from the stream, and if that is another one
 * than the SYN's, the server's socket is closed again.
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
 * their third ACK (listener_set_pending()). SYNs beyond that are let go at once; their clients have to
 * complete a handshake before they are heard, and are told to wait for the response. If the kernel has
 * no connection for it after EXPECT_MS, which is so when its queue for Fast Open is full and the
 * address was forged, the server's socket is reset.
 *
 * The window of SYNs that have MP_CAPABLE and data is put right on the way: see syn_window.c.
 */
#include "config.h"

#include "convertd/hold.h"

#include "convertd/admission.h"
#include "convertd/log.h"
#include "convertd/metrics.h"
#include "convertd/syn_queue.h"
#include "convertd/syn_rules.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* A client whose data in the SYN wasn't taken needs a round trip more, and may lose a packet. */
#define EXPECT_MS 5000

/* One in so many pending requests may be a SYN that is withheld. */
#define PENDING_PART 4

/* Packets that may wait in the queue besides those that are withheld. */
#define HOLD_QUEUE_SPARE 4096

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

struct hold {
	struct event_base *base;
	struct limits *limits;
	struct metrics *metrics;
	struct hold_table *table;
	struct route *route;
	struct syn_rules *rules; /* NULL: it was never on, in the process before this one neither */
	struct syn_queue *queue; /* NULL: off */
	struct event *readable;
	uint32_t next_id; /* of the next packet, unless some were missed; 0: none has come yet */
	struct event *expire; /* pending: some that were let go aren't accepted yet */
	struct terms *terms; /* NULL: nothing is judged yet */
	int last_fd; /* the highest descriptor that there can be */
	struct listen_address listen[SETTINGS_LISTEN_MAX]; /* of the rules */
	size_t listen_count;
};

/* A SYN on its way through here, with what drives it. The event is behind the struct. */
struct holding {
	struct held_syn syn; /* first: it is what the table knows, and is freed as */
	struct hold *hold;
};
static_assert(offsetof(struct holding, syn) == 0, "freed as its first member");

static struct event *holding_event(struct holding *h)
{
	return (struct event *)(h + 1);
}

/* ----- one SYN ----- */

static void free_held(struct hold *hold, struct held_syn *held)
{
	limits_leave(hold->limits, held->account, LIMITS_PENDING, log_now_ms());
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
		  sockaddr_ip_format(&held->server, server),
		  (unsigned long long)(log_now_us() - held->came_us) / 1000, why);
}

/* What distinguishes the fates of those that go on. */
static void change(uint8_t *packet, struct syn_packet *syn, enum fate fate)
{
	if (fate == FATE_PASS || fate == FATE_PASS_CONFIRMED)
		syn_packet_mark(packet, syn);
	else if (fate == FATE_PASS_REFUSED)
		syn_packet_remove_mp_capable(packet, syn);
}

/* @fate: one of FATE_PASS_…; @counted: as what */
static void let_go(struct holding *h, enum fate fate, enum metrics_syn counted, const char *why)
{
	static const struct timeval expire = { .tv_sec = EXPIRE_SECONDS };
	struct hold *hold = h->hold;
	uint8_t *packet = h->syn.packet;
	size_t len = h->syn.packet_len;
	uint32_t id = h->syn.packet_id;
	struct syn_packet syn;

	log_let_go(&h->syn, why);
	metrics_add(hold->metrics, METRIC_SYNS_WITHHELD, (uint64_t)-1);
	metrics_add(hold->metrics, METRIC_SYNS + counted, 1);
	event_del(holding_event(h));
	if (syn_packet_parse(packet, len, &syn) == SYN_PACKET_OK)
		change(packet, &syn, fate);
	h->syn.packet = NULL;
	if (!event_pending(hold->expire, EV_TIMEOUT, NULL))
		event_add(hold->expire, &expire);
	hold_table_let_go(hold->table, &h->syn, log_now_ms());
	/* From here on it may be gone: the verdict makes the connection. */
	syn_queue_pass_changed(hold->queue, id, packet, len);
	free(packet);
}

static void on_server(evutil_socket_t fd, short what, void *arg)
{
	struct holding *h = arg;
	struct tcp_info info;
	int error = what & EV_TIMEOUT ? 0 : downstream_result(fd, &info);

	if (what & EV_TIMEOUT) {
		let_go(h, FATE_PASS_UNCONFIRMED, METRICS_SYN_LATE,
		       "the server hasn't answered in time");
	} else if (!error) {
		let_go(h, FATE_PASS_CONFIRMED, METRICS_SYN_ANSWERED, "the server has answered");
	} else if (error != -EINPROGRESS) {
		h->syn.refusal = downstream_refusal(fd, &h->syn.server, error);
		event_del(holding_event(h));
		close(fd);
		h->syn.fd = -1;
		let_go(h, FATE_PASS_REFUSED, METRICS_SYN_FAILED, strerror(-error));
	}
}

/* From @draft, the packet and its event, which isn't added yet; NULL without memory. */
static struct holding *make_holding(struct hold *hold, const uint8_t *packet, size_t len,
				    const struct held_syn *draft)
{
	struct holding *h = calloc(1, sizeof(*h) + event_get_struct_event_size());

	if (!h)
		return NULL;
	h->hold = hold;
	h->syn = *draft;
	h->syn.packet = malloc(len);
	if (!h->syn.packet || event_assign(holding_event(h), hold->base, draft->fd,
					   EV_WRITE | EV_PERSIST, on_server, h) < 0) {
		free(h->syn.packet);
		free(h);
		return NULL;
	}
	memcpy(h->syn.packet, packet, len);
	h->syn.packet_len = len;
	h->syn.came_us = log_now_us();
	return h;
}

/* Takes over the counted session and the socket of @draft, in success. Returns 0 or -errno. */
static int hold_syn(struct hold *hold, const uint8_t *packet, size_t len,
		    const struct held_syn *draft)
{
	unsigned ms = hold->terms->settings->hold_time;
	struct timeval limit = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	struct holding *h = make_holding(hold, packet, len, draft);
	int error = h && event_add(holding_event(h), &limit) == 0 ? 0 : -ENOMEM;

	if (!error)
		error = hold_table_add(hold->table, &h->syn);
	if (!error)
		metrics_add(hold->metrics, METRIC_SYNS_WITHHELD, 1);
	if (!error || !h)
		return error;
	event_del(holding_event(h));
	free(h->syn.packet);
	free(h);
	return error;
}

/* ----- what comes from the queue ----- */

/* Where the connection fails at once, it is for the session to fail again and to say so. */
static enum fate ask_server(struct hold *hold, uint32_t id, const uint8_t *packet, size_t len,
			    const struct syn_packet *syn, const struct request_decision *decision,
			    struct limits_client *account)
{
	struct held_syn draft = { .flow = syn->flow,
				  .isn = syn->isn,
				  .packet_id = id,
				  .account = account,
				  .mptcp = decision->mptcp };

	struct downstream_plan plan = {
		.server = &draft.server,
		.mptcp = decision->mptcp,
		.data_follows = syn->payload_len > decision->length,
		.congestion = hold->terms->settings->congestion_server,
	};
	union sockaddr_ip client;
	size_t taken;

	/* Its cookie is the session's business, and so is the data that goes with it. */
	if (decision->fastopen)
		return FATE_PASS_UNCONFIRMED;
	sockaddr_ip_set(&draft.server, AF_UNSPEC, &decision->address, decision->port);
	sockaddr_ip_set(&client, AF_UNSPEC, &syn->flow.source, syn->flow.source_port);
	plan.choice = sources_choose(&hold->terms->settings->sources, &client, &draft.server,
				     &plan.source);
	draft.fd = downstream_connect(&plan, &taken);
	/* The kernel hands out the lowest number that is free: the last one is for the client. */
	if (draft.fd == hold->last_fd) {
		close(draft.fd);
		return FATE_PASS_REFUSED;
	}
	if (draft.fd < 0)
		return FATE_PASS_REFUSED;
	if (hold_syn(hold, packet, len, &draft) == 0)
		return FATE_HOLD;
	close(draft.fd);
	return FATE_PASS_UNCONFIRMED;
}

/* See the top of this file. */
static bool share_is_used_up(const struct hold *hold)
{
	size_t pending = hold->terms->limits.pending.total;

	return pending &&
	       hold_table_count(hold->table) >= (pending + PENDING_PART - 1) / PENDING_PART;
}

/* What becomes of a SYN with data that isn't known yet. */
static enum fate judge(struct hold *hold, uint32_t id, const uint8_t *packet, size_t len,
		       const struct syn_packet *syn)
{
	struct request_decision decision;
	struct limits_client *account;
	enum fate fate = FATE_PASS_REFUSED;
	union sockaddr_ip client;

	request_decide(&hold->terms->features, syn->payload, syn->payload_len, &decision);
	sockaddr_ip_set(&client, AF_UNSPEC, &syn->flow.source, syn->flow.source_port);
	if (decision.valid)
		admission_check(hold->terms->settings, hold->route, &hold->terms->features, &client,
				syn->payload, &decision);
	if (decision.refused)
		return FATE_PASS_REFUSED;
	if (decision.action == REQUEST_IGNORE && hold->terms->settings->drop_foreign_syns)
		return FATE_DROP_FOREIGN;
	if (decision.action != REQUEST_CONNECT || decision.info)
		return FATE_PASS;
	if (share_is_used_up(hold))
		return FATE_PASS_UNCONFIRMED;
	account = limits_enter(hold->limits, &syn->flow.source);
	if (account && limits_client_exceeded(hold->limits, account) == OUTCOME_NONE &&
	    limits_total_exceeded(hold->limits) == OUTCOME_NONE)
		fate = ask_server(hold, id, packet, len, syn, &decision, account);
	if (account && fate != FATE_HOLD)
		limits_leave(hold->limits, account, LIMITS_PENDING, log_now_ms());
	return fate;
}

static enum fate decide(struct hold *hold, uint32_t id, uint8_t *packet, size_t len,
			struct syn_packet *syn)
{
	enum hold_known known = hold_table_look(hold->table, &syn->flow, syn->isn);

	if (known == HOLD_HELD)
		return FATE_DROP_REPEATED;
	/* Its connection may be another one than the first would have made. */
	if (known == HOLD_LET_GO)
		return FATE_PASS_UNCONFIRMED;
	if (syn->mp_join)
		return FATE_PASS;
	if (!syn->payload_len)
		return hold->terms->settings->drop_foreign_syns ? FATE_DROP_FOREIGN : FATE_PASS;
	return judge(hold, id, packet, len, syn);
}

/* Packets have consecutive numbers: those between passed, since there was no room to tell of them. */
static void count_missed(struct hold *hold, uint32_t id)
{
	if (hold->next_id)
		metrics_add(hold->metrics, METRIC_SYNS + METRICS_SYN_MISSED, id - hold->next_id);
	hold->next_id = id + 1;
}

static void on_syn(void *arg, uint32_t id, uint8_t *packet, size_t len)
{
	struct hold *hold = arg;
	enum syn_packet_status status;
	struct syn_packet syn;
	enum fate fate;

	count_missed(hold, id);
	status = syn_packet_parse(packet, len, &syn);
	if (status != SYN_PACKET_OK || !hold->terms) {
		log_debug("SYN not looked at: %s", syn_packet_status_name(status));
		metrics_add(hold->metrics, METRIC_SYNS + METRICS_SYN_UNREADABLE, 1);
		syn_queue_pass(hold->queue, id);
		return;
	}
	if (syn.mp_capable && syn.payload_len && !hold->terms->settings->no_syn_window_fix)
		syn_packet_shift_window(packet, &syn);
	fate = decide(hold, id, packet, len, &syn);
	if (fate == FATE_HOLD)
		return;
	metrics_add(hold->metrics, METRIC_SYNS + fate_metrics[fate], 1);
	if (syn.payload_len)
		change(packet, &syn, fate);
	if (fate == FATE_DROP_REPEATED || fate == FATE_DROP_FOREIGN)
		syn_queue_drop(hold->queue, id);
	else if (syn.payload_len)
		syn_queue_pass_changed(hold->queue, id, packet, len);
	else
		syn_queue_pass(hold->queue, id);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct hold *hold = arg;

	(void)fd;
	(void)what;
	syn_queue_read(hold->queue);
}

static void on_expire(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval again = { .tv_sec = EXPIRE_SECONDS };
	struct hold *hold = arg;
	uint64_t now_ms = log_now_ms();
	struct held_syn *held;

	(void)fd;
	(void)what;
	while ((held = hold_table_expire(hold->table, now_ms - EXPECT_MS)))
		free_held(hold, held);
	if (hold_table_count(hold->table))
		event_add(hold->expire, &again);
}

/* ----- on and off ----- */

/* Returns 0 or -errno with everything as it was. */
static int install(struct hold *hold, const struct listen_address *listen, size_t count, int queue)
{
	int error = count ? syn_rules_install(hold->rules, listen, count, queue) : 0;

	if (error)
		return error;
	memmove(hold->listen, listen, count * sizeof(*listen));
	hold->listen_count = count;
	return 0;
}

void hold_stop(struct hold *hold)
{
	struct held_syn *held;
	bool stopped;

	if (!hold->queue)
		return;
	/*
	 * First the rules: from then on nothing more comes. Those that stay keep clients that were told to
	 * expect confirmations from taking a SYN+ACK for one.
	 */
	stopped = install(hold, hold->listen, hold->listen_count, SYN_RULES_NO_QUEUE) == 0;
	while (syn_queue_read(hold->queue) && stopped)
		;
	while ((held = hold_table_first_waiting(hold->table)))
		let_go((struct holding *)held, FATE_PASS_UNCONFIRMED, METRICS_SYN_STOPPED,
		       "no longer withheld");
	if (hold->readable)
		event_free(hold->readable);
	syn_queue_close(hold->queue);
	hold->queue = NULL;
	hold->readable = NULL;
}

/* Owns a queue, and is told of what comes in. Returns 0 or -errno. */
static int start_queue(struct hold *hold, const struct settings *settings)
{
	int error = hold->rules ? 0 : syn_rules_create(&hold->rules, -1);

	hold->next_id = 0;
	if (!error)
		error = syn_queue_open(&hold->queue,
				       sockaddr_ip_port(&settings->listen[0].address),
				       HOLD_TABLE_MAX + HOLD_QUEUE_SPARE, on_syn, hold);
	if (error)
		return error;
	hold->readable = event_new(hold->base, syn_queue_fd(hold->queue), EV_READ | EV_PERSIST,
				   on_readable, hold);
	if (!hold->readable || event_add(hold->readable, NULL) < 0)
		return -ENOMEM;
	return 0;
}

static int start(struct hold *hold, const struct settings *settings)
{
	bool was_on = hold->queue != NULL;
	int error = was_on ? 0 : start_queue(hold, settings);

	if (!error)
		error = install(hold, settings->listen, settings->listen_count,
				syn_queue_number(hold->queue));
	if (error && !was_on)
		hold_stop(hold);
	return error;
}

static const char *remedy(int error)
{
	switch (error) {
	case -EPERM:
	case -EACCES:
		return "give convertd CAP_NET_ADMIN";
	case -ENOMEM:
		return "free some";
	case -EBUSY:
		return "free a netfilter queue (see /proc/net/netfilter/nfnetlink_queue)";
	default:
		return "use Linux 5.18 or later with CONFIG_NETFILTER_NETLINK_QUEUE and "
		       "CONFIG_NFT_QUEUE, or CONFIG_NFT_COMPAT and "
		       "CONFIG_NETFILTER_XT_TARGET_NFQUEUE";
	}
}

bool hold_apply(struct hold *hold, const struct settings *settings, struct problems *problems)
{
	static const struct place place = { .name = "hold-syn" };
	bool was_on = hold->queue != NULL;
	int error;

	if (settings->hold_syn == SETTINGS_HOLD_OFF) {
		hold_stop(hold);
		if (hold->rules)
			install(hold, settings->listen, settings->listen_count, SYN_RULES_NO_QUEUE);
		return true;
	}
	if (hold->queue && hold->listen_count == settings->listen_count &&
	    memcmp(hold->listen, settings->listen, sizeof(hold->listen)) == 0)
		return true;
	error = start(hold, settings);
	if (!error && !was_on)
		log_info("SYNs are withheld until servers have answered, for %u ms at most "
			 "(netfilter queue %u)",
			 settings->hold_time, (unsigned)syn_queue_number(hold->queue));
	if (!error)
		return true;
	if (settings->hold_syn == SETTINGS_HOLD_ON) {
		problems_add(problems, &place, "on: %s; %s", strerror(-error), remedy(error));
		return false;
	}
	hold_stop(hold);
	log_warning("SYNs are not withheld (%s): connections may take a round trip more; %s, or pass "
		    "--hold-syn off",
		    strerror(-error), remedy(error));
	return true;
}

bool hold_is_on(const struct hold *hold)
{
	return hold->queue != NULL;
}

int hold_rules_fd(const struct hold *hold)
{
	return hold->rules ? syn_rules_fd(hold->rules) : -1;
}

void hold_configure(struct hold *hold, struct terms *terms)
{
	struct rlimit files = { .rlim_cur = 0 };

	terms_unref(hold->terms);
	hold->terms = terms_ref(terms);
	getrlimit(RLIMIT_NOFILE, &files);
	hold->last_fd = files.rlim_cur > INT_MAX ? INT_MAX : (int)files.rlim_cur - 1;
}

struct hold_table *hold_get_table(struct hold *hold)
{
	return hold->table;
}

struct hold *hold_create(struct event_base *base, struct limits *limits, struct metrics *metrics,
			 int kept)
{
	struct hold *hold = calloc(1, sizeof(*hold));
	int error = ENOMEM;

	if (!hold)
		return NULL;
	hold->base = base;
	hold->limits = limits;
	hold->metrics = metrics;
	if (kept >= 0 && syn_rules_create(&hold->rules, kept) < 0)
		log_debug("the rules of the process before this one are not taken over");
	hold->table = hold_table_create();
	hold->expire = event_new(base, -1, 0, on_expire, hold);
	hold->route = route_create();
	if (!hold->route)
		error = errno;
	if (hold->table && hold->expire && hold->route)
		return hold;
	hold_destroy(hold);
	errno = error;
	return NULL;
}

void hold_destroy(struct hold *hold)
{
	struct held_syn *held;

	if (!hold)
		return;
	hold_stop(hold);
	syn_rules_destroy(hold->rules);
	while (hold->table && (held = hold_table_expire(hold->table, UINT64_MAX)))
		free_held(hold, held);
	if (hold->expire)
		event_free(hold->expire);
	terms_unref(hold->terms);
	hold_table_destroy(hold->table);
	route_destroy(hold->route);
	free(hold);
}
