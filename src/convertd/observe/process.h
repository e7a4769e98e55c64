/* SPDX-License-Identifier: BSD-3-Clause */
/* process.h - what this process takes of its host */
#ifndef CONVERTD_PROCESS_H
#define CONVERTD_PROCESS_H

#include <stdint.h>

struct process_facts {
	uint64_t open_files, max_files; /* UINT64_MAX: not known; no limit */
	uint64_t resident_bytes, virtual_bytes; /* 0: not known */
	double cpu_seconds;             /* user and system, of all threads */
};

void process_read(struct process_facts *facts);

#endif
