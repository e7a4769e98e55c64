/* SPDX-License-Identifier: BSD-3-Clause */
/* test_codec_write_private.c - what the writers of private-use TLVs put on the wire, and refuse */
#include "codec_fixture.h"
#include "run.h"

static void withholding(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .withheld = true, .limit_ms = 2000, .corrects = true });
}

static void withholding_uncorrected(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .withheld = true, .limit_ms = 2000 });
}

static void withholding_corrects(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .corrects = true });
}

static void withholding_silent(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .withheld = true, .limit_ms = 2000, .corrects = true,
								   .silent = true });
}

static void withholding_blind(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .withheld = true, .limit_ms = 2000, .corrects = true,
								   .silent = true, .blind = true });
}

static void withholding_repeats(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .withheld = true, .limit_ms = 2000, .corrects = true,
								   .silent = true, .blind = true, .repeats = true });
}

static void withholding_hold_times(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .withheld = true, .limit_ms = 2000, .corrects = true,
								   .hold_times = true });
}

/* Neither flag means anything without the one before it, nor does the limit without withheld. */
static void withholding_loose(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .corrects = true, .limit_ms = 2000, .silent = true, .blind = true,
								   .hold_times = true });
}

static void withholding_loose_blind(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .withheld = true, .limit_ms = 2000, .corrects = true,
								   .blind = true, .repeats = true });
}

static void silence(struct convert_writer *w)
{
	convert_write_silence(w, &(struct convert_silence){ 0 });
}

static void silence_blind(struct convert_writer *w)
{
	convert_write_silence(w, &(struct convert_silence){ .blind = true });
}

static void silence_mptcp(struct convert_writer *w)
{
	convert_write_silence(w, &(struct convert_silence){ .mptcp = true });
}

static void silence_attempt(struct convert_writer *w)
{
	convert_write_silence(w, &(struct convert_silence){ .blind = true, .mptcp = true, .attempt = 0x0123456789abcdef, .repeat = 258 });
}

static void silence_padded(struct convert_writer *w)
{
	convert_write_silence(w, &(struct convert_silence){ .padding = 2 });
}

static void silence_attempt_padded(struct convert_writer *w)
{
	convert_write_silence(w, &(struct convert_silence){ .blind = true, .attempt = 1, .padding = 1 });
}

static void withholding_no_way(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .no_way = true });
}

static void withholding_off(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ 0 });
}

static void echo(struct convert_writer *w)
{
	convert_write_echo(w, 256);
}

static void hold_time(struct convert_writer *w)
{
	convert_write_hold_time(w, 450);
}

static void private_empty(struct convert_writer *w)
{
	convert_write_tlv(w, 192, NULL, 0);
}

static void private_three(struct convert_writer *w)
{
	convert_write_tlv(w, 255, (const uint8_t[]){ 1, 2, 3 }, 3);
}

/* doc/private-tlvs.md */
static const struct {
	write_one *write;
	const char *hex;
} writes[] = {
	{ withholding, "01032263 f0020103 07d06c63" },
	{ withholding_uncorrected, "01032263 f0020105 07d06c63" },
	{ withholding_corrects, "01032263 f0020102 00006c63" },
	{ withholding_off, "01032263 f0020100 00006c63" },
	{ withholding_no_way, "01032263 f0020180 00006c63" },
	{ withholding_silent, "01032263 f002010b 07d06c63" },
	{ withholding_blind, "01032263 f002011b 07d06c63" },
	{ withholding_repeats, "01032263 f002013b 07d06c63" },
	{ withholding_hold_times, "01032263 f0020143 07d06c63" },
	{ withholding_loose, "01032263 f0020102 00006c63" },
	{ withholding_loose_blind, "01032263 f0020103 07d06c63" },
	{ silence, "01036c63 f2020100 00006c63" },
	{ silence_blind, "01036c63 f2020101 00006c63" },
	{ silence_mptcp, "01036c63 f2020102 00006c63" },
	{ silence_attempt, "01056c63 f2040103 01026c63 0123456789abcdef" },
	{ silence_padded, "01056c63 f2040100 00006c63 00000000 00000000" },
	{ silence_attempt_padded, "01066c63 f2050101 00006c63 0000000000000001 00000000" },
	{ echo, "01032263 f1020100 01006c63" },
	{ hold_time, "01032263 f3020100 01c26c63" },
	{ private_empty, "01022263 c0010000" },
	{ private_three, "01032263 ff020102 03000000" },
};

START_TEST(golden)
{
	expect_golden(writes[_i].write, writes[_i].hex, false);
}
END_TEST

static void connect_v4(struct convert_writer *w)
{
	const struct in6_addr to = in6("::ffff:192.0.2.1");

	convert_write_connect(w, &to, 443, NULL, 0);
}

static void silence_second(struct convert_writer *w)
{
	if (w->len == CONVERT_HEADER_LEN)
		connect_v4(w);
	silence(w);
}

START_TEST(silence_is_the_first)
{
	expect_refused(silence_second);
}
END_TEST

/* A silent request as a client sends it; and a TLV of that type that is written as somebody else's changes no Magic Number. */
START_TEST(silent_request)
{
	struct fixture f;

	fixture_init(&f, CONVERT_MESSAGE_MAX);
	silence_blind(&f.w);
	connect_v4(&f.w);
	fixture_expect(&f, "01086c63 f2020101 00006c63 0a0501bb " V4);
	fixture_init(&f, CONVERT_MESSAGE_MAX);
	convert_write_tlv(&f.w, CONVERT_TLV_SILENCE, (const uint8_t[]){ 1, 0, 0, 0, 0x6c, 0x63 }, 6);
	fixture_expect(&f, "01032263 f2020100 00006c63");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("codec_write_private");
	TCase *tcase = tcase_create("write");

	tcase_add_loop_test(tcase, golden, 0, (int)ARRAY_SIZE(writes));
	tcase_add_test(tcase, silence_is_the_first);
	tcase_add_test(tcase, silent_request);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
