/* SPDX-License-Identifier: BSD-3-Clause */
/* hold_rules.h - installs the nftables rules that put SYNs to our listeners, or marked ones, into netfilter queues */
#ifndef HOLD_HOLD_RULES_H
#define HOLD_HOLD_RULES_H

#include "daemon/listen_address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hold_rules;

/*
 * hold_rules_create() - prepare for rules, without installing any
 * @program: the table's name begins with it
 * @kept: the hold_rules_fd() of a process before this one, whose rules these are to replace, or -1; it stays the
 *   caller's
 * Returns 0 with @rules set, or -errno, which is -EPERM or -EACCES without CAP_NET_ADMIN.
 */
int hold_rules_create(struct hold_rules **rules, const char *program, int kept);

/* Netfilter queues, with consecutive numbers. */
struct hold_rules_queues {
	uint16_t first, count;
};

/*
 * hold_rules_install() - put SYNs to these addresses into these queues from now on
 * The addresses of client and listener choose the queue, so that all SYNs of a client go through one. SYNs with a
 * Convert message that leave the queue without a mark (syn_packet_mark()), or don't get into it because it has no
 * owner or is full, lose their timestamps. If @queues is NULL, all of them do.
 * @refuses: set to whether the rules refuse SYNs that are marked so (syn_packet_refuse()), for which this kernel
 *   needs CONFIG_NFT_REJECT_INET
 * The rules replace those of an earlier call in one step: each SYN meets either the old or the new ones.
 * Returns 0 or -errno with everything as it was; -ENOENT or -EOPNOTSUPP: the kernel has no such rules.
 */
int hold_rules_install(struct hold_rules *rules, const struct listen_address *listen, size_t count,
		      const struct hold_rules_queues *queues, bool *refuses);

/* SYNs that the daemon's own rules have marked. */
struct hold_rules_marked {
	uint32_t mark, mask; /* the bits of the packet's mark under @mask must equal @mark */
	bool own_syns;       /* SYNs of this host's programs as well */
};

/* The priority of the chains, in "prerouting", "forward" and "output"; those that refuse come next. Firewalls come before: firewalld 10. */
#define HOLD_RULES_MARKED_PRIORITY 41

/*
 * hold_rules_install_marked() - put marked SYNs into these queues, and refuse those that hold has marked so
 * @queues: NULL: withhold none. Otherwise as hold_rules_install()
 */
int hold_rules_install_marked(struct hold_rules *rules, const struct hold_rules_marked *marked, const struct hold_rules_queues *queues,
			      bool *refuses);

/* Returns the descriptor of the rules, which last as long as some process has it open. */
int hold_rules_fd(const struct hold_rules *rules);

/* Removes the rules; the kernel also does so when the process ends or is killed. NULL is fine. */
void hold_rules_destroy(struct hold_rules *rules);

#endif
