/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway_rules.h - diverts clients' connections to the gateway: tables of nftables, policy rules, a route (needs CAP_NET_ADMIN)
 *
 * GATEWAY_REQUIRE holds even while no gateway runs: a table that belongs to no process refuses TCP connections that match these rules,
 * where the kernel would forward them or, from this host's programs, send them out. Converted ones never get there. An orderly stop removes
 * that table; after a kill it stays until the next start.
 */
#ifndef GATEWAY_RULES_H
#define GATEWAY_RULES_H

#include "common/problems.h"
#include "gateway/gateway_settings.h"
#include "hold/hold_rules.h"

#include <stdbool.h>

struct gateway_rules;

/*
 * The urgent pointer by which the rules tell the judge that an operator's rule has the SYN converted. They remove it from a SYN that is
 * routed. Without the URG flag TCP ignores it. syn_packet.h has others.
 */
#define GATEWAY_RULES_NAMED 0x6e61

/*
 * gateway_rules_install() - divert connections as @settings say, to their port, through @queues
 * @rules: points to NULL the first time; later the rules are replaced in one step, and no connection is lost
 * @refuses: set to whether SYNs that are marked so (syn_packet_refuse()) are refused
 * Returns false, with the present rules unchanged, after adding the error to @problems: also if a gateway runs in this network namespace.
 */
bool gateway_rules_install(struct gateway_rules **rules, const struct gateway_settings *settings, const struct hold_rules_queues *queues,
			   bool *refuses, struct problems *problems);

/*
 * gateway_rules_stop_diverting() - for a drain: route the SYNs of new connections from now on
 * Packets of connections that have begun are still diverted.
 */
void gateway_rules_stop_diverting(struct gateway_rules *rules);

/* Removes all. If the process is killed, the kernel removes the tables, and the next start the policy rules and the route. NULL is fine. */
void gateway_rules_remove(struct gateway_rules *rules);

/* ----- policy rules and the route that bring packets with the gateway's mark to this host: gateway_policies.c ----- */

/* Adds those that @settings need, unless they are there. Returns 0 or -errno. */
int gateway_policies_add(const struct gateway_settings *settings);

/*
 * gateway_policies_watch() - open a socket that is readable after policy rules or addresses have changed
 * systemd-networkd removes policy rules of others when it starts. Returns the descriptor, for gateway_policies_restore(), or -errno.
 */
int gateway_policies_watch(void);

/* Reads from that socket, adds what @settings need and is missing, and moves our policy rules before those of other programs. */
void gateway_policies_restore(int fd, const struct gateway_settings *settings);

/* Removes all gateways' policy rules and routes but those that @settings need; NULL: needs none. */
void gateway_policies_keep(const struct gateway_settings *settings);

#endif
