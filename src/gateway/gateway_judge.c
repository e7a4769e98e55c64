/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway_judge.c - the judge of a gateway: the packet's own destination is the server
 *
 * netfilter applies the operator's rules first, so that connections that they route never come here (gateway_rules.c). The kernel routes a
 * SYN that the judge doesn't withhold. So only sessions of withheld SYNs exist: the judge resets any other connection to the listener,
 * which comes from this host itself.
 */
#include "config.h"

#include "gateway/gateway.h"

#include "daemon/metrics.h"
#include "hold/syn_packet.h"
#include "host/lookup.h"
#include "observe/monitor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct gateway *gateway_of(const struct serve_context *context)
{
	return context->own;
}

/* Counts the SYN. Returns NULL if it may be withheld, or why it is routed. */
static const char *find_room(struct serve_context *context, const struct judgement_case *c)
{
	bool room;

	if (limits_enter(context->limits, c->member, &c->client.address, LIMITS_WITHHELD) < 0)
		return "out of memory";
	room = limits_may_withhold(context->limits, c->member) && limits_admit(context->limits, c->member) == OUTCOME_NONE;
	if (!room)
		limits_leave(context->limits, c->member, c->now_ms);
	return room ? NULL : "the client, or all clients, have too many connections";
}

/*
 * Is the server of a SYN that is to leave by the LAN's own device a neighbour of the client, in the LAN or behind another router there? If
 * this host isn't the LAN's router to the Internet, the default route leads by that device, too.
 */
static bool is_neighbour(const struct in6_addr *server)
{
	const union sockaddr_ip anywhere = host_way_anywhere(IN6_IS_ADDR_V4MAPPED(server) ? AF_INET : AF_INET6);
	struct host_way there, beyond;
	union sockaddr_ip to = { 0 };

	sockaddr_ip_set(&to, AF_UNSPEC, server, 0);
	host_way_ask(-1, &to, NULL, 0, &there);
	host_way_ask(-1, &anywhere, NULL, 0, &beyond);
	return beyond.error || there.index != beyond.index || memcmp(&there.gateway, &beyond.gateway, sizeof(there.gateway)) != 0;
}

static const char *why_routed(struct serve_context *context, const struct judgement_case *c)
{
	if (c->mptcp)
		return "the client speaks Multipath TCP itself";
	if (c->returns && is_neighbour(&c->flow->destination))
		return "the server is in the client's network";
	return c->place == JUDGEMENT_SYN ? find_room(context, c) : NULL;
}

static void judge_syn(struct serve_context *context, const struct judgement_case *c, struct serve_verdict *verdict)
{
	const char *reason = why_routed(context, c);

	*verdict = (struct serve_verdict){ .action = REQUEST_WAIT };
	if (reason) {
		gateway_count_routed(gateway_of(context), reason);
		return;
	}
	*verdict = (struct serve_verdict){
		.action = REQUEST_CONNECT, .voice = JUDGEMENT_SILENT, .silent = true, .blind = true, .proven = true, .withhold = true,
		.hold_ms = context->settings->connect_ms,
	};
	sockaddr_ip_set(&verdict->server, AF_UNSPEC, &c->flow->destination, c->flow->destination_port);
}

static void judge(struct serve_context *context, const struct judgement_case *c, struct serve_verdict *verdict, struct serve_answer *answer)
{
	(void)answer;
	if (c->place != JUDGEMENT_STREAM) {
		judge_syn(context, c, verdict);
		return;
	}
	*verdict = (struct serve_verdict){ .action = REQUEST_RESET, .silent = true, .blind = true, .voice = JUDGEMENT_SILENT };
	if (!c->grant)
		return;
	verdict->action = REQUEST_CONNECT;
	verdict->server = c->grant->server;
	verdict->by_grant = true;
	verdict->grant = c->grant;
}

/* A gateway writes nothing of its own into a connection. */
static void refused(struct serve_context *context, uint8_t mark, const struct serve_refusal *refusal, struct serve_answer *answer)
{
	(void)context, (void)mark;
	answer->reason = refusal->reason ? refusal->reason : "the server can't be reached";
	answer->outcome = OUTCOME_SERVER_UNREACHABLE;
	answer->len = 0;
}

static int start(struct serve_context *context, void *arg)
{
	struct gateway *gateway = arg;

	context->own = gateway;
	context->log_limits = monitor_log_limits(gateway->monitor);
	context->metrics = monitor_add_metrics(gateway->monitor);
	return context->metrics ? 0 : -ENOMEM;
}

static void stop(struct serve_context *context)
{
	(void)context;
}

static void configure(struct serve_context *context, const struct serve_settings *settings)
{
	(void)context, (void)settings;
}

struct serve_plugs gateway_plugs(struct gateway *gateway)
{
	return (struct serve_plugs){
		.judge = judge,
		.refused = refused,
		.dial = gateway_dialler,
		.start = start,
		.stop = stop,
		.configure = configure,
		.arg = gateway,
		.alone = true,
		.at_once = true,
	};
}
