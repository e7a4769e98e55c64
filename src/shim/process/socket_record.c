/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * socket_record.c - our knowledge of one socket, as text that fits into an environment variable
 *
 * All fields are hexadecimal digits: numbers without leading zeroes; addresses as the family (4 or 6, 0 for none), the port (4 digits) and
 * the address. A comma follows each field, and a semicolon each record. A record of another version of the library has another number of
 * fields, so we don't read it or, at worst, it is about a socket that doesn't exist.
 */
#include "config.h"

#include "shim/process/socket_record.h"

#include <string.h>

#define NUMBER_DIGITS 16u
#define ADDRESS_BYTES 18u /* port and IPv6 address */

struct writer {
	char *text;
	size_t len, room;
	bool full;
};

static void put(struct writer *out, char c)
{
	if (out->len + 1 < out->room)
		out->text[out->len++] = c;
	else
		out->full = true;
}

static void put_digits(struct writer *out, uint64_t value, unsigned int digits)
{
	while (digits--)
		put(out, "0123456789abcdef"[value >> 4 * digits & 0xf]);
}

static void put_number(struct writer *out, uint64_t value)
{
	unsigned int digits = 1;

	while (digits < NUMBER_DIGITS && value >> 4 * digits)
		digits++;
	put_digits(out, value, digits);
}

static void put_bytes(struct writer *out, const void *data, size_t len)
{
	for (size_t i = 0; i < len && !out->full; i++)
		put_digits(out, ((const uint8_t *)data)[i], 2);
}

static void put_address(struct writer *out, const union sockaddr_ip *addr)
{
	switch (addr->sa.sa_family) {
	case AF_INET:
		put(out, '4');
		put_bytes(out, &addr->in.sin_port, sizeof(addr->in.sin_port));
		put_bytes(out, &addr->in.sin_addr, sizeof(addr->in.sin_addr));
		break;
	case AF_INET6:
		put(out, '6');
		put_bytes(out, &addr->in6.sin6_port, sizeof(addr->in6.sin6_port));
		put_bytes(out, &addr->in6.sin6_addr, sizeof(addr->in6.sin6_addr));
		break;
	default:
		put(out, '0');
	}
}

size_t socket_record_write(const struct socket_record *record, char *text, size_t len,
			     size_t room)
{
	struct writer out = { .text = text, .len = len, .room = room };

	for (size_t i = 0; i < SOCKET_RECORD_NUMBER_COUNT; i++) {
		put_number(&out, record->numbers[i]);
		put(&out, ',');
	}
	put_address(&out, &record->server);
	put(&out, ',');
	put(&out, ';');
	if (room > len)
		text[out.full ? len : out.len] = '\0';
	return out.full ? 0 : out.len;
}

/* Returns the value of a hexadecimal digit as we write it, or -1. */
static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads digits up to a comma, and moves @text behind it. Returns their number, or SIZE_MAX if no comma follows them. */
static size_t take_field(const char **text, const char **field)
{
	size_t len = 0;

	*field = *text;
	while (digit((*text)[len]) >= 0)
		len++;
	if ((*text)[len] != ',')
		return SIZE_MAX;
	*text += len + 1;
	return len;
}

static void bytes_of(const char *digits, uint8_t *out, size_t len)
{
	for (size_t i = 0; i < len; i++)
		out[i] = (uint8_t)(digit(digits[2 * i]) << 4 | digit(digits[2 * i + 1]));
}

static bool read_number(const char **text, uint64_t *out)
{
	const char *field;
	size_t len = take_field(text, &field);

	if (len < 1 || len > NUMBER_DIGITS)
		return false;
	*out = 0;
	for (size_t i = 0; i < len; i++)
		*out = *out << 4 | (uint64_t)digit(field[i]);
	return true;
}

static bool read_address(const char **text, union sockaddr_ip *out)
{
	uint8_t bytes[ADDRESS_BYTES];
	const char *field;
	size_t len = take_field(text, &field);

	memset(out, 0, sizeof(*out));
	if (len == 1)
		return field[0] == '0';
	if (len == 1 + 2 * 6 && field[0] == '4') {
		bytes_of(field + 1, bytes, 6);
		out->in.sin_family = AF_INET;
		memcpy(&out->in.sin_port, bytes, 2);
		memcpy(&out->in.sin_addr, bytes + 2, 4);
		return true;
	}
	if (len == 1 + 2 * ADDRESS_BYTES && field[0] == '6') {
		bytes_of(field + 1, bytes, ADDRESS_BYTES);
		out->in6.sin6_family = AF_INET6;
		memcpy(&out->in6.sin6_port, bytes, 2);
		memcpy(&out->in6.sin6_addr, bytes + 2, 16);
		return true;
	}
	return false;
}

const char *socket_record_read(struct socket_record *out, const char *text)
{
	for (size_t i = 0; i < SOCKET_RECORD_NUMBER_COUNT; i++)
		if (!read_number(&text, &out->numbers[i]))
			return NULL;
	if (!read_address(&text, &out->server))
		return NULL;
	return *text == ';' ? text + 1 : NULL;
}
