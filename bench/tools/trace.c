/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.c - count what a process executes, exactly and without performance counters */
#define _GNU_SOURCE
#include "trace.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A signal that nothing else here sends: reported to the tracer even though the child ignores it.
 */
#define MARK         SIGUSR2
#define SYSCALL_STOP (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */

static pid_t marker;

static void die(const char *what)
{
	fprintf(stderr, "trace: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Tracer and child share a CPU: a step costs ten times as much between two CPUs as on one. */
static void share_cpu(void)
{
	cpu_set_t cpus;
	int cpu = sched_getcpu();

	CPU_ZERO(&cpus);
	CPU_SET(cpu < 0 ? 0 : (unsigned int)cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

pid_t trace_fork(void)
{
	pid_t child;
	int status;

	fflush(stdout);
	share_cpu();
	child = fork();
	if (child < 0)
		die("fork");
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			die("PTRACE_TRACEME (a debugger around us, or "
			    "kernel.yama.ptrace_scope=3?)");
		raise(SIGSTOP);
		return 0;
	}
	if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		die("the child didn't stop");
	if (ptrace(PTRACE_SETOPTIONS, child, NULL,
		   (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) < 0)
		die("PTRACE_SETOPTIONS");
	return child;
}

void trace_mark_init(void)
{
	marker = getpid();
	signal(MARK, SIG_IGN);
}

void trace_mark(void)
{
	/* no function in between that a preloaded library may stand in front of */
	syscall(SYS_tgkill, marker, marker, MARK);
}

/*
 * Resumes the child by @request until it is at a mark or has ended, and returns how often it
 * stopped with @counted on the way. Other signals are passed on to it.
 */
static uint64_t run(pid_t child, int request, int counted, int *ended)
{
	uint64_t stops = 0;
	int status, signal_number = 0;

	*ended = 0;
	for (;;) {
		if (ptrace(request, child, NULL, (void *)(long)signal_number) < 0)
			die("ptrace");
		if (waitpid(child, &status, 0) != child)
			die("waitpid");
		if (!WIFSTOPPED(status)) {
			*ended = 1;
			if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
				fprintf(stderr, "trace: the child ended with status %#x\n", status);
				exit(1);
			}
			return stops;
		}
		if (WSTOPSIG(status) == MARK)
			return stops;
		signal_number = 0;
		if (WSTOPSIG(status) == counted)
			stops++;
		else if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SYSCALL_STOP)
			signal_number = WSTOPSIG(status);
	}
}

void trace_run_to_exec(pid_t child)
{
	int status;

	/* ptrace(2): without PTRACE_O_TRACEEXEC it is a SIGTRAP */
	if (ptrace(PTRACE_CONT, child, NULL, NULL) < 0 || waitpid(child, &status, 0) != child)
		die("ptrace");
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) {
		fprintf(stderr, "trace: no execve(): status %#x\n", status);
		exit(1);
	}
}

int trace_run_to_mark(pid_t child)
{
	int ended;

	run(child, PTRACE_CONT, 0, &ended);
	return ended ? -1 : 0;
}

uint64_t trace_count_instructions(pid_t child)
{
	int ended;

	return run(child, PTRACE_SINGLESTEP, SIGTRAP, &ended);
}

uint64_t trace_count_system_calls(pid_t child)
{
	int ended;
	uint64_t stops = run(child, PTRACE_SYSCALL, SYSCALL_STOP, &ended);

	/* each stops at its entry and its exit; the last has no exit, or is the mark's own */
	return (stops + 1) / 2;
}
