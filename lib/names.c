/* SPDX-License-Identifier: BSD-3-Clause */
/* names.c - the names of statuses, errors and TLVs, and the version of the library */
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

/* Table 4 */
static const char *const tlv_names[] = {
	[CONVERT_TLV_RESERVED] = "Reserved",
	[CONVERT_TLV_INFO] = "Info TLV",
	[CONVERT_TLV_CONNECT] = "Connect TLV",
	[CONVERT_TLV_EXTENDED_TCP_HEADER] = "Extended TCP Header TLV",
	[CONVERT_TLV_SUPPORTED_TCP_EXTENSIONS] = "Supported TCP Extension TLV",
	[CONVERT_TLV_COOKIE] = "Cookie TLV",
	[CONVERT_TLV_ERROR] = "Error TLV",
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
	if (type == CONVERT_TLV_WITHHOLDING)
		return "Withholding TLV";
	if (type == CONVERT_TLV_ECHO)
		return "Echo TLV";
	if (type == CONVERT_TLV_SILENCE)
		return "Silence TLV";
	if (type == CONVERT_TLV_HOLD_TIME)
		return "Hold Time TLV";
	return name_of(tlv_names, ARRAY_SIZE(tlv_names), type);
}
