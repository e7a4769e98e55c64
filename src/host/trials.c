/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trials.c - tests whether failed paths work again, in a process beside a program that is about to start
 *
 * The library sends its trials from within the program, which may end before a long path can answer: its sockets close, and the answer is
 * lost. Programs of that kind, run again and again, would stay on the other network for ever. So the launcher leaves a process behind that
 * waits for the answer. The program itself then finds no trial due (paths_is_trial_due()).
 */
#include "config.h"

#include "host/survey.h"

#include "client/converters.h"
#include "client/user_cache.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define PATHS_TRIED 4
#define LOOK_MS 20

/* Finds the paths whose trial is due, and returns their number. Asks the kernel only if a path has failed or the user has preferences. */
static int find_due(const struct settings *settings, struct path due[PATHS_TRIED])
{
	/* any server will do: it only matters for converters that have refused it */
	union sockaddr_ip server = { .in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201), .sin_port = htons(443) } };
	struct converters_query query = { .destination = &server, .family = AF_INET6, .any = true };
	enum policy_verdict verdict = POLICY_CONVERT;
	union sockaddr_ip addr;
	const char *reason;
	const int converter = converters_choose(settings, &query, &addr, &verdict, &reason);
	struct path_list list;
	int best, missed = 0, count = 0;

	if (converter < 0 || (path_is_sound(paths_facts_usual(converter).state) && !settings->paths.count))
		return 0;
	best = path_list_choose(&list, settings, &query);
	if (best < 0) /* all have failed: compare each with the last */
		best = (int)list.count - 1;
	while (best >= 0 && missed >= 0 && count < PATHS_TRIED) {
		missed = path_list_missed(&list, best);
		if (missed >= 0)
			due[count++] = list.paths[missed];
	}
	return count;
}

/* Closes the caller's descriptors: the reader of a pipe waits until its last writer ends. */
static void detach(void)
{
	setsid();
	syscall(SYS_close_range, 0, ~0u, 0);
	open("/dev/null", O_RDWR);
	(void)!dup(STDIN_FILENO);
	(void)!dup(STDIN_FILENO);
	(void)!chdir("/");
}

static _Noreturn void run(const struct path due[], int count)
{
	static struct survey surveys[PATHS_TRIED];
	bool goes_on[PATHS_TRIED], any = true, works;

	detach();
	for (int i = 0; i < count; i++) {
		survey_reset(&surveys[i]);
		goes_on[i] = survey_try(&surveys[i], &due[i]);
	}
	while (any) {
		any = false;
		poll(NULL, 0, LOOK_MS);
		for (int i = 0; i < count; i++) {
			goes_on[i] = goes_on[i] && !survey_trial_ends(&surveys[i], &works);
			any |= goes_on[i];
		}
	}
	_exit(0);
}

/* Would this process, and so the program, adopt the process left behind? The program must not see it. */
static bool takes_up_orphans(void)
{
	int subreaper = 0;

	return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &subreaper, 0, 0, 0) == 0 && subreaper);
}

void trials_start(const struct settings *settings)
{
	struct path due[PATHS_TRIED];
	int count, status;
	pid_t child;

	if (takes_up_orphans())
		return;
	user_cache_init(settings);
	converters_init(settings);
	user_cache_open(-1);
	count = find_due(settings, due);
	child = count ? fork() : -1;
	if (child < 0)
		return;
	if (child == 0) {
		/* fork twice: the program must not have a child that it doesn't know */
		if (fork() == 0)
			run(due, count);
		_exit(0);
	}
	waitpid(child, &status, 0);
}
