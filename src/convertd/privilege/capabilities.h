/* SPDX-License-Identifier: BSD-3-Clause */
/* capabilities.h - the capabilities of this process: capabilities(7) */
#ifndef CONVERTD_CAPABILITIES_H
#define CONVERTD_CAPABILITIES_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>

/* A set of capabilities, by the bits of linux/capability.h. */
#define CAPABILITIES_BIT(capability) ((uint64_t)1 << (capability))

/*
 * What the main process needs: CAP_NET_ADMIN for nftables, netfilter queues, IP_TRANSPARENT and restricted congestion
 * controls; CAP_NET_BIND_SERVICE for ports below 1024.
 */
#define CAPABILITIES_OF_WARDEN                                                                     \
	(CAPABILITIES_BIT(CAP_NET_ADMIN) | CAPABILITIES_BIT(CAP_NET_BIND_SERVICE))

/* Tells whether this thread has at least one capability of @set in effect. */
bool capabilities_has(uint64_t set);

/*
 * capabilities_keep() - give up all capabilities outside @set, for good
 * To be called before any thread is started, as each thread has its own capabilities. The bounding set is emptied as
 * well, where CAP_SETPCAP permits that. Returns 0 or -errno.
 */
int capabilities_keep(uint64_t set);

#endif
