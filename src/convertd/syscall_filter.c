/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syscall_filter.c - no system calls but those that convertd needs
 *
 * Whoever takes over a process by a fault in it has the system calls to go on with, and most of the
 * kernel's own faults behind calls that convertd never makes. So only those below are let through.
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

#include "convertd/syscall_filter.h"

#include <errno.h>
#include <stddef.h>

#if defined(HAVE_LIBSECCOMP) && !defined(WITH_SANITIZERS)

#include <sched.h>
#include <seccomp.h>

/* Names, since not every architecture and kernel has each. */
static const char *const allowed[] = {
	/* clients, servers, netlink, the service manager */
	"accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen",
	"recv", "recvfrom", "recvmmsg", "recvmsg", "send", "sendmmsg", "sendmsg", "sendto",
	"setsockopt", "shutdown", "socket", "socketcall", "socketpair",
	/* bytes */
	"close", "dup", "dup2", "dup3", "fcntl", "fcntl64", "ioctl", "pipe", "pipe2", "read", "readv",
	"splice", "tee", "vmsplice", "write", "writev",
	/* the event loop */
	"epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
	"eventfd2", "poll", "ppoll", "ppoll_time64", "pselect6", "select", "timerfd_create",
	"timerfd_settime", "timerfd_settime64",
	/* signals, and how abort() ends */
	"getpid", "gettid", "restart_syscall", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn",
	"sigaltstack", "sigreturn", "tgkill",
	/* threads; clone() has a rule of its own */
	"arch_prctl", "exit", "exit_group", "futex", "futex_time64", "get_robust_list", "getcpu",
	"membarrier", "prctl", "rseq", "sched_getaffinity", "sched_setaffinity", "sched_yield",
	"set_robust_list", "set_thread_area", "set_tid_address", "set_tls",
	/* memory */
	"brk", "madvise", "mmap", "mmap2", "mprotect", "mremap", "munmap",
	/* time and chance */
	"clock_getres", "clock_gettime", "clock_gettime64", "clock_nanosleep",
	"clock_nanosleep_time64", "getrandom", "gettimeofday", "nanosleep", "time",
	/* files that a reload reads, /proc/sys, what the C library asks of the host */
	"_llseek", "access", "faccessat", "faccessat2", "fstat", "fstat64", "fstatat64", "fstatfs",
	"getcwd", "getdents64", "getegid", "getegid32", "geteuid", "geteuid32", "getgid",
	"getgid32", "getrlimit", "getrusage", "getuid", "getuid32", "lseek", "lstat", "newfstatat",
	"open", "openat", "pread64", "prlimit64", "readlink", "readlinkat", "stat", "stat64",
	"statx", "sysinfo", "ugetrlimit", "uname",
	/* what is asked by HTTP, be it at a Unix socket, whose place is cleared */
	"sendfile", "sendfile64", "unlink", "unlinkat",
};

static const char *const fatal[] = {
	"add_key", "bpf", "chroot", "delete_module", "execve", "execveat", "finit_module", "fork",
	"init_module", "kexec_file_load", "kexec_load", "keyctl", "mount", "move_mount", "open_tree",
	"perf_event_open", "pivot_root", "process_vm_readv", "process_vm_writev", "ptrace", "reboot",
	"request_key", "setns", "swapon", "umount2", "unshare", "userfaultfd", "vfork",
};

#define NEW_NAMESPACES                                                                             \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)

/* s390 has the stack in front of the flags: clone(2). */
#ifdef __s390__
#define CLONE_FLAGS SCMP_A1
#else
#define CLONE_FLAGS SCMP_A0
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

static int add_rules(scmp_filter_ctx filter)
{
	int error = add_all(filter, allowed, sizeof(allowed) / sizeof(allowed[0]), SCMP_ACT_ALLOW);

	if (!error)
		error = add_all(filter, fatal, sizeof(fatal) / sizeof(fatal[0]),
				SCMP_ACT_KILL_PROCESS);
	/* Threads, no processes; of clone3() no filter can see the flags, so there is none. */
	if (!error)
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
					 CLONE_FLAGS(SCMP_CMP_MASKED_EQ,
						     CLONE_THREAD | NEW_NAMESPACES, CLONE_THREAD));
	return error;
}

int syscall_filter_install(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int error;

	if (!filter)
		return -ENOMEM;
	/* Nothing foreign runs in this process that speculation had to be kept from. */
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	/* As a tree of decisions, for kernels that don't remember. */
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	error = add_rules(filter);
	if (!error)
		error = seccomp_load(filter);
	seccomp_release(filter);
	return error;
}

#else

int syscall_filter_install(void)
{
	return -ENOSYS;
}

#endif
