/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_build.c - packets with TCP SYNs, for tests; shares no code with what reads them */
#include "syn_build.h"

#include <string.h>

/* The Internet checksum (RFC 1071): the one's complement of the one's complement sum. */
static uint16_t checksum(const uint8_t *bytes, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++) {
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
		if (sum > 0xffff)
			sum -= 0xffff;
	}
	return (uint16_t)~sum;
}

static void put(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* Returns the offset of the TCP header, or 0 if it can't be found. */
static size_t find_tcp(const uint8_t *packet, size_t len)
{
	size_t at = 40;
	uint8_t next = packet[6];

	if (packet[0] >> 4 == 4)
		return (packet[0] & 15u) * 4u;
	while (next != 6 && at + 8 <= len) {
		next = packet[at];
		at += 8 + packet[at + 1] * 8u;
	}
	return next == 6 ? at : 0;
}

void syn_build_checksums(uint8_t *packet, size_t len)
{
	uint8_t pseudo[2048] = { 0 };
	bool v4 = len >= 20 && packet[0] >> 4 == 4;
	size_t end, tcp, addresses = v4 ? 8 : 32;

	if (len < 20 || (!v4 && len < 40))
		return;
	tcp = find_tcp(packet, len);
	end = v4 ? packet[2] * 256u + packet[3] : 40 + packet[4] * 256u + packet[5];
	if (v4 && tcp >= 20 && tcp <= len) {
		put(packet + 10, 0);
		put(packet + 10, checksum(packet, tcp));
	}
	if (!tcp || end > len || tcp + 20 > end || end - tcp > sizeof(pseudo) - 64)
		return;
	memcpy(pseudo, packet + (v4 ? 12 : 8), addresses);
	put(pseudo + addresses, 6);
	put(pseudo + addresses + 2, (uint16_t)(end - tcp));
	put(packet + tcp + 16, 0);
	memcpy(pseudo + addresses + 4, packet + tcp, end - tcp);
	put(packet + tcp + 16, checksum(pseudo, addresses + 4 + end - tcp));
}
