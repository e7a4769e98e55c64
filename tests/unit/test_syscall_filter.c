/* SPDX-License-Identifier: BSD-3-Clause */
/* test_syscall_filter.c - which system calls the filter permits, refuses, and ends the process for */
#include "config.h"

#include "convertd/privilege/privilege.h"

#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static enum syscall_filter_role role = SYSCALL_FILTER_WARD;

/* Check ends its processes by calls that the filter doesn't permit, so each try has a process of its own. */
static int try_filtered(bool (*attempt)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall_filter_install(role) != 0)
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

/*
 * By these system calls themselves: on i386 the C library's functions call socketcall(2), whose arguments the filter doesn't see.
 */
static long direct_socket(int family, int type, int protocol)
{
	return syscall(SYS_socket, family, type, protocol);
}

static long direct_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	return syscall(SYS_setsockopt, fd, level, name, value, len);
}

static bool make_strange_socket(void)
{
	static const int families[] = { AF_VSOCK, AF_PACKET, AF_ALG, AF_KEY, AF_TIPC };
	bool refused = true;

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		refused &= says_enosys(direct_socket(families[i], SOCK_STREAM, 0));
	return refused && says_enosys(direct_socket(AF_INET, SOCK_RAW, IPPROTO_TCP)) &&
	       says_enosys(direct_socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP)) &&
	       says_enosys(direct_socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER));
}

static bool make_memory_executable(void)
{
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory != MAP_FAILED && says_enosys(mprotect(memory, 4096, PROT_READ | PROT_EXEC)) &&
	       mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
		       MAP_FAILED &&
	       errno == ENOSYS;
}

static bool write_file(void)
{
	return says_enosys(open("/dev/null", O_WRONLY)) && says_enosys(open("/dev/null", O_RDWR)) &&
	       says_enosys(open("/tmp", O_TMPFILE | O_RDWR, 0600)) &&
	       says_enosys(open("/dev/null", O_RDONLY | O_CREAT, 0600));
}

static bool signal_others(void)
{
	return says_enosys(kill(getppid(), 0)) &&
	       says_enosys(syscall(SYS_tgkill, getppid(), getppid(), 0)) &&
	       syscall(SYS_tgkill, getpid(), gettid(), 0) == 0;
}

static bool change_limits(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && says_enosys(setrlimit(RLIMIT_NOFILE, &limit)) &&
	       says_enosys(syscall(SYS_prlimit64, getppid(), RLIMIT_NOFILE, NULL, &limit));
}

static bool attach_filter(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	return setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) == 0 &&
	       setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0 &&
	       says_enosys(direct_setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &on, sizeof(on)));
}

static bool use_strange_operations(void)
{
	return says_enosys(ioctl(STDERR_FILENO, TIOCSTI, "x")) &&
	       says_enosys(fcntl(STDERR_FILENO, F_SETOWN, getppid())) &&
	       says_enosys(prctl(PR_SET_DUMPABLE, 1)) && fcntl(STDERR_FILENO, F_GETFD) >= 0;
}

static bool make_process(void)
{
	/* as glibc's fork() does it; musl's makes the older system call, which ends the process */
	long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

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
					 clone_into_namespace, make_strange_socket,
					 make_memory_executable, write_file, signal_others,
					 change_limits, attach_filter, use_strange_operations };

/* The call fails as on an older kernel, so that its caller falls back to another one. */
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

static bool speak_to_netfilter(void)
{
	return socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER) >= 0 &&
	       says_enosys(direct_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
}

static bool start_neither_thread_nor_process(void)
{
	return says_enosys(syscall(SYS_clone, CLONE_THREAD | CLONE_SIGHAND | CLONE_VM, NULL, NULL,
				   NULL, NULL)) &&
	       make_process() && clone_into_namespace();
}

static bool end_by_signal(void)
{
	const struct rlimit none = { 0 };

	return setrlimit(RLIMIT_CORE, &none) == 0 && says_enosys(kill(getppid(), SIGTERM)) &&
	       says_enosys(setrlimit(RLIMIT_NOFILE, &none));
}

static bool (*const of_main[])(void) = { speak_to_netfilter,	 start_neither_thread_nor_process, end_by_signal,
					 make_memory_executable, write_file,	  read_sysctl,
					 change_user,		 attach_filter };

START_TEST(what_the_main_process_may)
{
	role = SYSCALL_FILTER_WARDEN;
	ck_assert_int_eq(try_filtered(of_main[_i]), 0);
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
	tcase_add_loop_test(tcase, what_the_main_process_may, 0, ARRAY_SIZE(of_main));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
