/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * surgery.c - what middleboxes do to TCP segments, with checksums kept right
 *
 * Checksums are updated by the difference (RFC 1624), never computed anew, so that a segment that came in broken goes out
 * broken. Fragments and IPv6 extension headers pass untouched: the lab makes none.
 */
#include "config.h"

#include "linkem.h"

#include <netinet/in.h>
#include <string.h>

#define TCP_HEADER_MIN 20
#define TCP_FLAG_SYN 0x02
#define TCP_OPTION_EOL 0
#define TCP_OPTION_NOP 1
#define TCP_OPTION_MPTCP 30
#define MPTCP_JOIN 1 /* RFC 8684, in the upper half of the byte behind Kind and Length */

/* Where the parts of a segment are. */
struct segment {
	uint8_t *packet;
	size_t size;   /* of the packet */
	bool ipv6;
	uint8_t *tcp;
	size_t header; /* of TCP, with options */
	size_t payload;
};

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* The sum of 16-bit words, not folded; an odd last byte is padded. */
static uint32_t sum16(const uint8_t *at, size_t size)
{
	uint32_t sum = 0;

	for (; size > 1; at += 2, size -= 2)
		sum += get16(at);
	return size ? sum + (uint32_t)(at[0] << 8) : sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* RFC 1624, equation 3: HC' = ~(~HC + ~m + m'), for words whose sum was `before` and is `after`. */
static void checksum_update(uint8_t *checksum, uint32_t before, uint32_t after)
{
	uint32_t sum = (uint16_t)~get16(checksum);

	sum += (uint16_t)~fold(before);
	sum += fold(after);
	put16(checksum, (uint16_t)~fold(sum));
}

static bool segment_parse(uint8_t *packet, size_t size, struct segment *segment)
{
	size_t ip, total;
	bool ipv6 = size >= 40 && packet[0] >> 4 == 6;

	if (ipv6) {
		ip = 40;
		total = ip + get16(packet + 4);
		if (packet[6] != IPPROTO_TCP)
			return false;
	} else {
		if (size < 20 || packet[0] >> 4 != 4)
			return false;
		ip = (size_t)(packet[0] & 15) * 4;
		total = get16(packet + 2);
		if (ip < 20 || packet[9] != IPPROTO_TCP || (get16(packet + 6) & 0x3fff) != 0)
			return false;
	}
	if (total > size || total < ip + TCP_HEADER_MIN)
		return false;
	*segment = (struct segment){ .packet = packet, .size = total, .ipv6 = ipv6, .tcp = packet + ip };
	segment->header = (size_t)(segment->tcp[12] >> 4) * 4;
	if (segment->header < TCP_HEADER_MIN || ip + segment->header > total)
		return false;
	segment->payload = total - ip - segment->header;
	return true;
}

bool surgery_strip_mptcp(uint8_t *packet, size_t size)
{
	struct segment segment;
	uint32_t before;
	size_t at = TCP_HEADER_MIN;
	bool found = false;

	if (!segment_parse(packet, size, &segment))
		return false;
	before = sum16(segment.tcp, segment.header);
	while (at < segment.header && segment.tcp[at] != TCP_OPTION_EOL) {
		uint8_t *option = segment.tcp + at;

		if (option[0] == TCP_OPTION_NOP) {
			at++;
			continue;
		}
		if (at + 1 >= segment.header || option[1] < 2 || at + option[1] > segment.header)
			break;
		at += option[1];
		if (option[0] == TCP_OPTION_MPTCP) {
			found = true;
			memset(option, TCP_OPTION_NOP, option[1]);
		}
	}
	if (found)
		checksum_update(segment.tcp + 16, before, sum16(segment.tcp, segment.header));
	return found;
}

bool surgery_is_syn(uint8_t *packet, size_t size)
{
	struct segment segment;

	return segment_parse(packet, size, &segment) && (segment.tcp[13] & TCP_FLAG_SYN);
}

bool surgery_look(uint8_t *packet, size_t size, struct surgery_look *look)
{
	struct segment segment;
	size_t at = TCP_HEADER_MIN;

	if (!segment_parse(packet, size, &segment))
		return false;
	*look = (struct surgery_look){ .syn = segment.tcp[13] & TCP_FLAG_SYN, .port = get16(segment.tcp + 2) };
	while (at + 1 < segment.header && segment.tcp[at] != TCP_OPTION_EOL) {
		look->mptcp |= segment.tcp[at] == TCP_OPTION_MPTCP;
		look->join |= segment.tcp[at] == TCP_OPTION_MPTCP && at + 2 < segment.header && segment.tcp[at + 2] >> 4 == MPTCP_JOIN;
		at += segment.tcp[at] == TCP_OPTION_NOP ? 1 : segment.tcp[at + 1] < 2 ? segment.header : segment.tcp[at + 1];
	}
	return true;
}

size_t surgery_strip_syn_data(uint8_t *packet, size_t size)
{
	struct segment segment;
	size_t tcp_size;
	uint32_t removed;

	if (!segment_parse(packet, size, &segment) || !(segment.tcp[13] & TCP_FLAG_SYN) || segment.payload == 0)
		return size;
	/* the payload and the difference in the pseudo header's length go; the payload starts at an even offset */
	tcp_size = segment.header + segment.payload;
	removed = sum16(segment.tcp + segment.header, segment.payload) + (uint32_t)tcp_size;
	checksum_update(segment.tcp + 16, removed, (uint32_t)segment.header);
	if (segment.ipv6) {
		put16(packet + 4, (uint16_t)segment.header);
	} else {
		put16(packet + 2, (uint16_t)(segment.size - segment.payload));
		checksum_update(packet + 10, (uint32_t)segment.size, (uint32_t)(segment.size - segment.payload));
	}
	return segment.size - segment.payload;
}
