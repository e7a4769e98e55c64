/* SPDX-License-Identifier: BSD-3-Clause */
/* test_supervise_filter.c - which system calls stop, on each architecture, and by which arguments */
#include "config.h"

#include "common/socket_options.h"
#include "run.h"
#include "supervise/listener.h"

#include <check.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define X32 0x40000000
#define ENOSYS_RETURN (SECCOMP_RET_ERRNO | ENOSYS)
#define ANY_NUMBERS 1100 /* beyond the last of any architecture */

static struct sock_filter filter[FILTER_LENGTH_MAX];
static size_t length;

/* Check writes down each ck_assert() that it comes across, which takes much longer than a step. So steps tell only what is wrong. */
static void must(bool holds, const char *what)
{
	if (!holds)
		ck_abort_msg("%s", what);
}

/* One step of the machine that classic BPF is, as far as the filter uses it; fails for anything else, as the kernel does. */
static bool step(const struct sock_filter *in, const struct seccomp_data *data, uint32_t *accumulator, size_t *at)
{
	switch (in->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		must(in->k % 4 == 0 && in->k < sizeof(*data), "it loads from outside of the call's data");
		memcpy(accumulator, (const char *)data + in->k, sizeof(*accumulator));
		return true;
	case BPF_ALU | BPF_AND | BPF_K:
		*accumulator &= in->k;
		return true;
	case BPF_JMP | BPF_JA:
		*at += in->k;
		return true;
	case BPF_JMP | BPF_JEQ | BPF_K:
		*at += *accumulator == in->k ? in->jt : in->jf;
		return true;
	case BPF_JMP | BPF_JSET | BPF_K:
		*at += *accumulator & in->k ? in->jt : in->jf;
		return true;
	default:
		must(in->code == (BPF_RET | BPF_K), "an instruction that isn't known here");
		return false;
	}
}

static uint32_t run(const struct seccomp_data *data)
{
	uint32_t accumulator = 0;
	size_t at = 0;

	while (step(&filter[at], data, &accumulator, &at)) {
		at++;
		must(at < length, "it runs past its end");
	}
	return filter[at].k;
}

static uint32_t judge(uint32_t arch, int number, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3)
{
	return run(&(struct seccomp_data){ .nr = number, .arch = arch, .args = { a0, a1, a2, a3 } });
}

static void setup(void)
{
	length = filter_build(filter);
	ck_assert_uint_gt(length, 0);
	ck_assert_uint_le(length, FILTER_LENGTH_MAX);
}

/* The numbers of each architecture, out of the kernel's tables. */
static const struct architecture {
	uint32_t arch;
	int socket, connect, getpeername, sendto, sendmsg, sendmmsg, setsockopt, getsockopt, listen;
	bool narrow;
} architectures[] = {
#if defined(__x86_64__) || defined(__i386__)
	{ AUDIT_ARCH_X86_64, 41, 42, 52, 44, 46, 307, 54, 55, 50, false },
	{ AUDIT_ARCH_X86_64, X32 | 41, X32 | 42, X32 | 52, X32 | 44, X32 | 518, X32 | 538, X32 | 541, X32 | 542, X32 | 50, false },
	{ AUDIT_ARCH_I386, 359, 362, 368, 369, 370, 345, 366, 365, 363, true },
#elif defined(__aarch64__)
	{ AUDIT_ARCH_AARCH64, 198, 203, 205, 206, 211, 269, 208, 209, 201, false },
	{ AUDIT_ARCH_ARM, 281, 283, 287, 290, 296, 374, 294, 295, 284, true },
#endif
};
#define ARCHITECTURE_COUNT ((int)(sizeof(architectures) / sizeof(architectures[0])))

START_TEST(sockets_that_stop)
{
	const struct architecture *a = &architectures[_i];

	for (int domain = 0; domain < 45; domain++)
		for (int type = 0; type < 12; type++)
			for (int protocol = 0; protocol < 300; protocol++) {
				bool tcp = (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM &&
					   (protocol == 0 || protocol == IPPROTO_TCP);
				uint32_t wanted = tcp ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;

				if (judge(a->arch, a->socket, domain, type, protocol, 0) != wanted ||
				    judge(a->arch, a->socket, domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol, 0) != wanted)
					ck_abort_msg("socket(%d, %d, %d)", domain, type, protocol);
			}
}
END_TEST

/* The kernel takes the low half of a register for an int. */
START_TEST(high_halves_of_registers_mean_nothing)
{
	const struct architecture *a = &architectures[_i];
	const uint64_t high = UINT64_C(0xdeadbeef00000000);

	ck_assert_uint_eq(judge(a->arch, a->socket, high | AF_INET, high | SOCK_STREAM, high, 0), SECCOMP_RET_USER_NOTIF);
	ck_assert_uint_eq(judge(a->arch, a->sendto, 0, 0, 0, high | MSG_FASTOPEN), SECCOMP_RET_USER_NOTIF);
	ck_assert_uint_eq(judge(a->arch, a->sendto, 0, 0, 0, (uint64_t)MSG_FASTOPEN << 32), SECCOMP_RET_ALLOW);
}
END_TEST

START_TEST(output_stops_with_fastopen_only)
{
	const struct architecture *a = &architectures[_i];

	for (unsigned int bit = 0; bit < 31; bit++) {
		uint64_t flags = 1u << bit;
		uint32_t wanted = flags == MSG_FASTOPEN ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;

		ck_assert_uint_eq(judge(a->arch, a->sendto, 3, flags, flags, flags), wanted);
		ck_assert_uint_eq(judge(a->arch, a->sendto, 3, MSG_FASTOPEN, MSG_FASTOPEN, 0), SECCOMP_RET_ALLOW);
		ck_assert_uint_eq(judge(a->arch, a->sendmsg, 3, 0, flags, 0), wanted);
		ck_assert_uint_eq(judge(a->arch, a->sendmmsg, 3, 0, 0, flags), wanted);
		ck_assert_uint_eq(judge(a->arch, a->sendmsg, 3, 0, flags | MSG_FASTOPEN | MSG_DONTWAIT, 0), SECCOMP_RET_USER_NOTIF);
	}
}
END_TEST

START_TEST(calls_that_always_stop)
{
	const struct architecture *a = &architectures[_i];
	bool narrow;

	ck_assert_uint_eq(judge(a->arch, a->connect, 0, 0, 0, 0), SECCOMP_RET_USER_NOTIF);
	ck_assert_uint_eq(judge(a->arch, a->getpeername, 0, 0, 0, 0), SECCOMP_RET_USER_NOTIF);
	ck_assert_uint_eq(judge(a->arch, a->listen, 0, 0, 0, 0), SECCOMP_RET_USER_NOTIF);
	ck_assert_int_eq(filter_call_of(a->arch, a->connect, &narrow), FILTER_CONNECT);
	ck_assert_int_eq(narrow, a->narrow);
	ck_assert_int_eq(filter_call_of(a->arch, a->sendmsg, &narrow), FILTER_SENDMSG);
	ck_assert_int_eq(narrow, a->narrow || a->sendmsg == (X32 | 518)); /* struct msghdr of x32 has 32 bits */
}
END_TEST

/* The options that MPTCP refuses and that aren't missed stop, which are the preloaded library's; and no others. */
START_TEST(options_that_stop)
{
	const struct architecture *a = &architectures[_i];
	int stopped = 0;

	for (int level = 0; level < 300; level++)
		for (int name = 0; name < 300; name++) {
			bool advice = socket_advice_index(level, name) >= 0;
			uint32_t wanted = advice ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;

			ck_assert_uint_eq(judge(a->arch, a->setsockopt, level, level, name, level), wanted);
			ck_assert_uint_eq(judge(a->arch, a->getsockopt, name, level, name, name), wanted);
			stopped += advice;
		}
	ck_assert_int_eq(stopped, SOCKET_ADVICE_COUNT);
	ck_assert_int_ge(socket_advice_index(IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
	ck_assert_int_lt(socket_advice_index(IPPROTO_TCP, TCP_NODELAY), 0);
}
END_TEST

/* All other calls pass, whatever their arguments, but 425 (io_uring_setup) fails with ENOSYS: no table has a wrong number. */
START_TEST(nothing_else_stops)
{
	const struct architecture *a = &architectures[_i];
	const int base = a->connect & X32;

	for (int number = base; number < base + ANY_NUMBERS; number++) {
		uint32_t verdict = judge(a->arch, number, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX);
		bool narrow;

		if (number == base + 425)
			ck_assert_uint_eq(verdict, ENOSYS_RETURN);
		else if (verdict != SECCOMP_RET_ALLOW)
			ck_assert_int_ne(filter_call_of(a->arch, number, &narrow), FILTER_CALL_COUNT);
		else
			ck_assert(number != a->connect && number != a->getpeername);
	}
}
END_TEST

START_TEST(other_architectures_pass)
{
	bool narrow;

	ck_assert_uint_eq(judge(AUDIT_ARCH_S390X, 42, 0, 0, 0, 0), SECCOMP_RET_ALLOW);
	ck_assert_int_eq(filter_call_of(AUDIT_ARCH_S390X, 42, &narrow), FILTER_CALL_COUNT);
}
END_TEST

/* A program that restricts itself, or adopts orphans, stops for a moment; one that asks about that doesn't. */
START_TEST(restrictions_stop)
{
	static const struct {
		uint32_t arch;
		int seccomp, prctl;
	} numbers[] = {
#if defined(__x86_64__) || defined(__i386__)
		{ AUDIT_ARCH_X86_64, 317, 157 }, { AUDIT_ARCH_X86_64, X32 | 317, X32 | 157 }, { AUDIT_ARCH_I386, 354, 172 },
#elif defined(__aarch64__)
		{ AUDIT_ARCH_AARCH64, 277, 167 }, { AUDIT_ARCH_ARM, 383, 172 },
#endif
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const uint32_t arch = numbers[i].arch;
		const int bit = numbers[i].prctl & X32;

		for (uint64_t word = 0; word < 80; word++) {
			ck_assert_uint_eq(judge(arch, numbers[i].seccomp, word, 0, 0, 0),
					  word == SECCOMP_SET_MODE_FILTER ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW);
			ck_assert_uint_eq(judge(arch, numbers[i].prctl, word, 2, 0, 0),
					  word == PR_SET_SECCOMP || word == PR_SET_CHILD_SUBREAPER ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW);
		}
		ck_assert_uint_eq(judge(arch, bit | 444, 0, 0, 1, 0), SECCOMP_RET_ALLOW); /* the version */
		ck_assert_uint_eq(judge(arch, bit | 444, 4096, 16, 0, 0), SECCOMP_RET_USER_NOTIF);
		ck_assert_uint_eq(judge(arch, bit | 446, 3, 0, 0, 0), SECCOMP_RET_USER_NOTIF);
	}
}
END_TEST

#if defined(__x86_64__) || defined(__i386__)
/* i386's socketcall(2): linux/net.h has the numbers. Of these send(), recv() and all others pass. */
START_TEST(socketcall_stops_by_its_number)
{
	int count;

	for (unsigned int number = 0; number < 25; number++) {
		bool ours = number == 1 || number == 3 || number == 4 || number == 7 || number == 11 || number == 14 || number == 15 ||
			    number == 16 || number == 20;

		ck_assert_uint_eq(judge(AUDIT_ARCH_I386, 102, number, 0, 0, 0), ours ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW);
		ck_assert_int_eq(filter_socketcall_of(number, &count) != FILTER_CALL_COUNT, ours);
	}
	ck_assert_int_eq(filter_socketcall_of(1, &count), FILTER_SOCKET);
	ck_assert_int_eq(count, 3);
	ck_assert_int_eq(filter_socketcall_of(3, &count), FILTER_CONNECT);
	ck_assert_int_eq(filter_socketcall_of(11, &count), FILTER_SENDTO);
	ck_assert_int_eq(count, 6);
}
END_TEST
#endif

int main(void)
{
	Suite *suite = suite_create("supervise_filter");
	TCase *tcase = tcase_create("supervise_filter");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_loop_test(tcase, sockets_that_stop, 0, ARCHITECTURE_COUNT);
	tcase_add_loop_test(tcase, high_halves_of_registers_mean_nothing, 0, ARCHITECTURE_COUNT);
	tcase_add_loop_test(tcase, output_stops_with_fastopen_only, 0, ARCHITECTURE_COUNT);
	tcase_add_loop_test(tcase, calls_that_always_stop, 0, ARCHITECTURE_COUNT);
	tcase_add_loop_test(tcase, options_that_stop, 0, ARCHITECTURE_COUNT);
	tcase_add_loop_test(tcase, nothing_else_stops, 0, ARCHITECTURE_COUNT);
	tcase_add_test(tcase, other_architectures_pass);
	tcase_add_test(tcase, restrictions_stop);
#if defined(__x86_64__) || defined(__i386__)
	tcase_add_test(tcase, socketcall_stops_by_its_number);
#endif
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
