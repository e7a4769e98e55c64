/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway_status.c - what a gateway's status has of its own: what was routed and why, and the networks that connections began on
 *
 * A network is this host's address there. We keep the first STATUS_NETWORKS_MAX; their number never shrinks.
 */
#include "config.h"

#include "gateway/gateway_status.h"

#include "common/sockaddr.h"
#include "gateway/gateway.h"

#include <pthread.h>
#include <string.h>

#define STATUS_NETWORKS_MAX 16
#define US_PER_S 1e6

struct status_network {
	struct in6_addr address; /* IPv4 as v4-mapped */
	uint64_t connections;
	uint32_t round_trip_us;  /* of the latest one */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct status_network networks[STATUS_NETWORKS_MAX];
static size_t network_count;

void gateway_status_count(int fd, const struct tcp_info *info)
{
	union sockaddr_ip local = { 0 };
	socklen_t len = sizeof(local);
	struct in6_addr address;
	size_t i = 0;

	if (getsockname(fd, &local.sa, &len) < 0)
		return;
	address = sockaddr_ip_in6(&local);
	pthread_mutex_lock(&lock);
	while (i < network_count && memcmp(&networks[i].address, &address, sizeof(address)) != 0)
		i++;
	if (i < STATUS_NETWORKS_MAX) {
		if (i == network_count)
			networks[network_count++].address = address;
		networks[i].connections++;
		networks[i].round_trip_us = info->tcpi_rtt;
	}
	pthread_mutex_unlock(&lock);
}

/* Copies the networks. Returns their number. */
static size_t copy_networks(struct status_network out[static STATUS_NETWORKS_MAX])
{
	size_t count;

	pthread_mutex_lock(&lock);
	count = network_count;
	memcpy(out, networks, sizeof(networks));
	pthread_mutex_unlock(&lock);
	return count;
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
	struct status_network all[STATUS_NETWORKS_MAX];
	const size_t count = copy_networks(all);
	char text[PREFIX_STRLEN];

	if (count)
		status_heading(sink, "Connections by the network that they began on");
	for (size_t i = 0; i < count; i++)
		status_row(sink, name_of(&all[i], text), "%llu, round trip %.1f ms", (unsigned long long)all[i].connections,
			   all[i].round_trip_us / 1e3);
}

static void tell_tables(struct status_sink *sink, const struct status *status)
{
	tell_routed(sink, status->own);
	tell_networks(sink);
	status_tell_syns(sink, status);
}

/* ----- for Prometheus ----- */

static void write_metrics(FILE *out, const struct status *status)
{
	static const char routed[] = "convertgw_routed_total", connections[] = "convertgw_network_connections_total",
			  round_trip[] = "convertgw_network_round_trip_seconds";
	const struct gateway *gateway = status->own;
	struct status_network all[STATUS_NETWORKS_MAX];
	const size_t count = copy_networks(all);
	char text[PREFIX_STRLEN];

	metrics_write_head(out, routed, "counter", "Connections that were routed instead of converted, by the reason.");
	for (size_t i = 0; i < GATEWAY_REASONS_MAX; i++) {
		const char *reason = atomic_load(&gateway->routed[i].text);

		if (!reason)
			break;
		fprintf(out, "%s{reason=\"%s\"} %llu\n", routed, reason, (unsigned long long)atomic_load(&gateway->routed[i].count));
	}
	metrics_write_head(out, connections, "counter", "Connections that began on this network, whose server has answered.");
	for (size_t i = 0; i < count; i++)
		fprintf(out, "%s{network=\"%s\"} %llu\n", connections, name_of(&all[i], text), (unsigned long long)all[i].connections);
	metrics_write_head(out, round_trip, "gauge", "The round trip to the converter of the latest of these.");
	for (size_t i = 0; i < count; i++)
		fprintf(out, "%s{network=\"%s\"} %g\n", round_trip, name_of(&all[i], text), all[i].round_trip_us / US_PER_S);
}

const struct status_program gateway_status = {
	.name = "convertgw",
	.title = "Gateway",
	.failures = { "refused SYNs", "refused SYNs a second", METRIC_SYNS + METRICS_SYN_REFUSED, 1 },
	.tell_tables = tell_tables,
	.write_metrics = write_metrics,
};
