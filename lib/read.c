/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * read.c - reads requests and responses from bytes, and decides about bad ones
 *
 * We read a message in one pass. The fixed header gives its length (names.c); once it is complete, we check each TLV by its Type, then by
 * its Length, then by its Value, so that we report the first of several faults in the stream. For each type tlv_rules[] says which peer may
 * send it, its possible lengths, and the function that reads its Value. convert_request_answer() and convert_response_answer()
 * have the RFC's reaction to each fault.
 */
#include "wire.h"

#include <assert.h>

enum sender {
	SENDER_NONE, /* no peer may: the type is not in Table 1 */
	SENDER_CLIENT,
	SENDER_CONVERTER,
};

/* The structure that a message is read into; which member it is depends on the peer that sends the message. */
union message {
	struct convert_request *request;
	struct convert_response *response;
};

typedef enum convert_status value_reader(struct convert_span value, union message out);

/* Takes the 16 bits behind Type and Length that the figures call "Unassigned": any value is valid. */
static bool take_unassigned(struct convert_span *value)
{
	uint16_t unassigned = 0;

	return wire_get_be16(value, &unassigned);
}

/* Takes the bits that the figures call "Zero": any other value is a fault. */
static bool take_zero(struct convert_span *value)
{
	uint16_t zero = 0; /* -O1 does not see that it is set */

	return wire_get_be16(value, &zero) && zero == 0;
}

/* Section 6.2.3 */
static enum convert_status read_info(struct convert_span value, union message out)
{
	if (!take_zero(&value))
		return CONVERT_STATUS_TLV_BAD_VALUE;
	out.request->has_info = true;
	return CONVERT_STATUS_OK;
}

/* Section 6.2.5 */
static enum convert_status read_connect(struct convert_span value, union message out)
{
	struct convert_request *request = out.request;
	struct convert_tcp_option option;
	struct convert_span options;
	enum convert_status status;

	if (!wire_get_be16(&value, &request->port) ||
	    !wire_get_bytes(&value, &request->address, sizeof(request->address)))
		return CONVERT_STATUS_TLV_BAD_LENGTH;
	if (!convert_address_is_valid(&request->address))
		return CONVERT_STATUS_BAD_ADDRESS;

	/* Check the whole list here, so that later walks of it find no faults. */
	options = value;
	do
		status = convert_tcp_option_next(&options, &option);
	while (status == CONVERT_STATUS_OK);
	if (status != CONVERT_STATUS_END)
		return status;

	request->extended = value.len > 0;
	if (request->extended)
		request->tcp_options = value;
	request->has_connect = true;
	return CONVERT_STATUS_OK;
}

/* Section 6.2.6. Doesn't check the options: they are the server's, and the converter only copies them. */
static enum convert_status read_tcp_header(struct convert_span value, union message out)
{
	if (!take_unassigned(&value))
		return CONVERT_STATUS_TLV_BAD_LENGTH;
	out.response->tcp_header = value;
	out.response->has_tcp_header = true;
	return CONVERT_STATUS_OK;
}

/* Section 6.2.4 */
static enum convert_status read_supported(struct convert_span value, union message out)
{
	if (!take_unassigned(&value))
		return CONVERT_STATUS_TLV_BAD_LENGTH;
	out.response->supported = value;
	out.response->has_supported = true;
	return CONVERT_STATUS_OK;
}

/* Section 6.2.7 */
static enum convert_status read_cookie(struct convert_span value, union message out)
{
	if (!take_zero(&value))
		return CONVERT_STATUS_TLV_BAD_VALUE;
	out.request->cookie = value;
	out.request->has_cookie = true;
	return CONVERT_STATUS_OK;
}

/*
 * Section 6.2.8. Accepts codes that this library doesn't know, and Values that don't fit their code: the connection has failed in any case,
 * and the code says more about it than a fault of the message would.
 */
static enum convert_status read_error(struct convert_span value, union message out)
{
	if (!wire_get_u8(&value, &out.response->error_code))
		return CONVERT_STATUS_TLV_BAD_LENGTH;
	out.response->error_value = value;
	out.response->has_error = true;
	return CONVERT_STATUS_OK;
}

/*
 * A TLV of private use (doc/private-tlvs.md). Another implementation may use the same type for something else. Its TLV lacks the mark, and
 * we ignore it, as we ignore TLVs of unknown types in responses; so nothing in here is a fault.
 */
static enum convert_status read_withholding(struct convert_span value, union message out)
{
	uint8_t flags = 0;
	uint16_t limit_ms = 0;

	if (!wire_get_private(&value, &flags, &limit_ms))
		return CONVERT_STATUS_OK;
	out.response->withholding.withheld = flags & WIRE_WITHHOLDING_FLAG_WITHHELD;
	out.response->withholding.limit_ms = out.response->withholding.withheld ? limit_ms : 0;
	out.response->withholding.silent = out.response->withholding.withheld && (flags & WIRE_WITHHOLDING_FLAG_SILENT);
	out.response->withholding.blind = out.response->withholding.silent && (flags & WIRE_WITHHOLDING_FLAG_BLIND);
	out.response->withholding.repeats = out.response->withholding.blind && (flags & WIRE_WITHHOLDING_FLAG_REPEATS);
	out.response->withholding.hold_times = out.response->withholding.withheld && (flags & WIRE_WITHHOLDING_FLAG_HOLD_TIMES);
	out.response->withholding.no_way = flags & WIRE_WITHHOLDING_FLAG_NO_WAY;
	/* The first versions of convertd sent neither flag, and corrected the windows of all withheld SYNs. */
	out.response->withholding.corrects =
		(flags & WIRE_WITHHOLDING_FLAG_CORRECTS) ||
		(flags & (WIRE_WITHHOLDING_FLAG_WITHHELD | WIRE_WITHHOLDING_FLAG_UNCORRECTED)) ==
			WIRE_WITHHOLDING_FLAG_WITHHELD;
	out.response->has_withholding = true;
	return CONVERT_STATUS_OK;
}

/* Only converters send it, but without the mark it is another implementation's TLV, which the library doesn't know. */
static enum convert_status read_withholding_request(struct convert_span value, union message out)
{
	uint16_t limit_ms = 0;
	uint8_t flags = 0;

	(void)out;
	return wire_get_private(&value, &flags, &limit_ms) ? CONVERT_STATUS_TLV_WRONG_DIRECTION : CONVERT_STATUS_TLV_UNKNOWN;
}

/*
 * In a request, a TLV of this type without the mark is unknown to the library, and a converter must say so. In a response, a client ignores
 * it.
 */
static enum convert_status read_echo_request(struct convert_span value, union message out)
{
	uint16_t limit_kib = 0;
	uint8_t flags = 0;

	if (!wire_get_private(&value, &flags, &limit_kib))
		return CONVERT_STATUS_TLV_UNKNOWN;
	out.request->has_echo = true;
	return CONVERT_STATUS_OK;
}

static enum convert_status read_echo_response(struct convert_span value, union message out)
{
	uint16_t limit_kib = 0;
	uint8_t flags = 0;

	if (wire_get_private(&value, &flags, &limit_kib)) {
		out.response->has_echo = true;
		out.response->echo_kib = limit_kib;
	}
	return CONVERT_STATUS_OK;
}

/* As read_echo_request(). In a response the type is an unknown one. */
static enum convert_status read_hold_time(struct convert_span value, union message out)
{
	uint16_t limit_ms = 0;
	uint8_t flags = 0;

	if (!wire_get_private(&value, &flags, &limit_ms))
		return CONVERT_STATUS_TLV_UNKNOWN;
	out.request->has_hold_time = true;
	out.request->hold_ms = limit_ms;
	return CONVERT_STATUS_OK;
}

/* Section 6.2.2, Table 1; lengths in words, as on the wire. */
static const struct tlv_rule {
	enum sender sender;
	uint8_t min, max;
	value_reader *read;
} tlv_rules[] = {
	[CONVERT_TLV_INFO] = { SENDER_CLIENT, 1, 1, read_info },
	[CONVERT_TLV_CONNECT] = { SENDER_CLIENT, 5, 255, read_connect },
	[CONVERT_TLV_EXTENDED_TCP_HEADER] = { SENDER_CONVERTER, 1, 255, read_tcp_header },
	[CONVERT_TLV_SUPPORTED_TCP_EXTENSIONS] = { SENDER_CONVERTER, 1, 255, read_supported },
	[CONVERT_TLV_COOKIE] = { SENDER_CLIENT, 2, 255, read_cookie },
	[CONVERT_TLV_ERROR] = { SENDER_CONVERTER, 1, 255, read_error },
};

/* @sender: the peer that sends the message; a Withholding TLV and an Echo TLV have a rule for either */
static const struct tlv_rule *tlv_rule(uint8_t type, enum sender sender)
{
	static const struct tlv_rule unknown = { .sender = SENDER_NONE };
	static const struct tlv_rule hold_time = { SENDER_CLIENT, 1, 255, read_hold_time };
	static const struct tlv_rule withholdings[] = {
		[SENDER_CLIENT] = { SENDER_CLIENT, 1, 255, read_withholding_request },
		[SENDER_CONVERTER] = { SENDER_CONVERTER, 1, 255, read_withholding },
	};
	static const struct tlv_rule echoes[] = {
		[SENDER_CLIENT] = { SENDER_CLIENT, 1, 255, read_echo_request },
		[SENDER_CONVERTER] = { SENDER_CONVERTER, 1, 255, read_echo_response },
	};

	if (type == CONVERT_TLV_WITHHOLDING)
		return &withholdings[sender];
	if (type == CONVERT_TLV_ECHO)
		return &echoes[sender];
	if (type == CONVERT_TLV_HOLD_TIME)
		return sender == SENDER_CLIENT ? &hold_time : &unknown;
	return type < ARRAY_SIZE(tlv_rules) ? &tlv_rules[type] : &unknown;
}

/* Checks a TLV by its Type alone. @seen has a bit for each type that the message has had so far, and gets this one's. */
static enum convert_status type_check(uint8_t type, enum sender sender, uint8_t seen[static 32])
{
	const struct tlv_rule *rule = tlv_rule(type, sender);
	uint8_t bit = (uint8_t)(1u << (type % 8));

	if (type == CONVERT_TLV_RESERVED)
		return CONVERT_STATUS_TLV_TYPE_RESERVED;
	if (seen[type / 8] & bit)
		return CONVERT_STATUS_TLV_TWICE;
	seen[type / 8] |= bit;
	if (rule->sender == sender)
		return CONVERT_STATUS_OK;
	if (rule->sender != SENDER_NONE)
		return CONVERT_STATUS_TLV_WRONG_DIRECTION;
	/* New TLVs extend the protocol (Section 6). A converter must understand all of a request, a client not all of a response. */
	return sender == SENDER_CLIENT ? CONVERT_STATUS_TLV_UNKNOWN : CONVERT_STATUS_OK;
}

static enum convert_status value_check(const struct convert_tlv *tlv, enum sender sender,
				       union message out)
{
	const struct tlv_rule *rule = tlv_rule(tlv->type, sender);
	size_t words = (tlv->value.len + 2) / WIRE_WORD;

	if (rule->sender == SENDER_NONE)
		return CONVERT_STATUS_OK;
	if (words < rule->min || words > rule->max)
		return CONVERT_STATUS_TLV_BAD_LENGTH;
	return rule->read(tlv->value, out);
}

/* Reads the TLVs of a whole message. */
static enum convert_status tlvs_read(struct convert_span list, enum sender sender, union message out)
{
	enum convert_status status = CONVERT_STATUS_OK;
	struct convert_tlv tlv;
	uint8_t seen[32] = { 0 };

	while (status == CONVERT_STATUS_OK && list.len > 0) {
		status = type_check(list.data[0], sender, seen);
		if (status == CONVERT_STATUS_OK)
			status = convert_tlv_next(&list, &tlv);
		if (status == CONVERT_STATUS_OK)
			status = value_check(&tlv, sender, out);
	}
	return status;
}

/* Returns the TLVs behind the fixed header of a message of @length bytes, 4 or more. */
static struct convert_span message_tlvs(const uint8_t *buf, size_t length)
{
	return (struct convert_span){ buf + CONVERT_HEADER_LEN, length - CONVERT_HEADER_LEN };
}

/* Reads the header of a message with this Magic Number; NEED_MORE until all of @length bytes are there. */
static enum convert_status header_read(const uint8_t *buf, size_t len, uint16_t magic, size_t *length)
{
	enum convert_status status = convert_priv_read_header(buf, len, magic, length);

	return status == CONVERT_STATUS_OK && len < *length ? CONVERT_STATUS_NEED_MORE : status;
}

/* Reads the part behind the fixed header of a request that obeys the RFC. */
static enum convert_status request_read(struct convert_request *out)
{
	enum convert_status status = tlvs_read(out->tlvs, SENDER_CLIENT, (union message){ .request = out });

	/* A Cookie TLV accompanies a Connect or an Info TLV (Section 6.2.7); alone it asks for nothing. */
	if (status == CONVERT_STATUS_OK && !out->has_info && !out->has_connect)
		return CONVERT_STATUS_NO_TLV;
	return status;
}

/* Reads a silent request: its first TLV is followed by anything that the RFC allows, except an Info TLV, which would need an answer. */
static enum convert_status silent_request_read(struct convert_request *out)
{
	struct convert_span rest = out->tlvs;

	if (!convert_priv_take_silence(&rest, &out->silence) ||
	    tlvs_read(rest, SENDER_CLIENT, (union message){ .request = out }) != CONVERT_STATUS_OK ||
	    !out->has_connect || out->has_info || out->has_echo)
		return CONVERT_STATUS_BAD_SILENCE;
	return CONVERT_STATUS_OK;
}

/* Is this the beginning of a silent request? A fault in the rest of its header doesn't matter. */
static bool request_is_silent(const uint8_t *buf, size_t len)
{
	size_t length = 0;
	enum convert_status status = convert_priv_read_header(buf, len, CONVERT_MAGIC_SILENT, &length);

	return len >= CONVERT_HEADER_LEN && status != CONVERT_STATUS_BAD_MAGIC;
}

enum convert_status convert_request_parse(const uint8_t *buf, size_t len,
					  struct convert_request *out)
{
	bool silent = request_is_silent(buf, len);
	uint16_t magic = silent ? CONVERT_MAGIC_SILENT : CONVERT_MAGIC;
	enum convert_status status;
	size_t length = 0;

	*out = (struct convert_request){ 0 };
	status = header_read(buf, len, magic, &length);
	/* With three bytes, either Magic Number may be meant. */
	if (status == CONVERT_STATUS_BAD_MAGIC && len < CONVERT_HEADER_LEN)
		status = header_read(buf, len, CONVERT_MAGIC_SILENT, &length);
	if (status == CONVERT_STATUS_OK) {
		out->tlvs = message_tlvs(buf, length);
		status = silent ? silent_request_read(out) : request_read(out);
	} else if (silent && status != CONVERT_STATUS_NEED_MORE) {
		status = CONVERT_STATUS_BAD_SILENCE;
	}
	/* A caller that ignores the status must not find half a request. */
	if (status != CONVERT_STATUS_OK)
		*out = (struct convert_request){ 0 };
	out->length = length;
	out->has_silence = silent;
	return status;
}

enum convert_status convert_response_parse(const uint8_t *buf, size_t len,
					   struct convert_response *out)
{
	enum convert_status status;
	size_t length = 0;

	*out = (struct convert_response){ 0 };
	status = header_read(buf, len, CONVERT_MAGIC, &length);
	if (status == CONVERT_STATUS_OK)
		out->tlvs = message_tlvs(buf, length);
	if (status == CONVERT_STATUS_OK)
		status = tlvs_read(out->tlvs, SENDER_CONVERTER, (union message){ .response = out });
	if (status != CONVERT_STATUS_OK)
		*out = (struct convert_response){ 0 };
	out->length = length;
	return status;
}

/* A converter's reaction to each status. @code is used for CONVERT_ANSWER_ERROR only. */
static const struct request_answer {
	enum convert_answer answer;
	enum convert_error_code code;
} request_answers[] = {
	[CONVERT_STATUS_OK] = { CONVERT_ANSWER_NONE, 0 },
	[CONVERT_STATUS_END] = { CONVERT_ANSWER_NONE, 0 },
	[CONVERT_STATUS_NEED_MORE] = { CONVERT_ANSWER_NONE, 0 },
	/* Section 6: connections without Convert messages are ignored silently */
	[CONVERT_STATUS_BAD_MAGIC] = { CONVERT_ANSWER_IGNORE, 0 },
	/* Section 6.2.8, Unsupported Version */
	[CONVERT_STATUS_BAD_VERSION] = { CONVERT_ANSWER_ERROR, CONVERT_ERROR_UNSUPPORTED_VERSION },
	/* Section 6.1 */
	[CONVERT_STATUS_ZERO_TOTAL_LENGTH] = { CONVERT_ANSWER_RESET, 0 },
	/* Section 6.2.8: messages that can't be parsed and validated */
	[CONVERT_STATUS_NO_TLV] = { CONVERT_ANSWER_ERROR, CONVERT_ERROR_MALFORMED_MESSAGE },
	[CONVERT_STATUS_TLV_PAST_END] = { CONVERT_ANSWER_ERROR, CONVERT_ERROR_MALFORMED_MESSAGE },
	[CONVERT_STATUS_TLV_ZERO_LENGTH] = { CONVERT_ANSWER_ERROR, CONVERT_ERROR_MALFORMED_MESSAGE },
	/* Section 6.2.2 */
	[CONVERT_STATUS_TLV_TYPE_RESERVED] = { CONVERT_ANSWER_ERROR, CONVERT_ERROR_UNSUPPORTED_MESSAGE },
	/* Section 6.2.1 */
	[CONVERT_STATUS_TLV_TWICE] = { CONVERT_ANSWER_ERROR, CONVERT_ERROR_MALFORMED_MESSAGE },
	/* Section 6.2.8: "a message type received from a Client is not supported" */
	[CONVERT_STATUS_TLV_UNKNOWN] = { CONVERT_ANSWER_ERROR, CONVERT_ERROR_UNSUPPORTED_MESSAGE },
	[CONVERT_STATUS_TLV_WRONG_DIRECTION] = { CONVERT_ANSWER_ERROR, CONVERT_ERROR_UNSUPPORTED_MESSAGE },
	[CONVERT_STATUS_TLV_BAD_LENGTH] = { CONVERT_ANSWER_ERROR, CONVERT_ERROR_MALFORMED_MESSAGE },
	[CONVERT_STATUS_TLV_BAD_VALUE] = { CONVERT_ANSWER_ERROR, CONVERT_ERROR_MALFORMED_MESSAGE },
	/* Section 6.2.5 */
	[CONVERT_STATUS_BAD_ADDRESS] = { CONVERT_ANSWER_ERROR, CONVERT_ERROR_MALFORMED_MESSAGE },
	/* Its client would take any answer for the server's bytes. */
	[CONVERT_STATUS_BAD_SILENCE] = { CONVERT_ANSWER_RESET, 0 },
};
static_assert(ARRAY_SIZE(request_answers) == CONVERT_STATUS_COUNT, "an answer for each status");

enum convert_answer convert_request_answer(enum convert_status status,
					   enum convert_error_code *code)
{
	const struct request_answer *found;

	if ((size_t)status >= ARRAY_SIZE(request_answers))
		return CONVERT_ANSWER_RESET;
	found = &request_answers[status];
	if (code && found->answer == CONVERT_ANSWER_ERROR)
		*code = found->code;
	return found->answer;
}

enum convert_answer convert_response_answer(enum convert_status status)
{
	if (status == CONVERT_STATUS_OK || status == CONVERT_STATUS_END || status == CONVERT_STATUS_NEED_MORE)
		return CONVERT_ANSWER_NONE;
	return CONVERT_ANSWER_RESET;
}
