/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * properties.c - what must hold for every byte string that is read as a message
 *
 * - the header is judged as Section 6.1 has it, by a second, naive implementation;
 * - the values that it returns lie inside the message;
 * - the parsers and convert_tlv_next() agree on where TLVs are and on which lengths are wrong;
 * - bytes behind the message change nothing, and a message without its last byte is not complete;
 * - a request with the Magic Number of a silent one is one, or gets a reset and no answer;
 * - a message that was read can be written again, and then reads the same;
 * - each fault has an answer, and the answer is a valid response.
 */
#include "properties.h"

#include <convert/convert.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In place of assert(), which NDEBUG turns off. */
#define REQUIRE(condition) ((condition) ? (void)0 : require_failed(#condition, __LINE__))

static _Noreturn void require_failed(const char *condition, int line)
{
	fprintf(stderr, "properties.c:%d: does not hold: %s\n", line, condition);
	abort();
}

static void *copy_exact(const uint8_t *data, size_t len)
{
	void *copy = malloc(len);

	REQUIRE(copy || len == 0);
	if (len > 0)
		memcpy(copy, data, len);
	return copy;
}

/* Judges the fixed header by Sections 6 and 6.1 with none of the library's code. */
static enum convert_status header_expect(const uint8_t *data, size_t size)
{
	if (size >= 3 && data[2] != 0x22)
		return CONVERT_STATUS_BAD_MAGIC;
	if (size < 4)
		return CONVERT_STATUS_NEED_MORE;
	if (data[3] != 0x63)
		return CONVERT_STATUS_BAD_MAGIC;
	if (data[1] == 0)
		return CONVERT_STATUS_ZERO_TOTAL_LENGTH;
	return data[0] == 1 ? CONVERT_STATUS_OK : CONVERT_STATUS_BAD_VERSION;
}

/* Has a request the Magic Number of a silent one (doc/private-tlvs.md)? */
static bool request_is_silent(const uint8_t *data, size_t size)
{
	return size >= 4 && data[2] == 0x6c && data[3] == 0x63;
}

/* Checks the header of a silent request, as header_check() does for other messages. */
static bool silent_header_check(const uint8_t *data, size_t size, enum convert_status status, size_t parsed_length)
{
	size_t length = 4u * data[1];

	REQUIRE(parsed_length == length);
	REQUIRE(status == CONVERT_STATUS_OK || status == CONVERT_STATUS_NEED_MORE || status == CONVERT_STATUS_BAD_SILENCE);
	if (data[0] != 1 || length == 0) {
		REQUIRE(status == CONVERT_STATUS_BAD_SILENCE);
		return false;
	}
	REQUIRE((status == CONVERT_STATUS_NEED_MORE) == (size < length));
	return size >= length;
}

/* Checks the header. Returns true if the whole message is there, so that its TLVs were read. */
static bool header_check(const uint8_t *data, size_t size, enum convert_status status,
			 size_t parsed_length)
{
	enum convert_status expect = header_expect(data, size);
	bool has_length = size >= 4 && expect != CONVERT_STATUS_BAD_MAGIC;
	size_t length = 12345;

	REQUIRE((unsigned int)status < CONVERT_STATUS_COUNT);
	REQUIRE(status != CONVERT_STATUS_END); /* only lists have one */
	REQUIRE(convert_message_length(data, size, &length) == expect);
	REQUIRE(length == (has_length ? 4u * data[1] : 12345));
	REQUIRE(parsed_length == (has_length ? length : 0));
	if (expect != CONVERT_STATUS_OK) {
		REQUIRE(status == expect);
		return false;
	}
	REQUIRE((status == CONVERT_STATUS_NEED_MORE) == (size < length));
	return size >= length;
}

static bool is_inside(struct convert_span span, const uint8_t *message, size_t length)
{
	return span.len == 0 || (span.data >= message + CONVERT_HEADER_LEN &&
				 span.len <= (size_t)(message + length - span.data));
}

static bool is_all(struct convert_span tlvs, const uint8_t *message, size_t length)
{
	return tlvs.data == message + CONVERT_HEADER_LEN && tlvs.len == length - CONVERT_HEADER_LEN;
}

/* Walks the TLVs of a whole message, and sets @seen for the type of each TLV whose length is right. */
static void walker_check(const uint8_t *data, size_t length, enum convert_status status,
			 bool seen[static 256])
{
	enum convert_status walked;
	struct convert_span list = { data + CONVERT_HEADER_LEN, length - CONVERT_HEADER_LEN };
	struct convert_tlv tlv;
	size_t bytes = CONVERT_HEADER_LEN;

	while ((walked = convert_tlv_next(&list, &tlv)) == CONVERT_STATUS_OK) {
		REQUIRE(tlv.value.len % 4 == 2);
		REQUIRE(tlv.value.data == data + bytes + 2);
		REQUIRE(is_inside(tlv.value, data, length));
		REQUIRE(status != CONVERT_STATUS_OK || (tlv.type != 0 && !seen[tlv.type]));
		seen[tlv.type] = true;
		bytes += tlv.value.len + 2;
		REQUIRE(list.data == data + bytes && list.len == length - bytes);
	}
	REQUIRE(convert_tlv_next(&list, &tlv) == walked);
	REQUIRE(list.data == data + bytes && list.len == length - bytes);
	if (walked == CONVERT_STATUS_END)
		REQUIRE(bytes == length);
	else
		REQUIRE(walked == CONVERT_STATUS_TLV_ZERO_LENGTH || walked == CONVERT_STATUS_TLV_PAST_END);
	if (status == CONVERT_STATUS_OK)
		REQUIRE(walked == CONVERT_STATUS_END);
	if (status == CONVERT_STATUS_TLV_ZERO_LENGTH || status == CONVERT_STATUS_TLV_PAST_END)
		REQUIRE(walked == status);
}

/* Copies the options of @list but those of kinds 0 and 1. Returns how many bytes they are. */
static size_t options_copy(struct convert_span list, uint8_t *out)
{
	struct convert_tcp_option option;
	enum convert_status status;
	size_t len = 0;

	while ((status = convert_tcp_option_next(&list, &option)) == CONVERT_STATUS_OK) {
		REQUIRE(option.kind > 1 && option.value.len <= 253);
		out[len++] = option.kind;
		out[len++] = (uint8_t)(option.value.len + 2);
		if (option.value.len > 0)
			memcpy(out + len, option.value.data, option.value.len);
		len += option.value.len;
	}
	REQUIRE(status == CONVERT_STATUS_END);
	return len;
}

static bool spans_equal(struct convert_span a, struct convert_span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static void request_rewrite(const struct convert_request *request)
{
	uint8_t buf[CONVERT_MESSAGE_MAX], options[CONVERT_MESSAGE_MAX], again[CONVERT_MESSAGE_MAX];
	size_t options_len = options_copy(request->tcp_options, options);
	struct convert_request reread;
	struct convert_writer w;
	ssize_t len;

	convert_writer_init(&w, buf, request->length);
	if (request->has_silence)
		convert_write_silence(&w, &request->silence);
	if (request->has_info)
		convert_write_info(&w);
	if (request->has_connect)
		convert_write_connect(&w, &request->address, request->port, options, options_len);
	if (request->has_cookie)
		convert_write_cookie(&w, request->cookie.data, request->cookie.len);
	if (request->has_echo)
		convert_write_echo(&w, 0);
	if (request->has_hold_time)
		convert_write_hold_time(&w, request->hold_ms);
	len = convert_writer_finish(&w);
	REQUIRE(len > 0 && (size_t)len <= request->length);
	REQUIRE(convert_request_parse(buf, (size_t)len, &reread) == CONVERT_STATUS_OK);
	REQUIRE(reread.length == (size_t)len);
	REQUIRE(reread.has_info == request->has_info);
	REQUIRE(reread.has_connect == request->has_connect);
	REQUIRE(reread.has_cookie == request->has_cookie);
	REQUIRE(reread.has_echo == request->has_echo);
	REQUIRE(reread.has_hold_time == request->has_hold_time);
	REQUIRE(reread.hold_ms == request->hold_ms);
	REQUIRE(reread.has_silence == request->has_silence);
	REQUIRE(reread.silence.blind == request->silence.blind);
	REQUIRE(reread.silence.mptcp == request->silence.mptcp);
	REQUIRE(reread.silence.attempt == request->silence.attempt);
	REQUIRE(reread.silence.repeat == request->silence.repeat);
	REQUIRE(reread.port == request->port);
	REQUIRE(memcmp(&reread.address, &request->address, sizeof(reread.address)) == 0);
	REQUIRE(reread.extended == (options_len > 0));
	REQUIRE(options_copy(reread.tcp_options, again) == options_len);
	REQUIRE(memcmp(again, options, options_len) == 0);
	REQUIRE(spans_equal(reread.cookie, request->cookie));
}

/* Answers a bad request like a converter: gets the answer, writes the Error TLV, and reads it back. */
static void answer_check(enum convert_status status, const uint8_t *data, size_t length)
{
	enum convert_error_code code = (enum convert_error_code)255;
	enum convert_answer answer = convert_request_answer(status, &code);
	size_t echoed = length < CONVERT_MESSAGE_MAX - 8 ? length : CONVERT_MESSAGE_MAX - 8;
	uint8_t buf[CONVERT_MESSAGE_MAX];
	struct convert_response response;
	struct convert_writer w;
	ssize_t len;

	REQUIRE((answer == CONVERT_ANSWER_NONE) ==
		(status == CONVERT_STATUS_OK || status == CONVERT_STATUS_NEED_MORE));
	REQUIRE((answer == CONVERT_ANSWER_ERROR) == (code != 255));
	if (answer != CONVERT_ANSWER_ERROR)
		return;
	convert_writer_init(&w, buf, sizeof(buf));
	if (code == CONVERT_ERROR_UNSUPPORTED_VERSION)
		convert_write_error_versions(&w);
	else
		convert_write_error_echo(&w, code, data, length);
	len = convert_writer_finish(&w);
	REQUIRE(len >= 8);
	REQUIRE(convert_response_parse(buf, (size_t)len, &response) == CONVERT_STATUS_OK);
	REQUIRE(response.has_error && response.error_code == code);
	if (code == CONVERT_ERROR_UNSUPPORTED_VERSION)
		return;
	REQUIRE(response.error_value.len == 1 + echoed && response.error_value.data[0] == 0);
	REQUIRE(memcmp(response.error_value.data + 1, data, echoed) == 0);
}

static void request_extent_check(const uint8_t *data, size_t length, enum convert_status status)
{
	struct convert_request request;
	uint8_t *copy = copy_exact(data, length);

	REQUIRE(convert_request_parse(copy, length, &request) == status);
	free(copy);
	copy = copy_exact(data, length - 1);
	REQUIRE(convert_request_parse(copy, length - 1, &request) == CONVERT_STATUS_NEED_MORE);
	free(copy);
}

void request_check(const uint8_t *data, size_t size)
{
	struct convert_request request;
	enum convert_status status = convert_request_parse(data, size, &request);
	bool silent = request_is_silent(data, size);
	bool seen[256] = { false }, whole;

	REQUIRE(request.has_silence == silent);
	if (silent)
		whole = silent_header_check(data, size, status, request.length);
	else if (size == 3 && data[2] == 0x6c)
		whole = status != CONVERT_STATUS_NEED_MORE; /* either Magic Number may be meant */
	else
		whole = header_check(data, size, status, request.length);
	if (!whole) {
		answer_check(status, data, size);
		return;
	}
	walker_check(data, request.length, status, seen);
	answer_check(status, data, request.length);
	request_extent_check(data, request.length, status);
	if (status != CONVERT_STATUS_OK) {
		REQUIRE(!request.has_info && !request.has_connect && !request.has_cookie && !request.has_hold_time && !request.hold_ms);
		REQUIRE(!request.tcp_options.data && !request.cookie.data && !request.tlvs.data);
		REQUIRE(!silent || convert_request_answer(status, NULL) == CONVERT_ANSWER_RESET);
		return;
	}
	REQUIRE(!silent || (data[4] == CONVERT_TLV_SILENCE && request.has_connect && !request.has_info && !request.has_echo));
	REQUIRE(request.has_info || request.has_connect);
	REQUIRE(request.has_info == seen[CONVERT_TLV_INFO]);
	REQUIRE(request.has_connect == seen[CONVERT_TLV_CONNECT]);
	REQUIRE(request.has_cookie == seen[CONVERT_TLV_COOKIE]);
	REQUIRE(request.has_echo == seen[CONVERT_TLV_ECHO]);
	REQUIRE(request.has_hold_time == seen[CONVERT_TLV_HOLD_TIME]);
	REQUIRE(!request.has_connect || convert_address_is_valid(&request.address));
	REQUIRE(request.extended == (request.tcp_options.len > 0));
	REQUIRE(is_inside(request.tcp_options, data, request.length));
	REQUIRE(is_inside(request.cookie, data, request.length));
	REQUIRE(is_all(request.tlvs, data, request.length));
	REQUIRE(request.tcp_options.len % 4 == 0 && request.cookie.len % 4 == 0);
	request_rewrite(&request);
}

/* Writes a response again, TLV by TLV, and requires the same bytes. */
static void response_copy_check(struct convert_span list, const uint8_t *data, size_t length)
{
	uint8_t buf[CONVERT_MESSAGE_MAX];
	struct convert_writer w;
	struct convert_tlv tlv;

	convert_writer_init(&w, buf, length);
	while (convert_tlv_next(&list, &tlv) == CONVERT_STATUS_OK)
		convert_write_tlv(&w, tlv.type, tlv.value.data, tlv.value.len);
	REQUIRE(convert_writer_finish(&w) == (ssize_t)length);
	REQUIRE(memcmp(buf, data, length) == 0);
}

static void error_rewrite(struct convert_writer *w, const struct convert_response *response)
{
	enum convert_error_code code = (enum convert_error_code)response->error_code;
	const uint8_t *value = response->error_value.data; /* 1 byte and more: 4 * Length - 3 */
	size_t len = response->error_value.len;

	switch (response->error_code) {
	case CONVERT_ERROR_UNSUPPORTED_VERSION:
		convert_write_error_versions(w);
		break;
	case CONVERT_ERROR_MALFORMED_MESSAGE:
	case CONVERT_ERROR_UNSUPPORTED_MESSAGE:
		convert_write_error_echo(w, code, value + 1, len - 1);
		break;
	case CONVERT_ERROR_MISSING_COOKIE:
		convert_write_error_cookie(w, len > 1 ? value + 1 : value, len > 1 ? len - 1 : 1);
		break;
	case CONVERT_ERROR_UNSUPPORTED_TCP_OPTION:
		convert_write_error_options(w, (const uint8_t[]){ 34 }, 1);
		break;
	case CONVERT_ERROR_NOT_AUTHORIZED:
	case CONVERT_ERROR_CONNECTION_RESET:
		convert_write_error(w, code, 0);
		break;
	default:
		convert_write_error(w, code, value[0]);
	}
}

static void response_rewrite(const struct convert_response *response)
{
	uint8_t buf[CONVERT_MESSAGE_MAX];
	struct convert_response reread;
	struct convert_writer w;
	ssize_t len;

	/* 4 bytes more than it had: a Missing Cookie error without a cookie can be read, but is written with one. */
	convert_writer_init(&w, buf, response->length + 4);
	if (response->has_tcp_header)
		convert_write_tcp_header(&w, response->tcp_header.data, response->tcp_header.len);
	if (response->has_withholding)
		convert_write_withholding(&w, &response->withholding);
	if (response->has_echo)
		convert_write_echo(&w, response->echo_kib);
	if (response->has_error)
		error_rewrite(&w, response);
	len = convert_writer_finish(&w);
	REQUIRE(len > 0 || response->length == CONVERT_MESSAGE_MAX);
	if (len < 0)
		return;
	REQUIRE(convert_response_parse(buf, (size_t)len, &reread) == CONVERT_STATUS_OK);
	REQUIRE(reread.has_tcp_header == response->has_tcp_header);
	REQUIRE(spans_equal(reread.tcp_header, response->tcp_header));
	REQUIRE(reread.has_error == response->has_error);
	REQUIRE(reread.error_code == response->error_code);
	REQUIRE(reread.has_withholding == response->has_withholding);
	REQUIRE(reread.withholding.withheld == response->withholding.withheld);
	REQUIRE(reread.withholding.limit_ms == response->withholding.limit_ms);
	REQUIRE(reread.withholding.corrects == response->withholding.corrects);
	REQUIRE(reread.withholding.silent == response->withholding.silent);
	REQUIRE(reread.withholding.blind == response->withholding.blind);
	REQUIRE(reread.withholding.hold_times == response->withholding.hold_times);
	REQUIRE(reread.withholding.no_way == response->withholding.no_way);
	REQUIRE(!reread.withholding.limit_ms || reread.withholding.withheld);
	REQUIRE(!reread.withholding.hold_times || reread.withholding.withheld);
	REQUIRE(!reread.withholding.blind || (reread.withholding.silent && reread.withholding.withheld));
	REQUIRE(reread.has_echo == response->has_echo);
	REQUIRE(reread.echo_kib == response->echo_kib);
}

static void response_extent_check(const uint8_t *data, size_t length, enum convert_status status)
{
	struct convert_response response;
	uint8_t *copy = copy_exact(data, length);

	REQUIRE(convert_response_parse(copy, length, &response) == status);
	free(copy);
	copy = copy_exact(data, length - 1);
	REQUIRE(convert_response_parse(copy, length - 1, &response) == CONVERT_STATUS_NEED_MORE);
	free(copy);
}

void response_check(const uint8_t *data, size_t size)
{
	struct convert_response response;
	enum convert_status status = convert_response_parse(data, size, &response);
	enum convert_answer answer = convert_response_answer(status);
	bool seen[256] = { false };

	REQUIRE(answer == (status == CONVERT_STATUS_OK || status == CONVERT_STATUS_NEED_MORE ?
			   CONVERT_ANSWER_NONE : CONVERT_ANSWER_RESET));
	if (!header_check(data, size, status, response.length))
		return;
	walker_check(data, response.length, status, seen);
	response_extent_check(data, response.length, status);
	REQUIRE(response.has_error == (status == CONVERT_STATUS_OK && seen[CONVERT_TLV_ERROR]));
	REQUIRE(response.has_tcp_header ==
		(status == CONVERT_STATUS_OK && seen[CONVERT_TLV_EXTENDED_TCP_HEADER]));
	REQUIRE(response.has_supported ==
		(status == CONVERT_STATUS_OK && seen[CONVERT_TLV_SUPPORTED_TCP_EXTENSIONS]));
	REQUIRE(!response.has_withholding ||
		(status == CONVERT_STATUS_OK && seen[CONVERT_TLV_WITHHOLDING]));
	REQUIRE(!response.has_echo || (status == CONVERT_STATUS_OK && seen[CONVERT_TLV_ECHO]));
	REQUIRE(is_inside(response.error_value, data, response.length));
	REQUIRE(is_inside(response.tcp_header, data, response.length));
	REQUIRE(is_inside(response.supported, data, response.length));
	REQUIRE(response.has_error ? response.error_value.len % 4 == 1 :
				     response.error_value.len == 0);
	REQUIRE(status == CONVERT_STATUS_OK ? is_all(response.tlvs, data, response.length) :
					      !response.tlvs.data && response.tlvs.len == 0);
	if (status != CONVERT_STATUS_OK)
		return;
	response_copy_check(response.tlvs, data, response.length);
	response_rewrite(&response);
}
