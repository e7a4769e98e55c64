/* SPDX-License-Identifier: BSD-3-Clause */
/* test_syn_packet.c - SYNs from packets: which SYNs are read, refused, and how they are changed */
#include "bytes.h"
#include "run.h"
#include "syn_build.h"

#include "hold/syn_packet.h"

#include <arpa/inet.h>
#include <check.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* From 192.0.2.7:40000 to 198.51.100.1:1234; lengths and checksums are put in by packet(). */
#define V4 "45000000 12344000 4006 0000 c0000207 c6336401 "
#define V4_OPTIONS "47000000 12344000 4006 0000 c0000207 c6336401 01010101 00000000 "
/* From [2001:db8::7]:40000 to [2001:db8::1]:1234 */
#define V6(next) "60000000 0000 " next " 40 20010db8 00*11 07 20010db8 00*11 01 "
#define PORTS "9c40 04d2 "
#define ISN "89abcdef 00000000 "
/* A data offset of so many words; the window is 64240. */
#define SYN(words) PORTS ISN words "02 faf0 0000 0000 "

#define MSS "020405b4 "
#define SACK_OK "0402 "
#define TIMESTAMPS "080a 01020304 00000000 "
#define SCALE(hex) "01 0303" hex " "
#define MP_CAPABLE "1e04 0181 "
#define MP_JOIN "1e0c 1001 11111111 22222222 "
#define REQUEST "01022263 01010000"

/* What Linux sends: 44 bytes of TCP header and a payload of 8. */
#define LINUX SYN("b0") MSS SACK_OK TIMESTAMPS SCALE("0a") MP_CAPABLE REQUEST

static size_t tcp_at(const struct bytes *packet)
{
	return packet->data[0] >> 4 == 4 ? (packet->data[0] & 15u) * 4u : 40;
}

/* The packet that @hex spells, with lengths and checksums. */
static struct bytes packet(const char *hex)
{
	struct bytes bytes = bytes_hex(hex);
	bool v4 = bytes.data[0] >> 4 == 4;
	size_t len = v4 ? bytes.len : bytes.len - 40;

	bytes.data[v4 ? 2 : 4] = (uint8_t)(len >> 8);
	bytes.data[v4 ? 3 : 5] = (uint8_t)len;
	syn_build_checksums(bytes.data, bytes.len);
	return bytes;
}

static void assert_address(const struct in6_addr *address, const char *text)
{
	char got[INET6_ADDRSTRLEN];

	ck_assert_str_eq(inet_ntop(AF_INET6, address, got, sizeof(got)), text);
}

static void assert_linux(const struct bytes *bytes, const struct syn_packet *syn)
{
	ck_assert_uint_eq(syn->flow.source_port, 40000);
	ck_assert_uint_eq(syn->flow.destination_port, 1234);
	ck_assert_uint_eq(syn->isn, 0x89abcdef);
	ck_assert_uint_eq(syn->window, 64240);
	ck_assert_uint_eq(syn->scale, 10);
	ck_assert(syn->mp_capable && !syn->mp_join);
	ck_assert_uint_eq(syn->payload_len, 8);
	ck_assert_ptr_eq(syn->payload, bytes->data + bytes->len - 8);
}

static const struct {
	const char *hex, *source, *destination;
} good[] = {
	{ V4 LINUX, "::ffff:192.0.2.7", "::ffff:198.51.100.1" },
	{ V4_OPTIONS LINUX, "::ffff:192.0.2.7", "::ffff:198.51.100.1" },
	{ V6("06") LINUX, "2001:db8::7", "2001:db8::1" },
	/* hop-by-hop, destination options of 16 bytes, a routing header that has done its work */
	{ V6("00") "3c00 0104 00000000 2b01 01*14 0600 0400 00000000 " LINUX, "2001:db8::7",
	  "2001:db8::1" },
};

START_TEST(reads)
{
	struct bytes bytes = packet(good[_i].hex);
	struct syn_packet syn;

	ck_assert_int_eq(syn_packet_parse(bytes.data, bytes.len, &syn), SYN_PACKET_OK);
	assert_linux(&bytes, &syn);
	assert_address(&syn.flow.source, good[_i].source);
	assert_address(&syn.flow.destination, good[_i].destination);
	bytes_fini(&bytes);
}
END_TEST

START_TEST(truncated)
{
	struct bytes bytes = packet(good[_i].hex);
	struct syn_packet syn;

	for (size_t len = 0; len < bytes.len; len++) {
		struct bytes part = bytes_copy(bytes.data, len);

		ck_assert_int_eq(syn_packet_parse(part.data, len, &syn), SYN_PACKET_CUT);
		bytes_fini(&part);
	}
	bytes_fini(&bytes);
}
END_TEST

/* Ethernet pads short frames. */
START_TEST(what_the_header_does_not_count)
{
	struct bytes bytes = packet(good[_i].hex);
	uint8_t padded[512] = { 0 };
	struct syn_packet syn;

	memcpy(padded, bytes.data, bytes.len);
	ck_assert_int_eq(syn_packet_parse(padded, bytes.len + 20, &syn), SYN_PACKET_OK);
	ck_assert_uint_eq(syn.payload_len, 8);
	bytes_fini(&bytes);
}
END_TEST

/* Each wrong bit of the TCP segment is noticed: by the data offset, by the flags, or by the checksum. */
START_TEST(damaged)
{
	struct bytes bytes = packet(good[_i].hex);
	size_t tcp = bytes.len - 52;
	struct syn_packet syn;

	for (size_t bit = 0; bit < 52 * 8; bit++) {
		enum syn_packet_status status;

		bytes.data[tcp + bit / 8] ^= (uint8_t)(1u << bit % 8);
		status = syn_packet_parse(bytes.data, bytes.len, &syn);
		if (bit / 8 == 12)
			ck_assert_int_ne(status, SYN_PACKET_OK); /* the data offset: no checksum yet */
		else if (bit / 8 == 13 && (1u << bit % 8) & 0x17)
			ck_assert_int_eq(status, SYN_PACKET_NOT_SYN);
		else
			ck_assert_int_eq(status, SYN_PACKET_BAD_CHECKSUM);
		bytes.data[tcp + bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	bytes_fini(&bytes);
}
END_TEST

static const struct {
	const char *hex;
	enum syn_packet_status status;
} bad[] = {
	{ "50000000 00*40", SYN_PACKET_BAD_HEADER },
	{ "44000000 12344000 4006 0000 c0000207 c6336401 " LINUX, SYN_PACKET_BAD_HEADER },
	{ "45000000 12342000 4006 0000 c0000207 c6336401 " LINUX, SYN_PACKET_FRAGMENT },
	{ "45000000 12340001 4006 0000 c0000207 c6336401 " LINUX, SYN_PACKET_FRAGMENT },
	{ V6("2c") "0600 0001 00000000 " LINUX, SYN_PACKET_FRAGMENT },
	{ V6("2c") "0600 0000 00000000 " LINUX, SYN_PACKET_FRAGMENT },
	{ "45000000 12344000 4011 0000 c0000207 c6336401 " LINUX, SYN_PACKET_NOT_SYN },
	{ V6("11") LINUX, SYN_PACKET_NOT_SYN },
	{ V6("33") "0604 0000 00*20 " LINUX, SYN_PACKET_NOT_SYN }, /* authenticated: not ours to change */
	{ V6("2b") "0600 0401 00000000 " LINUX, SYN_PACKET_BAD_HEADER }, /* a segment is left */
	{ V6("3c") "3c00 01*6 3c00 01*6 3c00 01*6 3c00 01*6 3c00 01*6 3c00 01*6 3c00 01*6 3c00 01*6 "
	  "0600 01*6 " LINUX, SYN_PACKET_BAD_HEADER },
	{ V6("3c") "06ff 01*6 " LINUX, SYN_PACKET_CUT },
	{ V4 PORTS ISN "5012 faf0 0000 0000", SYN_PACKET_NOT_SYN },
	{ V4 PORTS ISN "5003 faf0 0000 0000", SYN_PACKET_NOT_SYN },
	{ V4 PORTS ISN "5006 faf0 0000 0000", SYN_PACKET_NOT_SYN },
	{ V4 PORTS ISN "5000 faf0 0000 0000", SYN_PACKET_NOT_SYN },
	{ V4 PORTS ISN "4002 faf0 0000 0000", SYN_PACKET_BAD_HEADER },
	{ V4 PORTS ISN "6002 faf0 0000 0000", SYN_PACKET_CUT },
	/* options that can't be */
	{ V4 SYN("60") "01010102", SYN_PACKET_BAD_HEADER },
	{ V4 SYN("60") "02000000", SYN_PACKET_BAD_HEADER },
	{ V4 SYN("60") "02010000", SYN_PACKET_BAD_HEADER },
	{ V4 SYN("60") "020505b4", SYN_PACKET_BAD_HEADER },
};

START_TEST(refuses)
{
	struct bytes bytes = packet(bad[_i].hex);
	struct syn_packet syn;

	ck_assert_int_eq(syn_packet_parse(bytes.data, bytes.len, &syn), bad[_i].status);
	bytes_fini(&bytes);
}
END_TEST

START_TEST(bad_ip_checksum)
{
	struct bytes bytes = packet(V4 LINUX);
	struct syn_packet syn;

	bytes.data[8]--; /* as a router that forgets the checksum */
	ck_assert_int_eq(syn_packet_parse(bytes.data, bytes.len, &syn), SYN_PACKET_BAD_CHECKSUM);
	bytes_fini(&bytes);
}
END_TEST

/* RFC 1071 adds with carry: one that is 0xffff or 0 must be right as well. */
START_TEST(every_checksum)
{
	struct bytes bytes = packet(V4 LINUX);
	size_t isn = tcp_at(&bytes) + 4;
	struct syn_packet syn;

	for (unsigned value = 0; value <= 0xffff; value++) {
		bytes.data[isn] = (uint8_t)(value >> 8);
		bytes.data[isn + 1] = (uint8_t)value;
		syn_build_checksums(bytes.data, bytes.len);
		ck_assert_int_eq(syn_packet_parse(bytes.data, bytes.len, &syn), SYN_PACKET_OK);
		syn_packet_shift_window(bytes.data, &syn);
		syn_packet_mark(bytes.data, &syn);
		ck_assert_int_eq(syn_packet_parse(bytes.data, bytes.len, &syn), SYN_PACKET_OK);
		bytes.data[tcp_at(&bytes) + 14] = 0xfa;
		bytes.data[tcp_at(&bytes) + 15] = 0xf0;
		memset(bytes.data + tcp_at(&bytes) + 18, 0, 2);
	}
	bytes_fini(&bytes);
}
END_TEST

static const struct {
	const char *hex;
	uint16_t window, shifted;
	uint8_t scale;
	bool capable, join;
} options[] = {
	{ V4 SYN("50"), 64240, 64240, 0, false, false },
	{ V4 SYN("60") SCALE("00"), 64240, 64240, 0, false, false },
	{ V4 SYN("60") SCALE("07"), 64240, 501, 7, false, false },
	{ V4 SYN("60") SCALE("0e"), 64240, 3, 14, false, false },
	{ V4 SYN("60") SCALE("ff"), 64240, 3, 14, false, false },
	{ V4 PORTS ISN "6002 03ff 0000 0000 " SCALE("0a"), 1023, 1, 10, false, false },
	{ V4 PORTS ISN "6002 0000 0000 0000 " SCALE("0a"), 0, 0, 10, false, false },
	{ V4 SYN("70") SCALE("0a") SCALE("02"), 64240, 16060, 2, false, false },
	{ V4 SYN("60") MP_CAPABLE, 64240, 64240, 0, true, false },
	{ V4 SYN("80") MP_JOIN, 64240, 64240, 0, false, true },
	{ V4 SYN("60") "1e020402", 64240, 64240, 0, false, false }, /* too short for a subtype */
	{ V4 SYN("80") TIMESTAMPS "0000", 64240, 64240, 0, false, false },
	{ V4 SYN("60") "00030a04", 64240, 64240, 0, false, false }, /* behind the end */
};

START_TEST(reads_options)
{
	struct bytes bytes = packet(options[_i].hex);
	struct syn_packet syn, again;

	ck_assert_int_eq(syn_packet_parse(bytes.data, bytes.len, &syn), SYN_PACKET_OK);
	ck_assert_uint_eq(syn.window, options[_i].window);
	ck_assert_uint_eq(syn.scale, options[_i].scale);
	ck_assert_int_eq(syn.mp_capable, options[_i].capable);
	ck_assert_int_eq(syn.mp_join, options[_i].join);
	syn_packet_shift_window(bytes.data, &syn);
	ck_assert_uint_eq(syn.window, options[_i].shifted);
	ck_assert_int_eq(syn_packet_parse(bytes.data, bytes.len, &again), SYN_PACKET_OK);
	ck_assert_uint_eq(again.window, options[_i].shifted);
	bytes_fini(&bytes);
}
END_TEST

/* The rest of the header stays where it is: options may stand at odd bytes. */
#define AT_ODD_BYTES(capable)                                                                        \
	V4 SYN("c0") MSS "01" SACK_OK capable "01" TIMESTAMPS "030305 000000 " REQUEST

START_TEST(removes_mp_capable)
{
	struct bytes bytes = packet(AT_ODD_BYTES(MP_CAPABLE));
	struct bytes want = packet(AT_ODD_BYTES("01*4 "));
	struct syn_packet syn, again;

	ck_assert_int_eq(syn_packet_parse(bytes.data, bytes.len, &syn), SYN_PACKET_OK);
	ck_assert(syn.mp_capable);
	syn_packet_remove_mp_capable(bytes.data, &syn);
	ck_assert_mem_eq(bytes.data, want.data, want.len);
	ck_assert_int_eq(syn_packet_parse(bytes.data, bytes.len, &again), SYN_PACKET_OK);
	ck_assert_mem_eq(&syn, &again, sizeof(syn));
	bytes_fini(&bytes);
	bytes_fini(&want);
}
END_TEST

/* The mark is put into the urgent pointer; nothing else changes but the checksum. */
START_TEST(marks)
{
	struct bytes bytes = packet(V4 PORTS ISN "c002 faf0 0000 0000 " MSS "01" SACK_OK MP_CAPABLE
				    "01" TIMESTAMPS "030305 000000 " REQUEST);
	struct bytes want = packet(V4 PORTS ISN "c002 faf0 0000 6c63 " MSS "01" SACK_OK MP_CAPABLE
				   "01" TIMESTAMPS "030305 000000 " REQUEST);
	struct syn_packet syn;

	ck_assert_int_eq(syn_packet_parse(bytes.data, bytes.len, &syn), SYN_PACKET_OK);
	syn_packet_mark(bytes.data, &syn);
	ck_assert_mem_eq(bytes.data, want.data, want.len);
	bytes_fini(&want);
	want = packet(V4 PORTS ISN "c002 faf0 0000 6d80 " MSS "01" SACK_OK MP_CAPABLE
		      "01" TIMESTAMPS "030305 000000 " REQUEST);
	syn_packet_refuse(bytes.data, &syn, NATIVE_RESET);
	ck_assert_mem_eq(bytes.data, want.data, want.len);
	ck_assert_uint_eq(syn.urgent, 0);
	ck_assert_int_eq(syn_packet_parse(bytes.data, bytes.len, &syn), SYN_PACKET_OK);
	ck_assert_uint_eq(syn.urgent, SYN_PACKET_REFUSED | NATIVE_RESET);
	bytes_fini(&bytes);
	bytes_fini(&want);
}
END_TEST

START_TEST(leaves_joins)
{
	struct bytes bytes = packet(V4 SYN("80") MP_JOIN), before;
	struct syn_packet syn;

	before = bytes_copy(bytes.data, bytes.len);
	ck_assert_int_eq(syn_packet_parse(bytes.data, bytes.len, &syn), SYN_PACKET_OK);
	syn_packet_remove_mp_capable(bytes.data, &syn);
	ck_assert_mem_eq(bytes.data, before.data, bytes.len);
	bytes_fini(&bytes);
	bytes_fini(&before);
}
END_TEST

START_TEST(names)
{
	for (int i = 0; i < SYN_PACKET_STATUS_COUNT; i++)
		ck_assert_str_ne(syn_packet_status_name((enum syn_packet_status)i), "unknown");
	ck_assert_str_eq(syn_packet_status_name(SYN_PACKET_STATUS_COUNT), "unknown");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("syn_packet");
	TCase *tcase = tcase_create("packets");

	tcase_add_loop_test(tcase, reads, 0, (int)ARRAY_SIZE(good));
	tcase_add_loop_test(tcase, truncated, 0, (int)ARRAY_SIZE(good));
	tcase_add_loop_test(tcase, what_the_header_does_not_count, 0, (int)ARRAY_SIZE(good));
	tcase_add_loop_test(tcase, damaged, 0, (int)ARRAY_SIZE(good));
	tcase_add_loop_test(tcase, refuses, 0, (int)ARRAY_SIZE(bad));
	tcase_add_test(tcase, bad_ip_checksum);
	tcase_add_test(tcase, every_checksum);
	tcase_add_loop_test(tcase, reads_options, 0, (int)ARRAY_SIZE(options));
	tcase_add_test(tcase, removes_mp_capable);
	tcase_add_test(tcase, marks);
	tcase_add_test(tcase, leaves_joins);
	tcase_add_test(tcase, names);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
