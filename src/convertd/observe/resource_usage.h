/* SPDX-License-Identifier: BSD-3-Clause */
/* resource_usage.h - memory, CPU time and descriptors that this process uses (getrusage(2)) */
#ifndef CONVERTD_RESOURCE_USAGE_H
#define CONVERTD_RESOURCE_USAGE_H

#include <stdint.h>

struct resource_usage {
	uint64_t open_files, max_files; /* UINT64_MAX: not known; no limit */
	uint64_t resident_bytes, virtual_bytes; /* 0: not known */
	double cpu_seconds;             /* user and system, of all threads */
};

/* Reads what this process uses now. */
void resource_usage_read(struct resource_usage *usage);

#endif
