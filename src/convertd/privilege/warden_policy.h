/* SPDX-License-Identifier: BSD-3-Clause */
/* warden_policy.h - decides which calls the main process carries out for the serving process (no I/O) */
#ifndef CONVERTD_WARDEN_POLICY_H
#define CONVERTD_WARDEN_POLICY_H

#include "daemon/listen_address.h"
#include "daemon/rights.h"
#include "daemon/warden_message.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

struct settings;

/* The calls that the serving process may make under some settings. */
struct warden_grant {
	struct listen_address listen[2 * LISTEN_ADDRESSES_MAX]; /* the places of --listen and of socket units */
	size_t listen_count;
	union sockaddr_ip metrics[METRICS_ADDRESSES_MAX]; /* the IP addresses of --metrics */
	size_t metrics_count;
	char congestion[2][CONGESTION_NAME_MAX]; /* of connections to clients and to servers */
	bool withhold, window, transparent; /* queues of SYNs; rules of the SYN window fix; IP_TRANSPARENT */
};

/*
 * The grants of the settings in force, and of those read last, which a reload puts in force or drops. The main process
 * has read both by itself, from files that no client writes.
 */
struct warden_policy {
	struct warden_grant in_force, latest;
};

/* Sets @grant to what @settings need, and to @units_count places @units of inherited sockets. */
void warden_grant_init(struct warden_grant *grant, const struct settings *settings,
		       const struct listen_address *units, size_t units_count);

/* Tells whether @call, which warden_call_is_right() has found well formed, may be made. */
bool warden_policy_allows(const struct warden_policy *policy, const struct warden_call *call);

/*
 * warden_policy_allows_syn() - tell whether a withheld SYN may be released to this address and port (host byte order)
 * It may only if convertd listens there: the kernel treats a packet that a queue releases as one that has just
 * arrived, whatever addresses the serving process has written into it.
 */
bool warden_policy_allows_syn(const struct warden_policy *policy, const struct in6_addr *destination,
			      uint16_t port);

#endif
