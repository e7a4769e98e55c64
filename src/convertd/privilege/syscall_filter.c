/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syscall_filter.c - no system calls but those that convertd needs
 *
 * Whoever takes over a process by a fault in it has the system calls to go on with, and most of the
 * kernel's own faults behind calls that convertd never makes. So only those below are let through.
 *
 * There are two lists: the process that serves needs other calls than the main process, which has the rights. Of arguments the
 * filter sees what is in registers: which sockets, which memory, which files to read. Neither makes
 * memory that can be executed, nor sockets of a family that convertd hasn't heard of.
 *
 * What isn't on the list fails with ENOSYS: a C library that knows a newer call takes the older one
 * then, as on an older kernel. With EPERM it would give up (clone3(), and no thread can be
 * started), and to end the process would make an outage of each update of a library. But what
 * convertd has no reason at all to try, only somebody else, ends the process at once.
 *
 * The kernel remembers which calls pass whatever their arguments (Linux 5.11): these cost some 50 ns
 * more each, of 50 us that a connection takes.
 */
#include "config.h"

#include "convertd/privilege/syscall_filter.h"

#include <errno.h>
#include <stddef.h>

#if defined(HAVE_LIBSECCOMP) && !defined(WITH_SANITIZERS)

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Names, since not every architecture and kernel has each. */
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
	/* time and chance */
	"clock_getres", "clock_gettime", "clock_gettime64", "clock_nanosleep",
	"clock_nanosleep_time64", "getrandom", "gettimeofday", "nanosleep", "time",
	/* files that a reload reads, /proc/sys, what the C library asks of the host */
	"_llseek", "access", "faccessat", "faccessat2", "fstat", "fstat64", "fstatat64", "fstatfs",
	"getcwd", "getdents64", "getegid", "getegid32", "geteuid", "geteuid32", "getgid",
	"getgid32", "getrlimit", "getrusage", "getuid", "getuid32", "lseek", "lstat", "newfstatat",
	"pread64", "readlink", "readlinkat", "stat", "stat64", "statx", "sysinfo", "ugetrlimit",
	"uname",
};

/* Of those that serve: bulk, HTTP, and the place of a Unix socket that is cleared. */
static const char *const serving[] = { "sendfile", "sendfile64", "splice", "unlink", "unlinkat" };

/*
 * The main process waits for the other one; it starts no threads, and no process but a copy of itself, by what
 * is fork() in the C library: ward_leave()
 */
static const char *const watching[] = { "fork", "wait4", "waitid", "waitpid" };

static const char *const fatal_serving[] = { "fork" };

static const char *const fatal[] = {
	"add_key", "bpf", "chroot", "delete_module", "execve", "execveat", "finit_module",
	"init_module", "kexec_file_load", "kexec_load", "keyctl", "mount", "move_mount", "open_tree",
	"perf_event_open", "pivot_root", "process_vm_readv", "process_vm_writev", "ptrace", "reboot",
	"request_key", "setns", "swapon", "umount2", "unshare", "userfaultfd", "vfork",
};

#define NEW_NAMESPACES                                                                             \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)

/* s390 has the stack in front of the flags: clone(2). */
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

/* Returns 0 or -errno. */
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

/* One value of an argument, or of some of its bits, that a call may have; two of them must both be so. */
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

/* SOCK_STREAM and the like, without SOCK_CLOEXEC and SOCK_NONBLOCK. */
#define TYPE 0xf

/* What would make or change a file. */
#define WRITING (O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY))

/* The options of sockets from which on there are filters and programs of BPF, and further level numbers. */
#if SOL_SOCKET == 1 && SO_ATTACH_FILTER == 26
#define OPTIONS_OF_SOCKETS                                                                         \
	{ "setsockopt", 1, { ABOVE(1, SOL_SOCKET) } }, { "setsockopt", 1, { IS(1, SOL_IP) } },     \
		{ "setsockopt", 2, { IS(1, SOL_SOCKET), BELOW(2, SO_ATTACH_FILTER) } },
#else
#define OPTIONS_OF_SOCKETS { "setsockopt", 0, { { 0 } } },
#endif

static const struct rule rules[] = {
	/* Clients and servers; the C library asks for a device's number by one of these, too. */
	{ "socket", 3, { IS(0, AF_INET), BITS(1, TYPE, SOCK_STREAM), IS(2, 0) } },
	{ "socket", 3, { IS(0, AF_INET), BITS(1, TYPE, SOCK_STREAM), IS(2, IPPROTO_TCP) } },
	{ "socket", 3, { IS(0, AF_INET), BITS(1, TYPE, SOCK_STREAM), IS(2, IPPROTO_MPTCP) } },
	{ "socket", 3, { IS(0, AF_INET6), BITS(1, TYPE, SOCK_STREAM), IS(2, 0) } },
	{ "socket", 3, { IS(0, AF_INET6), BITS(1, TYPE, SOCK_STREAM), IS(2, IPPROTO_TCP) } },
	{ "socket", 3, { IS(0, AF_INET6), BITS(1, TYPE, SOCK_STREAM), IS(2, IPPROTO_MPTCP) } },
	{ "socket", 1, { IS(0, AF_UNIX) } },
	/* The counters of a connection's bytes, the C library for devices, standard error. */
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
	/* No memory that can be executed: all libraries are there. */
	{ "mmap", 1, { BITS(2, PROT_EXEC, 0) } },
	{ "mmap2", 1, { BITS(2, PROT_EXEC, 0) } },
	{ "mprotect", 1, { BITS(2, PROT_EXEC, 0) } },
	/* Files are read. */
	{ "open", 1, { BITS(1, WRITING, O_RDONLY) } },
	{ "openat", 1, { BITS(2, WRITING, O_RDONLY) } },
	/* Names of threads and of memory; ward_leave() */
	{ "prctl", 1, { IS(0, PR_SET_NAME) } },
	{ "prctl", 1, { IS(0, PR_SET_PDEATHSIG) } },
	{ "prctl", 1, { IS(0, PR_SET_VMA) } },
	/* Limits of this process, and none is changed. */
	{ "prlimit64", 2, { IS(0, 0), IS(2, 0) } },
	OPTIONS_OF_SOCKETS
};

/* And these: routes, MPTCP endpoints, Fast Open cookies, whose sockets there are; threads, no processes: of clone3() no filter can see the flags. */
static const struct rule serving_rules[] = {
	{ "socket", 2, { IS(0, AF_NETLINK), IS(2, NETLINK_ROUTE) } },
	{ "socket", 2, { IS(0, AF_NETLINK), IS(2, NETLINK_GENERIC) } },
	{ "socket", 2, { IS(0, AF_NETLINK), IS(2, NETLINK_SOCK_DIAG) } },
	{ "clone", 1, { BITS(CLONE_FLAGS, CLONE_THREAD | NEW_NAMESPACES, CLONE_THREAD) } },
};

/* Or these: nftables and the queues; how it ends by the signal that has ended the other. */
static const struct rule watching_rules[] = {
	{ "socket", 2, { IS(0, AF_NETLINK), IS(2, NETLINK_NETFILTER) } },
	{ "setsockopt", 2, { IS(1, SOL_SOCKET), IS(2, SO_RCVBUFFORCE) } },
	{ "kill", 1, { IS(1, SIGKILL) } },
	{ "clone", 1, { IS(CLONE_FLAGS, SIGCHLD) } },
	{ "clone", 1, { IS(CLONE_FLAGS, CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD) } },
	{ "setrlimit", 1, { IS(0, RLIMIT_CORE) } },
	{ "prlimit64", 2, { IS(0, 0), IS(1, RLIMIT_CORE) } },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Returns 0 or -errno. */
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

/* Signals to itself alone: abort(), raise(). */
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

	if (!error && !watches)
		error = add_all(filter, fatal_serving, COUNT(fatal_serving), SCMP_ACT_KILL_PROCESS);
	if (!error)
		error = watches ? add_rules(filter, watching_rules, COUNT(watching_rules)) :
				  add_rules(filter, serving_rules, COUNT(serving_rules));
	return error;
}

static int fill(scmp_filter_ctx filter, enum syscall_filter_role role)
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
	/* Nothing foreign runs in this process that speculation had to be kept from. */
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	/* As a tree of decisions, for kernels that don't remember. */
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	error = fill(filter, role);
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
