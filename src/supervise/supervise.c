/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * supervise.c - runs a program whose connections a supervisor converts
 *
 * This is the front: the process that the shell has started, and takes for the program. It stops and ends as the program does, and passes
 * on the signals that it gets. It ignores those from the terminal: the program is in the same process group and gets them itself. It holds
 * none of the program's descriptors, and takes no part in its connections.
 */
#include "config.h"

#include "supervise/supervise.h"

#include "common/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define VARIABLE "CONVERT_SUPERVISED" /* tells a supervised convertize that the supervisor is another convertize's */

/* Ends by the program's signal, so that this process's parent sees no difference. */
static _Noreturn void end_by_signal(int number)
{
	struct rlimit none = { 0 };
	sigset_t mask;

	setrlimit(RLIMIT_CORE, &none); /* the core file is the program's, if there is one */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	signal(number, SIG_DFL);
	kill(getpid(), number);
	sigemptyset(&mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	_exit(128 + number); /* not reached */
}

/* Passes a signal on, but for the terminal's, which have SI_KERNEL, and SIGCHLD, which is about the supervisor. */
static void take_signal(int signals, int supervisor)
{
	struct supervisor_message message = { .news = SUPERVISOR_SIGNAL };
	struct signalfd_siginfo info;

	if (read(signals, &info, sizeof(info)) != sizeof(info) || info.ssi_code == SI_KERNEL || info.ssi_signo == SIGCHLD)
		return;
	message.value = (int)info.ssi_signo;
	(void)!send(supervisor, &message, sizeof(message), MSG_NOSIGNAL);
}

void supervise_close_standard(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= STDERR_FILENO && null >= 0; fd++)
		dup2(null, fd);
}

void supervise_close_others(const int keep[], size_t count)
{
	unsigned int from = STDERR_FILENO + 1, next = 0;

	for (; next < UINT_MAX; from = next + 1) {
		next = UINT_MAX;
		for (size_t i = 0; i < count; i++)
			if ((unsigned int)keep[i] >= from && (unsigned int)keep[i] < next)
				next = (unsigned int)keep[i];
		if (next > from)
			syscall(SYS_close_range, from, next - 1, 0);
	}
}

void supervise_leave_directory(void)
{
	if (chdir("/") != 0) {
		/* we keep the directory */
	}
}

/* Waits for a child's end. Returns its status as waitpid() does. */
static int wait_for_child(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	return status;
}

/* Acts on a message of the supervisor. */
static void take_news(const struct supervisor_message *news, pid_t supervisor)
{
	if (news->last)
		wait_for_child(supervisor);
	switch (news->news) {
	case SUPERVISOR_STOPPED:
		kill(getpid(), SIGSTOP);
		break;
	case SUPERVISOR_EXITED:
		_exit(news->value);
	case SUPERVISOR_KILLED:
		end_by_signal(news->value);
	default: /* hear_of_start() has read the others */
		break;
	}
}

/* Takes over after the supervisor was killed: its programs are our children now. Reports that, and waits for the first program. */
static _Noreturn void survive(pid_t supervisor, pid_t program, int standard_error)
{
	int status;

	wait_for_child(supervisor);
	dprintf(standard_error, "convertize: the supervisor was killed: the program keeps its connections, and "
				 "gets ENOSYS for new ones; start it again\n");
	status = wait_for_child(program);
	if (WIFSIGNALED(status))
		end_by_signal(WTERMSIG(status));
	_exit(WEXITSTATUS(status));
}

/* Waits until the supervisor reports the program's end. */
static _Noreturn void wait_for_program(int supervisor, pid_t pid, pid_t program, int signals, int standard_error)
{
	struct pollfd polled[] = { { .fd = supervisor, .events = POLLIN }, { .fd = signals, .events = POLLIN } };
	struct supervisor_message news;

	for (;;) {
		if (poll(polled, 2, -1) < 0)
			continue;
		if (polled[1].revents)
			take_signal(signals, supervisor);
		if (!polled[0].revents)
			continue;
		if (recv(supervisor, &news, sizeof(news), 0) != sizeof(news))
			survive(pid, program, standard_error);
		take_news(&news, pid);
	}
}

/*
 * Waits until the program is started. Returns 0 with its process ID, or the exit status if it can't be started. A supervisor that is killed
 * between the two messages may have started it: wait_for_program() finds out, since the next message doesn't come.
 */
static int hear_of_start(int supervisor, pid_t *program)
{
	struct supervisor_message news;

	if (recv(supervisor, &news, sizeof(news), 0) != sizeof(news)) {
		fputs("convertize: the supervisor ended before it started the program\n", stderr);
		return SUPERVISE_NOT_RUN;
	}
	if (news.news == SUPERVISOR_FAILED)
		return news.value;
	*program = (pid_t)news.value;
	if (recv(supervisor, &news, sizeof(news), 0) == sizeof(news) && news.news == SUPERVISOR_FAILED)
		return news.value;
	return 0;
}

bool supervise_is_nested(void)
{
	return getenv(VARIABLE) && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER;
}

void supervise_restore(const struct supervise_inherited *inherited)
{
	sigaction(SIGCHLD, &inherited->children, NULL);
	setitimer(ITIMER_REAL, &inherited->timer, NULL);
	sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
}

/* Undoes the changes that supervise() has made to this process. Returns @status. */
static int give_up(const struct supervise_inherited *inherited, int status)
{
	prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
	unsetenv(VARIABLE);
	supervise_restore(inherited);
	return status;
}

int supervise(const struct settings *settings, const struct supervise_command *command)
{
	int pair[2], signals, standard_error, status;
	const struct sigaction children = { .sa_handler = SIG_DFL };
	const struct itimerval none = { 0 };
	struct supervise_inherited inherited;
	sigset_t all;
	pid_t pid, program = 0;

	standard_descriptors_fill();
	setenv(VARIABLE, "1", 1);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* for the case that the supervisor is killed */
	setitimer(ITIMER_REAL, &none, &inherited.timer);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &inherited.mask);
	sigaction(SIGCHLD, &children, &inherited.children);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 || (pid = fork()) < 0) {
		fprintf(stderr, "convertize: no supervisor: %s; raise the limits of processes (ulimit -u) and open files (ulimit -n)\n",
			strerror(errno));
		return give_up(&inherited, SUPERVISE_NOT_RUN);
	}
	if (pid == 0) {
		close(pair[0]);
		supervisor_run(settings, command, pair[1], &inherited);
	}
	close(pair[1]);
	status = hear_of_start(pair[0], &program);
	if (status) {
		wait_for_child(pid);
		close(pair[0]);
		return give_up(&inherited, status);
	}
	supervise_close_others(pair, 1);
	supervise_leave_directory();
	signals = signalfd(-1, &all, SFD_CLOEXEC);
	standard_error = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	supervise_close_standard();
	wait_for_program(pair[0], pid, program, signals, standard_error);
}
