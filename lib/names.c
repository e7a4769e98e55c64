/* SPDX-License-Identifier: BSD-3-Clause */
/* names.c - the names of statuses, errors and TLVs, the library's version; the fixed header, the walks over TLVs and TCP options */
#include "wire.h"

#include <assert.h>

static const char *const status_names[] = {
	[CONVERT_STATUS_OK] = "OK",
	[CONVERT_STATUS_END] = "end of the list",
	[CONVERT_STATUS_NEED_MORE] = "message not complete",
	[CONVERT_STATUS_BAD_MAGIC] = "wrong magic number",
	[CONVERT_STATUS_BAD_VERSION] = "unsupported version",
	[CONVERT_STATUS_ZERO_TOTAL_LENGTH] = "Total Length is 0",
	[CONVERT_STATUS_NO_TLV] = "neither an Info nor a Connect TLV",
	[CONVERT_STATUS_TLV_PAST_END] = "TLV crosses the Total Length",
	[CONVERT_STATUS_TLV_ZERO_LENGTH] = "TLV of length 0",
	[CONVERT_STATUS_TLV_TYPE_RESERVED] = "TLV of type 0",
	[CONVERT_STATUS_TLV_TWICE] = "TLV appears twice",
	[CONVERT_STATUS_TLV_UNKNOWN] = "TLV of unknown type",
	[CONVERT_STATUS_TLV_WRONG_DIRECTION] = "TLV that only the other peer may send",
	[CONVERT_STATUS_TLV_BAD_LENGTH] = "TLV's length does not fit its type",
	[CONVERT_STATUS_TLV_BAD_VALUE] = "TLV's value breaks the rules of its type",
	[CONVERT_STATUS_BAD_ADDRESS] = "address that can't be a remote peer's",
	[CONVERT_STATUS_BAD_SILENCE] = "fault in a silent request",
};
static_assert(ARRAY_SIZE(status_names) == CONVERT_STATUS_COUNT, "a name for each status");

/* Table 2 */
static const char *const error_names[] = {
	[CONVERT_ERROR_UNSUPPORTED_VERSION] = "Unsupported Version",
	[CONVERT_ERROR_MALFORMED_MESSAGE] = "Malformed Message",
	[CONVERT_ERROR_UNSUPPORTED_MESSAGE] = "Unsupported Message",
	[CONVERT_ERROR_MISSING_COOKIE] = "Missing Cookie",
	[CONVERT_ERROR_NOT_AUTHORIZED] = "Not Authorized",
	[CONVERT_ERROR_UNSUPPORTED_TCP_OPTION] = "Unsupported TCP Option",
	[CONVERT_ERROR_RESOURCE_EXCEEDED] = "Resource Exceeded",
	[CONVERT_ERROR_NETWORK_FAILURE] = "Network Failure",
	[CONVERT_ERROR_CONNECTION_RESET] = "Connection Reset",
	[CONVERT_ERROR_DESTINATION_UNREACHABLE] = "Destination Unreachable",
};

/* Table 4, and TLVs of private use */
static const char *const tlv_names[] = {
	[CONVERT_TLV_RESERVED] = "Reserved",
	[CONVERT_TLV_INFO] = "Info TLV",
	[CONVERT_TLV_CONNECT] = "Connect TLV",
	[CONVERT_TLV_EXTENDED_TCP_HEADER] = "Extended TCP Header TLV",
	[CONVERT_TLV_SUPPORTED_TCP_EXTENSIONS] = "Supported TCP Extension TLV",
	[CONVERT_TLV_COOKIE] = "Cookie TLV",
	[CONVERT_TLV_ERROR] = "Error TLV",
	[CONVERT_TLV_WITHHOLDING] = "Withholding TLV",
	[CONVERT_TLV_ECHO] = "Echo TLV",
	[CONVERT_TLV_SILENCE] = "Silence TLV",
	[CONVERT_TLV_HOLD_TIME] = "Hold Time TLV",
};

static const char *name_of(const char *const names[], size_t count, size_t value)
{
	return value < count && names[value] ? names[value] : "unknown";
}

uint32_t convert_library_version(void)
{
	return CONVERT_LIBRARY_VERSION;
}

const char *convert_status_name(enum convert_status status)
{
	return name_of(status_names, ARRAY_SIZE(status_names), (size_t)status);
}

const char *convert_error_name(uint8_t code)
{
	return name_of(error_names, ARRAY_SIZE(error_names), code);
}

const char *convert_tlv_name(uint8_t type)
{
	return name_of(tlv_names, ARRAY_SIZE(tlv_names), type);
}

/* --- the fixed header, the walks over TLVs and TCP options, which addresses are allowed, and the Silence TLV --- */

enum convert_status convert_priv_read_header(const uint8_t *buf, size_t len, uint16_t magic, size_t *length)
{
	struct convert_span in = { buf, len };
	uint8_t version, total;
	uint16_t number;

	/*
	 * The Magic Number says whether this is the Convert Protocol at all (Section 6.1), so we check the Version in front of it
	 * afterwards. A wrong first byte is enough to refuse the message.
	 */
	if (len >= CONVERT_HEADER_LEN - 1 && buf[2] != magic >> 8)
		return CONVERT_STATUS_BAD_MAGIC;
	if (!wire_get_u8(&in, &version) || !wire_get_u8(&in, &total) || !wire_get_be16(&in, &number))
		return CONVERT_STATUS_NEED_MORE;
	if (number != magic)
		return CONVERT_STATUS_BAD_MAGIC;
	*length = (size_t)total * WIRE_WORD;
	/* Section 6.1 wants a reset for a Total Length of 0, whatever the version is. */
	if (total == 0)
		return CONVERT_STATUS_ZERO_TOTAL_LENGTH;
	return version == CONVERT_PROTOCOL_VERSION ? CONVERT_STATUS_OK : CONVERT_STATUS_BAD_VERSION;
}

enum convert_status convert_message_length(const uint8_t *buf, size_t len, size_t *length)
{
	return convert_priv_read_header(buf, len, CONVERT_MAGIC, length);
}

enum convert_status convert_tlv_next(struct convert_span *list, struct convert_tlv *tlv)
{
	struct convert_span in = *list;
	size_t bytes;
	uint8_t type, words;

	if (in.len == 0)
		return CONVERT_STATUS_END;
	if (!wire_get_u8(&in, &type) || !wire_get_u8(&in, &words))
		return CONVERT_STATUS_TLV_PAST_END;
	if (words == 0)
		return CONVERT_STATUS_TLV_ZERO_LENGTH;
	bytes = (size_t)words * WIRE_WORD;
	if (bytes > list->len)
		return CONVERT_STATUS_TLV_PAST_END;
	tlv->type = type;
	tlv->value.data = in.data;
	tlv->value.len = bytes - 2;
	list->data += bytes;
	list->len -= bytes;
	return CONVERT_STATUS_OK;
}

bool convert_priv_take_silence(struct convert_span *list, struct convert_silence *silence)
{
	uint8_t flags = 0, byte;
	uint16_t repeat = 0;
	struct convert_span rest = *list;
	struct convert_tlv tlv;

	if (convert_tlv_next(&rest, &tlv) != CONVERT_STATUS_OK || tlv.type != CONVERT_TLV_SILENCE ||
	    !wire_get_private(&tlv.value, &flags, &repeat))
		return false;
	silence->blind = flags & WIRE_SILENCE_FLAG_BLIND;
	silence->mptcp = flags & WIRE_SILENCE_FLAG_MPTCP;
	if (tlv.value.len >= WIRE_SILENCE_ATTEMPT_LEN - WIRE_PRIVATE_LEN)
		for (size_t i = 0; i < sizeof(silence->attempt) && wire_get_u8(&tlv.value, &byte); i++)
			silence->attempt = silence->attempt << 8 | byte;
	silence->repeat = silence->attempt ? repeat : 0;
	*list = rest;
	return true;
}

enum convert_status convert_tcp_option_next(struct convert_span *list,
					    struct convert_tcp_option *option)
{
	struct convert_span in = *list;
	uint8_t kind, length;

	do {
		*list = in;
		if (!wire_get_u8(&in, &kind))
			return CONVERT_STATUS_END;
	} while (kind <= 1);

	if (!wire_get_u8(&in, &length) || length < 2 || length > list->len)
		return CONVERT_STATUS_TLV_BAD_VALUE;
	option->kind = kind;
	option->value.data = in.data;
	option->value.len = length - 2u;
	list->data += length;
	list->len -= length;
	return CONVERT_STATUS_OK;
}

/* Refuses 0.0.0.0/8 ("this host", RFC 1122), 127.0.0.0/8, 224.0.0.0/4 and 255.255.255.255. */
static bool ipv4_is_valid(const uint8_t a[static 4])
{
	static const uint8_t broadcast[4] = { 255, 255, 255, 255 };

	return a[0] != 0 && a[0] != 127 && (a[0] & 0xf0) != 0xe0 &&
	       memcmp(a, broadcast, sizeof(broadcast)) != 0;
}

bool convert_address_is_valid(const struct in6_addr *address)
{
	if (IN6_IS_ADDR_V4MAPPED(address))
		return ipv4_is_valid(&address->s6_addr[12]);
	return !IN6_IS_ADDR_MULTICAST(address) && !IN6_IS_ADDR_LOOPBACK(address) &&
	       !IN6_IS_ADDR_UNSPECIFIED(address);
}
