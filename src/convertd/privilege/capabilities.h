/* SPDX-License-Identifier: BSD-3-Clause */
/* capabilities.h - the capabilities of this process: capabilities(7) */
#ifndef CONVERTD_CAPABILITIES_H
#define CONVERTD_CAPABILITIES_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>

/* A set of capabilities, by the bits of linux/capability.h. */
#define CAPABILITIES_BIT(capability) ((uint64_t)1 << (capability))

/* nftables, netfilter queues, IP_TRANSPARENT, forbidden congestion controls; ports below 1024. */
#define CAPABILITIES_OF_WARDEN                                                                     \
	(CAPABILITIES_BIT(CAP_NET_ADMIN) | CAPABILITIES_BIT(CAP_NET_BIND_SERVICE))

/* Has this thread one of these? */
bool capabilities_has(uint64_t set);

/*
 * capabilities_keep() - give up all but these, for good
 * Before any thread is started: capabilities are each thread's own. The bounding set is emptied as well, where
 * CAP_SETPCAP permits that. Returns 0 or -errno.
 */
int capabilities_keep(uint64_t set);

#endif
