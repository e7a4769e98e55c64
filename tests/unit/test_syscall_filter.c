/* SPDX-License-Identifier: BSD-3-Clause */
/* test_syscall_filter.c - what the filter for system calls lets through, refuses, and punishes */
#include "config.h"

#include "convertd/syscall_filter.h"

#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Check's own end of a process takes calls that the filter hasn't: so each try has a process of its own. */
static int try_filtered(bool (*attempt)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall_filter_install() != 0)
			_exit(2);
		_exit(attempt() ? 0 : 1);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static bool make_socket(void)
{
	return socket(AF_INET6, SOCK_STREAM, 0) >= 0;
}

static bool read_sysctl(void)
{
	char byte;
	int fd = open("/proc/sys/net/ipv4/tcp_sack", O_RDONLY);

	return fd >= 0 && read(fd, &byte, 1) == 1;
}

static void *return_arg(void *arg)
{
	return arg;
}

static bool start_thread(void)
{
	static char token;
	pthread_t id;
	void *result = NULL;

	return pthread_create(&id, NULL, return_arg, &token) == 0 &&
	       pthread_join(id, &result) == 0 && result == &token;
}

static bool (*const needed[])(void) = { make_socket, read_sysctl, start_thread };

START_TEST(what_it_needs)
{
	ck_assert_int_eq(try_filtered(needed[_i]), 0);
}
END_TEST

static bool says_enosys(long result)
{
	return result == -1 && errno == ENOSYS;
}

static bool name_host(void)
{
	return says_enosys(sethostname("x", 1));
}

static bool change_mode(void)
{
	return says_enosys(chmod("/nonexistent", 0));
}

static bool change_user(void)
{
	return says_enosys(setuid(getuid()));
}

static bool start_io_uring(void)
{
	return says_enosys(syscall(SYS_io_uring_setup, 1, NULL));
}

/* Where glibc meets this, it takes clone(). */
static bool start_by_clone3(void)
{
	return says_enosys(syscall(SYS_clone3, NULL, 0));
}

static bool make_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return says_enosys(pid);
}

static bool clone_into_namespace(void)
{
	return says_enosys(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL));
}

static bool (*const unknown[])(void) = { name_host,	start_io_uring, start_by_clone3,
					 change_mode,	change_user,	make_process,
					 clone_into_namespace };

/* As an older kernel would say it: whoever knows another way takes that. */
START_TEST(what_it_does_not_know)
{
	ck_assert_int_eq(try_filtered(unknown[_i]), 0);
}
END_TEST

static bool execute(void)
{
	return execl("/bin/true", "true", NULL) == 0;
}

static bool trace(void)
{
	return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
}

static bool leave(void)
{
	return unshare(CLONE_NEWUSER) == 0;
}

static bool mount_something(void)
{
	return mount("none", "/nonexistent", "tmpfs", 0, NULL) == 0;
}

static bool (*const attacks[])(void) = { execute, trace, leave, mount_something };

START_TEST(what_ends_it)
{
	int status = try_filtered(attacks[_i]);

	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGSYS);
}
END_TEST

#define ARRAY_SIZE(array) ((int)(sizeof(array) / sizeof((array)[0])))

int main(void)
{
	Suite *suite = suite_create("syscall_filter");
	TCase *tcase = tcase_create("syscall_filter");

	tcase_add_loop_test(tcase, what_it_needs, 0, ARRAY_SIZE(needed));
	tcase_add_loop_test(tcase, what_it_does_not_know, 0, ARRAY_SIZE(unknown));
	tcase_add_loop_test(tcase, what_ends_it, 0, ARRAY_SIZE(attacks));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
