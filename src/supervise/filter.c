/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter.c - which system calls of a supervised program stop until the supervisor has answered
 *
 * The filter sees a call's number and its arguments in registers, but no memory. So it passes the calls that the registers show to be none
 * of ours: sockets of other families and types, output without MSG_FASTOPEN. For connect() and getpeername() the registers show only a
 * descriptor, so all of these stop. All other calls on a connected socket pass, at the cost of the filter's few comparisons, and most calls
 * not even at that: Linux (5.11) remembers which numbers always pass.
 *
 * A process may make calls of another architecture than its own: i386 calls by int 0x80 in a 64-bit program. So the filter knows the
 * numbers of each architecture that the kernel may know, and there is no way around it. x32 has amd64's architecture, and a bit in the
 * number.
 *
 * io_uring connects and sends without system calls. Without io_uring_setup() programs use epoll, as in most containers.
 */
#include "config.h"

#include "supervise/listener.h"

#include "common/socket_options.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define X32 0x40000000 /* __X32_SYSCALL_BIT */
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* socketcall(2): its numbers of linux/net.h, with the count of their arguments */
static const struct {
	unsigned int number;
	enum filter_call call;
	int count;
} socketcalls[] = {
	{ 1, FILTER_SOCKET, 3 },      { 3, FILTER_CONNECT, 3 },     { 7, FILTER_GETPEERNAME, 3 },
	{ 4, FILTER_LISTEN, 2 },      { 11, FILTER_SENDTO, 6 },     { 16, FILTER_SENDMSG, 3 },
	{ 20, FILTER_SENDMMSG, 4 },   { 14, FILTER_SETSOCKOPT, 5 }, { 15, FILTER_GETSOCKOPT, 5 },
};

struct number {
	int number;
	enum filter_call call;
};

/* The arrays' names end in _numbers, as compilers for i386 define "i386" as a macro. */
#if defined(__x86_64__) || defined(__i386__)
static const struct number amd64_numbers[] = {
	{ 41, FILTER_SOCKET },
	{ 42, FILTER_CONNECT },
	{ 52, FILTER_GETPEERNAME },
	{ 44, FILTER_SENDTO },
	{ 46, FILTER_SENDMSG },
	{ 307, FILTER_SENDMMSG },
	{ 54, FILTER_SETSOCKOPT },
	{ 55, FILTER_GETSOCKOPT },
	{ 50, FILTER_LISTEN },
	{ 425, FILTER_IO_URING_SETUP },
	{ 317, FILTER_SECCOMP },
	{ 157, FILTER_PRCTL },
	{ 444, FILTER_LANDLOCK_RULES },
	{ 446, FILTER_LANDLOCK_RESTRICT },
	{ X32 | 41, FILTER_SOCKET },
	{ X32 | 42, FILTER_CONNECT },
	{ X32 | 52, FILTER_GETPEERNAME },
	{ X32 | 44, FILTER_SENDTO },
	{ X32 | 518, FILTER_SENDMSG },
	{ X32 | 538, FILTER_SENDMMSG },
	{ X32 | 541, FILTER_SETSOCKOPT },
	{ X32 | 542, FILTER_GETSOCKOPT },
	{ X32 | 50, FILTER_LISTEN },
	{ X32 | 425, FILTER_IO_URING_SETUP },
	{ X32 | 317, FILTER_SECCOMP },
	{ X32 | 157, FILTER_PRCTL },
	{ X32 | 444, FILTER_LANDLOCK_RULES },
	{ X32 | 446, FILTER_LANDLOCK_RESTRICT },
	/* the kernel also takes amd64's numbers with the bit of x32, with amd64's layouts in memory */
	{ X32 | 46, FILTER_SENDMSG },
	{ X32 | 307, FILTER_SENDMMSG },
	{ X32 | 54, FILTER_SETSOCKOPT },
	{ X32 | 55, FILTER_GETSOCKOPT },
};

static const struct number i386_numbers[] = {
	{ 359, FILTER_SOCKET },
	{ 362, FILTER_CONNECT },
	{ 368, FILTER_GETPEERNAME },
	{ 369, FILTER_SENDTO },
	{ 370, FILTER_SENDMSG },
	{ 345, FILTER_SENDMMSG },
	{ 366, FILTER_SETSOCKOPT },
	{ 365, FILTER_GETSOCKOPT },
	{ 363, FILTER_LISTEN },
	{ 102, FILTER_SOCKETCALL },
	{ 425, FILTER_IO_URING_SETUP },
	{ 354, FILTER_SECCOMP },
	{ 172, FILTER_PRCTL },
	{ 444, FILTER_LANDLOCK_RULES },
	{ 446, FILTER_LANDLOCK_RESTRICT },
};
#elif defined(__aarch64__)
static const struct number arm64_numbers[] = {
	{ 198, FILTER_SOCKET },
	{ 203, FILTER_CONNECT },
	{ 205, FILTER_GETPEERNAME },
	{ 206, FILTER_SENDTO },
	{ 211, FILTER_SENDMSG },
	{ 269, FILTER_SENDMMSG },
	{ 208, FILTER_SETSOCKOPT },
	{ 209, FILTER_GETSOCKOPT },
	{ 201, FILTER_LISTEN },
	{ 425, FILTER_IO_URING_SETUP },
	{ 277, FILTER_SECCOMP },
	{ 167, FILTER_PRCTL },
	{ 444, FILTER_LANDLOCK_RULES },
	{ 446, FILTER_LANDLOCK_RESTRICT },
};

static const struct number arm_numbers[] = {
	{ 281, FILTER_SOCKET },
	{ 283, FILTER_CONNECT },
	{ 287, FILTER_GETPEERNAME },
	{ 290, FILTER_SENDTO },
	{ 296, FILTER_SENDMSG },
	{ 374, FILTER_SENDMMSG },
	{ 294, FILTER_SETSOCKOPT },
	{ 295, FILTER_GETSOCKOPT },
	{ 284, FILTER_LISTEN },
	{ 425, FILTER_IO_URING_SETUP },
	{ 383, FILTER_SECCOMP },
	{ 172, FILTER_PRCTL },
	{ 444, FILTER_LANDLOCK_RULES },
	{ 446, FILTER_LANDLOCK_RESTRICT },
};
#endif

static const struct architecture {
	uint32_t audit;
	bool narrow;
	const struct number *numbers;
	size_t count;
} architectures[] = {
#if defined(__x86_64__) || defined(__i386__)
	{ AUDIT_ARCH_X86_64, false, amd64_numbers, ARRAY_SIZE(amd64_numbers) },
	{ AUDIT_ARCH_I386, true, i386_numbers, ARRAY_SIZE(i386_numbers) },
#elif defined(__aarch64__)
	{ AUDIT_ARCH_AARCH64, false, arm64_numbers, ARRAY_SIZE(arm64_numbers) },
	{ AUDIT_ARCH_ARM, true, arm_numbers, ARRAY_SIZE(arm_numbers) },
#endif
};

/* The low half of an argument: the kernel ignores the other one for an int. */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define LOW_HALF 4
#else
#define LOW_HALF 0
#endif
#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + 8 * (n) + LOW_HALF)

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define IF(test, value, yes, no) BPF_JUMP(BPF_JMP | (test) | BPF_K, (value), (yes), (no))
#define AND(value) BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (value))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))

/* The checks of each call, once its number is known. Each ends the filter. */
static const struct sock_filter always[] = { RETURN(SECCOMP_RET_USER_NOTIF) };
static const struct sock_filter never[] = { RETURN(SECCOMP_RET_ERRNO | ENOSYS) };
static const struct sock_filter tcp_socket[] = {
	LOAD(ARGUMENT(0)), IF(BPF_JEQ, AF_INET, 1, 0), IF(BPF_JEQ, AF_INET6, 0, 6),
	LOAD(ARGUMENT(1)), AND(0xf), IF(BPF_JEQ, SOCK_STREAM, 0, 3), /* without SOCK_CLOEXEC and SOCK_NONBLOCK */
	LOAD(ARGUMENT(2)), IF(BPF_JEQ, 0, 2, 0), IF(BPF_JEQ, IPPROTO_TCP, 1, 0),
	RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_USER_NOTIF),
};
static const struct sock_filter fastopen_in_2[] = {
	LOAD(ARGUMENT(2)), IF(BPF_JSET, MSG_FASTOPEN, 1, 0), RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_USER_NOTIF),
};
static const struct sock_filter fastopen_in_3[] = {
	LOAD(ARGUMENT(3)), IF(BPF_JSET, MSG_FASTOPEN, 1, 0), RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_USER_NOTIF),
};/* A program is about to restrict itself, or to adopt orphans. */
static const struct sock_filter new_filter[] = {
	LOAD(ARGUMENT(0)), IF(BPF_JEQ, SECCOMP_SET_MODE_FILTER, 1, 0), RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_USER_NOTIF),
};
static const struct sock_filter new_state[] = {
	LOAD(ARGUMENT(0)), IF(BPF_JEQ, PR_SET_SECCOMP, 2, 0), IF(BPF_JEQ, PR_SET_CHILD_SUBREAPER, 1, 0), RETURN(SECCOMP_RET_ALLOW),
	RETURN(SECCOMP_RET_USER_NOTIF),
};
static const struct sock_filter new_rules[] = { /* without a size it asks for the version */
	LOAD(ARGUMENT(1)), IF(BPF_JEQ, 0, 0, 1), RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_USER_NOTIF),
};

static const struct {
	const struct sock_filter *steps;
	size_t count;
} judgements[] = {
	[FILTER_SOCKET] = { tcp_socket, ARRAY_SIZE(tcp_socket) },
	[FILTER_CONNECT] = { always, ARRAY_SIZE(always) },
	[FILTER_GETPEERNAME] = { always, ARRAY_SIZE(always) },
	[FILTER_SENDTO] = { fastopen_in_3, ARRAY_SIZE(fastopen_in_3) },
	[FILTER_SENDMSG] = { fastopen_in_2, ARRAY_SIZE(fastopen_in_2) },
	[FILTER_SENDMMSG] = { fastopen_in_3, ARRAY_SIZE(fastopen_in_3) },
	[FILTER_SETSOCKOPT] = { NULL, 0 }, /* write_options() */
	[FILTER_GETSOCKOPT] = { NULL, 0 },
	[FILTER_LISTEN] = { always, ARRAY_SIZE(always) },
	[FILTER_SOCKETCALL] = { NULL, 0 }, /* write_socketcall() */
	[FILTER_SECCOMP] = { new_filter, ARRAY_SIZE(new_filter) },
	[FILTER_PRCTL] = { new_state, ARRAY_SIZE(new_state) },
	[FILTER_LANDLOCK_RULES] = { new_rules, ARRAY_SIZE(new_rules) },
	[FILTER_LANDLOCK_RESTRICT] = { always, ARRAY_SIZE(always) },
	[FILTER_IO_URING_SETUP] = { never, ARRAY_SIZE(never) },
};
_Static_assert(ARRAY_SIZE(judgements) == FILTER_CALL_COUNT, "a judgement for each call");

/* A filter that is being written. */
struct writer {
	struct sock_filter *out;
	size_t length;
};

static void write_step(struct writer *writer, struct sock_filter step)
{
	writer->out[writer->length++] = step;
}

/* Returns how many options from @first on have the same level. */
static int run_of(int first)
{
	int end = first;

	while (end < SOCKET_ADVICE_COUNT && socket_advice[end].option.level == socket_advice[first].option.level)
		end++;
	return end - first;
}

/*
 * Writes the checks of setsockopt() and getsockopt(), which stop for options that MPTCP refuses: each level, followed by its names.
 */
static void write_options(struct writer *writer)
{
	size_t jumps[SOCKET_ADVICE_COUNT], jump_count = 0;

	write_step(writer, (struct sock_filter)LOAD(ARGUMENT(1)));
	for (int i = 0, run; i < SOCKET_ADVICE_COUNT; i += run) {
		run = run_of(i);
		write_step(writer, (struct sock_filter)IF(BPF_JEQ, (uint32_t)socket_advice[i].option.level, 0, (uint8_t)(run + 2)));
		write_step(writer, (struct sock_filter)LOAD(ARGUMENT(2)));
		for (int j = i; j < i + run; j++) {
			jumps[jump_count++] = writer->length;
			write_step(writer, (struct sock_filter)IF(BPF_JEQ, (uint32_t)socket_advice[j].option.name, 0, 0));
		}
		write_step(writer, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
	}
	write_step(writer, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
	for (size_t i = 0; i < jump_count; i++)
		writer->out[jumps[i]].jt = (uint8_t)(writer->length - jumps[i] - 1);
	write_step(writer, (struct sock_filter)RETURN(SECCOMP_RET_USER_NOTIF));
}

/* The filter can't see flags in memory. So all output to an address stops, which connected sockets don't need, and all options do. */
static void write_socketcall(struct writer *writer)
{
	write_step(writer, (struct sock_filter)LOAD(ARGUMENT(0)));
	for (size_t i = 0; i < ARRAY_SIZE(socketcalls); i++)
		write_step(writer, (struct sock_filter)IF(BPF_JEQ, socketcalls[i].number, (uint8_t)(ARRAY_SIZE(socketcalls) - i), 0));
	write_step(writer, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
	write_step(writer, (struct sock_filter)RETURN(SECCOMP_RET_USER_NOTIF));
}

static void write_judgement(struct writer *writer, enum filter_call call)
{
	if (call == FILTER_SOCKETCALL)
		write_socketcall(writer);
	if (call == FILTER_SETSOCKOPT || call == FILTER_GETSOCKOPT)
		write_options(writer);
	for (size_t i = 0; i < judgements[call].count; i++)
		write_step(writer, judgements[call].steps[i]);
}

/* Writes one architecture's calls; all others pass. */
static void write_architecture(struct writer *writer, const struct architecture *architecture)
{
	write_step(writer, (struct sock_filter)LOAD(offsetof(struct seccomp_data, nr)));
	for (size_t i = 0; i < architecture->count; i++) {
		size_t number = writer->length;

		write_step(writer, (struct sock_filter)IF(BPF_JEQ, (uint32_t)architecture->numbers[i].number, 0, 0));
		write_judgement(writer, architecture->numbers[i].call);
		writer->out[number].jf = (uint8_t)(writer->length - number - 1);
	}
	write_step(writer, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
}

size_t filter_build(struct sock_filter out[static FILTER_LENGTH_MAX])
{
	struct writer writer = { .out = out };

	for (size_t i = 0; i < ARRAY_SIZE(architectures); i++) {
		size_t jump;

		write_step(&writer, (struct sock_filter)LOAD(offsetof(struct seccomp_data, arch)));
		write_step(&writer, (struct sock_filter)IF(BPF_JEQ, architectures[i].audit, 1, 0));
		jump = writer.length; /* too far for a conditional jump */
		write_step(&writer, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0));
		write_architecture(&writer, &architectures[i]);
		out[jump].k = (uint32_t)(writer.length - jump - 1);
	}
	if (!writer.length)
		return 0;
	write_step(&writer, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
	return writer.length;
}

enum filter_call filter_call_of(uint32_t arch, int number, bool *narrow)
{
	for (size_t i = 0; i < ARRAY_SIZE(architectures); i++) {
		if (architectures[i].audit != arch)
			continue;
		for (size_t j = 0; j < architectures[i].count; j++)
			if (architectures[i].numbers[j].number == number) {
				*narrow = architectures[i].narrow || (number & X32 && (number & ~X32) >= 512);
				return architectures[i].numbers[j].call;
			}
	}
	return FILTER_CALL_COUNT;
}

enum filter_call filter_socketcall_of(unsigned int number, int *count)
{
	for (size_t i = 0; i < ARRAY_SIZE(socketcalls); i++)
		if (socketcalls[i].number == number) {
			*count = socketcalls[i].count;
			return socketcalls[i].call;
		}
	return FILTER_CALL_COUNT;
}
