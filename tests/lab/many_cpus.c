/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * many_cpus.c - a host with more CPUs than there are, for a program that this is preloaded into
 *
 * MANY_CPUS says how many: as far as the program can tell, it may run on all of them. Its threads
 * run on those that there really are.
 */
#include "config.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/types.h>

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	const char *count = getenv("MANY_CPUS");

	(void)pid;
	CPU_ZERO_S(size, set);
	for (int i = 0; count && i < atoi(count); i++)
		CPU_SET_S((size_t)i, size, set);
	return 0;
}
