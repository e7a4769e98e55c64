/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * no_fastopen.c - runs a program whose Multipath TCP sockets have no Fast Open, and no TCP_IS_MPTCP, as on Linux before 6.2
 *
 *	no_fastopen CGROUP PROGRAM [ARGUMENT]...
 *
 * CGROUP is a directory of a cgroup2 file system. The program runs in that group, and a BPF program refuses these options to the group's
 * setsockopt() and getsockopt(): BPF_CGROUP_SETSOCKOPT and BPF_CGROUP_GETSOCKOPT, with bpf_set_retval() of Linux 5.18. MSG_FASTOPEN itself
 * still works, but libconvert uses it on Multipath TCP only after it has set TCP_FASTOPEN_NO_COOKIE. Ends with 77 if the kernel doesn't
 * permit BPF programs.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef TCP_IS_MPTCP /* since Linux 6.4 */
#define TCP_IS_MPTCP 43
#endif
#define NOT_ALLOWED 77

#define INSTRUCTION(c, d, s, o, i) ((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define LOAD(size, to, from, offset) INSTRUCTION(BPF_LDX | (size) | BPF_MEM, to, from, offset, 0)
#define IF(condition, reg, value, skip) INSTRUCTION(BPF_JMP | (condition) | BPF_K, reg, 0, skip, value)
#define SKIP(count) INSTRUCTION(BPF_JMP | BPF_JA, 0, 0, count, 0)
#define SET(reg, value) INSTRUCTION(BPF_ALU64 | BPF_MOV | BPF_K, reg, 0, 0, value)
#define CALL(function) INSTRUCTION(BPF_JMP | BPF_CALL, 0, 0, 0, function)
#define EXIT INSTRUCTION(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static int fail(const char *what)
{
	const int error = errno;

	fprintf(stderr, "no_fastopen: %s: %s\n", what, strerror(error));
	exit(error == EPERM || error == EACCES || error == ENOSYS ? NOT_ALLOWED : 2);
}

static int bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int load(enum bpf_attach_type type)
{
	const struct bpf_insn steps[] = { /* register 1: struct bpf_sockopt */
		LOAD(BPF_W, 2, 1, offsetof(struct bpf_sockopt, level)),
		LOAD(BPF_W, 3, 1, offsetof(struct bpf_sockopt, optname)),
		IF(BPF_JNE, 2, IPPROTO_TCP, 12), /* allow */
		IF(BPF_JEQ, 3, TCP_IS_MPTCP, 8), /* refuse */
		IF(BPF_JEQ, 3, TCP_FASTOPEN, 3),
		IF(BPF_JEQ, 3, TCP_FASTOPEN_CONNECT, 2),
		IF(BPF_JEQ, 3, TCP_FASTOPEN_KEY, 1),
		IF(BPF_JNE, 3, TCP_FASTOPEN_NO_COOKIE, 7), /* allow */
		LOAD(BPF_DW, 4, 1, offsetof(struct bpf_sockopt, sk)),
		IF(BPF_JEQ, 4, 0, 5), /* allow; the verifier demands this check */
		LOAD(BPF_W, 5, 4, offsetof(struct bpf_sock, protocol)),
		IF(BPF_JNE, 5, IPPROTO_MPTCP, 3), /* allow */
		SET(1, -EOPNOTSUPP), /* refuse */
		CALL(BPF_FUNC_set_retval),
		SKIP(2),
		SET(0, 1), /* allow */
		EXIT,
		SET(0, 0),
		EXIT,
	};
	static char said[16384];
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_CGROUP_SOCKOPT;
	attr.expected_attach_type = type;
	attr.insns = (uintptr_t)steps;
	attr.insn_cnt = sizeof(steps) / sizeof(steps[0]);
	attr.license = (uintptr_t) "GPL";
	attr.log_buf = (uintptr_t)said;
	attr.log_size = sizeof(said);
	attr.log_level = 1;
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0) {
		fputs(said, stderr);
		fail("loading the program");
	}
	return fd;
}

static void attach(int group, enum bpf_attach_type type)
{
	union bpf_attr attr;
	int program = load(type);

	memset(&attr, 0, sizeof(attr));
	attr.target_fd = (uint32_t)group;
	attr.attach_bpf_fd = (uint32_t)program;
	attr.attach_type = type;
	if (bpf(BPF_PROG_ATTACH, &attr) != 0)
		fail("attaching the program");
	close(program);
}

int main(int argc, char *argv[])
{
	int group, processes;

	if (argc < 3) {
		fprintf(stderr, "usage: no_fastopen CGROUP PROGRAM [ARGUMENT]...\n");
		return 2;
	}
	group = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (group < 0)
		fail(argv[1]);
	attach(group, BPF_CGROUP_SETSOCKOPT);
	attach(group, BPF_CGROUP_GETSOCKOPT);
	processes = openat(group, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (processes < 0 || write(processes, "0", 1) != 1)
		fail("joining the group");
	execvp(argv[2], argv + 2);
	return fail(argv[2]);
}
