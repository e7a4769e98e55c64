/* SPDX-License-Identifier: BSD-3-Clause */
/* await.h - for programs that wait for a condition, rather than for some time */
#ifndef APPS_AWAIT_H
#define APPS_AWAIT_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#define AWAIT_LIMIT_MS 10000

/* Checks @condition every millisecond until it holds. After AWAIT_LIMIT_MS looks the program says so and ends. */
#define AWAIT(condition)                                                                           \
	do {                                                                                       \
		static const struct timespec pause_ = { .tv_nsec = 1000000 };                      \
		int looks_ = 0;                                                                    \
                                                                                                   \
		while (!(condition)) {                                                             \
			if (++looks_ == AWAIT_LIMIT_MS) {                                          \
				printf("never: %s\n", #condition);                                 \
				exit(1);                                                           \
			}                                                                          \
			nanosleep(&pause_, NULL);                                                  \
		}                                                                                  \
	} while (0)

/* The system call in which a thread of this process waits; -1: it runs, or waits for a CPU (proc_pid_syscall(5)). */
static inline long call_of(int thread)
{
	char path[64];
	long number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", thread);
	file = fopen(path, "r");
	if (file && fscanf(file, "%ld", &number) != 1)
		number = -1; /* "running" */
	if (file)
		fclose(file);
	return number;
}

/* Tells whether a thread sleeps in a system call, other than for a lock. */
static inline bool sleeps_in_call(int thread)
{
	const long number = call_of(thread);

	return number >= 0 && number != SYS_futex;
}

#endif
