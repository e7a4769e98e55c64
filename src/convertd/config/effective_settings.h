/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * effective_settings.h - what sessions go by: the settings in force, with what they come to on this host
 *
 * Settings (settings.h) are what the operator has written. Terms are made of them when they come into force: limits that the
 * open files allow, memory that the kernel has, TCP options that the sysctls switch on. Terms never change; a reload
 * makes new ones, and the old ones live as long as a worker has a reference to them.
 */
#ifndef CONVERTD_EFFECTIVE_SETTINGS_H
#define CONVERTD_EFFECTIVE_SETTINGS_H

#include "convertd/policy/judgement.h"
#include "convertd/policy/limits.h"
#include "convertd/policy/request.h"

#include <stdatomic.h>
#include <stddef.h>

struct settings;

struct effective_settings {
	const struct settings *settings;
	struct admission_rules admission; /* what requests are judged by; points into these settings and the settings */
	struct limits_settings limits;    /* the settings' as far as open files allow */
	size_t pipes_max;                 /* of all workers, besides one of each; see relay_pipe.h */
	struct request_features features; /* what may be asked for towards servers, and is told of SYNs */
	int last_fd;                      /* the highest descriptor that there can be */
	int syn_retries;                  /* net.ipv4.tcp_syn_retries */
	unsigned synacks;                 /* that the kernel sends for a SYN with data, before it gives up */
	atomic_uint references;
};

/* What is done with SYNs. */
struct effective_syns {
	bool withheld;  /* they are withheld until servers have answered */
	bool taken;     /* their data is taken wherever clients arrive */
	bool refused;   /* withheld: those that are marked so are refused by the rules */
	bool corrected; /* the windows of MPTCP SYNs that carry data are corrected */
};

/*
 * effective_settings_create() - what @settings come to on this host, now
 * @files_own: descriptors that convertd needs for other things than sessions
 * Warns of limits that can't be kept. Returns one reference, with which the settings go as well;
 * NULL without memory, and the settings stay the caller's.
 */
struct effective_settings *effective_settings_create(struct settings *settings, size_t files_own, const struct effective_syns *syns);

/* One more reference, which is returned. */
struct effective_settings *effective_settings_ref(struct effective_settings *effective);

/* One reference less; the last one frees the settings and their settings. NULL is fine. */
void effective_settings_unref(struct effective_settings *effective);

/*
 * Warnings for the operator of what there isn't enough of, with the remedy. One is logged at once, and one per LOG_LIMIT_MS
 * as long as the shortage lasts. Any thread may call these.
 */

/* Warns that a client was refused since the limit of connections is reached. */
void shortage_of_connections(const struct effective_settings *effective);

/*
 * shortage_of_files() - warn if @error, the errno of a failed call, means a lack of descriptors or memory
 * @what: the consequence, as "clients have to wait"
 */
void shortage_of_files(int error, const char *what);

/* ----- how much of the kernel's memory connections may hold on this host ----- */

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
