/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.h - access to bytes of messages: integers in network byte order, within bounds; units and private TLVs */
#ifndef LIB_WIRE_H
#define LIB_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <convert/convert.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define WIRE_WORD 4 /* bytes; the unit of every Length field, Sections 6.1 and 6.2.1 */

/*
 * The Values of our private-use TLVs (doc/private-tlvs.md) begin with Version, Flags and 16 bits. Types of private use aren't registered,
 * so a mark follows, which distinguishes them from another implementation's TLVs of the same type.
 */
#define WIRE_PRIVATE_VERSION 1
#define WIRE_PRIVATE_MARK 0x6c63 /* "lc" */
#define WIRE_PRIVATE_LEN 6       /* bytes, with the mark */

/* The flags of a Withholding TLV; its 16 bits are the limit in milliseconds. */
#define WIRE_WITHHOLDING_FLAG_WITHHELD 0x01
#define WIRE_WITHHOLDING_FLAG_CORRECTS 0x02
#define WIRE_WITHHOLDING_FLAG_UNCORRECTED 0x04 /* WITHHELD without this flag implies CORRECTS */
#define WIRE_WITHHOLDING_FLAG_SILENT 0x08      /* with WITHHELD */
#define WIRE_WITHHOLDING_FLAG_BLIND 0x10       /* with SILENT */
#define WIRE_WITHHOLDING_FLAG_REPEATS 0x20     /* with BLIND */
#define WIRE_WITHHOLDING_FLAG_HOLD_TIMES 0x40  /* with WITHHELD */
#define WIRE_WITHHOLDING_FLAG_NO_WAY 0x80

/* The flags of a Silence TLV; its 16 bits are the number of the repeat. The attempt's number, if any, follows the mark. */
#define WIRE_SILENCE_FLAG_BLIND 0x01
#define WIRE_SILENCE_FLAG_MPTCP 0x02
#define WIRE_SILENCE_ATTEMPT_LEN (WIRE_PRIVATE_LEN + 8) /* bytes, with the attempt */

/* --- names.c; a program that is linked with the static library has these names, too, hence their prefix --- */

/*
 * convert_priv_read_header() - read the fixed header of a message with this Magic Number (Section 6.1)
 * Returns as convert_message_length(), which calls this function with CONVERT_MAGIC.
 */
enum convert_status convert_priv_read_header(const uint8_t *buf, size_t len, uint16_t magic, size_t *length);

/* Takes a Silence TLV off the front of a list; returns false, with nothing taken, if the list doesn't begin with one. */
bool convert_priv_take_silence(struct convert_span *list, struct convert_silence *silence);

/* --- integers and bytes --- */

/*
 * wire_get_*() - take a value off the front of @in
 * They return false, and take nothing, if @in is too short; so readers need not compare lengths themselves.
 */
static inline bool wire_get_bytes(struct convert_span *in, void *out, size_t len)
{
	if (in->len < len)
		return false;
	if (len > 0) {
		memcpy(out, in->data, len);
		in->data += len;
		in->len -= len;
	}
	return true;
}

static inline bool wire_get_u8(struct convert_span *in, uint8_t *out)
{
	return wire_get_bytes(in, out, 1);
}

static inline bool wire_get_be16(struct convert_span *in, uint16_t *out)
{
	uint8_t b[2];

	if (!wire_get_bytes(in, b, sizeof(b)))
		return false;
	*out = (uint16_t)(b[0] << 8 | b[1]);
	return true;
}

/* Takes the beginning of a private-use TLV's Value off @in. Returns false if it is another implementation's. */
static inline bool wire_get_private(struct convert_span *in, uint8_t *flags, uint16_t *number)
{
	uint8_t version;
	uint16_t mark;

	return wire_get_u8(in, &version) && wire_get_u8(in, flags) && wire_get_be16(in, number) && wire_get_be16(in, &mark) &&
	       version == WIRE_PRIVATE_VERSION && mark == WIRE_PRIVATE_MARK;
}

/* Writes @value to the 2 bytes at @p. */
static inline void wire_put_be16(uint8_t *p, uint16_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

/* Returns @len, in bytes, rounded up to whole words, as with padding (Section 6.2.1). */
static inline size_t wire_pad(size_t len)
{
	return (len + WIRE_WORD - 1) / WIRE_WORD * WIRE_WORD;
}

#endif
