/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_rules.h - the nftables rules that hand SYNs for our listeners to a netfilter queue */
#ifndef CONVERTD_SYN_RULES_H
#define CONVERTD_SYN_RULES_H

#include "convertd/settings.h"

#include <stddef.h>
#include <stdint.h>

struct syn_rules;

/*
 * syn_rules_create() - no rules yet
 * Returns 0 with @rules set, or -errno, which is -EPERM or -EACCES without CAP_NET_ADMIN.
 */
int syn_rules_create(struct syn_rules **rules);

/*
 * syn_rules_install() - SYNs to these addresses go to that queue from now on
 * They replace those of an earlier call in one step: no SYN meets none of both, or both. Where the
 * queue has no owner or is full, SYNs pass.
 * Returns 0 or -errno with everything as it was; -ENOENT: the kernel has no such rules.
 */
int syn_rules_install(struct syn_rules *rules, const struct listen_address *listen, size_t count,
		      uint16_t queue);

/* Removes them, as the end of the process would, a kill included. NULL is fine. */
void syn_rules_destroy(struct syn_rules *rules);

#endif
