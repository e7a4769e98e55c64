/* SPDX-License-Identifier: BSD-3-Clause */
/* child.c - runs another program and returns its output */
#include "config.h"

#include "common/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MAX (4 * 1024 * 1024)

extern char **environ;

/* Reads a whole memory file, and closes it. Returns a text to be freed, or NULL. */
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

/* Starts it with its output in memory files, which take any amount without a reader. Returns 0 or a positive errno. */
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

/* Waits for its end, and kills it when the time is up. Returns its status of waitpid(2), or -errno. */
static int wait_for(pid_t pid, int timeout_ms)
{
	struct pollfd end = { .fd = timeout_ms < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	int status = 0, ready = 1;

	if (end.fd >= 0) {
		do
			ready = poll(&end, 1, timeout_ms);
		while (ready < 0 && errno == EINTR);
		close(end.fd);
	}
	if (ready == 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return ready == 0 ? -ETIMEDOUT : status;
}

int child_run(const char *const words[], int timeout_ms, struct child_output *out)
{
	int text = memfd_create("output", MFD_CLOEXEC), messages = memfd_create("messages", MFD_CLOEXEC), ret;
	pid_t pid;

	*out = (struct child_output){ 0 };
	ret = text < 0 || messages < 0 ? -errno : -start((char *const *)words, text, messages, &pid);
	if (ret == 0)
		ret = wait_for(pid, timeout_ms);
	out->text = text >= 0 ? take_text(text) : NULL;
	out->messages = messages >= 0 ? take_text(messages) : NULL;
	if (ret >= 0 && (!out->text || !out->messages))
		ret = -ENOMEM;
	if (ret < 0) {
		free(out->text);
		free(out->messages);
		return ret;
	}
	out->status = ret;
	return 0;
}
