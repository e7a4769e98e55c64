/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel.h - the path manager's interface to the kernel: changes it, learns of changes, reads subflows */
#ifndef PATHS_KERNEL_H
#define PATHS_KERNEL_H

#include "common/netlink.h"
#include "paths/outage.h"
#include "paths/plan.h"

/* A connection to each of the two kernel interfaces. */
struct paths_kernel {
	struct netlink route;   /* rtnetlink(7) */
	struct netlink generic; /* for the path manager of MPTCP, ip-mptcp(8) */
	int mptcp_family;       /* number of that interface's family; or -errno: -ENOENT if the kernel has no MPTCP */
};

/* Opens both; reading needs no privilege. Returns 0 or -errno; without MPTCP it returns 0, and mptcp_family is negative. */
int paths_kernel_open(struct paths_kernel *kernel);
void paths_kernel_close(struct paths_kernel *kernel);

/*
 * paths_kernel_subflows() - read all subflows of this network namespace, established or with a SYN under way
 * Needs CAP_NET_ADMIN: without it the kernel doesn't tell a subflow's connection. Returns 0 or -errno.
 */
int paths_kernel_subflows(struct paths_subflows *out);

/* Does one operation. Deleting an absent object succeeds. Returns 0 or -errno. */
int paths_kernel_apply(struct paths_kernel *kernel, const struct paths_operation *operation);

/* paths_kernel_watch() - open a socket that becomes readable when something changes; returns it, or -errno */
int paths_kernel_watch(void);

/*
 * paths_kernel_heard() - take all messages from that socket
 * Returns true if a change may alter the wanted endpoints, rules or routes, or if messages were lost because there were too many: the
 * caller then reads the host anew.
 */
bool paths_kernel_heard(int fd);

#endif
