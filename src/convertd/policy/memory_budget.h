/* SPDX-License-Identifier: BSD-3-Clause */
/* memory_budget.h - how much of the kernel's memory connections may hold on this host */
#ifndef CONVERTD_MEMORY_BUDGET_H
#define CONVERTD_MEMORY_BUDGET_H

#include "convertd/policy/limits.h"

/*
 * memory_budget() - what clients may hold, in all and each
 * @total, @per_client: bytes that the operator has said, or 0: what suits this host
 */
struct limits_memory memory_budget(uint64_t total, uint64_t per_client);

/*
 * memory_budget_of() - the same, of files
 * @tcp_mem: the text of net.ipv4.tcp_mem (tcp(7)): three numbers of pages; "": it can't be read
 * @cgroup_max: bytes that this process' control group may have, UINT64_MAX: no limit
 */
struct limits_memory memory_budget_of(uint64_t total, uint64_t per_client, const char *tcp_mem,
				      uint64_t page, uint64_t cgroup_max);

/*
 * memory_budget_cgroup() - the least limit of a control group and those that it is in (cgroups(7), version 2)
 * @root: where the hierarchy is mounted; @cgroup: the text of /proc/self/cgroup
 * Returns bytes, UINT64_MAX without a limit.
 */
uint64_t memory_budget_cgroup(const char *root, const char *cgroup);

#endif
