/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway_status.c - the parts of the status that only a gateway has: routed connections by reason, and the networks where others began
 *
 * A network is this host's address there. We keep the first STATUS_NETWORKS_MAX; their number never shrinks.
 *
 * The kernel counts the bytes of each subflow. We ask for those of open ones when somebody asks us, and add up those of closed ones: the
 * kernel tells us of each socket of this host that it destroys (SKNLGRP_INET_TCP_DESTROY). A subflow is known by its peer, which is an
 * address at which a converter was reached; so a preloaded program's to the same converter are among them. The kernel forgets the bytes
 * of a connection that this host resets.
 */
#include "config.h"

#include "gateway/gateway.h"

#include "common/kernel_socket.h"
#include "common/netlink.h"
#include "common/sockaddr.h"
#include "common/tcp.h"
#include "daemon/log.h"

#include <errno.h>
#include <event2/event.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATUS_NETWORKS_MAX 16
#define US_PER_S 1e6

struct status_network {
	struct in6_addr address; /* IPv4 as v4-mapped */
	uint64_t connections;
	uint32_t round_trip_us;  /* of the latest one */
	uint64_t received, sent; /* bytes of closed subflows; of all in a copy */
	uint64_t told_received, told_sent; /* bytes of all subflows, as told last */
};

/* The networks, and the addresses at which converters were reached. */
struct known {
	struct status_network networks[STATUS_NETWORKS_MAX];
	struct in6_addr converters[STATUS_NETWORKS_MAX];
	size_t network_count, converter_count;
	unsigned outlived; /* open connections that have lost their first subflow, but not all; in a copy */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known known; /* behind the lock */

/* Returns the network with this address, a new one if there is none; NULL if there is no room. */
static struct status_network *network_of(struct known *in, struct in6_addr address)
{
	for (size_t i = 0; i < in->network_count; i++)
		if (memcmp(&in->networks[i].address, &address, sizeof(address)) == 0)
			return &in->networks[i];
	if (in->network_count == STATUS_NETWORKS_MAX)
		return NULL;
	in->networks[in->network_count].address = address;
	return &in->networks[in->network_count++];
}

static bool is_converter(const struct known *in, const union sockaddr_ip *peer)
{
	const struct in6_addr address = sockaddr_ip_in6(peer);

	for (size_t i = 0; i < in->converter_count; i++)
		if (memcmp(&in->converters[i], &address, sizeof(address)) == 0)
			return true;
	return false;
}

void gateway_status_count(int fd, const union sockaddr_ip *converter, uint32_t round_trip_us)
{
	union sockaddr_ip local = { 0 };
	socklen_t len = sizeof(local);
	struct status_network *network;

	if (getsockname(fd, &local.sa, &len) < 0)
		return;
	pthread_mutex_lock(&lock);
	if (!is_converter(&known, converter) && known.converter_count < STATUS_NETWORKS_MAX)
		known.converters[known.converter_count++] = sockaddr_ip_in6(converter);
	network = network_of(&known, sockaddr_ip_in6(&local));
	if (network) {
		network->connections++;
		network->round_trip_us = round_trip_us;
	}
	pthread_mutex_unlock(&lock);
}

/* ----- bytes ----- */

/* Adds a socket's bytes to its network's, if its peer is a converter. */
static int add_bytes(const struct nlmsghdr *message, void *arg)
{
	const struct inet_diag_msg *socket = mnl_nlmsg_get_payload(message);
	struct status_network *network;
	struct known *in = arg;
	struct tcp_info info = { 0 };
	union sockaddr_ip local, peer;
	const struct nlattr *attr;

	if (mnl_nlmsg_get_payload_len(message) < sizeof(*socket))
		return MNL_CB_OK;
	mnl_attr_for_each(attr, message, sizeof(*socket)) {
		const size_t len = mnl_attr_get_payload_len(attr);

		if (mnl_attr_get_type(attr) == INET_DIAG_INFO)
			memcpy(&info, mnl_attr_get_payload(attr), len < sizeof(info) ? len : sizeof(info));
	}
	local = netlink_socket_address(socket, false);
	peer = netlink_socket_address(socket, true);
	network = is_converter(in, &peer) ? network_of(in, sockaddr_ip_in6(&local)) : NULL;
	if (network) {
		network->received += info.tcpi_bytes_received;
		network->sent += info.tcpi_bytes_acked ? info.tcpi_bytes_acked - 1 : 0; /* without the SYN, which it counts */
	}
	return MNL_CB_OK;
}

/*
 * At the gateway's highest rate of connections the kernel tells of some ten thousand sockets a second. So we let the messages wait for a
 * moment in the socket, and read them together: a wake-up for each would take 5% of the gateway's CPU time.
 */
#define DESTROYED_WAIT { .tv_usec = 50 * 1000 }
#define DESTROYED_ROOM (4 * 1024 * 1024) /* bytes; the kernel doubles it */

static int destroyed_fd = -1;
static struct event *destroyed, *destroyed_wait;

/* Reads the kernel's messages about destroyed sockets. If it had to drop some, the bytes of those sockets are missing. */
static void read_destroyed(void)
{
	const int fd = destroyed_fd;
	char buf[8192];
	ssize_t len;

	while (fd >= 0 && ((len = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0 || (len < 0 && errno == ENOBUFS))) {
		int rest = (int)len;

		pthread_mutex_lock(&lock);
		for (const struct nlmsghdr *message = (const void *)buf; len > 0 && mnl_nlmsg_ok(message, rest);
		     message = mnl_nlmsg_next(message, &rest))
			add_bytes(message, &known);
		pthread_mutex_unlock(&lock);
	}
}

static void on_destroyed(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval wait = DESTROYED_WAIT;

	(void)fd, (void)what, (void)arg;
	event_add(destroyed_wait, &wait);
}

static void on_waited(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	read_destroyed();
	event_add(destroyed, NULL);
}

void gateway_status_watch(struct event_base *base)
{
	static const int room = DESTROYED_ROOM;
	const struct sockaddr_nl address = {
		.nl_family = AF_NETLINK, .nl_groups = 1u << (SKNLGRP_INET_TCP_DESTROY - 1) | 1u << (SKNLGRP_INET6_TCP_DESTROY - 1),
	};
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);

	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	destroyed_wait = event_new(base, -1, 0, on_waited, NULL);
	if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		destroyed = event_new(base, fd, EV_READ, on_destroyed, NULL);
	if (destroyed_wait && destroyed && event_add(destroyed, NULL) == 0) {
		destroyed_fd = fd;
		return;
	}
	log_warning("the bytes of networks are those of open connections: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* Counts a Multipath TCP connection to a converter that has outlived the network on which it began. */
static int count_outlived(const struct nlmsghdr *message, void *arg)
{
	const union sockaddr_ip peer = netlink_socket_address(mnl_nlmsg_get_payload(message), true);
	struct kernel_mptcp_info info = { .flags = 0 };
	struct known *in = arg;

	if (is_converter(in, &peer) && netlink_read_socket_info(message, &info, sizeof(info)) && kernel_has_outlived(&info))
		in->outlived++;
	return MNL_CB_OK;
}

#define OPEN_STATES 0xffe /* all, as bits of include/net/tcp_states.h */

static void keep_growing(uint64_t *value, uint64_t *told)
{
	if (*value < *told)
		*value = *told;
	*told = *value;
}

/*
 * Copies what is known, with the bytes of open subflows. The lock is free while we ask the kernel, so a subflow that ends meanwhile is in
 * neither list until the next time. Then we tell the earlier sum again, as a counter must not shrink.
 */
static void copy_known(struct known *out)
{
	static struct netlink netlink;

	read_destroyed();
	pthread_mutex_lock(&lock);
	*out = known;
	pthread_mutex_unlock(&lock);
	if (netlink_open(&netlink, NETLINK_SOCK_DIAG) == 0) {
		netlink_dump_sockets(&netlink, IPPROTO_TCP, OPEN_STATES, add_bytes, out);
		netlink_dump_sockets(&netlink, IPPROTO_MPTCP, 1u << TCPINFO_ESTABLISHED, count_outlived, out);
		netlink_close(&netlink);
	}
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < out->network_count; i++) {
		struct status_network *network = network_of(&known, out->networks[i].address);

		if (!network)
			continue;
		keep_growing(&out->networks[i].received, &network->told_received);
		keep_growing(&out->networks[i].sent, &network->told_sent);
	}
	pthread_mutex_unlock(&lock);
}

static const char *name_of(const struct status_network *network, char text[static PREFIX_STRLEN])
{
	const struct prefix whole = prefix_of(&network->address, 128);

	return prefix_format(&whole, text);
}

/* ----- for people ----- */

static void tell_routed(struct status_sink *sink, const struct gateway *gateway)
{
	bool any = false;

	for (size_t i = 0; i < GATEWAY_REASONS_MAX; i++) {
		const char *text = atomic_load(&gateway->routed[i].text);

		if (!text)
			break;
		if (!any)
			status_heading(sink, "Routed instead of converted");
		any = true;
		status_row_of(sink, text, atomic_load(&gateway->routed[i].count), 0);
	}
}

static void tell_networks(struct status_sink *sink)
{
	char text[PREFIX_STRLEN];
	struct known now;

	copy_known(&now);
	if (now.network_count)
		status_heading(sink, "Networks, and connections that began there");
	for (size_t i = 0; i < now.network_count; i++) {
		const struct status_network *network = &now.networks[i];
		char round_trip[48] = ""; /* unknown where no connection has begun */

		if (network->connections)
			snprintf(round_trip, sizeof(round_trip), ", round trip %.1f ms", network->round_trip_us / 1e3);
		status_row(sink, name_of(network, text), "%llu%s, %llu bytes received, %llu sent", (unsigned long long)network->connections,
			   round_trip, (unsigned long long)network->received, (unsigned long long)network->sent);
	}
	if (now.outlived)
		status_row(sink, "outlived", "%u open connection%s the network on which %s began", now.outlived,
			   now.outlived == 1 ? " has outlived" : "s have outlived", now.outlived == 1 ? "it" : "they");
}

static void tell_tables(struct status_sink *sink, const struct status *status)
{
	tell_routed(sink, status->own);
	tell_networks(sink);
	status_tell_syns(sink, status);
}

/* ----- for Prometheus ----- */

static void write_routed(FILE *out, const struct gateway *gateway)
{
	static const char name[] = "convertgw_routed_total";

	metrics_write_head(out, name, "counter", "Connections that were routed instead of converted, by the reason.");
	for (size_t i = 0; i < GATEWAY_REASONS_MAX; i++) {
		const char *reason = atomic_load(&gateway->routed[i].text);

		if (!reason)
			break;
		fprintf(out, "%s{reason=\"%s\"} %llu\n", name, reason, (unsigned long long)atomic_load(&gateway->routed[i].count));
	}
}

static void write_networks(FILE *out)
{
	static const char connections[] = "convertgw_network_connections_total", round_trip[] = "convertgw_network_round_trip_seconds",
			  bytes[] = "convertgw_network_bytes_total", outlived[] = "convertgw_outlived_connections";
	char text[PREFIX_STRLEN];
	struct known now;

	copy_known(&now);
	metrics_write_head(out, connections, "counter", "Connections that began on this network, whose server has answered.");
	for (size_t i = 0; i < now.network_count; i++)
		fprintf(out, "%s{network=\"%s\"} %llu\n", connections, name_of(&now.networks[i], text),
			(unsigned long long)now.networks[i].connections);
	metrics_write_head(out, round_trip, "gauge", "The round trip to the converter of the latest of these.");
	for (size_t i = 0; i < now.network_count; i++)
		if (now.networks[i].connections)
			fprintf(out, "%s{network=\"%s\"} %g\n", round_trip, name_of(&now.networks[i], text), now.networks[i].round_trip_us / US_PER_S);
	metrics_write_head(out, bytes, "counter", "Bytes of subflows to converters on this network.");
	for (size_t i = 0; i < now.network_count; i++) {
		name_of(&now.networks[i], text);
		fprintf(out, "%s{network=\"%s\",direction=\"received\"} %llu\n", bytes, text, (unsigned long long)now.networks[i].received);
		fprintf(out, "%s{network=\"%s\",direction=\"sent\"} %llu\n", bytes, text, (unsigned long long)now.networks[i].sent);
	}
	metrics_write_head(out, outlived, "gauge", "Open connections that have outlived the network on which they began.");
	fprintf(out, "%s %u\n", outlived, now.outlived);
}

static void write_metrics(FILE *out, const struct status *status)
{
	write_routed(out, status->own);
	write_networks(out);
}

const struct status_program gateway_status = {
	.name = "convertgw",
	.title = "Gateway",
	.failures = { "refused SYNs", "refused SYNs a second", METRIC_SYNS + METRICS_SYN_REFUSED, 1 },
	.tell_tables = tell_tables,
	.write_metrics = write_metrics,
};
