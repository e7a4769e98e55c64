/* SPDX-License-Identifier: BSD-3-Clause */
/* probes.c - keepalive, which asks a silent converter's host whether it is there */
#include "config.h"

#include "supervise/probes.h"

#include "supervise/kernel.h"

#define PROBE_SECONDS 1 /* keepalive's interval while a converter is silent */

static const struct {
	int level, name, ours;
} keepalives[CONNECTION_KEEPALIVES] = {
	{ IPPROTO_TCP, TCP_KEEPINTVL, PROBE_SECONDS },
	{ IPPROTO_TCP, TCP_KEEPCNT, 100 },
	{ SOL_SOCKET, SO_KEEPALIVE, 1 },
	{ IPPROTO_TCP, TCP_KEEPIDLE, PROBE_SECONDS }, /* the last: setting it sends a probe that is due */
};

void probes_start(struct connection *connection)
{
	for (int i = 0; i < CONNECTION_KEEPALIVES && !connection->attempt.probing; i++)
		connection->kept[i] = kernel_get(connection->sock, keepalives[i].level, keepalives[i].name, -1);
	connection->attempt.probing = true;
	for (int i = 0; i < CONNECTION_KEEPALIVES; i++)
		kernel_set(connection->sock, keepalives[i].level, keepalives[i].name, keepalives[i].ours);
}

void probes_end(struct connection *connection)
{
	for (int i = CONNECTION_KEEPALIVES - 1; i >= 0 && connection->attempt.probing; i--)
		kernel_set(connection->sock, keepalives[i].level, keepalives[i].name, connection->kept[i]);
	connection->attempt.probing = false;
}
