/* SPDX-License-Identifier: BSD-3-Clause */
/* test_proof.c - what goes back to a client that has proved nothing: sums of bytes, and never more than three times its own */
#include "config.h"

#include "daemon/proof.h"

#include "run.h"

#include <check.h>
#include <linux/tcp.h>

/* The headers of what Linux answers, as the captures of test_convertd_reflection.py show them. */
static const struct {
	unsigned options, mss; /* as TCP_INFO has them */
	unsigned data;         /* bytes in the SYN */
	bool v6, mptcp;
	unsigned syn, synack, header, reset; /* bytes of IP */
} syns[] = {
	/* no option at all, and a Connect TLV */
	{ 0, 536, 24, false, false, 64, 44, 40, 40 },
	{ 0, 536, 24, true, false, 84, 64, 60, 60 },
	{ 0, 1460, 24, false, false, 68, 44, 40, 40 },
	/* as Linux sends them */
	{ TCPI_OPT_TIMESTAMPS | TCPI_OPT_SACK | TCPI_OPT_WSCALE, 1448, 24, false, false, 84, 60, 52, 52 },
	{ TCPI_OPT_TIMESTAMPS | TCPI_OPT_SACK | TCPI_OPT_WSCALE, 1428, 24, true, false, 104, 80, 72, 72 },
	{ TCPI_OPT_SACK | TCPI_OPT_WSCALE, 1460, 24, false, false, 76, 52, 40, 40 },
	{ TCPI_OPT_TIMESTAMPS | TCPI_OPT_SACK | TCPI_OPT_WSCALE, 1448, 24, false, true, 88, 72, 52, 68 },
	{ 0, 536, 24, false, true, 68, 56, 40, 56 },
	/* an MSS that might be the default is none that was sent */
	{ TCPI_OPT_TIMESTAMPS, 524, 24, false, false, 76, 56, 52, 52 },
	{ TCPI_OPT_TIMESTAMPS, 525, 24, false, false, 80, 56, 52, 52 },
	/* the Fast Open option, and no data */
	{ 0, 536, 0, false, false, 44, 44, 40, 40 },
	{ 0, 536, 0, false, true, 48, 56, 40, 56 },
	/* a full segment */
	{ 0, 1460, 1420, false, false, 1464, 44, 40, 40 },
};

static struct proof read_proof(int i)
{
	struct tcp_info info = { .tcpi_options = (uint8_t)syns[i].options,
				 .tcpi_snd_mss = syns[i].mss,
				 .tcpi_bytes_received = syns[i].data };
	struct proof proof;

	proof_read(&proof, &info, syns[i].v6, syns[i].mptcp);
	return proof;
}

/* Each with Ethernet's header. */
START_TEST(bytes_on_the_wire)
{
	struct proof proof = read_proof(_i);

	ck_assert_uint_eq(proof.syn, syns[_i].syn + 14);
	ck_assert_uint_eq(proof.synack, syns[_i].synack + 14);
	ck_assert_uint_eq(proof.header, syns[_i].header + 14);
	ck_assert_uint_eq(proof.reset, syns[_i].reset + 14);
	ck_assert_uint_eq(proof.segment, syns[_i].mss);
}
END_TEST

/* On TCP, as many SYN+ACKs as TCP_SYNCNT allows, and the room. On MPTCP, those that are sent until the deadline, and a reset. */
START_TEST(never_more_than_three_times)
{
	struct proof proof = read_proof(_i);
	unsigned synacks = (unsigned)proof_retries(&proof) + 1;

	if (syns[_i].mptcp) {
		synacks = proof_synacks(&proof);
		ck_assert_uint_ge(synacks, 1);
		ck_assert_uint_le(synacks * proof.synack + proof.reset, 3 * proof.syn);
	} else {
		ck_assert_uint_ge(synacks, 2);
		ck_assert_uint_eq(synacks * proof.synack + proof_room(&proof, synacks), 3 * proof.syn);
		/* a client that isn't served at all may be reset */
		ck_assert_uint_ge(proof_room(&proof, synacks), proof.reset);
	}
}
END_TEST

/* The answer is sent before the third ACK: the SYN of a Linux client is long enough to allow for it. */
START_TEST(room_for_an_answer)
{
	struct proof proof = read_proof(3);

	ck_assert_uint_ge(proof_room(&proof, (unsigned)proof_retries(&proof) + 1), proof.header + 28U);
}
END_TEST

START_TEST(deadlines)
{
	/* The kernel sends SYN+ACKs after 0, 1, 3, 7 and 15 s. */
	static const unsigned next[] = { 0, 1000, 3000, 7000, 15000, 31000 };

	for (unsigned synacks = 1; synacks < 6; synacks++) {
		ck_assert_uint_lt(proof_deadline_ms(synacks), next[synacks]);
		ck_assert_uint_gt(proof_deadline_ms(synacks), next[synacks - 1]);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("proof");
	TCase *tcase = tcase_create("proof");
	int count = (int)(sizeof(syns) / sizeof(syns[0]));

	tcase_add_loop_test(tcase, bytes_on_the_wire, 0, count);
	tcase_add_loop_test(tcase, never_more_than_three_times, 0, count);
	tcase_add_test(tcase, room_for_an_answer);
	tcase_add_test(tcase, deadlines);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
