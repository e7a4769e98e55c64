/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * start.c - starts a program whose calls the supervisor answers
 *
 * The child installs the filter for itself, sends the listener to the supervisor, and waits. The supervisor tests on the child all that it
 * will have to do. So if this kernel, a container or Yama forbids something, we find out before the program runs, and report it once.
 */
#include "config.h"

#include "supervise/start.h"

#include "supervise/listener.h"
#include "supervise/tracee.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The same as env(1)'s; see convertize's options.h. */
#define STATUS_FAILED 125
#define STATUS_CANNOT_RUN 126
#define STATUS_NOT_FOUND 127

/* A message from the child: the result of a step, as 0 or an errno. */
struct word {
	enum { WORD_FILTER, WORD_EXEC } about;
	int error;
};

static bool send_word(int to, struct word word, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { &word, sizeof(word) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		control.header = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	return sendmsg(to, &message, MSG_NOSIGNAL) == sizeof(word);
}

/* Returns false if no message came: the child has executed the program, or was killed. */
static bool receive_word(int from, struct word *word, int *fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { word, sizeof(*word) };
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)
	};

	*fd = -1;
	if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) != sizeof(*word))
		return false;
	if (message.msg_controllen >= CMSG_LEN(sizeof(int)) && control.header.cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(&control.header), sizeof(*fd));
	return true;
}

/* The child: installs the filter, waits for the supervisor, and executes the program. */
static _Noreturn void run_program(const struct supervise_command *command, int supervisor, const sigset_t *mask)
{
	int listener = listener_install();
	char go;

	if (!send_word(supervisor, (struct word){ WORD_FILTER, listener < 0 ? -listener : 0 }, listener) || listener < 0)
		_exit(STATUS_FAILED);
	close(listener); /* otherwise the supervisor would never see the listener hang up */
	if (recv(supervisor, &go, 1, 0) != 1)
		_exit(STATUS_FAILED);
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (command->binary)
		execv(command->file, command->argv);
	else
		execvp(command->file, command->argv);
	send_word(supervisor, (struct word){ WORD_EXEC, errno }, -1);
	_exit(STATUS_CANNOT_RUN);
}

/* Says why the filter can't be installed, with the remedy. */
static const char *filter_problem(int error)
{
	switch (error) {
	case EBUSY:
		return "it is supervised already, by another convertize, a container manager or a sandbox, and Linux allows one "
		       "supervisor";
	case EINVAL:
		return "this kernel is too old to supervise programs; use Linux 5.19 or newer";
	case ENOSYS:
		return "this kernel or a container doesn't permit seccomp filters; run the container with another seccomp profile";
	case EPERM:
	case EACCES:
		return "a container's seccomp profile forbids seccomp(); run it with another profile";
	default:
		return strerror(error);
	}
}

static bool tell(const struct supervise_command *command, const char *problem)
{
	fprintf(stderr, "convertize: %s can't be supervised: %s; %s\n", command->file, problem, command->otherwise);
	return false;
}

/* Returns Yama's sysctl, by which a host restricts who may trace processes; -1 if this kernel has no Yama. */
static int yama_scope(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%d", &scope) != 1)
		scope = -1;
	fclose(file);
	return scope;
}

/* Says why this user may not trace processes, with the remedy that Yama's value leaves: 3 can't be lowered, and holds for root as well. */
static const char *trace_problem(void)
{
	switch (yama_scope()) {
	case 2:
		return "the sysctl kernel.yama.ptrace_scope is 2, which forbids to trace processes without CAP_SYS_PTRACE; set it to 1, "
		       "or run a container with --cap-add SYS_PTRACE";
	case 3:
		return "the sysctl kernel.yama.ptrace_scope is 3, which forbids to trace processes until the next boot; boot without "
		       "that setting";
	default:
		return "this user may not trace processes here; run a container with --cap-add SYS_PTRACE";
	}
}

/* Tests on the child the operations that the supervisor will need on the program. */
static bool try_access(const struct supervise_command *command, pid_t pid, int supervisor_end)
{
	static int probe = 1;
	int copy, fd;

	if (!tracee_read(pid, (uintptr_t)&probe, &copy, sizeof(copy)) || copy != probe)
		return tell(command, errno == EPERM ? trace_problem() : "process_vm_readv() isn't permitted here; run the container with "
									"another seccomp profile");
	fd = tracee_get_fd(pid, supervisor_end);
	if (fd < 0)
		return tell(command, "pidfd_getfd() isn't permitted here; run the container with --cap-add SYS_PTRACE or another "
				     "seccomp profile");
	close(fd);
	return true;
}

static int exec_failed(const char *command, int error)
{
	fprintf(stderr, "convertize: %s: %s\n", command,
		error == ENOENT && !strchr(command, '/') ? "command not found" : strerror(error));
	return error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}

/* Ends a child that won't be the program. Returns the status. */
static int end_child(struct start *start)
{
	close(start->child);
	kill(start->pid, SIGKILL);
	waitpid(start->pid, NULL, 0);
	return STATUS_FAILED;
}

int start_prepare(const struct supervise_command *command, const sigset_t *mask, struct start *out)
{
	struct word word;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 || (out->pid = fork()) < 0) {
		tell(command, strerror(errno));
		return STATUS_FAILED;
	}
	if (out->pid == 0) {
		close(pair[0]);
		run_program(command, pair[1], mask);
	}
	close(pair[1]);
	out->child = pair[0];
	if (!receive_word(out->child, &word, &out->listener)) {
		tell(command, "its process has ended");
		return end_child(out);
	}
	if (word.error || out->listener < 0) {
		tell(command, filter_problem(word.error));
		return end_child(out);
	}
	return try_access(command, out->pid, STDERR_FILENO) ? 0 : end_child(out);
}

int start_go(const struct supervise_command *command, struct start *start)
{
	struct word word = { 0 };
	int nothing;

	if (send(start->child, "", 1, MSG_NOSIGNAL) == 1 && !receive_word(start->child, &word, &nothing)) {
		close(start->child);
		return 0;
	}
	end_child(start);
	return exec_failed(command->file, word.error);
}
