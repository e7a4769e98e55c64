/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_codec_read.c - messages spelled byte by byte after the RFC's figures, read
 *
 * Nothing here uses the writer: a misunderstanding must not cancel itself out.
 */
#include "bytes.h"
#include "run.h"

#include <arpa/inet.h>
#include <check.h>
#include <string.h>

#include <convert/convert.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Figure 17: 192.0.2.1 as v4-mapped, and 2001:db8::1 */
#define V4 "00*10 ffff c0000201 "
#define V6 "20010db8 00*11 01 "
#define CONNECT_V4 "0a05 01bb " V4
#define SILENCE "f202 0100 0000 6c63 "
#define APPLICATION_DATA "47 45 54 20 2f 01 06 22 63"

struct vector {
	const char *hex;
	enum convert_status status;
};

/* Section 6.1, the same for both peers */
static const struct vector headers[] = {
	{ "", CONVERT_STATUS_NEED_MORE },
	{ "01", CONVERT_STATUS_NEED_MORE },
	{ "47", CONVERT_STATUS_NEED_MORE }, /* the magic decides, not the version */
	{ "01 02", CONVERT_STATUS_NEED_MORE },
	{ "01 00", CONVERT_STATUS_NEED_MORE },
	{ "01 02 22", CONVERT_STATUS_NEED_MORE },
	{ "02 02 22", CONVERT_STATUS_NEED_MORE },
	{ "01 02 63", CONVERT_STATUS_BAD_MAGIC },
	{ "47 45 54", CONVERT_STATUS_BAD_MAGIC },
	{ "01 02 22 62", CONVERT_STATUS_BAD_MAGIC },
	{ "01 02 63 22", CONVERT_STATUS_BAD_MAGIC },
	{ "01 00 22 62", CONVERT_STATUS_BAD_MAGIC },
	{ "47 45 54 20", CONVERT_STATUS_BAD_MAGIC },
	{ "00 02 22 63", CONVERT_STATUS_BAD_VERSION },
	{ "02 02 22 63", CONVERT_STATUS_BAD_VERSION },
	{ "ff ff 22 63", CONVERT_STATUS_BAD_VERSION },
	{ "02 00 22 63", CONVERT_STATUS_ZERO_TOTAL_LENGTH }, /* Section 6.1 wants a reset, whatever the version is */
	{ "01 00 22 63", CONVERT_STATUS_ZERO_TOTAL_LENGTH },
	{ "01 00 22 63 01 01 00 00", CONVERT_STATUS_ZERO_TOTAL_LENGTH },
	{ "01 02 22 63", CONVERT_STATUS_NEED_MORE },
	{ "01 02 22 63 01 01 00", CONVERT_STATUS_NEED_MORE },
	{ "01 ff 22 63", CONVERT_STATUS_NEED_MORE },
	{ "01 ff 22 63 00*1015", CONVERT_STATUS_NEED_MORE }, /* type 0, but not all is there */
};

static const struct vector requests[] = {
	{ "01 02 22 63 01 01 00 00", CONVERT_STATUS_OK },
	{ "01 06 22 63 " CONNECT_V4, CONVERT_STATUS_OK },
	{ "01 08 6c 63 " SILENCE CONNECT_V4, CONVERT_STATUS_OK },
	{ "01 0b 6c 63 " SILENCE CONNECT_V4 "16 03 00 00 de ad be ef 00 00 00 00", CONVERT_STATUS_OK },
	{ "01 06 6c 63 " CONNECT_V4, CONVERT_STATUS_BAD_SILENCE },
	{ "01 08 6c 63 " CONNECT_V4 SILENCE, CONVERT_STATUS_BAD_SILENCE },
	{ "01 0a 6c 63 " SILENCE SILENCE CONNECT_V4, CONVERT_STATUS_BAD_SILENCE },
	{ "01 09 6c 63 " SILENCE CONNECT_V4 "01 01 00 00", CONVERT_STATUS_BAD_SILENCE },
	{ "01 0a 6c 63 " SILENCE CONNECT_V4 "f102 0100 0000 6c63", CONVERT_STATUS_BAD_SILENCE },
	{ "01 09 6c 63 " SILENCE CONNECT_V4 "c0 01 00 00", CONVERT_STATUS_BAD_SILENCE },
	{ "01 03 6c 63 " SILENCE, CONVERT_STATUS_BAD_SILENCE },
	{ "01 08 6c 63 f202 0200 0000 6c63 " CONNECT_V4, CONVERT_STATUS_BAD_SILENCE },
	{ "01 08 6c 63 f202 0100 0000 2263 " CONNECT_V4, CONVERT_STATUS_BAD_SILENCE },
	{ "01 07 6c 63 f201 0100 " CONNECT_V4, CONVERT_STATUS_BAD_SILENCE },
	{ "01 08 6c 63 f200 0100 0000 6c63 " CONNECT_V4, CONVERT_STATUS_BAD_SILENCE },
	{ "01 01 6c 63", CONVERT_STATUS_BAD_SILENCE },
	/* without its Magic Number it is somebody else's TLV */
	{ "01 08 22 63 " SILENCE CONNECT_V4, CONVERT_STATUS_TLV_UNKNOWN },
	{ "01 06 22 63 0a05 0000 " V4, CONVERT_STATUS_OK }, /* a port's worth is the network's to say */
	{ "01 07 22 63 " CONNECT_V4 "01 01 00 00", CONVERT_STATUS_OK },
	{ "01 04 22 63 16 02 00 00 de ad be ef 01 01 00 00", CONVERT_STATUS_OK },
	{ "01 ff 22 63 01 01 00 00 16 fd 00 00 ab*1008", CONVERT_STATUS_OK },
	/* Section 6: one or more TLVs, that ask for something */
	{ "01 01 22 63", CONVERT_STATUS_NO_TLV },
	{ "01 01 22 63 01 01 00 00", CONVERT_STATUS_NO_TLV },
	{ "01 03 22 63 16 02 00 00 de ad be ef", CONVERT_STATUS_NO_TLV },
	/* Section 9: framing */
	{ "01 02 22 63 01 02 00 00", CONVERT_STATUS_TLV_PAST_END },
	{ "01 02 22 63 01 02 00 00 00 00 00 00", CONVERT_STATUS_TLV_PAST_END },
	{ "01 05 22 63 0a05 01bb 00*10 ffff", CONVERT_STATUS_TLV_PAST_END },
	{ "01 06 22 63 0a06 01bb " V4, CONVERT_STATUS_TLV_PAST_END },
	{ "01 02 22 63 16 ff 00 00", CONVERT_STATUS_TLV_PAST_END },
	{ "01 02 22 63 01 00 00 00", CONVERT_STATUS_TLV_ZERO_LENGTH },
	{ "01 03 22 63 01 01 00 00 0a 00 00 00", CONVERT_STATUS_TLV_ZERO_LENGTH },
	/* Section 6.2.2: type 0; it stands before its length */
	{ "01 02 22 63 00 01 00 00", CONVERT_STATUS_TLV_TYPE_RESERVED },
	{ "01 02 22 63 00 00 00 00", CONVERT_STATUS_TLV_TYPE_RESERVED },
	{ "01 02 22 63 00 ff 00 00", CONVERT_STATUS_TLV_TYPE_RESERVED },
	{ "01 03 22 63 01 01 00 00 00 01 00 00", CONVERT_STATUS_TLV_TYPE_RESERVED },
	/* Section 6.2.1 */
	{ "01 03 22 63 01 01 00 00 01 01 00 00", CONVERT_STATUS_TLV_TWICE },
	{ "01 0b 22 63 " CONNECT_V4 CONNECT_V4, CONVERT_STATUS_TLV_TWICE },
	{ "01 0c 22 63 " CONNECT_V4 "01 01 00 00 0a05 0050 " V6, CONVERT_STATUS_TLV_TWICE },
	{ "01 05 22 63 16020000 deadbeef 16020000 deadbeef", CONVERT_STATUS_TLV_TWICE },
	/* not in Table 1 */
	{ "01 02 22 63 02 01 00 00", CONVERT_STATUS_TLV_UNKNOWN },
	{ "01 02 22 63 c0 01 00 00", CONVERT_STATUS_TLV_UNKNOWN },
	{ "01 03 22 63 01 01 00 00 ff 01 00 00", CONVERT_STATUS_TLV_UNKNOWN },
	{ "01 03 22 63 c0 01 00 00 c0 01 00 00", CONVERT_STATUS_TLV_UNKNOWN },
	/* a converter's */
	{ "01 02 22 63 14 01 00 00", CONVERT_STATUS_TLV_WRONG_DIRECTION },
	{ "01 03 22 63 15 02 00 00 1e 00 00 00", CONVERT_STATUS_TLV_WRONG_DIRECTION },
	{ "01 02 22 63 1e 01 60 00", CONVERT_STATUS_TLV_WRONG_DIRECTION },
	{ "01 03 22 63 f0 02 01 01 07 d0 6c 63", CONVERT_STATUS_TLV_WRONG_DIRECTION },
	/* lengths */
	{ "01 03 22 63 01 02 00 00 00 00 00 00", CONVERT_STATUS_TLV_BAD_LENGTH },
	{ "01 02 22 63 0a 01 01 bb", CONVERT_STATUS_TLV_BAD_LENGTH },
	{ "01 05 22 63 0a 04 01 bb 00*10 ffff", CONVERT_STATUS_TLV_BAD_LENGTH },
	{ "01 02 22 63 16 01 00 00", CONVERT_STATUS_TLV_BAD_LENGTH },
	/* fields called Zero, Figures 15 and 21 */
	{ "01 02 22 63 01 01 01 00", CONVERT_STATUS_TLV_BAD_VALUE },
	{ "01 02 22 63 01 01 00 01", CONVERT_STATUS_TLV_BAD_VALUE },
	{ "01 04 22 63 01 01 00 00 16 02 80 00 de ad be ef", CONVERT_STATUS_TLV_BAD_VALUE },
	{ "01 04 22 63 01 01 00 00 16 02 00 01 de ad be ef", CONVERT_STATUS_TLV_BAD_VALUE },
	/* the first fault in the stream wins */
	{ "01 03 22 63 c0 01 00 00 00 01 00 00", CONVERT_STATUS_TLV_UNKNOWN },
	{ "01 03 22 63 01 01 00 01 01 01 00 00", CONVERT_STATUS_TLV_BAD_VALUE },
	{ "01 03 22 63 01 01 00 00 01 00 00 00", CONVERT_STATUS_TLV_TWICE },
	{ "01 02 22 63 c0 ff 00 00", CONVERT_STATUS_TLV_UNKNOWN },
	{ "01 07 22 63 0a06 01bb 00*15 01 03 01 00 00", CONVERT_STATUS_BAD_ADDRESS },
};

static const struct vector responses[] = {
	{ "01 01 22 63", CONVERT_STATUS_OK },
	{ "01 02 22 63 14 01 00 00", CONVERT_STATUS_OK },
	{ "01 02 22 63 14 01 ff ff", CONVERT_STATUS_OK }, /* Unassigned: ignored */
	{ "01 03 22 63 14 02 00 00 02 04 05 b4", CONVERT_STATUS_OK },
	{ "01 03 22 63 14 02 00 00 02 00 ff ff", CONVERT_STATUS_OK }, /* the server's own options */
	{ "01 02 22 63 15 01 00 00", CONVERT_STATUS_OK },
	{ "01 03 22 63 15 02 12 34 1e 22 00 00", CONVERT_STATUS_OK },
	{ "01 02 22 63 1e 01 60 00", CONVERT_STATUS_OK },
	{ "01 02 22 63 1e 01 c8 07", CONVERT_STATUS_OK }, /* a code that nobody knows */
	{ "01 03 22 63 1e 02 60 01 02 03 04 05", CONVERT_STATUS_OK },
	{ "01 ff 22 63 1e fe 01 00 5a*1012", CONVERT_STATUS_OK },
	{ "01 04 22 63 15 01 00 00 14 01 00 00 1e 01 60 00", CONVERT_STATUS_OK },
	/* new TLVs are stepped over, whatever is in them */
	{ "01 02 22 63 02 01 00 00", CONVERT_STATUS_OK },
	{ "01 05 22 63 c0 02 ff ff ff ff ff ff 14 01 00 00 ff 01 00 00", CONVERT_STATUS_OK },
	{ "01 02 22 63 f0 01 01 01", CONVERT_STATUS_OK },
	/* ... but never twice */
	{ "01 05 22 63 f0 02 01 01 07 d0 6c 63 f0 02 01 01 07 d0 6c 63", CONVERT_STATUS_TLV_TWICE },
	{ "01 03 22 63 c0 01 00 00 c0 01 00 00", CONVERT_STATUS_TLV_TWICE },
	{ "01 03 22 63 ff 01 00 00 ff 01 00 00", CONVERT_STATUS_TLV_TWICE },
	{ "01 03 22 63 14 01 00 00 14 01 00 00", CONVERT_STATUS_TLV_TWICE },
	{ "01 03 22 63 15 01 00 00 15 01 00 00", CONVERT_STATUS_TLV_TWICE },
	{ "01 03 22 63 1e 01 60 00 1e 01 61 00", CONVERT_STATUS_TLV_TWICE },
	{ "01 02 22 63 14 02 00 00", CONVERT_STATUS_TLV_PAST_END },
	{ "01 02 22 63 1e ff 60 00", CONVERT_STATUS_TLV_PAST_END },
	{ "01 02 22 63 c0 02 00 00", CONVERT_STATUS_TLV_PAST_END },
	{ "01 02 22 63 1e 00 60 00", CONVERT_STATUS_TLV_ZERO_LENGTH },
	{ "01 02 22 63 c0 00 00 00", CONVERT_STATUS_TLV_ZERO_LENGTH },
	{ "01 02 22 63 00 01 00 00", CONVERT_STATUS_TLV_TYPE_RESERVED },
	{ "01 03 22 63 14 01 00 00 00 00 00 00", CONVERT_STATUS_TLV_TYPE_RESERVED },
	{ "01 02 22 63 01 01 00 00", CONVERT_STATUS_TLV_WRONG_DIRECTION },
	{ "01 06 22 63 " CONNECT_V4, CONVERT_STATUS_TLV_WRONG_DIRECTION },
	{ "01 03 22 63 16 02 00 00 de ad be ef", CONVERT_STATUS_TLV_WRONG_DIRECTION },
};

/* Figure 19, and Section 7.1 for kinds 0 and 1: lists and the kinds that are found */
static const struct option_vector {
	const char *hex;
	const char *kinds;
	enum convert_status status;
} option_lists[] = {
	{ "", "", CONVERT_STATUS_END },
	{ "00", "", CONVERT_STATUS_END },
	{ "00 00 00 00", "", CONVERT_STATUS_END },
	{ "01 01 01 01", "", CONVERT_STATUS_END },
	{ "04 02 00 00", "04", CONVERT_STATUS_END },
	{ "01 04 02 01 1e 02 00 22", "041e", CONVERT_STATUS_TLV_BAD_VALUE },
	{ "00 04 02 00 00 1e 02 01", "041e", CONVERT_STATUS_END },
	{ "22 0a 00*8 00 00", "22", CONVERT_STATUS_END },
	{ "22 06 01 02 03 04 04 02 00 00", "2204", CONVERT_STATUS_END },
	{ "ff ff 55*253", "ff", CONVERT_STATUS_END },
	{ "02", "", CONVERT_STATUS_TLV_BAD_VALUE },
	{ "00 00 00 02", "", CONVERT_STATUS_TLV_BAD_VALUE },
	{ "1e 00 00 00", "", CONVERT_STATUS_TLV_BAD_VALUE },
	{ "1e 01 00 00", "", CONVERT_STATUS_TLV_BAD_VALUE },
	{ "1e 05 00 00", "", CONVERT_STATUS_TLV_BAD_VALUE },
	{ "04 02 1e 03", "04", CONVERT_STATUS_TLV_BAD_VALUE },
	{ "22 ff 00 00", "", CONVERT_STATUS_TLV_BAD_VALUE },
};

/* Section 6.2.5 and RFC 6890 */
static const struct {
	const char *text;
	bool valid;
} addresses[] = {
	{ "::ffff:192.0.2.1", true },	 { "::ffff:10.0.0.1", true },
	{ "::ffff:1.0.0.0", true },	 { "::ffff:126.255.255.255", true },
	{ "::ffff:128.0.0.0", true },	 { "::ffff:223.255.255.255", true },
	{ "::ffff:240.0.0.1", true },	 { "::ffff:255.255.255.254", true },
	{ "::ffff:0.0.0.0", false },	 { "::ffff:0.255.255.255", false },
	{ "::ffff:127.0.0.0", false },	 { "::ffff:127.0.0.1", false },
	{ "::ffff:127.255.255.255", false }, { "::ffff:224.0.0.0", false },
	{ "::ffff:239.255.255.255", false }, { "::ffff:255.255.255.255", false },
	{ "2001:db8::1", true },	 { "fe80::1", true },
	{ "fd00::1", true },		 { "::2", true },
	{ "feff::1", true },		 { "0:0:0:0:0:fffe:7f00:1", true },
	{ "::", false },		 { "::1", false },
	{ "ff02::1", false },		 { "ff00::", false },
	{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false },
};

static enum convert_status request_read(struct bytes message, struct convert_request *request)
{
	return convert_request_parse(message.data, message.len, request);
}

/* What the header says, if it is all there. */
static size_t header_length(struct bytes message)
{
	return message.len >= 4 && (message.data[2] == 0x22 || message.data[2] == 0x6c) && message.data[3] == 0x63 ?
		       4u * message.data[1] : 0;
}

START_TEST(header)
{
	const struct vector *v = &headers[_i];
	struct bytes message = bytes_hex(v->hex);
	struct convert_request request;
	struct convert_response response;

	ck_assert_int_eq(request_read(message, &request), v->status);
	ck_assert_int_eq(convert_response_parse(message.data, message.len, &response), v->status);
	ck_assert_uint_eq(request.length, header_length(message));
	ck_assert_uint_eq(response.length, header_length(message));
	bytes_fini(&message);
}
END_TEST

START_TEST(message_length)
{
	struct bytes message = bytes_hex("01 ff 22 63");
	size_t length = 1;

	ck_assert_int_eq(convert_message_length(message.data, 4, &length), CONVERT_STATUS_OK);
	ck_assert_uint_eq(length, 1020);
	message.data[0] = 7;
	message.data[1] = 3;
	ck_assert_int_eq(convert_message_length(message.data, 4, &length), CONVERT_STATUS_BAD_VERSION);
	ck_assert_uint_eq(length, 12);
	message.data[1] = 0;
	ck_assert_int_eq(convert_message_length(message.data, 4, &length), CONVERT_STATUS_ZERO_TOTAL_LENGTH);
	ck_assert_uint_eq(length, 0);
	ck_assert_int_eq(convert_message_length(NULL, 0, &length), CONVERT_STATUS_NEED_MORE);
	bytes_fini(&message);
}
END_TEST

/* A message, each shorter part of it, and it with the application's data behind. */
START_TEST(request_vector)
{
	const struct vector *v = &requests[_i];
	struct bytes message = bytes_hex(v->hex), tail = bytes_hex(APPLICATION_DATA);
	size_t length = header_length(message);
	uint8_t both[1020 + 16];
	struct convert_request request;
	struct bytes part;

	ck_assert_msg(request_read(message, &request) == v->status, "%s: %s, not %s", v->hex,
		      convert_status_name(request_read(message, &request)),
		      convert_status_name(v->status));
	ck_assert_uint_eq(request.length, length);
	for (size_t len = 0; len < length; len++) {
		part = bytes_copy(message.data, len);
		ck_assert_int_eq(request_read(part, &request), CONVERT_STATUS_NEED_MORE);
		bytes_fini(&part);
	}
	memcpy(both, message.data, length);
	memcpy(both + length, tail.data, tail.len);
	part = bytes_copy(both, length + tail.len);
	ck_assert_int_eq(request_read(part, &request), v->status);
	ck_assert_uint_eq(request.length, length);
	bytes_fini(&part);
	bytes_fini(&tail);
	bytes_fini(&message);
}
END_TEST

START_TEST(response_vector)
{
	const struct vector *v = &responses[_i];
	struct bytes message = bytes_hex(v->hex);
	struct convert_response response;

	ck_assert_msg(convert_response_parse(message.data, message.len, &response) == v->status,
		      "%s: not %s", v->hex, convert_status_name(v->status));
	ck_assert_uint_eq(response.length, message.len);
	for (size_t len = 0; len < message.len; len++) {
		struct bytes part = bytes_copy(message.data, len);

		ck_assert_int_eq(convert_response_parse(part.data, part.len, &response),
				 CONVERT_STATUS_NEED_MORE);
		bytes_fini(&part);
	}
	bytes_fini(&message);
}
END_TEST

START_TEST(request_base_connect)
{
	struct bytes message = bytes_hex("01 06 22 63 " CONNECT_V4 APPLICATION_DATA);
	struct convert_request request;
	struct in6_addr want;

	ck_assert_int_eq(inet_pton(AF_INET6, "::ffff:192.0.2.1", &want), 1);
	ck_assert_int_eq(request_read(message, &request), CONVERT_STATUS_OK);
	ck_assert_uint_eq(request.length, 24);
	ck_assert(request.has_connect && !request.has_info && !request.has_cookie);
	ck_assert_mem_eq(&request.address, &want, sizeof(want));
	ck_assert_uint_eq(request.port, 443);
	ck_assert(!request.extended);
	ck_assert_uint_eq(request.tcp_options.len, 0);
	ck_assert_ptr_null(request.tcp_options.data);
	bytes_fini(&message);
}
END_TEST

START_TEST(request_of_all_tlvs)
{
	struct bytes message = bytes_hex("01 0d 22 63 16 03 00 00 00 11 22 33 44 55 66 00 "
					 "0a 08 1f 90 " V6 "22 06 de ad be ef 04 02 00 00 00 00 "
					 "01 01 00 00");
	struct convert_request request;
	struct in6_addr want;

	ck_assert_int_eq(inet_pton(AF_INET6, "2001:db8::1", &want), 1);
	ck_assert_int_eq(request_read(message, &request), CONVERT_STATUS_OK);
	ck_assert_uint_eq(request.length, 52);
	ck_assert(request.has_connect && request.has_info && request.has_cookie);
	ck_assert_mem_eq(&request.address, &want, sizeof(want));
	ck_assert_uint_eq(request.port, 8080);
	ck_assert(request.extended);
	bytes_assert_hex(request.tcp_options.data, request.tcp_options.len,
			 "22 06 de ad be ef 04 02 00 00 00 00");
	bytes_assert_hex(request.cookie.data, request.cookie.len, "00 11 22 33 44 55 66 00");
	ck_assert(request.tlvs.data == message.data + 4 && request.tlvs.len == 48);
	bytes_fini(&message);
}
END_TEST

START_TEST(request_fault_leaves_nothing)
{
	struct bytes message = bytes_hex("01 07 22 63 " CONNECT_V4 "c0 01 00 00");
	struct convert_request request;

	ck_assert_int_eq(request_read(message, &request), CONVERT_STATUS_TLV_UNKNOWN);
	ck_assert_uint_eq(request.length, 28);
	ck_assert(!request.has_connect && request.port == 0);
	ck_assert(!request.tlvs.data && request.tlvs.len == 0);
	bytes_fini(&message);
}
END_TEST

START_TEST(response_values)
{
	struct bytes message = bytes_hex("01 08 22 63 15 03 00 00 1e 22 04 08 fd 00 00 00 "
					 "c0 01 00 00 14 02 ab cd 03 03 07 00 1e 01 61 0d");
	struct convert_response response;

	ck_assert_int_eq(convert_response_parse(message.data, message.len, &response), CONVERT_STATUS_OK);
	ck_assert_uint_eq(response.length, 32);
	ck_assert(response.tlvs.data == message.data + 4 && response.tlvs.len == 28);
	ck_assert(response.has_supported && response.has_tcp_header && response.has_error);
	bytes_assert_hex(response.supported.data, response.supported.len, "1e220408 fd000000");
	bytes_assert_hex(response.tcp_header.data, response.tcp_header.len, "03030700");
	ck_assert_uint_eq(response.error_code, CONVERT_ERROR_DESTINATION_UNREACHABLE);
	bytes_assert_hex(response.error_value.data, response.error_value.len, "0d");
	bytes_fini(&message);
}
END_TEST

START_TEST(options)
{
	const struct option_vector *v = &option_lists[_i];
	struct bytes list = bytes_hex(v->hex);
	struct convert_span ahead = { list.data, list.len };
	struct convert_tcp_option option;
	enum convert_status status;
	uint8_t kinds[16];
	size_t count = 0;

	while ((status = convert_tcp_option_next(&ahead, &option)) == CONVERT_STATUS_OK)
		kinds[count++] = option.kind;
	ck_assert_int_eq(status, v->status);
	bytes_assert_hex(kinds, count, v->kinds);
	ck_assert_int_eq(convert_tcp_option_next(&ahead, &option), v->status);
	bytes_fini(&list);
}
END_TEST

/* The same lists in a Connect TLV, padded with zeros where they end off a word. */
START_TEST(connect_options)
{
	const struct option_vector *v = &option_lists[_i];
	struct bytes list = bytes_hex(v->hex), head = bytes_hex("01 06 22 63 " CONNECT_V4), message;
	uint8_t buf[24 + 256] = { 0 };
	size_t len = 24 + (list.len + 3) / 4 * 4;
	struct convert_request request;

	memcpy(buf, head.data, head.len);
	memcpy(buf + 24, list.data, list.len);
	buf[1] = (uint8_t)(len / 4);
	buf[5] = (uint8_t)(len / 4 - 1);
	message = bytes_copy(buf, len);
	ck_assert_int_eq(request_read(message, &request),
			 v->status == CONVERT_STATUS_END ? CONVERT_STATUS_OK : v->status);
	ck_assert_uint_eq(request.length, len);
	if (v->status == CONVERT_STATUS_END) {
		ck_assert(request.extended == (list.len > 0));
		ck_assert_uint_eq(request.tcp_options.len, len - 24);
	}
	bytes_fini(&message);
	bytes_fini(&head);
	bytes_fini(&list);
}
END_TEST

START_TEST(option_values)
{
	struct bytes list = bytes_hex("01 04 02 22 05 aa bb cc 00");
	struct convert_span ahead = { list.data, list.len };
	struct convert_tcp_option option;

	ck_assert_int_eq(convert_tcp_option_next(&ahead, &option), CONVERT_STATUS_OK);
	ck_assert_uint_eq(option.kind, 4);
	ck_assert_uint_eq(option.value.len, 0);
	ck_assert_int_eq(convert_tcp_option_next(&ahead, &option), CONVERT_STATUS_OK);
	ck_assert_uint_eq(option.kind, 0x22);
	bytes_assert_hex(option.value.data, option.value.len, "aabbcc");
	bytes_fini(&list);
}
END_TEST

/* Lists of TLVs, in any bytes, also off the words that a message is made of: types found, and how the walk ends. */
static const struct {
	const char *hex;
	const char *types;
	enum convert_status status;
} tlv_lists[] = {
	{ "", "", CONVERT_STATUS_END },
	{ "01 01 00 00", "01", CONVERT_STATUS_END },
	{ "00 01 00 00 00 01 00 00", "0000", CONVERT_STATUS_END }, /* whose types and number are the parsers' affair */
	{ "c0 02 01 02 03 04 05 06 1e 01 60 00", "c01e", CONVERT_STATUS_END },
	{ "c0 ff 55*1018", "c0", CONVERT_STATUS_END },
	{ "01", "", CONVERT_STATUS_TLV_PAST_END },
	{ "01 01", "", CONVERT_STATUS_TLV_PAST_END },
	{ "01 01 00", "", CONVERT_STATUS_TLV_PAST_END },
	{ "c0 02 01 02 03 04 05", "", CONVERT_STATUS_TLV_PAST_END },
	{ "c0 ff 55*1017", "", CONVERT_STATUS_TLV_PAST_END },
	{ "01 01 00 00 07", "01", CONVERT_STATUS_TLV_PAST_END },
	{ "01 00", "", CONVERT_STATUS_TLV_ZERO_LENGTH },
	{ "01 00 00 00", "", CONVERT_STATUS_TLV_ZERO_LENGTH },
	{ "01 01 00 00 ff 00 00 00 01 01 00 00", "01", CONVERT_STATUS_TLV_ZERO_LENGTH },
};

START_TEST(tlvs)
{
	struct bytes list = bytes_hex(tlv_lists[_i].hex);
	struct convert_span ahead = { list.data, list.len }, rest;
	struct convert_tlv tlv, last;
	enum convert_status status;
	uint8_t types[16];
	size_t count = 0;

	while ((status = convert_tlv_next(&ahead, &tlv)) == CONVERT_STATUS_OK)
		types[count++] = tlv.type;
	ck_assert_int_eq(status, tlv_lists[_i].status);
	bytes_assert_hex(types, count, tlv_lists[_i].types);
	/* another call stays at the end, and leaves the caller's TLV alone */
	memset(&tlv, 0x5a, sizeof(tlv));
	last = tlv;
	rest = ahead;
	ck_assert_int_eq(convert_tlv_next(&ahead, &tlv), status);
	ck_assert(ahead.data == rest.data && ahead.len == rest.len);
	ck_assert_uint_eq(tlv.type, last.type);
	ck_assert_ptr_eq(tlv.value.data, last.value.data);
	bytes_fini(&list);
}
END_TEST

/* A list is walked to its end or to a fault, wherever it is cut: no cut asks for more bytes. */
START_TEST(cut_lists)
{
	struct bytes whole = bytes_hex("22 06 01 02 03 04 04 02 01 00 c0 02 01 02");
	static const char ends_at[] = "e.....e.eee.ee."; /* each number of bytes: where options end */

	for (size_t len = 0; len <= whole.len; len++) {
		struct bytes part = bytes_copy(whole.data, len);
		struct convert_span as_tlvs = { part.data, part.len }, as_options = as_tlvs;
		struct convert_tcp_option option;
		enum convert_status status;
		struct convert_tlv tlv;

		do
			status = convert_tcp_option_next(&as_options, &option);
		while (status == CONVERT_STATUS_OK);
		ck_assert_int_eq(status, ends_at[len] == 'e' ? CONVERT_STATUS_END :
								  CONVERT_STATUS_TLV_BAD_VALUE);
		do
			status = convert_tlv_next(&as_tlvs, &tlv);
		while (status == CONVERT_STATUS_OK);
		ck_assert_int_eq(status, len == 0 ? CONVERT_STATUS_END : CONVERT_STATUS_TLV_PAST_END);
		bytes_fini(&part);
	}
	bytes_fini(&whole);
}
END_TEST

START_TEST(tlv_values)
{
	struct bytes list = bytes_hex("c0 02 01 02 03 04 05 06 00 01 ff ff");
	struct convert_span ahead = { list.data, list.len };
	struct convert_tlv tlv;

	ck_assert_int_eq(convert_tlv_next(&ahead, &tlv), CONVERT_STATUS_OK);
	ck_assert_uint_eq(tlv.type, 0xc0);
	bytes_assert_hex(tlv.value.data, tlv.value.len, "010203040506");
	ck_assert_uint_eq(ahead.len, 4);
	ck_assert_int_eq(convert_tlv_next(&ahead, &tlv), CONVERT_STATUS_OK);
	ck_assert_uint_eq(tlv.type, 0);
	bytes_assert_hex(tlv.value.data, tlv.value.len, "ffff");
	bytes_fini(&list);
}
END_TEST

/* An empty list may be NULL. */
START_TEST(empty_lists)
{
	struct convert_span none = { NULL, 0 };
	struct convert_tcp_option option;
	struct convert_tlv tlv;

	ck_assert_int_eq(convert_tlv_next(&none, &tlv), CONVERT_STATUS_END);
	ck_assert_int_eq(convert_tcp_option_next(&none, &option), CONVERT_STATUS_END);
}
END_TEST

START_TEST(address)
{
	uint8_t buf[24] = { 1, 6, 0x22, 0x63, 10, 5, 0, 80 };
	struct convert_request request;
	struct in6_addr in6;

	ck_assert_int_eq(inet_pton(AF_INET6, addresses[_i].text, &in6), 1);
	ck_assert_msg(convert_address_is_valid(&in6) == addresses[_i].valid, "%s",
		      addresses[_i].text);
	memcpy(buf + 8, &in6, sizeof(in6));
	ck_assert_int_eq(convert_request_parse(buf, sizeof(buf), &request),
			 addresses[_i].valid ? CONVERT_STATUS_OK : CONVERT_STATUS_BAD_ADDRESS);
}
END_TEST

/* What the RFC wants, status by status; -1: no Error TLV */
static const struct {
	enum convert_status status;
	enum convert_answer request, response;
	int code;
} answers[] = {
	{ CONVERT_STATUS_OK, CONVERT_ANSWER_NONE, CONVERT_ANSWER_NONE, -1 },
	{ CONVERT_STATUS_END, CONVERT_ANSWER_NONE, CONVERT_ANSWER_NONE, -1 },
	{ CONVERT_STATUS_NEED_MORE, CONVERT_ANSWER_NONE, CONVERT_ANSWER_NONE, -1 },
	{ CONVERT_STATUS_BAD_MAGIC, CONVERT_ANSWER_IGNORE, CONVERT_ANSWER_RESET, -1 },
	{ CONVERT_STATUS_BAD_VERSION, CONVERT_ANSWER_ERROR, CONVERT_ANSWER_RESET, 0 },
	{ CONVERT_STATUS_ZERO_TOTAL_LENGTH, CONVERT_ANSWER_RESET, CONVERT_ANSWER_RESET, -1 },
	{ CONVERT_STATUS_NO_TLV, CONVERT_ANSWER_ERROR, CONVERT_ANSWER_RESET, 1 },
	{ CONVERT_STATUS_TLV_PAST_END, CONVERT_ANSWER_ERROR, CONVERT_ANSWER_RESET, 1 },
	{ CONVERT_STATUS_TLV_ZERO_LENGTH, CONVERT_ANSWER_ERROR, CONVERT_ANSWER_RESET, 1 },
	{ CONVERT_STATUS_TLV_TYPE_RESERVED, CONVERT_ANSWER_ERROR, CONVERT_ANSWER_RESET, 2 },
	{ CONVERT_STATUS_TLV_TWICE, CONVERT_ANSWER_ERROR, CONVERT_ANSWER_RESET, 1 },
	{ CONVERT_STATUS_TLV_UNKNOWN, CONVERT_ANSWER_ERROR, CONVERT_ANSWER_RESET, 2 },
	{ CONVERT_STATUS_TLV_WRONG_DIRECTION, CONVERT_ANSWER_ERROR, CONVERT_ANSWER_RESET, 2 },
	{ CONVERT_STATUS_TLV_BAD_LENGTH, CONVERT_ANSWER_ERROR, CONVERT_ANSWER_RESET, 1 },
	{ CONVERT_STATUS_TLV_BAD_VALUE, CONVERT_ANSWER_ERROR, CONVERT_ANSWER_RESET, 1 },
	{ CONVERT_STATUS_BAD_ADDRESS, CONVERT_ANSWER_ERROR, CONVERT_ANSWER_RESET, 1 },
	{ CONVERT_STATUS_BAD_SILENCE, CONVERT_ANSWER_RESET, CONVERT_ANSWER_RESET, -1 },
};

START_TEST(answer)
{
	enum convert_error_code code = (enum convert_error_code)255;

	ck_assert_uint_eq(ARRAY_SIZE(answers), CONVERT_STATUS_COUNT);
	ck_assert_int_eq(convert_request_answer(answers[_i].status, &code), answers[_i].request);
	ck_assert_int_eq(code, answers[_i].code < 0 ? 255 : answers[_i].code);
	ck_assert_int_eq(convert_request_answer(answers[_i].status, NULL), answers[_i].request);
	ck_assert_int_eq(convert_response_answer(answers[_i].status), answers[_i].response);
}
END_TEST

START_TEST(answer_beyond_the_table)
{
	ck_assert_int_eq(convert_request_answer(CONVERT_STATUS_COUNT, NULL), CONVERT_ANSWER_RESET);
	ck_assert_int_eq(convert_response_answer(CONVERT_STATUS_COUNT), CONVERT_ANSWER_RESET);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("codec_read");
	TCase *tcase = tcase_create("read");

	tcase_add_loop_test(tcase, header, 0, (int)ARRAY_SIZE(headers));
	tcase_add_test(tcase, message_length);
	tcase_add_loop_test(tcase, request_vector, 0, (int)ARRAY_SIZE(requests));
	tcase_add_loop_test(tcase, response_vector, 0, (int)ARRAY_SIZE(responses));
	tcase_add_test(tcase, request_base_connect);
	tcase_add_test(tcase, request_of_all_tlvs);
	tcase_add_test(tcase, request_fault_leaves_nothing);
	tcase_add_test(tcase, response_values);
	tcase_add_loop_test(tcase, options, 0, (int)ARRAY_SIZE(option_lists));
	tcase_add_loop_test(tcase, connect_options, 0, (int)ARRAY_SIZE(option_lists));
	tcase_add_test(tcase, option_values);
	tcase_add_loop_test(tcase, tlvs, 0, (int)ARRAY_SIZE(tlv_lists));
	tcase_add_test(tcase, tlv_values);
	tcase_add_test(tcase, cut_lists);
	tcase_add_test(tcase, empty_lists);
	tcase_add_loop_test(tcase, address, 0, (int)ARRAY_SIZE(addresses));
	tcase_add_loop_test(tcase, answer, 0, (int)ARRAY_SIZE(answers));
	tcase_add_test(tcase, answer_beyond_the_table);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
