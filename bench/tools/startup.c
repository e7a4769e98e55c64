/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * startup.c - what a process costs from its start to its end, with different environments
 *
 *   startup RUNS PROGRAM -- NAME [VARIABLE=VALUE]... [-- NAME [VARIABLE=VALUE]...]...
 *
 * Runs PROGRAM, which must end with 0 by itself, RUNS times in each of the environments, in turn,
 * so that what disturbs one disturbs all. Its environment is what is named and PATH, nothing else.
 * Prints a line for each run: "run", name, wall-clock time from before vfork() to after wait4() and
 * CPU time, both in ns, page faults. Then a line for each environment: "count", name, instructions
 * and system calls of the program from execve() on (trace.h).
 */
#include "trace.h"

#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VARIANTS_MAX  16
#define VARIABLES_MAX 16

struct variant {
	const char *name;
	char *environment[VARIABLES_MAX + 2];
};

static char path[4096] = "PATH=";

static void die(const char *what, int error)
{
	fprintf(stderr, "startup: %s: %s\n", what, strerror(error));
	exit(1);
}

static long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static long long ns_of(struct timeval tv)
{
	return tv.tv_sec * 1000000000LL + tv.tv_usec * 1000LL;
}

static void run_once(const char *program, struct variant *variant, bool print)
{
	char *arguments[] = { (char *)program, NULL };
	struct rusage usage;
	long long start = now(), end;
	int status, error;
	pid_t child;

	/* vfork() inside: nothing of us is copied */
	error = posix_spawn(&child, program, NULL, NULL, arguments, variant->environment);
	if (error)
		die(program, error);
	if (wait4(child, &status, 0, &usage) != child)
		die("wait4", errno);
	end = now();
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "startup: %s (%s): status %#x\n", program, variant->name, status);
		exit(1);
	}
	if (print)
		printf("run\t%s\t%lld\t%lld\t%ld\n", variant->name, end - start,
		       ns_of(usage.ru_utime) + ns_of(usage.ru_stime), usage.ru_minflt);
}

/* Two processes, one counted by instructions and one by system calls, between execve() and the end.
 */
static void count(const char *program, struct variant *variant)
{
	uint64_t (*const counter[])(pid_t) = { trace_count_instructions, trace_count_system_calls };
	uint64_t counts[2];

	for (int i = 0; i < 2; i++) {
		pid_t child = trace_fork();

		if (child == 0) {
			char *arguments[] = { (char *)program, NULL };

			execve(program, arguments, variant->environment);
			_exit(127);
		}
		trace_run_to_exec(child);
		counts[i] = counter[i](child);
	}
	printf("count\t%s\t%llu\t%llu\n", variant->name, (unsigned long long)counts[0],
	       (unsigned long long)counts[1]);
}

static int variants_parse(struct variant *variants, char *words[])
{
	int count = 0, variables = 0;

	for (; *words; words++) {
		if (strcmp(*words, "--") == 0) {
			if (count == VARIANTS_MAX || !words[1])
				return -1;
			variants[count].name = *++words;
			variants[count].environment[0] = path;
			variables = 1;
			count++;
		} else if (count == 0 || variables > VARIABLES_MAX) {
			return -1;
		} else {
			variants[count - 1].environment[variables++] = *words;
		}
	}
	return count;
}

int main(int argc, char *argv[])
{
	static struct variant variants[VARIANTS_MAX];
	int runs = argc > 3 ? atoi(argv[1]) : 0,
	    number = runs > 0 ? variants_parse(variants, argv + 3) : -1;

	if (number <= 0) {
		fprintf(stderr,
			"usage: startup RUNS PROGRAM -- NAME [VARIABLE=VALUE]... [-- ...]\n");
		return 2;
	}
	if (getenv("PATH"))
		strncat(path, getenv("PATH"), sizeof(path) - strlen(path) - 1);
	/* the first round finds cold caches: it isn't printed */
	for (int run = -1; run < runs; run++)
		for (int i = 0; i < number; i++)
			run_once(argv[2], &variants[i], run >= 0);
	for (int i = 0; i < number; i++)
		count(argv[2], &variants[i]);
	return 0;
}
