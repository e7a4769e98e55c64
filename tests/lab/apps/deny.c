/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deny.c - runs a program whose calls of one system call fail, as in a container whose seccomp profile forbids it
 *
 *	deny CALL ERRNO PROGRAM [ARGUMENT]...
 *
 * CALL is the number of the system call on this machine.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char *argv[])
{
	if (argc < 4) {
		fprintf(stderr, "usage: deny CALL ERRNO PROGRAM [ARGUMENT]...\n");
		return 2;
	}
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(argv[1]), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)atoi(argv[2])),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(steps) / sizeof(steps[0]), steps };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) != 0) {
		perror("deny");
		return 2;
	}
	execvp(argv[3], argv + 3);
	perror(argv[3]);
	return 2;
}
