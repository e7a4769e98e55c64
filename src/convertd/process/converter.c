/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * converter.c - the converter's plugs for the workers of src/serve: RFC 8803's judgement and answers, and connect()
 *
 * The judge is judgement_make(). Answers are the messages of the Convert Protocol. The dialler calls connect() and needs no state of its
 * own: the server's socket is all of it.
 */
#include "config.h"

#include "convertd/process/converter.h"

#include "common/clock.h"
#include "common/kernel_socket.h"
#include "common/tcp.h"
#include "convertd/config/effective_settings.h"
#include "convertd/config/convertd_settings.h"
#include "convertd/net/downstream.h"
#include "observe/monitor.h"
#include "convertd/policy/cookies.h"
#include "convertd/policy/families.h"
#include "convertd/privilege/privilege.h"
#include "daemon/metrics.h"
#include "relay/relay.h"

#include <assert.h>
#include <errno.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static_assert(SERVE_ANSWER_MAX >= CONVERT_MESSAGE_MAX, "room for each message");

/* ----- judgement ----- */

/* Returns the outcome of a session in which we send an Error TLV with this code. */
static enum outcome outcome_of_error(uint8_t code)
{
	switch ((enum convert_error_code)code) {
	case CONVERT_ERROR_UNSUPPORTED_VERSION:
	case CONVERT_ERROR_MALFORMED_MESSAGE:
	case CONVERT_ERROR_UNSUPPORTED_MESSAGE:
		return OUTCOME_BAD_REQUEST;
	case CONVERT_ERROR_MISSING_COOKIE:
		return OUTCOME_MISSING_COOKIE;
	case CONVERT_ERROR_NOT_AUTHORIZED:
		return OUTCOME_NOT_AUTHORIZED;
	case CONVERT_ERROR_UNSUPPORTED_TCP_OPTION:
		return OUTCOME_UNSUPPORTED_OPTION;
	case CONVERT_ERROR_RESOURCE_EXCEEDED:
		return OUTCOME_RESOURCES;
	case CONVERT_ERROR_NETWORK_FAILURE:
		return OUTCOME_NETWORK_FAILURE;
	case CONVERT_ERROR_CONNECTION_RESET:
		return OUTCOME_SERVER_REFUSED;
	case CONVERT_ERROR_DESTINATION_UNREACHABLE:
		return OUTCOME_SERVER_UNREACHABLE;
	case CONVERT_ERROR_PRIVATE_FIRST: /* we send none of private use */
	case CONVERT_ERROR_PRIVATE_LAST:
		break;
	}
	return OUTCOME_NONE;
}

/* Sets outcome, code and counter of an answer by its bytes. */
static void read_answer(struct serve_answer *answer)
{
	struct convert_response response;

	answer->outcome = OUTCOME_INFORMATION;
	answer->error = RECORD_NO_ERROR;
	answer->counter = 0;
	if (convert_response_parse(answer->bytes, answer->len, &response) != CONVERT_STATUS_OK || !response.has_error)
		return;
	answer->outcome = outcome_of_error(response.error_code);
	answer->error = response.error_code;
	answer->counter = metrics_error_metric(response.error_code);
}

static void judge(struct serve_context *context, const struct judgement_case *c, struct serve_verdict *verdict, struct serve_answer *answer)
{
	const struct converter *converter = context->daemon;
	struct request_decision request;
	struct cookies_client *client = NULL;

	judgement_make(&converter->admission, c, &request);
	*verdict = request.verdict;
	if (request.has_cookie && converter->admission.rules->cookies)
		client = cookies_client(converter->admission.rules->cookies, request.cookie.data, request.cookie.len);
	if (client && c->place == JUDGEMENT_STREAM && verdict->action == REQUEST_CONNECT)
		atomic_fetch_add_explicit(&client->connections, 1, memory_order_relaxed);
	verdict->client = client ? client->name : NULL;
	if (!answer || verdict->action != REQUEST_ANSWER)
		return;
	answer->reason = verdict->reason;
	answer->len = request.answer_len;
	memcpy(answer->bytes, request.answer, request.answer_len);
	read_answer(answer);
}

/* ----- answers ----- */

static void connected(struct serve_context *context, bool responds, const struct serve_dial *dial, const struct tcp_info *info,
		      struct serve_answer *answer)
{
	const struct converter *converter = context->daemon;
	uint8_t options[DOWNSTREAM_OPTIONS_MAX];
	size_t len = downstream_options(dial->fd, info, dial->mptcp, options);

	answer->len = request_write_connected(&converter->effective->features, responds, options, len, answer->bytes);
}

static void refused(struct serve_context *context, bool responds, const struct serve_refusal *refusal, struct serve_answer *answer)
{
	const struct effective_settings *effective = ((const struct converter *)context->daemon)->effective;
	enum convert_error_code code = (enum convert_error_code)refusal->code;
	uint8_t value = refusal->value;

	if (refusal->fault == SERVE_FAULT_ROOM)
		code = CONVERT_ERROR_RESOURCE_EXCEEDED;
	else if (refusal->fault == SERVE_FAULT_OURS)
		code = CONVERT_ERROR_NOT_AUTHORIZED;
	if (code == CONVERT_ERROR_RESOURCE_EXCEEDED)
		value = (uint8_t)effective->settings->retry_delay;
	answer->len = request_write_error(&effective->features, responds, code, value, answer->bytes);
	answer->reason = convert_error_name(code);
	read_answer(answer);
}

/* ----- the dialler: connect() ----- */

/* Warns that we can't connect from that source address. We try no other one, as a client keeps its source address. */
static void tell_source(struct converter_shared *shared, const union sockaddr_ip *source)
{
	struct in6_addr address = sockaddr_ip_in6(source);
	struct prefix single = prefix_of(&address, 128);
	char text[PREFIX_STRLEN];
	unsigned suppressed;

	if (log_limit_pass(&shared->sources, &suppressed))
		log_warning("no connection from %s: its ports towards this server are used up, or "
			    "it is no longer this host's; add sources, or the address (%u more "
			    "since the last such line)",
			    prefix_format(&single, text), suppressed);
}

static int begin(struct serve_context *context, const struct serve_plan *plan, struct serve_dial *dial)
{
	const struct converter *converter = context->daemon;
	const struct convertd_settings *settings = converter->effective->settings;
	struct downstream_plan downstream = {
		.server = plan->server,
		.route = converter->route,
		.congestion = settings->congestion_server,
		.mptcp = plan->mptcp && !plain_servers_has(plan->server),
		.proven = plan->proven,
		.data_follows = plan->data_follows,
		.last_fd = plan->spares_last ? converter->effective->last_fd : 0,
	};
	int fd;

	downstream.choice = sources_choose(&settings->sources, plan->client, plan->server, &downstream.source);
	fd = downstream_connect(&downstream);
	*dial = (struct serve_dial){ .fd = fd < 0 ? -1 : fd, .mptcp = downstream.mptcp };
	if (fd == -EADDRNOTAVAIL && downstream.choice != SOURCES_ANY && !plan->spares_last)
		tell_source(converter->shared, &downstream.source);
	return fd < 0 ? fd : 0;
}

static int step(struct serve_context *context, struct serve_dial *dial, struct tcp_info *info)
{
	struct tcp_info unwanted;

	(void)context;
	if (!info && dial->writable)
		return 0;
	return downstream_result(dial->fd, info ? info : &unwanted);
}

static void proven(struct serve_context *context, struct serve_dial *dial, unsigned repeat)
{
	const int usual = ((const struct converter *)context->daemon)->effective->syn_retries;

	/* If a client repeats its request, the server gets one SYN for each of the client's. */
	downstream_repeat_syns(dial->fd, repeat && (int)repeat < usual ? (int)repeat + 1 : usual);
}

static void reached(struct serve_context *context, const union sockaddr_ip *server)
{
	(void)context;
	families_answered(server, clock_now_ms());
}

static void settle(struct serve_context *context, struct serve_dial *dial, const union sockaddr_ip *server)
{
	/* Linux may lose bytes after a fallback: fallback.c watches this connection, and the next ones to this server are TCP. */
	if (dial->mptcp && kernel_has_fallen_back(dial->fd))
		plain_servers_note(server);
	reached(context, server);
	downstream_established(dial->fd, server);
}

static void stop_dial(struct serve_context *context, struct serve_dial *dial)
{
	(void)context;
	if (dial->fd < 0)
		return;
	relay_reset(dial->fd);
	close(dial->fd);
	dial->fd = -1;
}

static struct serve_refusal refusal_of(struct serve_context *context, const struct serve_dial *dial, const union sockaddr_ip *server,
				       bool client_v4, uint64_t asked_ms, int error)
{
	/* Somebody has switched net.mptcp.enabled off since the start. */
	const bool unsupported = dial->fd < 0 && dial->mptcp && (error == -ENOPROTOOPT || error == -EPROTONOSUPPORT);
	const struct downstream_error found = unsupported ? downstream_refusal(-1, server, error) :
							    blame_refusal(context->daemon, dial->fd, server, asked_ms, error);
	struct serve_refusal refusal = {
		.fault = found.ours ? SERVE_FAULT_OURS : SERVE_FAULT_SERVER,
		.code = (uint8_t)found.code,
		.value = found.value,
		.native = request_native_refusal(found.code, found.value, sockaddr_ip_is_v4(server), client_v4),
	};

	if (unsupported) {
		refusal.code = CONVERT_ERROR_UNSUPPORTED_TCP_OPTION;
		refusal.value = TCP_KIND_MPTCP;
		refusal.reason = "MPTCP is off on this host";
	}
	return refusal;
}

static bool silence(struct serve_context *context, const union sockaddr_ip *server, uint64_t asked_ms)
{
	return blame_silence(context->daemon, server, asked_ms);
}

/* ----- workers ----- */

static void unproven(struct serve_context *context, bool more)
{
	struct demand *demand = ((const struct converter *)context->daemon)->shared->demand;

	if (more)
		demand_enter(demand);
	else
		demand_leave(demand);
}

static void no_way_here(struct serve_context *context, const union sockaddr_ip *server)
{
	blame_again(context->daemon, server);
}

static void full(struct serve_context *context)
{
	shortage_of_connections(((const struct converter *)context->daemon)->effective);
}

static enum route_kind find_route(void *route, const struct in6_addr *address)
{
	return route_find(route, address);
}

static int start(struct serve_context *context, void *arg)
{
	struct converter *converter = calloc(1, sizeof(*converter));

	if (!converter)
		return -ENOMEM;
	*converter = (struct converter){ .context = context, .shared = arg };
	context->daemon = converter;
	context->metrics = monitor_add_metrics(converter->shared->monitor);
	context->log_limits = monitor_log_limits(converter->shared->monitor);
	converter->route = route_create();
	if (!converter->route)
		return -errno;
	if (!context->metrics)
		return -ENOMEM;
	converter->admission = (struct admission){
		.demand = converter->shared->demand,
		.limits = context->limits,
		.find_route = find_route,
		.route = converter->route,
	};
	return blame_init(converter);
}

static void stop(struct serve_context *context)
{
	struct converter *converter = context->daemon;

	if (!converter)
		return;
	blame_fini(converter);
	route_destroy(converter->route);
	free(converter);
	context->daemon = NULL;
}

static void configure(struct serve_context *context, const struct serve_settings *settings)
{
	struct converter *converter = context->daemon;

	converter->effective = effective_settings_of(settings);
	converter->admission.rules = &converter->effective->admission;
}

struct serve_plugs converter_plugs(struct converter_shared *shared)
{
	return (struct serve_plugs){
		.judge = judge,
		.connected = connected,
		.refused = refused,
		.unproven = unproven,
		.no_way_here = no_way_here,
		.full = full,
		.outlived = survivor_is_there,
		.dial = { begin, step, proven, reached, settle, stop_dial, refusal_of, silence },
		.start = start,
		.stop = stop,
		.configure = configure,
		.arg = shared,
	};
}
