/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h - count what a process executes, exactly and without performance counters
 *
 * The process is single-stepped by ptrace(2): a step is one user-space instruction, those of the C
 * library and of the vDSO included, none of the kernel's; each round of a repeated string
 * instruction is a step of its own. The count is the same on every run, in any virtual machine,
 * whatever else the machine does.
 */
#ifndef BENCH_TRACE_H
#define BENCH_TRACE_H

#include <stdint.h>
#include <sys/types.h>

struct trace_counts {
	uint64_t instructions;
	uint64_t system_calls;
};

/*
 * trace_fork() - fork() whose child is traced
 * Returns 0 in the child, which stands still first. Ends the program if it can't be traced.
 */
pid_t trace_fork(void);

/* In the child: trace_mark_init() once; then each trace_mark() ends what its parent is doing to it.
 */
void trace_mark_init(void);
void trace_mark(void);

/* Lets the child run up to the end of its execve(). */
void trace_run_to_exec(pid_t child);

/* Lets the child run up to its next mark. Returns 0, or -1 once it has ended. */
int trace_run_to_mark(pid_t child);

/* Steps the child from mark to mark (or to its end), counting one of the two. */
uint64_t trace_count_instructions(pid_t child);
uint64_t trace_count_system_calls(pid_t child);

#endif
