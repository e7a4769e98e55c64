/* SPDX-License-Identifier: BSD-3-Clause */
/* warden_policy.h - what the serving process may ask of the main process (no I/O) */
#ifndef CONVERTD_WARDEN_POLICY_H
#define CONVERTD_WARDEN_POLICY_H

#include "convertd/base/metrics_address.h"
#include "convertd/net/congestion.h"
#include "convertd/rights/warden_message.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

struct settings;

/* What some settings need. */
struct warden_grant {
	struct listen_address listen[2 * LISTEN_ADDRESSES_MAX]; /* of --listen, and of socket units */
	size_t listen_count;
	union sockaddr_ip metrics[METRICS_ADDRESSES_MAX]; /* AF_UNSPEC: a Unix socket */
	size_t metrics_count;
	char congestion[2][CONGESTION_NAME_MAX];
	bool withhold, window, transparent;
};

/*
 * Of the settings in force, and of those read last, which are in force soon or never: the main process has read
 * them itself, from files that no client writes.
 */
struct warden_policy {
	struct warden_grant in_force, latest;
};

/* What @settings need, with @units, places of inherited sockets. */
void warden_grant_init(struct warden_grant *grant, const struct settings *settings,
		       const struct listen_address *units, size_t units_count);

/* May this be done? @call: one that warden_call_is_right() */
bool warden_policy_allows(const struct warden_policy *policy, const struct warden_call *call);

/*
 * warden_policy_allows_syn() - may a SYN that was withheld go on to this address and port (host byte order)?
 * Only to where convertd listens: a packet that a queue lets go is taken for one that has just arrived, whatever
 * is written in it.
 */
bool warden_policy_allows_syn(const struct warden_policy *policy, const struct in6_addr *destination,
			      uint16_t port);

#endif
