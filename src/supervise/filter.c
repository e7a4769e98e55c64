/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter.c - which system calls of a supervised program stop until the supervisor has answered
 *
 * The filter sees a call's number and its arguments in registers, but no memory. So it passes each call that the registers show not to be
 * ours: sockets of other families and types, output without MSG_FASTOPEN, options that MPTCP accepts. For connect(), getpeername() and
 * listen() the registers show only a descriptor, so all of these stop. A call that passes costs the filter's few comparisons. Most calls
 * don't cost even that: Linux (5.11) remembers which numbers always pass.
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

/* The number of each call on each architecture, one in a column; 0: the architecture lacks the call. */
static const struct row {
	enum filter_call call;
	int numbers[3];
} rows[] = {
#if defined(__x86_64__) || defined(__i386__)
	/*                           amd64  x32        i386 */
	{ FILTER_SOCKET,            { 41,  X32 | 41,  359 } },
	{ FILTER_CONNECT,           { 42,  X32 | 42,  362 } },
	{ FILTER_GETPEERNAME,       { 52,  X32 | 52,  368 } },
	{ FILTER_SENDTO,            { 44,  X32 | 44,  369 } },
	{ FILTER_SENDMSG,           { 46,  X32 | 518, 370 } },
	{ FILTER_SENDMMSG,          { 307, X32 | 538, 345 } },
	{ FILTER_SETSOCKOPT,        { 54,  X32 | 541, 366 } },
	{ FILTER_GETSOCKOPT,        { 55,  X32 | 542, 365 } },
	{ FILTER_LISTEN,            { 50,  X32 | 50,  363 } },
	{ FILTER_SOCKETCALL,        { 0,   0,         102 } },
	{ FILTER_IO_URING_SETUP,    { 425, X32 | 425, 425 } },
	{ FILTER_SECCOMP,           { 317, X32 | 317, 354 } },
	{ FILTER_PRCTL,             { 157, X32 | 157, 172 } },
	{ FILTER_LANDLOCK_RULES,    { 444, X32 | 444, 444 } },
	{ FILTER_LANDLOCK_RESTRICT, { 446, X32 | 446, 446 } },
	/* the kernel also takes amd64's numbers with the bit of x32, with amd64's layouts in memory */
	{ FILTER_SENDMSG,           { 0,   X32 | 46,  0 } },
	{ FILTER_SENDMMSG,          { 0,   X32 | 307, 0 } },
	{ FILTER_SETSOCKOPT,        { 0,   X32 | 54,  0 } },
	{ FILTER_GETSOCKOPT,        { 0,   X32 | 55,  0 } },
#elif defined(__aarch64__)
	/*                           arm64  arm */
	{ FILTER_SOCKET,            { 198, 281 } },
	{ FILTER_CONNECT,           { 203, 283 } },
	{ FILTER_GETPEERNAME,       { 205, 287 } },
	{ FILTER_SENDTO,            { 206, 290 } },
	{ FILTER_SENDMSG,           { 211, 296 } },
	{ FILTER_SENDMMSG,          { 269, 374 } },
	{ FILTER_SETSOCKOPT,        { 208, 294 } },
	{ FILTER_GETSOCKOPT,        { 209, 295 } },
	{ FILTER_LISTEN,            { 201, 284 } },
	{ FILTER_IO_URING_SETUP,    { 425, 425 } },
	{ FILTER_SECCOMP,           { 277, 383 } },
	{ FILTER_PRCTL,             { 167, 172 } },
	{ FILTER_LANDLOCK_RULES,    { 444, 444 } },
	{ FILTER_LANDLOCK_RESTRICT, { 446, 446 } },
#endif
};

static const struct architecture {
	uint32_t audit;
	bool narrow;
	size_t first, end; /* its columns */
} architectures[] = {
#if defined(__x86_64__) || defined(__i386__)
	{ AUDIT_ARCH_X86_64, false, 0, 2 },
	{ AUDIT_ARCH_I386, true, 2, 3 },
#elif defined(__aarch64__)
	{ AUDIT_ARCH_AARCH64, false, 0, 1 },
	{ AUDIT_ARCH_ARM, true, 1, 2 },
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
static const struct sock_filter fastopen_in_2[] = { /* the flags are argument 2 */
	LOAD(ARGUMENT(2)), IF(BPF_JSET, MSG_FASTOPEN, 1, 0), RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_USER_NOTIF),
};
static const struct sock_filter fastopen_in_3[] = {
	LOAD(ARGUMENT(3)), IF(BPF_JSET, MSG_FASTOPEN, 1, 0), RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_USER_NOTIF),
};
/* A program is about to restrict itself, or to adopt orphans. */
static const struct sock_filter new_filter[] = {
	LOAD(ARGUMENT(0)), IF(BPF_JEQ, SECCOMP_SET_MODE_FILTER, 1, 0), RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_USER_NOTIF),
};
static const struct sock_filter new_state[] = {
	LOAD(ARGUMENT(0)), IF(BPF_JEQ, PR_SET_SECCOMP, 2, 0), IF(BPF_JEQ, PR_SET_CHILD_SUBREAPER, 1, 0), RETURN(SECCOMP_RET_ALLOW),
	RETURN(SECCOMP_RET_USER_NOTIF),
};
static const struct sock_filter new_rules[] = { /* with a size of 0, landlock_create_ruleset() returns the version */
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

/*
 * The filter can't see flags in memory. So sendto(), sendmsg() and sendmmsg() stop (connected sockets can use send()), as do all option
 * calls.
 */
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

/* Writes the check of a call with this number. */
static void write_call(struct writer *writer, int number, enum filter_call call)
{
	const size_t step = writer->length;

	write_step(writer, (struct sock_filter)IF(BPF_JEQ, (uint32_t)number, 0, 0));
	write_judgement(writer, call);
	writer->out[step].jf = (uint8_t)(writer->length - step - 1);
}

/* Writes one architecture's calls; all others pass. */
static void write_architecture(struct writer *writer, const struct architecture *architecture)
{
	write_step(writer, (struct sock_filter)LOAD(offsetof(struct seccomp_data, nr)));
	for (size_t column = architecture->first; column < architecture->end; column++)
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
			if (rows[i].numbers[column])
				write_call(writer, rows[i].numbers[column], rows[i].call);
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
	for (size_t i = 0; i < ARRAY_SIZE(architectures); i++)
		for (size_t j = 0; j < ARRAY_SIZE(rows) && architectures[i].audit == arch && number; j++)
			for (size_t column = architectures[i].first; column < architectures[i].end; column++)
				if (rows[j].numbers[column] == number) {
					*narrow = architectures[i].narrow || (number & X32 && (number & ~X32) >= 512);
					return rows[j].call;
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
