/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * effective_settings.h - the settings in force, with the values that follow from them on this host; sessions use these
 *
 * Settings (convertd_settings.h) are the operator's values. When they come into force, effective settings are made from them:
 * limits that the open files allow, memory that the kernel has, TCP options that the sysctls switch on. They never
 * change; a reload makes new ones. The service frees the old ones when all workers have the new ones.
 */
#ifndef CONVERTD_EFFECTIVE_SETTINGS_H
#define CONVERTD_EFFECTIVE_SETTINGS_H

#include "convertd/policy/judgement.h"
#include "daemon/limits.h"
#include "serve/plugs.h"

#include <stddef.h>

struct convertd_settings;

struct effective_settings {
	const struct convertd_settings *settings;
	struct admission_rules admission; /* the rules for requests; points into these settings and the operator's */
	struct limits_settings limits;    /* the operator's, as far as open files allow */
	struct serve_settings serve;      /* for sessions and withheld SYNs */
	struct request_features features; /* options that clients may ask for towards servers, and what clients learn about SYNs */
	int last_fd;                      /* the highest descriptor possible */
	int syn_retries;                  /* net.ipv4.tcp_syn_retries */
};

/* How convertd treats SYNs. */
struct effective_syns {
	bool withheld;  /* they are withheld until servers have answered */
	bool taken;     /* their data is taken at all addresses where clients arrive */
	bool refused;   /* withheld, and the rules refuse those that are marked for refusal */
};

/*
 * effective_settings_create() - compute the effective settings on this host from @settings
 * @files_own: descriptors that convertd needs for other purposes than sessions
 * Warns of limits that can't be kept. Returns NULL without memory; otherwise the result owns @settings.
 */
struct effective_settings *effective_settings_create(struct convertd_settings *settings, size_t files_own,
						     const struct effective_syns *syns);

/* Returns the effective settings that @serve is a part of. */
static inline const struct effective_settings *effective_settings_of(const struct serve_settings *serve)
{
	return (const struct effective_settings *)((const char *)serve - offsetof(struct effective_settings, serve));
}

/* Frees these settings and the operator's. NULL is fine. */
void effective_settings_destroy(struct effective_settings *effective);

/*
 * Warns the operator that we refused a client since the limit of connections is reached, with the remedy: at once, then once per
 * LOG_LIMIT_MS as long as the shortage lasts. Any thread may call it.
 */
void shortage_of_connections(const struct effective_settings *effective);

/* ----- how much of the kernel's memory connections may hold on this host ----- */

/*
 * memory_budget() - return the bytes that clients may hold, in all and each
 * @total, @per_client: bytes from the operator; 0: choose by this host
 */
struct limits_memory memory_budget(uint64_t total, uint64_t per_client);

/*
 * memory_budget_of() - likewise, from the texts of files
 * @tcp_mem: the text of net.ipv4.tcp_mem (tcp(7)): three numbers of pages; "": it can't be read
 * @cgroup_max: bytes that this process's control group may have, UINT64_MAX: no limit
 */
struct limits_memory memory_budget_of(uint64_t total, uint64_t per_client, const char *tcp_mem,
				      uint64_t page, uint64_t cgroup_max);

#endif
