/* SPDX-License-Identifier: BSD-3-Clause */
/* systemctl.c - questions to systemd, by systemctl(1) as a child process */
#include "config.h"

#include "convertize/systemctl.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "systemctl"
#define WORDS_MAX 16
#define OUTPUT_MAX (4 * 1024 * 1024)

extern char **environ;

/* Reads a whole memory file, which is closed. Returns a text to be freed, or NULL. */
static char *take_text(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text = size >= 0 && size <= OUTPUT_MAX ? malloc((size_t)size + 1) : NULL;
	ssize_t n = text ? pread(fd, text, (size_t)size, 0) : -1;

	close(fd);
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	return text;
}

/* Its own messages are lines; they are printed as ours. */
static void print_messages(char *messages)
{
	for (char *line = strtok(messages, "\n"); line; line = strtok(NULL, "\n"))
		fprintf(stderr, "convertize: " PROGRAM ": %s\n", line);
}

static int tell_missing(int error)
{
	if (error == ENOENT)
		fputs("convertize: " PROGRAM ": command not found; services are enabled by systemd's drop-ins: where another "
		      "service manager is used, put convertize in front of the service's command; for a system in a "
		      "directory say --root\n",
		      stderr);
	else
		fprintf(stderr, "convertize: " PROGRAM ": %s\n", strerror(error));
	return -error;
}

/* Starts it with its output in memory files, which hold any amount without somebody who reads. Returns 0 or a positive errno. */
static int start(char *const words[], int out, int messages, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	int error = posix_spawn_file_actions_init(&actions);

	if (error)
		return error;
	error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!error)
		error = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (!error)
		error = posix_spawn_file_actions_adddup2(&actions, messages, STDERR_FILENO);
	if (!error)
		error = posix_spawnp(pid, words[0], &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

int systemctl(bool user, const char *const words[], char **output)
{
	const char *argv[WORDS_MAX + 4] = { PROGRAM, "--no-pager", user ? "--user" : "--system" };
	int out, messages, status = 0, error;
	char *said, *text;
	pid_t pid;

	for (int i = 0; words[i] && i < WORDS_MAX; i++)
		argv[3 + i] = words[i];
	out = memfd_create("output", MFD_CLOEXEC);
	messages = memfd_create("messages", MFD_CLOEXEC);
	error = out < 0 || messages < 0 ? errno : start((char *const *)argv, out, messages, &pid);
	while (!error && waitpid(pid, &status, 0) < 0)
		error = errno == EINTR ? 0 : errno;
	text = out >= 0 ? take_text(out) : NULL;
	said = messages >= 0 ? take_text(messages) : NULL;
	if (!error && status && said)
		print_messages(said);
	if (!error && status)
		fprintf(stderr, "convertize: " PROGRAM " %s has failed; is systemd the service manager here? --root / does "
				"without it\n",
			words[0]);
	free(said);
	if (error || status || !output || !text) {
		free(text);
		if (!error && !status && output)
			error = ENOMEM;
		return error ? tell_missing(error) : status ? -EIO : 0;
	}
	*output = text;
	return 0;
}
