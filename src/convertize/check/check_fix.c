/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_fix.c - "convertize check --fix": the commands that mend what is wrong, printed or run
 *
 * Each command is shown, and then run without a shell. What has to be done on the converter is printed as a comment, so
 * that the whole output can be given to a shell here.
 */
#include "config.h"

#include "convertize/check/check.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void print_command(char *const words[], const char *about, void *arg)
{
	(void)about;
	report_write_command(arg, words);
	fputc('\n', arg);
}

static void print_comment(char *const words[], const char *about, void *arg)
{
	fprintf(arg, "# on the converter %s, as root: ", about ? about : "");
	report_write_command(arg, words);
	fputc('\n', arg);
}

static void ignore_command(char *const words[], const char *about, void *arg)
{
	(void)words;
	(void)about;
	(void)arg;
}

void check_fix_print(const struct report *report)
{
	if (report->json)
		return;
	if (report_commands(report, COMMAND_HERE, ignore_command, NULL))
		fputs("# here, as root:\n", report->out);
	report_commands(report, COMMAND_HERE, print_command, report->out);
	report_commands(report, COMMAND_CONVERTER, print_comment, report->out);
}

/*
 * Runs a command with its standard output on our standard error. Returns its exit status, or what a shell returns for a
 * command that wasn't run or was killed.
 */
static int run(char *const words[])
{
	posix_spawn_file_actions_t actions;
	int error, status = 0;
	pid_t child;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
	error = posix_spawnp(&child, words[0], &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error) {
		fprintf(stderr, "convertize: %s: %s\n", words[0], strerror(error));
		return error == ENOENT ? 127 : 126;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void run_command(char *const words[], const char *about, void *arg)
{
	struct report *later = arg;
	int status;

	(void)about;
	if (!later->json) {
		fputs("+ ", later->out);
		report_write_command(later->out, words);
		fputc('\n', later->out);
		fflush(later->out);
	}
	status = run(words);
	report_ran(later, words, status);
	if (status && !later->json)
		fprintf(later->out, "# status %d%s\n", status,
			geteuid() ? ": it needs root, sudo convertize check --fix=run" : "");
	fflush(later->out);
}

size_t check_fix_run(const struct report *report, struct report *later)
{
	const char *path = getenv("PATH");
	char *wider = NULL;

	/* the PATH of an ordinary user has no ip and no sysctl */
	if (asprintf(&wider, "%s%s/usr/sbin:/sbin", path ? path : "", path && *path ? ":" : "") >= 0)
		setenv("PATH", wider, 1);
	free(wider);
	return report_commands(report, COMMAND_HERE, run_command, later);
}
