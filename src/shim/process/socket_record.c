/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * socket_record.c - our knowledge of one socket, as text that fits into an environment variable
 *
 * All fields are hexadecimal numbers without leading zeroes: those of struct socket_record, and the server's family (4 or 6, 0 for none),
 * port and address, the address in two halves. A comma follows each field, and a semicolon each record. A record of another version of the
 * library has another number of fields, so we don't read it or, at worst, it is about a socket that doesn't exist.
 */
#include "config.h"

#include "shim/process/socket_record.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAMILY = SOCKET_RECORD_NUMBER_COUNT, PORT, ADDRESS, FIELD_COUNT = ADDRESS + 2 };

#define DIGITS_MAX 16u

/* Appends a field and its comma. Returns the text's new length, which is @room or more if it doesn't fit. */
static size_t field_write(uint64_t field, char *text, size_t len, size_t room)
{
	return len < room ? len + (size_t)snprintf(text + len, room - len, "%" PRIx64 ",", field) : room;
}

size_t socket_record_write(const struct socket_record *record, char *text, size_t len, size_t room)
{
	const int family = record->server.sa.sa_family;
	uint64_t fields[FIELD_COUNT] = { 0 };
	struct in6_addr address;
	size_t end = len;

	memcpy(fields, record->numbers, sizeof(record->numbers));
	if (family == AF_INET || family == AF_INET6) {
		address = sockaddr_ip_in6(&record->server);
		memcpy(&fields[ADDRESS], &address, sizeof(address));
		fields[FAMILY] = family == AF_INET ? 4 : 6;
		fields[PORT] = sockaddr_ip_port(&record->server);
		fields[ADDRESS] = be64toh(fields[ADDRESS]);
		fields[ADDRESS + 1] = be64toh(fields[ADDRESS + 1]);
	}
	for (size_t i = 0; i < FIELD_COUNT; i++)
		end = field_write(fields[i], text, end, room);
	if (end + 1 < room) {
		memcpy(text + end, ";", sizeof(";"));
		return end + 1;
	}
	if (room > len)
		text[len] = '\0';
	return 0;
}

/* Reads a field as we write it, and moves @text behind its comma. */
static bool field_read(const char **text, uint64_t *out)
{
	const size_t len = strspn(*text, "0123456789abcdef");

	if (!len || len > DIGITS_MAX || (*text)[len] != ',')
		return false;
	*out = strtoull(*text, NULL, 16);
	*text += len + 1;
	return true;
}

const char *socket_record_read(struct socket_record *out, const char *text)
{
	uint64_t fields[FIELD_COUNT];
	struct in6_addr address;

	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (!field_read(&text, &fields[i]))
			return NULL;
	memset(out, 0, sizeof(*out));
	memcpy(out->numbers, fields, sizeof(out->numbers));
	fields[ADDRESS] = htobe64(fields[ADDRESS]);
	fields[ADDRESS + 1] = htobe64(fields[ADDRESS + 1]);
	memcpy(&address, &fields[ADDRESS], sizeof(address));
	if (fields[FAMILY] != 0 && (fields[PORT] > UINT16_MAX || (fields[FAMILY] != 4 && fields[FAMILY] != 6) ||
				    !sockaddr_ip_set(&out->server, fields[FAMILY] == 4 ? AF_INET : AF_INET6, &address, (uint16_t)fields[PORT])))
		return NULL;
	return *text == ';' ? text + 1 : NULL;
}
