/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * write.c - writes messages into the caller's buffer
 *
 * Each convert_write_*() checks its arguments, then asks for room by tlv_add(), which also detects a second TLV of the same type. Once
 * w->error is set, the functions write nothing more, so that the caller gets the first fault.
 */
#include "wire.h"

#include <errno.h>

/* The place of the Magic Number, Figure 13. It is set from the beginning, as convert_write_silence() changes it. */
#define MAGIC_OFFSET 2

/* The 16 bits that Figures 15, 16, 20 and 21 call Unassigned or Zero. */
static const uint8_t zero[2] = { 0, 0 };

static void fail(struct convert_writer *w, int error)
{
	if (w->error == 0)
		w->error = error;
}

static void copy(uint8_t *to, const uint8_t *from, size_t len)
{
	if (len > 0) /* a missing field is NULL, which memcpy() does not accept even with no bytes */
		memcpy(to, from, len);
}

void convert_writer_init(struct convert_writer *w, uint8_t *buf, size_t capacity)
{
	w->buf = buf;
	w->capacity = capacity < CONVERT_MESSAGE_MAX ? capacity : CONVERT_MESSAGE_MAX;
	w->len = CONVERT_HEADER_LEN;
	w->error = w->capacity < CONVERT_HEADER_LEN ? -ENOBUFS : 0;
	if (w->error == 0)
		wire_put_be16(w->buf + MAGIC_OFFSET, CONVERT_MAGIC);
}

ssize_t convert_writer_finish(struct convert_writer *w)
{
	if (w->error != 0)
		return w->error;
	w->buf[0] = CONVERT_PROTOCOL_VERSION;
	w->buf[1] = (uint8_t)(w->len / WIRE_WORD);
	return (ssize_t)w->len;
}

/* Does the message have this type already? Section 6.2.1 allows each type of TLV only once. */
static bool tlv_is_there(const struct convert_writer *w, uint8_t type)
{
	struct convert_span list = { w->buf + CONVERT_HEADER_LEN, w->len - CONVERT_HEADER_LEN };
	struct convert_tlv tlv;

	while (convert_tlv_next(&list, &tlv) == CONVERT_STATUS_OK)
		if (tlv.type == type)
			return true;
	return false;
}

/*
 * Adds a TLV with room for a Value of @value_len bytes and its padding, all zero. Returns the start of the Value; NULL if there is no room,
 * or after an error.
 */
static uint8_t *tlv_add(struct convert_writer *w, uint8_t type, size_t value_len)
{
	uint8_t *tlv;
	size_t bytes;

	if (w->error != 0)
		return NULL;
	if (tlv_is_there(w, type)) {
		fail(w, -EEXIST);
		return NULL;
	}
	/* The comparison comes first, since rounding up could overflow. */
	bytes = value_len > CONVERT_TLV_VALUE_MAX ? SIZE_MAX : wire_pad(2 + value_len);
	if (bytes > w->capacity - w->len) {
		fail(w, -ENOBUFS);
		return NULL;
	}
	tlv = w->buf + w->len;
	memset(tlv, 0, bytes);
	tlv[0] = type;
	tlv[1] = (uint8_t)(bytes / WIRE_WORD);
	w->len += bytes;
	return tlv + 2;
}

/* Writes a TLV whose Value is @head and then @data; each may be NULL with a length of 0. */
static void tlv_write(struct convert_writer *w, uint8_t type, const uint8_t *head, size_t head_len,
		      const uint8_t *data, size_t len)
{
	size_t value_len = len > CONVERT_TLV_VALUE_MAX ? SIZE_MAX : head_len + len;
	uint8_t *value = tlv_add(w, type, value_len);

	if (!value)
		return;
	copy(value, head, head_len);
	copy(value + head_len, data, len);
}

void convert_write_info(struct convert_writer *w)
{
	tlv_write(w, CONVERT_TLV_INFO, zero, sizeof(zero), NULL, 0);
}

/* Returns @len without the zeros at the end of @list: a list that a parser has returned has its padding there. */
static size_t without_padding(const uint8_t *list, size_t len)
{
	while (len > 0 && list[len - 1] == 0)
		len--;
	return len;
}

/* May @options be in a Connect TLV (Section 6.2.5)? Takes the padding off @len, but no zeros of the last option's value. */
static bool options_are_valid(const uint8_t *options, size_t *len)
{
	struct convert_span list = { options, *len };
	struct convert_tcp_option option;

	while (without_padding(list.data, list.len) > 0) {
		/* EOL and NOP have no Length field and MUST NOT be there. */
		if (list.data[0] <= 1)
			return false;
		if (convert_tcp_option_next(&list, &option) != CONVERT_STATUS_OK)
			return false;
	}
	*len -= list.len;
	return true;
}

void convert_write_connect(struct convert_writer *w, const struct in6_addr *address, uint16_t port,
			   const uint8_t *options, size_t options_len)
{
	uint8_t head[2 + sizeof(*address)];

	if (!convert_address_is_valid(address) || !options_are_valid(options, &options_len)) {
		fail(w, -EINVAL);
		return;
	}
	wire_put_be16(head, port);
	memcpy(head + 2, address, sizeof(*address));
	tlv_write(w, CONVERT_TLV_CONNECT, head, sizeof(head), options, options_len);
}

void convert_write_tcp_header(struct convert_writer *w, const uint8_t *options, size_t options_len)
{
	tlv_write(w, CONVERT_TLV_EXTENDED_TCP_HEADER, zero, sizeof(zero), options, options_len);
}

void convert_write_supported(struct convert_writer *w, const uint8_t *kinds, size_t count)
{
	/* EOL, NOP, MSS (Section 7.1), WS (7.2), SACK (7.3), TCP-AO (7.7) */
	static const uint8_t forbidden[] = { 0, 1, 2, 3, 5, 29 };

	count = without_padding(kinds, count);
	for (size_t i = 0; i < count; i++) {
		if (memchr(forbidden, kinds[i], sizeof(forbidden))) {
			fail(w, -EINVAL);
			return;
		}
	}
	tlv_write(w, CONVERT_TLV_SUPPORTED_TCP_EXTENSIONS, zero, sizeof(zero), kinds, count);
}

void convert_write_cookie(struct convert_writer *w, const uint8_t *cookie, size_t cookie_len)
{
	if (cookie_len == 0) {
		fail(w, -EINVAL);
		return;
	}
	tlv_write(w, CONVERT_TLV_COOKIE, zero, sizeof(zero), cookie, cookie_len);
}

/* Writes the Value with which our private-use TLVs begin. */
static void put_private(uint8_t value[static WIRE_PRIVATE_LEN], uint8_t flags, uint16_t number)
{
	value[0] = WIRE_PRIVATE_VERSION;
	value[1] = flags;
	wire_put_be16(value + 2, number);
	wire_put_be16(value + 4, WIRE_PRIVATE_MARK);
}

static void private_write(struct convert_writer *w, uint8_t type, uint8_t flags, uint16_t number)
{
	uint8_t value[WIRE_PRIVATE_LEN];

	put_private(value, flags, number);
	tlv_write(w, type, value, sizeof(value), NULL, 0);
}

void convert_write_withholding(struct convert_writer *w,
			       const struct convert_withholding *withholding)
{
	uint8_t flags = withholding->withheld ? WIRE_WITHHOLDING_FLAG_WITHHELD : 0;

	if (withholding->corrects)
		flags |= WIRE_WITHHOLDING_FLAG_CORRECTS;
	else if (withholding->withheld)
		flags |= WIRE_WITHHOLDING_FLAG_UNCORRECTED;
	if (withholding->withheld && withholding->silent)
		flags |= WIRE_WITHHOLDING_FLAG_SILENT;
	if (withholding->withheld && withholding->silent && withholding->blind)
		flags |= WIRE_WITHHOLDING_FLAG_BLIND | (withholding->repeats ? WIRE_WITHHOLDING_FLAG_REPEATS : 0);
	if (withholding->withheld && withholding->hold_times)
		flags |= WIRE_WITHHOLDING_FLAG_HOLD_TIMES;
	if (withholding->no_way)
		flags |= WIRE_WITHHOLDING_FLAG_NO_WAY;
	private_write(w, CONVERT_TLV_WITHHOLDING, flags, withholding->withheld ? withholding->limit_ms : 0);
}

void convert_write_echo(struct convert_writer *w, uint16_t limit_kib)
{
	private_write(w, CONVERT_TLV_ECHO, 0, limit_kib);
}

void convert_write_hold_time(struct convert_writer *w, uint16_t limit_ms)
{
	private_write(w, CONVERT_TLV_HOLD_TIME, 0, limit_ms);
}

void convert_write_silence(struct convert_writer *w, const struct convert_silence *silence)
{
	static const uint8_t zeros[UINT8_MAX * WIRE_WORD];
	uint8_t value[WIRE_SILENCE_ATTEMPT_LEN];

	if (w->error == 0 && w->len > CONVERT_HEADER_LEN && !tlv_is_there(w, CONVERT_TLV_SILENCE)) {
		fail(w, -EINVAL);
		return;
	}
	put_private(value, (uint8_t)((silence->blind ? WIRE_SILENCE_FLAG_BLIND : 0) | (silence->mptcp ? WIRE_SILENCE_FLAG_MPTCP : 0)),
		    silence->attempt ? silence->repeat : 0);
	for (size_t i = 0; i < sizeof(silence->attempt); i++)
		value[WIRE_PRIVATE_LEN + i] = (uint8_t)(silence->attempt >> (8 * (sizeof(silence->attempt) - 1 - i)));
	tlv_write(w, CONVERT_TLV_SILENCE, value, silence->attempt ? WIRE_SILENCE_ATTEMPT_LEN : WIRE_PRIVATE_LEN, zeros,
		  silence->padding * WIRE_WORD);
	if (w->error == 0)
		wire_put_be16(w->buf + MAGIC_OFFSET, CONVERT_MAGIC_SILENT);
}

void convert_write_tlv(struct convert_writer *w, uint8_t type, const uint8_t *value,
		       size_t value_len)
{
	if (type == CONVERT_TLV_RESERVED) {
		fail(w, -EINVAL);
		return;
	}
	tlv_write(w, type, NULL, 0, value, value_len);
}

/* The forms of the Value of an Error TLV (Section 6.2.8). Codes that the RFC doesn't define have one byte. */
enum error_form {
	FORM_BYTE,
	FORM_ZERO,
	FORM_VERSIONS,
	FORM_ECHO,
	FORM_COOKIE,
	FORM_OPTIONS,
};

static const enum error_form error_forms[] = {
	[CONVERT_ERROR_UNSUPPORTED_VERSION] = FORM_VERSIONS,
	[CONVERT_ERROR_MALFORMED_MESSAGE] = FORM_ECHO,
	[CONVERT_ERROR_UNSUPPORTED_MESSAGE] = FORM_ECHO,
	[CONVERT_ERROR_MISSING_COOKIE] = FORM_COOKIE,
	[CONVERT_ERROR_NOT_AUTHORIZED] = FORM_ZERO,
	[CONVERT_ERROR_UNSUPPORTED_TCP_OPTION] = FORM_OPTIONS,
	[CONVERT_ERROR_RESOURCE_EXCEEDED] = FORM_BYTE,
	[CONVERT_ERROR_NETWORK_FAILURE] = FORM_BYTE,
	[CONVERT_ERROR_CONNECTION_RESET] = FORM_ZERO,
	[CONVERT_ERROR_DESTINATION_UNREACHABLE] = FORM_BYTE,
};

static enum error_form error_form(unsigned int code)
{
	return code < ARRAY_SIZE(error_forms) ? error_forms[code] : FORM_BYTE;
}

void convert_write_error(struct convert_writer *w, enum convert_error_code code, uint8_t value)
{
	unsigned int number = (unsigned int)code;
	enum error_form form = error_form(number);
	const uint8_t bytes[2] = { (uint8_t)number, value };

	if (number > UINT8_MAX || (form != FORM_BYTE && form != FORM_ZERO) ||
	    (form == FORM_ZERO && value != 0)) {
		fail(w, -EINVAL);
		return;
	}
	tlv_write(w, CONVERT_TLV_ERROR, NULL, 0, bytes, sizeof(bytes));
}

void convert_write_error_versions(struct convert_writer *w)
{
	static const uint8_t value[] = { CONVERT_ERROR_UNSUPPORTED_VERSION, CONVERT_PROTOCOL_VERSION };

	tlv_write(w, CONVERT_TLV_ERROR, NULL, 0, value, sizeof(value));
}

void convert_write_error_echo(struct convert_writer *w, enum convert_error_code code,
			      const uint8_t *message, size_t len)
{
	const uint8_t head[2] = { (uint8_t)code, 0 }; /* Figure 23 */
	size_t room;

	if (error_form((unsigned int)code) != FORM_ECHO) {
		fail(w, -EINVAL);
		return;
	}
	/*
	 * A message of 1020 bytes can't be echoed whole in another one of 1020 bytes. Section 6.2.8 doesn't say what to send then; the
	 * beginning serves troubleshooting best.
	 */
	room = w->error == 0 ? (w->capacity - w->len) / WIRE_WORD * WIRE_WORD : 0;
	if (room >= WIRE_WORD && len > room - WIRE_WORD)
		len = room - WIRE_WORD;
	tlv_write(w, CONVERT_TLV_ERROR, head, sizeof(head), message, len);
}

void convert_write_error_cookie(struct convert_writer *w, const uint8_t *cookie, size_t cookie_len)
{
	static const uint8_t head[2] = { CONVERT_ERROR_MISSING_COOKIE, 0 };

	if (cookie_len == 0) {
		fail(w, -EINVAL);
		return;
	}
	tlv_write(w, CONVERT_TLV_ERROR, head, sizeof(head), cookie, cookie_len);
}

void convert_write_error_options(struct convert_writer *w, const uint8_t *kinds, size_t count)
{
	static const uint8_t head[1] = { CONVERT_ERROR_UNSUPPORTED_TCP_OPTION };

	count = without_padding(kinds, count);
	/* A kind of 0 in front of others would look like padding. */
	if (count == 0 || memchr(kinds, 0, count)) {
		fail(w, -EINVAL);
		return;
	}
	tlv_write(w, CONVERT_TLV_ERROR, head, sizeof(head), kinds, count);
}
