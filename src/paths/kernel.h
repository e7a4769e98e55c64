/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel.h - the kernel's side of the path manager: changing it, hearing that it has changed, reading subflows */
#ifndef PATHS_KERNEL_H
#define PATHS_KERNEL_H

#include "common/netlink.h"
#include "paths/outage.h"
#include "paths/plan.h"

/* A connection to each of the two kernel interfaces. */
struct paths_kernel {
	struct netlink route;   /* rtnetlink(7) */
	struct netlink generic; /* for the path manager of MPTCP, ip-mptcp(8) */
	int mptcp_family;       /* its number; or -errno: -ENOENT where there is none */
};

/* Opens both; no privilege is needed to read. Returns 0 or -errno. A kernel without MPTCP is seen by mptcp_family. */
int paths_kernel_open(struct paths_kernel *kernel);
void paths_kernel_close(struct paths_kernel *kernel);

/*
 * paths_kernel_subflows() - the subflows of all connections of this network namespace, established or asked for
 * The kernel tells whose connection each belongs to who has CAP_NET_ADMIN. Returns 0 or -errno.
 */
int paths_kernel_subflows(struct paths_subflows *out);

/* Does one operation. What is to be deleted and isn't there is as well. Returns 0 or -errno. */
int paths_kernel_apply(struct paths_kernel *kernel, const struct paths_operation *operation);

/* paths_kernel_watch() - a socket that becomes readable when something changes; returns it, or -errno */
int paths_kernel_watch(void);

/*
 * paths_kernel_heard() - take all messages off that socket
 * Returns whether something in them may mean that other endpoints, rules or routes are wanted. That is so as well where messages
 * were lost, since there were too many: the host has to be read anew in either case.
 */
bool paths_kernel_heard(int fd);

#endif
