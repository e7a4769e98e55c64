/* SPDX-License-Identifier: BSD-3-Clause */
/* status.h - writes the status of the converter as text, as an HTML page, and for Prometheus (no I/O) */
#ifndef CONVERTD_STATUS_H
#define CONVERTD_STATUS_H

#include "daemon/log.h"
#include "daemon/metrics.h"
#include "convertd/policy/cookies.h"
#include "convertd/policy/families.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* The resources that this process uses (getrusage(2)). */
struct resource_usage {
	uint64_t open_files, max_files; /* UINT64_MAX: not known; no limit */
	uint64_t resident_bytes, virtual_bytes; /* 0: not known */
	double cpu_seconds;             /* user and system, of all threads */
};

struct status {
	struct metrics_sum sum;
	struct metrics_sum before;  /* the counters @before_seconds ago, for rates */
	double before_seconds;      /* 0: there are no earlier counters yet */
	time_t now, started, configured;
	uint64_t reloads, reloads_failed;
	bool draining;
	const char *listening;      /* "[::]:1234 (MPTCP, Fast Open), …" */
	size_t workers;
	unsigned max_connections, max_pending; /* 0: no limit */
	uint64_t max_memory;                   /* bytes of kernel memory; 0: no limit */
	struct demand_facts demand;
	struct resource_usage process;
	struct {
		enum family_state state;
		bool routed;
	} families[FAMILY_COUNT];
	size_t notice_count;
	struct notice notices[NOTICES_MAX];
};

/* Writes a line like "convertd 0.1.0: serving", and tables of figures with names. */
void status_write_text(FILE *out, const struct status *status);

/* Writes the same as an HTML page: one file without scripts, light or dark as the browser is. */
void status_write_html(FILE *out, const struct status *status);

/* Writes all metrics for Prometheus: those of metrics_write(), and those that aren't counters of sessions. */
void status_write_metrics(FILE *out, const struct status *status);

#endif
