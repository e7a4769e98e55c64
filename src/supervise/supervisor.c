/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * supervisor.c - the process that starts a program, and answers its calls and its children's until the last program has ended
 *
 * It is an ancestor of all its programs, since only ancestors may trace a process if Yama restricts tracing. It adopts orphans
 * (PR_SET_CHILD_SUBREAPER), so that daemons stay its descendants. One thread answers all calls, and waits for events only in epoll_wait().
 * Other threads look up converters' names (progress.c) and make blind requests again (blind_retry.c).
 */
#include "config.h"

#include "supervise/supervise.h"

#include "client/cache.h"
#include "client/client_log.h"
#include "client/converters.h"
#include "common/clock.h"
#include "common/os.h"
#include "engine/path_start.h"
#include "host/host_model.h"
#include "supervise/blind.h"
#include "supervise/calls.h"
#include "supervise/connection.h"
#include "supervise/listener.h"
#include "supervise/permission.h"
#include "supervise/tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENTS_MAX 64

/* The sources of events beside the connections; each is a bit, and data.u64 of its registration. */
enum source { SOURCE_LISTENER = 1, SOURCE_CHILDREN = 2, SOURCE_FRONT = 4, SOURCE_RESOLVER = 8, SOURCE_RETRY = 16, SOURCE_END = 32 };

static struct supervisor {
	int front;    /* -1 once it is gone */
	pid_t front_process;
	int children; /* a signalfd */
	pid_t program;
	bool running; /* the program runs; if not, only its children may be left */
	bool reap_due;
	bool leaving; /* all programs have ended */
} self;

static void tell_front(enum supervisor_news news, int value, bool last)
{
	struct supervisor_message message = { .news = news, .value = value, .last = last };

	if (self.front >= 0)
		(void)!send(self.front, &message, sizeof(message), MSG_NOSIGNAL);
}

/* Returns whether programs are left. We have adopted all orphans among them. */
static bool has_children(void)
{
	siginfo_t info = { 0 };

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Takes the news of children. Puts that off while the retry thread runs: waitpid() would report the threads that it has stopped. */
static void reap(void)
{
	int status;
	pid_t pid;

	self.reap_due = blind_retry_is_busy();
	if (self.reap_due)
		return;
	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid != self.program)
			continue;
		if (WIFSTOPPED(status)) {
			tell_front(SUPERVISOR_STOPPED, WSTOPSIG(status), false);
			continue;
		}
		self.running = false;
		if (!has_children())
			blind_requests_note_open(); /* before the program's parent starts the next one */
		if (WIFSIGNALED(status))
			tell_front(SUPERVISOR_KILLED, WTERMSIG(status), !has_children());
		else
			tell_front(SUPERVISOR_EXITED, WEXITSTATUS(status), !has_children());
	}
	self.leaving = !self.running && !has_children();
}

static void children_changed(void)
{
	struct signalfd_siginfo ignored;

	while (read(self.children, &ignored, sizeof(ignored)) > 0)
		continue;
	reap();
}

static void retries_done(void)
{
	uint64_t ignored;

	if (read(supervision.retry_ready, &ignored, sizeof(ignored)) <= 0)
		return;
	blind_requests_take_results();
	if (self.reap_due)
		reap();
}

/* Passes on the front's signals. If somebody has killed the front, kills the program, too, as would have happened without us. */
static void listen_to_front(void)
{
	struct supervisor_message message;
	ssize_t got = recv(self.front, &message, sizeof(message), MSG_DONTWAIT);

	if (got == sizeof(message)) {
		if (self.running && message.news == SUPERVISOR_SIGNAL)
			kill(self.program, message.value);
		return;
	}
	if (got < 0 && errno == EAGAIN)
		return;
	close(self.front);
	self.front = -1;
	if (self.running)
		kill(self.program, SIGKILL);
}

static void watch(int fd, enum source source)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = source };

	if (fd < 0 || epoll_ctl(supervision.epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		abort();
}

/* Takes calls that wait. If programs call without a pause, connections that are due have their turn in between. */
static void listen_to_programs(void)
{
	struct call call;

	for (int i = 0; i < EVENTS_MAX && listener_receive(supervision.listener, &call) == 0; i++) {
		blind_retry_lock();
		calls_handle(&call);
		blind_retry_unlock();
		if (!listener_has_more(supervision.listener))
			break;
	}
}

static void loop(void)
{
	struct epoll_event events[EVENTS_MAX];
	uint64_t ignored;

	for (;;) {
		const int wait = progress_look();
		unsigned int sources = 0;
		int count;

		/*
		 * The programs have ended, and nobody waits for us. We still wait for the end of a trial: otherwise short programs would
		 * never learn that a failed path works again.
		 */
		if (self.leaving && !path_trials_look()) {
			blind_requests_note_open();
			exit(EXIT_SUCCESS);
		}
		count = epoll_wait(supervision.epoll, events, EVENTS_MAX, wait);

		/* Steps of connections first: each may free its own connection only. */
		for (int i = 0; i < count; i++) {
			if (events[i].data.u64 >= SOURCE_END)
				progress_step(events[i].data.ptr);
			else if (events[i].data.u64 == SOURCE_LISTENER && !(events[i].events & EPOLLIN))
				epoll_ctl(supervision.epoll, EPOLL_CTL_DEL, supervision.listener, NULL); /* nobody is left */
			else
				sources |= (unsigned int)events[i].data.u64;
		}
		if (sources & SOURCE_RESOLVER && read(supervision.resolver_ready, &ignored, sizeof(ignored)) > 0)
			progress_resolved();
		if (sources & SOURCE_RETRY)
			retries_done();
		if (sources & SOURCE_LISTENER)
			listen_to_programs();
		if (sources & SOURCE_FRONT)
			listen_to_front();
		if (sources & SOURCE_CHILDREN)
			children_changed();
	}
}

/*
 * Leaves to the program its standard descriptors, the terminal, whose signals are for the program, and its directory. prepare() has closed
 * the other descriptors.
 */
static void detach(void)
{
	setsid();
	supervise_close_standard();
	supervise_leave_directory();
}

/* Uses the C library's clock unless a preloaded library may replace it, such as libfaketime. */
static void choose_clock(void)
{
	if (!getenv("LD_PRELOAD") && access("/etc/ld.so.preload", F_OK) != 0)
		clock_use_library();
}

/* --- starting the program --- */

/*
 * The child installs the filter for itself, tells the supervisor the listener's descriptor, and waits. The supervisor tests on the child
 * whether it may read memory and take descriptors. So if this kernel, a container or Yama forbids that, we find out before the program
 * runs, and report it once.
 */

/* Sets a variable to this process's ID if it has the front's. Returns whether it had. */
static bool take_over(const char *variable)
{
	const char *value = getenv(variable);
	char text[16];

	if (!value || strtol(value, NULL, 10) != (long)self.front_process)
		return false;
	snprintf(text, sizeof(text), "%d", (int)getpid());
	setenv(variable, text, 1);
	return true;
}

/* A service manager's variables name the process that gets its listening sockets and its watchdog's interval: makes them name this one. */
static void take_over_service(void)
{
	if (take_over("LISTEN_PID"))
		unsetenv("LISTEN_PIDFDID"); /* names the front, too: systemd 258 */
	take_over("WATCHDOG_PID");
}

/* Installs the filter, waits for the supervisor, and executes the program. Each word is a descriptor or, negative, an errno. */
static _Noreturn void run_program(const struct supervise_command *command, int supervisor, const struct supervise_inherited *inherited)
{
	int word = listener_install();
	char go;

	if (send(supervisor, &word, sizeof(word), MSG_NOSIGNAL) != sizeof(word) || word < 0 || recv(supervisor, &go, 1, 0) != 1)
		_exit(SUPERVISE_NOT_RUN);
	close(word); /* otherwise the supervisor would never see the listener hang up */
	take_over_service();
	supervise_restore(inherited);
	if (command->binary)
		execv(command->file, command->argv);
	else
		execvp(command->file, command->argv);
	word = -errno;
	(void)!send(supervisor, &word, sizeof(word), MSG_NOSIGNAL);
	_exit(SUPERVISE_CANNOT_RUN);
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
		return "a container's seccomp profile forbids seccomp(); run the container with another one";
	default:
		return strerror(error);
	}
}

static bool report_problem(const struct supervise_command *command, const char *problem)
{
	fprintf(stderr, "convertize: %s can't be supervised: %s; %s\n", command->file, problem, command->otherwise);
	return false;
}

/* Says why this user may not trace processes, with the remedy that Yama's sysctl leaves: 3 can't be lowered, and holds for root as well. */
static const char *trace_problem(void)
{
	switch (sysctl_read("kernel.yama.ptrace_scope")) {
	case 2:
		return "the sysctl kernel.yama.ptrace_scope is 2, which forbids tracing processes without CAP_SYS_PTRACE; set it to 1, "
		       "or run a container with --cap-add SYS_PTRACE";
	case 3:
		return "the sysctl kernel.yama.ptrace_scope is 3, which forbids tracing processes until the next boot; boot without "
		       "that setting";
	default:
		return "this user may not trace processes here; run a container with --cap-add SYS_PTRACE";
	}
}

/* Tests on the child the operations that the supervisor will need on the program, and takes the listener, its descriptor @at. */
static bool try_access(const struct supervise_command *command, pid_t pid, int at)
{
	static int probe = 1;
	int copy;

	if (!tracee_read(pid, (uintptr_t)&probe, &copy, sizeof(copy)) || copy != probe)
		return report_problem(command, errno == EPERM ? trace_problem() :
								"process_vm_readv() isn't permitted here; run the container with another "
								"seccomp profile");
	permission_begin(pid);
	supervision.listener = tracee_get_fd(pid, at);
	return supervision.listener >= 0 ||
	       report_problem(command, "pidfd_getfd() isn't permitted here; run the container with --cap-add SYS_PTRACE or another "
				       "seccomp profile");
}

int supervise_exec_failed(const char *command, int error)
{
	fprintf(stderr, "convertize: %s: %s\n", command,
		error == ENOENT && !strchr(command, '/') ? "command not found" : strerror(error));
	return error == ENOENT ? SUPERVISE_NOT_FOUND : SUPERVISE_CANNOT_RUN;
}

/* Ends a child that won't be the program, and returns @status. */
static int end_child(int child, int status)
{
	close(child);
	kill(self.program, SIGKILL);
	waitpid(self.program, NULL, 0);
	return status;
}

/* Makes the child that will execute the program, and @child, a socket to it. Returns 0, or the exit status after it has reported why. */
static int prepare(const struct supervise_command *command, const struct supervise_inherited *inherited, int *child)
{
	int pair[2], word;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 || (self.program = fork()) < 0) {
		report_problem(command, strerror(errno));
		return SUPERVISE_NOT_RUN;
	}
	if (self.program == 0) {
		close(pair[0]);
		run_program(command, pair[1], inherited);
	}
	supervise_close_others((int[]){ self.front, pair[0] }, 2);
	*child = pair[0];
	if (recv(*child, &word, sizeof(word), 0) != sizeof(word))
		report_problem(command, "its process has ended");
	else if (word < 0)
		report_problem(command, filter_problem(-word));
	else if (try_access(command, self.program, word))
		return 0;
	return end_child(*child, SUPERVISE_NOT_RUN);
}

/* Lets the child execute the program, which closes its end of the socket. Returns as above. */
static int go(const struct supervise_command *command, int child)
{
	int word = 0;

	if (send(child, "", 1, MSG_NOSIGNAL) == 1 && recv(child, &word, sizeof(word), 0) != sizeof(word)) {
		close(child);
		return 0;
	}
	return end_child(child, supervise_exec_failed(command->file, -word));
}

_Noreturn void supervisor_run(const struct settings *settings, const struct supervise_command *command, int front,
			      const struct supervise_inherited *inherited)
{
	sigset_t children;
	int status, child;

	supervision.settings = settings;
	self.front = front;
	self.front_process = getppid();
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	prctl(PR_SET_NAME, "convertize-sup", 0, 0, 0);
	status = prepare(command, inherited, &child);
	if (!status) {
		tell_front(SUPERVISOR_PREPARED, self.program, false);
		status = go(command, child);
	}
	if (status) {
		tell_front(SUPERVISOR_FAILED, status, true);
		exit(EXIT_FAILURE);
	}
	listener_take_turns(supervision.listener);
	self.running = true;
	tell_front(SUPERVISOR_STARTED, 0, false);
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	self.children = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
	open_files_raise(); /* many connections at once need many descriptors; the program keeps its limits */
	choose_clock();
	log_open_for_good(settings->log, tracee_name);
	detach();
	user_cache_init(settings);
	converters_init(settings);
	dial_init(&(struct dial_host){ .settings = settings, .log = log_line, .clock = clock_ns });
	if (*settings->log)
		networks_tell_missing(&settings->paths, log_line);
	supervision.epoll = epoll_create1(EPOLL_CLOEXEC);
	supervision.resolver_ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	supervision.retry_ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	watch(supervision.listener, SOURCE_LISTENER);
	watch(self.children, SOURCE_CHILDREN);
	watch(self.front, SOURCE_FRONT);
	watch(supervision.resolver_ready, SOURCE_RESOLVER);
	watch(supervision.retry_ready, SOURCE_RETRY);
	loop();
	abort();
}
