/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sandbox.c - restricts the files and system calls of a process of convertd, in case an attacker takes it over
 *
 * Landlock restricts files. The settings' files are mostly replaced by new ones rather than written in place, so the
 * rules allow a reload to read their directories, with everything below. If a reload names a file or socket in
 * another directory, that one can neither be read nor be made until convertd is started anew. Besides, convertd may
 * read /proc/sys/net, /proc/self and /etc/machine-id, and all its processes but the main one the files of control
 * groups. It can write and execute nothing; it can only make and remove the Unix sockets of --metrics.
 *
 * The constants of the kernel's interface are defined here, since its header may be older or newer than the kernel.
 * They don't change (Documentation/userspace-api/landlock.rst).
 */
#include "config.h"

#include "convertd/privilege/privilege.h"

#include "daemon/log.h"
#include "convertd/config/convertd_settings.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * ----- the filter of system calls, which allows only those that convertd needs -----
 *
 * An attacker who takes over a process by a fault in it goes on by system calls, and most of the kernel's own faults
 * are behind calls that convertd never makes. So a seccomp filter allows only the calls below.
 *
 * There are two lists, because the serving process needs other calls than the main process, which has the rights. The
 * filter sees only arguments in registers: the family of a socket, the protection of memory, the flags of open(). No
 * process can make memory executable, or open sockets of another family than those below. On i386 the C library makes
 * sockets and sets their options by socketcall(2), whose arguments are in memory: there all sockets and options are
 * allowed.
 *
 * A call that isn't on the list fails with ENOSYS: a C library that knows a newer call takes the older one then, as
 * on an older kernel. With EPERM it would give up (after clone3() no thread could be started), and if the process
 * were ended each update of a library might cause an outage. But a call that only an attacker has a reason to make
 * ends the process at once ("fatal").
 *
 * The kernel remembers which calls pass with any arguments (Linux 5.11): these cost some 50 ns more each, of 50 us
 * that a connection takes.
 */

#if defined(HAVE_LIBSECCOMP) && !defined(WITH_SANITIZERS)

#include <linux/netlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* Calls of all processes. They are names, since not every architecture and kernel has each of them. */
static const char *const allowed[] = {
	/* clients, servers, netlink, the service manager, the other process; socket() has rules of its own */
	"accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen",
	"recv", "recvfrom", "recvmmsg", "recvmsg", "send", "sendmmsg", "sendmsg", "sendto",
	"shutdown", "socketpair",
	/* bytes */
	"close", "dup", "dup2", "dup3", "pipe", "pipe2", "read", "readv", "write", "writev",
	/* the event loop */
	"epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
	"eventfd2", "poll", "ppoll", "ppoll_time64", "pselect6", "select", "timerfd_create",
	"timerfd_settime", "timerfd_settime64",
	/* signals, and how abort() ends */
	"getpid", "gettid", "restart_syscall", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn",
	"sigaltstack", "sigreturn",
	/* threads */
	"arch_prctl", "exit", "exit_group", "futex", "futex_time64", "get_robust_list", "getcpu",
	"membarrier", "rseq", "sched_getaffinity", "sched_setaffinity", "sched_yield",
	"set_robust_list", "set_thread_area", "set_tid_address", "set_tls",
	/* memory, which has rules of its own as well */
	"brk", "madvise", "mremap", "munmap",
	/* time and random numbers */
	"clock_getres", "clock_gettime", "clock_gettime64", "clock_nanosleep",
	"clock_nanosleep_time64", "getrandom", "gettimeofday", "nanosleep", "time",
	/* files that a reload reads, /proc/sys, and the C library's questions about the host */
	"_llseek", "access", "faccessat", "faccessat2", "fstat", "fstat64", "fstatat64", "fstatfs",
	"getcwd", "getdents64", "getegid", "getegid32", "geteuid", "geteuid32", "getgid",
	"getgid32", "getrlimit", "getrusage", "getuid", "getuid32", "lseek", "lstat", "newfstatat",
	"pread64", "readlink", "readlinkat", "stat", "stat64", "statx", "sysinfo", "ugetrlimit",
	"uname",
};

/* Calls of the processes that serve: they relay bytes, answer HTTP, and remove the paths of Unix sockets. */
static const char *const serving[] = { "sendfile", "sendfile64", "splice", "unlink", "unlinkat" };

/* Calls of the main process, which waits for the serving one. It starts neither threads nor processes. */
static const char *const watching[] = { "wait4", "waitid", "waitpid" };

/* These end any process. */
static const char *const fatal[] = {
	"add_key", "bpf", "chroot", "delete_module", "execve", "execveat", "finit_module",
	"fork", "init_module", "kexec_file_load", "kexec_load", "keyctl", "mount", "move_mount", "open_tree",
	"perf_event_open", "pivot_root", "process_vm_readv", "process_vm_writev", "ptrace", "reboot",
	"request_key", "setns", "swapon", "umount2", "unshare", "userfaultfd", "vfork",
};

#define NEW_NAMESPACES                                                                             \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)

/* The index of the argument with the flags; on s390 the stack is in front of it: clone(2). */
#ifdef __s390__
#define CLONE_FLAGS 1
#else
#define CLONE_FLAGS 0
#endif

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

/* Makes @action the filter's answer to the calls @names, with any arguments. Returns 0 or -errno. */
static int add_all(scmp_filter_ctx filter, const char *const *names, size_t count, uint32_t action)
{
	for (size_t i = 0; i < count; i++) {
		int number = seccomp_syscall_resolve_name(names[i]);
		int error = number == __NR_SCMP_ERROR ?
				    0 :
				    seccomp_rule_add(filter, action, number, 0);

		if (error)
			return error;
	}
	return 0;
}

/* A call is allowed if its arguments meet all the conditions of one rule. */
struct rule {
	const char *name;
	unsigned count; /* of conditions */
	struct scmp_arg_cmp condition[3];
};

#define IS(n, value) { .arg = (n), .op = SCMP_CMP_EQ, .datum_a = (value) }
#define BITS(n, mask, value)                                                                       \
	{ .arg = (n), .op = SCMP_CMP_MASKED_EQ, .datum_a = (mask), .datum_b = (value) }
#define BELOW(n, value) { .arg = (n), .op = SCMP_CMP_LT, .datum_a = (value) }
#define ABOVE(n, value) { .arg = (n), .op = SCMP_CMP_GT, .datum_a = (value) }

/* The bits of socket()'s type without SOCK_CLOEXEC and SOCK_NONBLOCK. */
#define TYPE 0xf

/* The flags of open() by which a file would be made or changed. */
#define WRITING (O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY))

/*
 * Of SOL_SOCKET, options below SO_ATTACH_FILTER are allowed: among those behind are the ones that attach BPF programs.
 * Options of all other levels are allowed. Architectures that number them in another way allow all.
 */
#if SOL_SOCKET == 1 && SO_ATTACH_FILTER == 26
#define OPTIONS_OF_SOCKETS                                                                         \
	{ "setsockopt", 1, { ABOVE(1, SOL_SOCKET) } }, { "setsockopt", 1, { IS(1, SOL_IP) } },     \
		{ "setsockopt", 2, { IS(1, SOL_SOCKET), BELOW(2, SO_ATTACH_FILTER) } },
#else
#define OPTIONS_OF_SOCKETS { "setsockopt", 0, { { 0 } } },
#endif

static const struct rule rules[] = {
	/* Sockets of clients and servers, and for the C library to ask for a device's index. */
	{ "socket", 3, { IS(0, AF_INET), BITS(1, TYPE, SOCK_STREAM), IS(2, 0) } },
	{ "socket", 3, { IS(0, AF_INET), BITS(1, TYPE, SOCK_STREAM), IS(2, IPPROTO_TCP) } },
	{ "socket", 3, { IS(0, AF_INET), BITS(1, TYPE, SOCK_STREAM), IS(2, IPPROTO_MPTCP) } },
	{ "socket", 3, { IS(0, AF_INET6), BITS(1, TYPE, SOCK_STREAM), IS(2, 0) } },
	{ "socket", 3, { IS(0, AF_INET6), BITS(1, TYPE, SOCK_STREAM), IS(2, IPPROTO_TCP) } },
	{ "socket", 3, { IS(0, AF_INET6), BITS(1, TYPE, SOCK_STREAM), IS(2, IPPROTO_MPTCP) } },
	{ "socket", 1, { IS(0, AF_UNIX) } },
	/* The lengths of a connection's queues, the indices of devices, the C library's look at standard error. */
	{ "ioctl", 1, { IS(1, SIOCINQ) } },
	{ "ioctl", 1, { IS(1, SIOCOUTQ) } },
	{ "ioctl", 1, { IS(1, SIOCGIFINDEX) } },
	{ "ioctl", 1, { IS(1, SIOCGIFNAME) } },
	{ "ioctl", 1, { IS(1, TCGETS) } },
	{ "ioctl", 1, { IS(1, FIONBIO) } },
	{ "fcntl", 1, { IS(1, F_GETFD) } },
	{ "fcntl", 1, { IS(1, F_SETFD) } },
	{ "fcntl", 1, { IS(1, F_GETFL) } },
	{ "fcntl", 1, { IS(1, F_SETFL) } },
	{ "fcntl", 1, { IS(1, F_DUPFD_CLOEXEC) } },
	{ "fcntl", 1, { IS(1, F_SETPIPE_SZ) } },
	{ "fcntl64", 1, { IS(1, F_GETFD) } },
	{ "fcntl64", 1, { IS(1, F_SETFD) } },
	{ "fcntl64", 1, { IS(1, F_GETFL) } },
	{ "fcntl64", 1, { IS(1, F_SETFL) } },
	{ "fcntl64", 1, { IS(1, F_DUPFD_CLOEXEC) } },
	{ "fcntl64", 1, { IS(1, F_SETPIPE_SZ) } },
	/* Memory without execution: all libraries are loaded already. */
	{ "mmap", 1, { BITS(2, PROT_EXEC, 0) } },
	{ "mmap2", 1, { BITS(2, PROT_EXEC, 0) } },
	{ "mprotect", 1, { BITS(2, PROT_EXEC, 0) } },
	/* Files are opened for reading only. */
	{ "open", 1, { BITS(1, WRITING, O_RDONLY) } },
	{ "openat", 1, { BITS(2, WRITING, O_RDONLY) } },
	/* Names of threads and of memory mappings, and the signal at the parent's end: ward_leave(). */
	{ "prctl", 1, { IS(0, PR_SET_NAME) } },
	{ "prctl", 1, { IS(0, PR_SET_PDEATHSIG) } },
	{ "prctl", 1, { IS(0, PR_SET_VMA) } },
	/* Limits of this process may be read, none may be changed. */
	{ "prlimit64", 2, { IS(0, 0), IS(2, 0) } },
	OPTIONS_OF_SOCKETS
};

/*
 * Rules of the serving processes: netlink for routes; new threads, but no processes. (clone3() stays forbidden, as a
 * filter can't see its flags.)
 */
static const struct rule serving_rules[] = {
	{ "socket", 2, { IS(0, AF_NETLINK), IS(2, NETLINK_ROUTE) } },
	{ "clone", 1, { BITS(CLONE_FLAGS, CLONE_THREAD | NEW_NAMESPACES, CLONE_THREAD) } },
};

/*
 * Rules of the main process: netlink for nftables and the queues, and the calls with which it ends by the serving
 * process's signal.
 */
static const struct rule watching_rules[] = {
	{ "socket", 2, { IS(0, AF_NETLINK), IS(2, NETLINK_NETFILTER) } },
	{ "setsockopt", 2, { IS(1, SOL_SOCKET), IS(2, SO_RCVBUFFORCE) } },
	{ "kill", 1, { IS(1, SIGKILL) } },
	{ "setrlimit", 1, { IS(0, RLIMIT_CORE) } },
	{ "prlimit64", 2, { IS(0, 0), IS(1, RLIMIT_CORE) } },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Allows calls by @count rules, and skips calls that this architecture lacks. Returns 0 or -errno. */
static int add_rules(scmp_filter_ctx filter, const struct rule *rule, size_t count)
{
	int error = 0;

	for (; count && !error; count--, rule++) {
		int number = seccomp_syscall_resolve_name(rule->name);

		if (number != __NR_SCMP_ERROR)
			error = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, rule->count,
						       rule->condition);
	}
	return error;
}

/* Allows signals to this process alone, as abort() and raise() send them. */
static int add_own_signals(scmp_filter_ctx filter)
{
	const struct rule own = { "tgkill", 1, { IS(0, (scmp_datum_t)getpid()) } };

	return add_rules(filter, &own, 1);
}

static int add_role(scmp_filter_ctx filter, enum syscall_filter_role role)
{
	bool watches = role == SYSCALL_FILTER_WARDEN;
	int error = watches ? add_all(filter, watching, COUNT(watching), SCMP_ACT_ALLOW) :
			      add_all(filter, serving, COUNT(serving), SCMP_ACT_ALLOW);

	if (!error)
		error = watches ? add_rules(filter, watching_rules, COUNT(watching_rules)) :
				  add_rules(filter, serving_rules, COUNT(serving_rules));
	return error;
}

static int fill_filter(scmp_filter_ctx filter, enum syscall_filter_role role)
{
	int error = add_all(filter, allowed, COUNT(allowed), SCMP_ACT_ALLOW);

	if (!error)
		error = add_all(filter, fatal, COUNT(fatal), SCMP_ACT_KILL_PROCESS);
	if (!error)
		error = add_rules(filter, rules, COUNT(rules));
	if (!error)
		error = add_role(filter, role);
	if (!error)
		error = add_own_signals(filter);
	return error;
}

int syscall_filter_install(enum syscall_filter_role role)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int error;

	if (!filter)
		return -ENOMEM;
	/* Leaves speculation on, which costs less: no foreign code that it could leak to runs in this process. */
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	/* Sorts the filter into a binary tree, for kernels before 5.11. */
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	error = fill_filter(filter, role);
	if (!error)
		error = seccomp_load(filter);
	seccomp_release(filter);
	return error;
}

#else

int syscall_filter_install(enum syscall_filter_role role)
{
	(void)role;
	return -ENOSYS;
}

#endif

/* These numbers are the same on all architectures but alpha. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define CREATE_RULESET_VERSION 1u
#define RULE_PATH_BENEATH 1

#define FS_READ_FILE (1ull << 2)
#define FS_READ_DIR (1ull << 3)
#define FS_REMOVE_FILE (1ull << 5)
#define FS_MAKE_SOCK (1ull << 9)
/* The number of file rights in each version of the interface, which is the index; the first Linux with some of them. */
static const unsigned char fs_rights[] = { 0, 13 /* 5.13 */, 14, 15, 15, 16 /* 6.10 */ };

/* Since version 6 (Linux 6.12) the kernel can deny a process abstract sockets of, and signals to, processes outside its rules. */
#define SCOPE_VERSION 6
#define SCOPE_ABSTRACT_SOCKETS 1u
#define SCOPE_SIGNALS 2u

#ifdef WITH_SANITIZERS
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

static bool denies_files; /* Landlock is in force; written before there are threads */

struct ruleset_attr {
	uint64_t handled_fs, handled_net, scoped;
};

struct path_beneath_attr {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed));

void sandbox_shed_inherited(int first_fd)
{
	if (syscall(SYS_close_range, (unsigned)first_fd, ~0u, 0) < 0)
		for (long fd = first_fd; fd < sysconf(_SC_OPEN_MAX); fd++)
			close((int)fd);
	umask(umask(0) | (S_IWGRP | S_IWOTH));
}

/* ----- files ----- */

/* Adds a rule for @path with everything below it; a path that doesn't exist needs none. Returns 0 or -errno. */
static int allow(int ruleset, const char *path, uint64_t rights)
{
	struct path_beneath_attr attr = { .allowed = rights,
					  .parent_fd = open(path, O_PATH | O_CLOEXEC) };
	int error = 0;

	if (attr.parent_fd < 0)
		return 0;
	if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &attr, 0) < 0)
		error = -errno;
	close(attr.parent_fd);
	return error;
}

static int allow_directory_of(int ruleset, const char *path, uint64_t rights)
{
	char copy[PATH_MAX];
	const char *directory;

	snprintf(copy, sizeof(copy), "%s", path);
	directory = dirname(copy);
	/* A rule for "/" would allow every file, so a file directly in it has a rule of its own, which ends when it is replaced. */
	return strcmp(directory, "/") == 0 && rights == FS_READ_FILE ?
		       allow(ruleset, path, rights) :
		       allow(ruleset, directory, rights);
}

/* Allows reading the directory of the file and, as the file may be a symbolic link, the directory to which it leads. */
static int allow_file(int ruleset, const struct settings_path *file)
{
	char real[PATH_MAX];
	int error;

	if (!file->name[0])
		return 0;
	error = allow_directory_of(ruleset, file->name, FS_READ_FILE);
	if (!error && realpath(file->name, real))
		error = allow_directory_of(ruleset, real, FS_READ_FILE);
	return error;
}

/* Allows making and removing the Unix sockets of --metrics, since a reload may change them. */
static int allow_sockets(int ruleset, const struct convertd_settings *settings)
{
	int error = allow_directory_of(ruleset, SETTINGS_STATUS_DEFAULT, FS_MAKE_SOCK | FS_REMOVE_FILE);

	for (size_t i = 0; i < settings->metrics_count && !error; i++)
		if (settings->metrics[i].path[0])
			error = allow_directory_of(ruleset, settings->metrics[i].path,
						   FS_MAKE_SOCK | FS_REMOVE_FILE);
	return error;
}

static int allow_all(int ruleset, const struct convertd_settings *settings, enum syscall_filter_role role)
{
	int error = allow(ruleset, "/proc/sys/net", FS_READ_FILE | FS_READ_DIR);

	if (!error)
		error = allow(ruleset, "/proc/self", FS_READ_FILE | FS_READ_DIR);
	if (!error)
		error = allow(ruleset, "/etc/machine-id", FS_READ_FILE);
	if (!error)
		error = allow_file(ruleset, &settings->config);
	if (!error)
		error = allow_file(ruleset, &settings->cookie_key);
	if (!error)
		error = allow_file(ruleset, &settings->cookie_list);
	if (!error && role != SYSCALL_FILTER_WARDEN)
		error = allow(ruleset, "/sys/fs/cgroup", FS_READ_FILE);
	if (!error && role != SYSCALL_FILTER_WARDEN)
		error = allow_sockets(ruleset, settings);
	return error;
}

/* Returns 0 or -errno: -ENOSYS if the kernel has no Landlock, -EOPNOTSUPP if it is switched off. */
static int restrict_files(const struct convertd_settings *settings, enum syscall_filter_role role)
{
	size_t known = sizeof(fs_rights) / sizeof(fs_rights[0]) - 1;
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
	struct ruleset_attr attr = { 0 };
	int ruleset, error;

	if (version < 0)
		return -errno;
	attr.handled_fs = (1ull << fs_rights[(size_t)version < known ? (size_t)version : known]) - 1;
	/* Not the main process: it sends the serving one signals, and may reach the service manager by an abstract socket. */
	if (version >= SCOPE_VERSION && role == SYSCALL_FILTER_WARD)
		attr.scoped = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr,
			       version >= SCOPE_VERSION ? sizeof(attr) : sizeof(attr.handled_fs), 0);
	if (ruleset < 0)
		return -errno;
	error = allow_all(ruleset, settings, role);
	if (!error && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		error = -errno;
	close(ruleset);
	return error;
}

/* ----- the whole sandbox ----- */

static const char *why_no_files(int error)
{
	if (error == -ENOSYS)
		return "this kernel has no Landlock (Linux 5.13), or a container's filter forbids it";
	if (error == -EOPNOTSUPP)
		return "Landlock is switched off; add it to the kernel's lsm= parameter";
	return strerror(-error);
}

static const char *why_no_filter(int error)
{
	return error == -ENOSYS ? "built without libseccomp" : strerror(-error);
}

/* Warns of missing restrictions; the caller makes sure that only one process does. @files, @filter: 0 or -errno */
static void report(int files, int filter)
{
	if (files && filter)
		log_warning("the sandbox is incomplete: convertd can reach all files that its user may (%s), and "
			    "all system calls can be made (%s)",
			    why_no_files(files), why_no_filter(filter));
	else if (files)
		log_warning("the sandbox is incomplete: convertd can reach all files that its user may (%s)",
			    why_no_files(files));
	else if (filter)
		log_warning("the sandbox is incomplete: all system calls can be made (%s)",
			    why_no_filter(filter));
}

bool sandbox_denies_files(void)
{
	return denies_files;
}

void sandbox_enter(const struct convertd_settings *settings, enum syscall_filter_role role)
{
	int files = 0, filter = 0;

	if (sanitized) {
		log_debug("no sandbox: sanitizers need more");
		return;
	}
	/* Keys and cookies must get neither into core files nor to debuggers of the same user. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		log_warning("the process can't be kept from debuggers: %s", strerror(errno));
	if (!settings->no_landlock) {
		files = restrict_files(settings, role);
		denies_files = !files;
	}
	if (!settings->no_syscall_filter)
		filter = syscall_filter_install(role);
	if (role == SYSCALL_FILTER_ALONE || role == SYSCALL_FILTER_WARD)
		report(files, filter);
}
