/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_rules.h - the nftables rules that hand SYNs for our listeners to netfilter queues */
#ifndef CONVERTD_SYN_RULES_H
#define CONVERTD_SYN_RULES_H

#include "convertd/config/settings.h"

#include <stddef.h>
#include <stdint.h>

struct syn_rules;

/*
 * syn_rules_create() - no rules yet
 * @kept: the syn_rules_fd() of a process before this one, whose rules these are to replace, or -1; it
 * stays the caller's
 * Returns 0 with @rules set, or -errno, which is -EPERM or -EACCES without CAP_NET_ADMIN.
 */
int syn_rules_create(struct syn_rules **rules, int kept);

/* Netfilter queues, with consecutive numbers. */
struct syn_rules_queues {
	uint16_t first, count;
};

/*
 * syn_rules_install() - SYNs to these addresses go to these queues from now on
 * Which one, is for the addresses of client and listener alone: a client has one at a time.
 * Those with a Convert message that come out of it without a mark (syn_packet_mark()), or pass by it
 * because it has no owner or is full, lose their timestamps. Without @queues, NULL, all do.
 * They replace those of an earlier call in one step: no SYN meets none of both, or both.
 * Returns 0 or -errno with everything as it was; -ENOENT or -EOPNOTSUPP: the kernel has no such rules.
 */
int syn_rules_install(struct syn_rules *rules, const struct listen_address *listen, size_t count,
		      const struct syn_rules_queues *queues);

/* The rules last as long as somebody has this descriptor. */
int syn_rules_fd(const struct syn_rules *rules);

/* Gives them up: the kernel removes them, as at the end of the process, a kill included. NULL is fine. */
void syn_rules_destroy(struct syn_rules *rules);

#endif
