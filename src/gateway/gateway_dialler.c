/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway_dialler.c - connects to a server through a converter, by the engine
 *
 * Two dials belong to a connection: the worker's (struct serve_dial, serve/plugs.h), whose state is a struct gateway_connection, and in
 * that the engine's (struct dial). show() copies the engine's socket and time to the worker's.
 *
 * A connection that the engine can't convert fails here with ROUTED. Its SYN goes on to where it was sent, and the client doesn't notice
 * that there is a gateway. Connections that --require names are refused on that way (gateway_rules.c).
 */
#include "config.h"

#include "gateway/gateway.h"

#include "common/clock.h"
#include "common/netlink.h"
#include "daemon/log.h"
#include "hold/syn_packet.h"
#include "host/networks.h"

#include <errno.h>
#include <netinet/ip_icmp.h>
#include <stdlib.h>
#include <sys/eventfd.h>

/* The connection is to be routed. No server's failure has this errno. */
#define ROUTED ENOLINK

/* If so many clients in a row fail to complete their connections, we blame this host's firewall. */
#define UNFINISHED_MANY 8

/* ----- routed connections ----- */

void gateway_count_routed(struct gateway *gateway, const char *reason)
{
	for (size_t i = 0; i < GATEWAY_REASONS_MAX; i++) {
		const char *text = NULL;

		if (atomic_compare_exchange_strong(&gateway->routed[i].text, &text, reason) || text == reason) {
			atomic_fetch_add_explicit(&gateway->routed[i].count, 1, memory_order_relaxed);
			return;
		}
	}
}

/* ----- converters' names ----- */

static void resolve_name(struct gateway *gateway)
{
	static struct settings settings; /* a copy: a lookup may last longer than the settings */
	/* Any destination that isn't a converter: the choice only has the name resolved. */
	const union sockaddr_ip nowhere = { .in = { .sin_family = AF_INET } };
	const struct converters_query query = { .destination = &nowhere, .family = AF_INET, .any_family = true, .may_resolve = true };
	enum policy_verdict verdict = POLICY_CONVERT;
	union sockaddr_ip addr;
	const char *reason;

	pthread_mutex_lock(&gateway->copying);
	settings = atomic_load(&gateway->settings)->client;
	pthread_mutex_unlock(&gateway->copying);
	converters_choose(&settings, &query, &addr, &verdict, &reason);
}

static void *resolve_names(void *arg)
{
	struct gateway *gateway = arg;
	eventfd_t ignored;

	for (;;) {
		if (eventfd_read(gateway->resolver, &ignored) == 0)
			resolve_name(gateway);
	}
	return NULL;
}

int gateway_resolver_start(struct gateway *gateway)
{
	pthread_t thread;
	int error;

	gateway->resolver = eventfd(0, EFD_CLOEXEC);
	if (gateway->resolver < 0)
		return -errno;
	resolve_name(gateway);
	error = pthread_create(&thread, NULL, resolve_names, gateway);
	if (!error)
		pthread_detach(thread);
	return -error;
}

/* ----- one connection ----- */

static void forget_connection(struct serve_dial *dial)
{
	struct gateway_connection *connection = dial->state;

	dial->state = NULL;
	dial->wake_ms = 0;
	if (!connection)
		return;
	dial_stop(&connection->dial);
	free(connection);
}

/* Notes why the connection fails. Returns -error. */
static int fail(struct gateway_connection *connection, int error, const char *reason)
{
	connection->reason = reason;
	return -error;
}

/* Translates the engine's state: 0 once the server has answered, -EINPROGRESS, or -errno. */
static int result(struct gateway *gateway, struct gateway_connection *connection, enum dial_state state, struct dial_end *end)
{
	if (state == DIAL_RESOLVING) {
		eventfd_write(gateway->resolver, 1);
		end->reason = "the converter's name isn't resolved yet";
		end->verdict = POLICY_CONVERT;
		state = DIAL_REFUSED;
	}
	if (state == DIAL_REFUSED)
		state = dial_refused(&connection->dial, end);
	switch (state) {
	case DIAL_REACHED:
		connection->reached = true;
		return 0;
	case DIAL_FAILED:
		return fail(connection, end->error != ROUTED ? end->error : EIO, end->reason);
	case DIAL_DIRECT:
	case DIAL_BLIND:
		return fail(connection, ROUTED, end->error == ELOOP ? "the converter is on this host, as the client is" : end->reason);
	case DIAL_IN_PROGRESS:
	case DIAL_DEFERRED:
	case DIAL_CONFIRMED:
	case DIAL_RESOLVING:
	case DIAL_REFUSED:
		break;
	}
	return -EINPROGRESS;
}

/* Shows src/serve the present socket, and the time of the next step. */
static void show(struct serve_dial *dial)
{
	const struct gateway_connection *connection = dial->state;
	const int64_t at = connection->socket.wake_at;

	dial->fd = connection->socket.fd;
	dial->sockets = connection->socket.sockets;
	dial->mptcp = connection->dial.mptcp;
	dial->wake_ms = at ? (uint64_t)((at + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS) : 0;
}

/* Does this host have a socket with these addresses that takes packets from "lo"? One that is bound to another device doesn't. */
static bool takes_from_loopback(const union sockaddr_ip *own, const union sockaddr_ip *peer)
{
	struct netlink *netlink = malloc(sizeof(*netlink));
	struct tcp_info ignored;
	int error = netlink ? netlink_open(netlink, NETLINK_SOCK_DIAG) : -ENOMEM;

	if (!error) {
		error = netlink_find_socket(netlink, own, peer, 0, &ignored);
		netlink_close(netlink);
	}
	free(netlink);
	return error != -ENOENT;
}

/* Returns why the engine isn't asked at all, or NULL. The kernel has routed the SYN already: its server isn't this host. */
static const char *obstacle(const struct gateway_settings *settings, const struct serve_plan *plan)
{
	const enum policy_verdict verdict = policy_decide(&settings->client, plan->server);

	if (verdict == POLICY_CONVERT && settings->host && networks_is_own(plan->client) && !takes_from_loopback(plan->client, plan->server))
		return "the program has bound its socket to a network";
	return verdict == POLICY_CONVERT ? NULL : policy_reason(verdict);
}

static int begin(struct serve_context *context, const struct serve_plan *plan, struct serve_dial *dial)
{
	struct gateway *gateway = gateway_of(context);
	const struct gateway_settings *settings = atomic_load(&gateway->settings);
	struct gateway_connection *connection = calloc(1, sizeof(*connection));
	struct dial_end end = { .verdict = POLICY_CONVERT };
	int error;

	*dial = (struct serve_dial){ .fd = -1, .state = connection };
	if (!connection)
		return -ENOMEM;
	connection->socket = (struct gateway_socket){ .fd = -1, .mark = gateway_own_mark(settings) };
	connection->dial.ops = &gateway_operations;
	connection->dial.server = *plan->server;
	connection->dial.client = *plan->client;
	connection->dial.started = clock_ns();
	path_start_init(&connection->dial.start, true, &in6addr_any);
	connection->reason = obstacle(settings, plan);
	if (connection->reason)
		return -ROUTED;
	user_cache_open(-1);
	error = result(gateway, connection, dial_next(&connection->dial, false, &end), &end);
	if (error != -EINPROGRESS) {
		gateway_socket_close(&connection->socket);
		return error ? error : -EIO; /* no connection is made at once */
	}
	show(dial);
	return 0;
}

static int step(struct serve_context *context, struct serve_dial *dial, struct tcp_info *info)
{
	struct gateway_connection *connection = dial->state;
	struct dial_end end = { .verdict = POLICY_CONVERT };
	int error = 0;

	if (connection && !connection->reached) {
		error = result(gateway_of(context), connection, dial_step(&connection->dial, &end), &end);
		show(dial);
	}
	if (connection && connection->reached)
		dial->wake_ms = 0;
	(void)info; /* only a response would need it */
	return error;
}

static void settle(struct serve_context *context, struct serve_dial *dial, const union sockaddr_ip *server)
{
	struct gateway_connection *connection = dial->state;

	(void)server;
	if (connection) {
		atomic_store(&gateway_of(context)->unfinished, 0);
		gateway_socket_settle(&connection->socket);
		gateway_status_count(dial->fd, &connection->dial.attempt.addr, kernel_tcp_info(dial->fd).tcpi_rtt);
	}
	forget_connection(dial);
}

static void stop(struct serve_context *context, struct serve_dial *dial)
{
	const struct gateway_connection *connection = dial->state;
	struct gateway_socket socket = { .fd = dial->fd };

	if (connection && connection->reached && atomic_fetch_add(&gateway_of(context)->unfinished, 1) + 1 == UNFINISHED_MANY)
		log_warning("%d clients in a row didn't complete their connections; this host's firewall has to accept established "
			    "connections from them (nftables, iptables: chain \"input\")", UNFINISHED_MANY);
	forget_connection(dial);
	gateway_socket_close(&socket);
	dial->fd = -1;
}

/* ----- failures ----- */

/* Returns how the network refuses a SYN so that its client's connect() fails with this errno, of tcp(7), ip(7) and ipv6(7). */
static uint8_t native_of(int error, bool client_v4)
{
	switch (error) {
	case ECONNREFUSED:
	case ECONNRESET:
		return NATIVE_RESET;
	case ENETUNREACH:
		return native_unreachable(0, client_v4, client_v4);
	case EACCES:
		return native_prohibited(client_v4);
	case ENOPROTOOPT:
		return client_v4 ? ICMP_PROT_UNREACH : native_no_host(false);
	default:
		return native_no_host(client_v4);
	}
}

static struct serve_refusal refusal(struct serve_context *context, const struct serve_dial *dial, const union sockaddr_ip *server,
				    bool client_v4, uint64_t asked_ms, int error)
{
	const struct gateway_connection *connection = dial->state;
	struct gateway *gateway = gateway_of(context);
	const bool fails_here = error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EPERM;
	const char *reason = connection && connection->reason ? connection->reason : "the gateway lacks memory or descriptors";

	(void)server, (void)asked_ms;
	if (error == -ROUTED || fails_here) {
		gateway_count_routed(gateway, reason);
		return (struct serve_refusal){ .passes = true, .reason = reason };
	}
	return (struct serve_refusal){
		.native = native_of(-error, client_v4), .reason = reason,
	};
}

const struct serve_dialler gateway_dialler = { .begin = begin, .step = step, .settle = settle, .stop = stop, .refusal = refusal };
