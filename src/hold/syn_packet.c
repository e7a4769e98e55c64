/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syn_packet.c - reads and changes an IP packet with a TCP SYN, and computes how the network refuses it (no I/O)
 *
 * Anybody may have sent the packet. A cursor that can't leave the packet reads it, and we compare each length in it with
 * the available bytes. We don't check further for faults for which the kernel drops the packet a step later. Packets that
 * the kernel might understand differently (routing headers, tunnels, options of impossible length) pass unread, so that no
 * connection is ever made for a SYN that means something else. Unknown options are skipped.
 *
 * Changes keep the lengths: an option becomes NOPs, and the checksum is updated by the difference (RFC 1624), so that
 * it stays right only if it was.
 *
 * An application's errno comes from the ICMP code (Linux: icmp_err_convert[], tab_unreach[]). If client and server
 * are of one family, we hand the code on. Between the families it becomes the code that gives the same errno, or the
 * nearest.
 */
#include "config.h"

#include "hold/syn_packet.h"

#include "common/tcp.h"

#include <assert.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <string.h>

/* RFC 7323 2.3: larger ones count as 14. */
#define SCALE_MAX 14

/* RFC 8200 (4.1) has uses for no more extension headers than this. */
#define EXTENSION_HEADERS_MAX 8

/* Offsets in the TCP header (RFC 9293 3.1). */
#define TCP_WINDOW 14
#define TCP_CHECKSUM 16
#define TCP_URGENT 18
#define TCP_OPTIONS 20

/* RFC 8684 3.1 and 3.2: the subtype is in the upper half of the first byte of the value. */
#define MPTCP_SUBTYPE_CAPABLE 0
#define MPTCP_SUBTYPE_JOIN 1

static const char *const status_names[] = {
	[SYN_PACKET_OK] = "OK",
	[SYN_PACKET_CUT] = "shorter than it says",
	[SYN_PACKET_BAD_HEADER] = "unusual header",
	[SYN_PACKET_FRAGMENT] = "fragment",
	[SYN_PACKET_NOT_SYN] = "not a SYN",
	[SYN_PACKET_BAD_CHECKSUM] = "wrong checksum",
};
static_assert(sizeof(status_names) / sizeof(status_names[0]) == SYN_PACKET_STATUS_COUNT,
	      "a name for each status");

const char *syn_packet_status_name(enum syn_packet_status status)
{
	return (size_t)status < SYN_PACKET_STATUS_COUNT ? status_names[status] : "unknown";
}

/* The bytes left to read. */
struct cursor {
	const uint8_t *pos;
	size_t len; /* bytes */
};

/* Takes bytes off the front. Returns NULL, and takes nothing, if there are fewer. */
static const uint8_t *take(struct cursor *cursor, size_t len)
{
	const uint8_t *taken = cursor->pos;

	if (cursor->len < len)
		return NULL;
	cursor->pos += len;
	cursor->len -= len;
	return taken;
}

static uint16_t be16(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static uint32_t be32(const uint8_t *bytes)
{
	return (uint32_t)be16(bytes) << 16 | be16(bytes + 2);
}

/* Returns the sum of RFC 1071 over @len bytes, added to @sum. */
static uint32_t sum_add(uint32_t sum, const uint8_t *bytes, size_t len)
{
	for (; len > 1; bytes += 2, len -= 2)
		sum += be16(bytes);
	if (len)
		sum += (uint32_t)bytes[0] << 8;
	return sum;
}

static uint16_t sum_fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Reads an IPv4 header (RFC 791). Then the bytes left at @rest are TCP. */
static enum syn_packet_status parse_v4(struct cursor *rest, struct syn_packet *syn)
{
	struct cursor whole = *rest;
	const uint8_t *header = take(rest, 20);
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	size_t header_len, total;

	if (!header)
		return SYN_PACKET_CUT;
	header_len = (header[0] & 0x0fU) * 4;
	total = be16(header + 2);
	if (header_len < 20 || total < header_len)
		return SYN_PACKET_BAD_HEADER;
	if (total > whole.len)
		return SYN_PACKET_CUT;
	if (sum_fold(sum_add(0, header, header_len)) != 0xffff)
		return SYN_PACKET_BAD_CHECKSUM;
	if (be16(header + 6) & 0x3fff) /* More Fragments, or an offset */
		return SYN_PACKET_FRAGMENT;
	if (header[9] != IPPROTO_TCP)
		return SYN_PACKET_NOT_SYN;
	memcpy(syn->flow.source.s6_addr, mapped, sizeof(mapped));
	memcpy(syn->flow.source.s6_addr + 12, header + 12, 4);
	memcpy(syn->flow.destination.s6_addr, mapped, sizeof(mapped));
	memcpy(syn->flow.destination.s6_addr + 12, header + 16, 4);
	*rest = (struct cursor){ whole.pos + header_len, total - header_len };
	return SYN_PACKET_OK;
}

/* Steps over an extension header of type @next, and sets @next to the type of the following one. */
static enum syn_packet_status skip_extension(struct cursor *rest, uint8_t *next)
{
	const uint8_t *header;
	uint8_t type = *next;

	if (type == IPPROTO_FRAGMENT)
		return SYN_PACKET_FRAGMENT;
	if (type != IPPROTO_HOPOPTS && type != IPPROTO_DSTOPTS && type != IPPROTO_ROUTING)
		return SYN_PACKET_NOT_SYN;
	header = take(rest, 8);
	if (!header || !take(rest, header[1] * 8U))
		return SYN_PACKET_CUT;
	/* With segments left, the packet hasn't reached its destination. */
	if (type == IPPROTO_ROUTING && header[3] != 0)
		return SYN_PACKET_BAD_HEADER;
	*next = header[0];
	return SYN_PACKET_OK;
}

/* Reads an IPv6 header (RFC 8200) and its extensions. Then the bytes left at @rest are TCP. */
static enum syn_packet_status parse_v6(struct cursor *rest, struct syn_packet *syn)
{
	const uint8_t *header = take(rest, 40);
	enum syn_packet_status status = SYN_PACKET_OK;
	uint8_t next;

	if (!header)
		return SYN_PACKET_CUT;
	if (be16(header + 4) > rest->len)
		return SYN_PACKET_CUT;
	rest->len = be16(header + 4);
	memcpy(&syn->flow.source, header + 8, sizeof(syn->flow.source));
	memcpy(&syn->flow.destination, header + 24, sizeof(syn->flow.destination));
	next = header[6];
	for (int i = 0; status == SYN_PACKET_OK && next != IPPROTO_TCP; i++)
		status = i == EXTENSION_HEADERS_MAX ? SYN_PACKET_BAD_HEADER :
						      skip_extension(rest, &next);
	return status;
}

/* TCP's checksum covers addresses and length as well (RFC 9293 3.1, RFC 8200 8.1). */
static bool checksum_is_right(const struct syn_packet_flow *flow, const struct cursor *segment)
{
	uint32_t sum = IPPROTO_TCP + (uint32_t)segment->len;

	/* The prefix of v4-mapped addresses adds 0xffff, which counts as zero in one's complement. */
	sum = sum_add(sum, flow->source.s6_addr, sizeof(flow->source));
	sum = sum_add(sum, flow->destination.s6_addr, sizeof(flow->destination));
	return sum_fold(sum_add(sum, segment->pos, segment->len)) == 0xffff;
}

/* Reads an option, whose @value has @len bytes. */
static void read_option(struct syn_packet *syn, uint8_t kind, const uint8_t *value, size_t len)
{
	switch (kind) {
	case TCP_KIND_WINDOW_SCALE:
		if (len == 1)
			syn->scale = value[0] < SCALE_MAX ? value[0] : SCALE_MAX;
		break;
	case TCP_KIND_MPTCP:
		if (len)
			syn->mp_capable |= value[0] >> 4 == MPTCP_SUBTYPE_CAPABLE;
		if (len)
			syn->mp_join |= value[0] >> 4 == MPTCP_SUBTYPE_JOIN;
		break;
	default:
		break;
	}
}

/*
 * Takes the next option off the list. Returns its bytes, kind and length included, with @len set; NULL at the end.
 * @valid: set to false if the option is impossible
 */
static const uint8_t *next_option(struct cursor *list, size_t *len, bool *valid)
{
	const uint8_t *option;

	while (list->len && *list->pos == TCP_KIND_NOP)
		take(list, 1);
	if (!list->len || *list->pos == TCP_KIND_EOL)
		return NULL;
	*len = list->len > 1 ? list->pos[1] : 0;
	option = *len < 2 ? NULL : take(list, *len);
	*valid = option != NULL;
	return option;
}

static struct cursor option_list(const uint8_t *packet, const struct syn_packet *syn)
{
	return (struct cursor){ packet + syn->tcp + TCP_OPTIONS, syn->tcp_len - TCP_OPTIONS };
}

static enum syn_packet_status parse_tcp(const uint8_t *packet, struct cursor segment,
					struct syn_packet *syn)
{
	struct cursor rest = segment, list;
	const uint8_t *header = take(&rest, TCP_OPTIONS), *option;
	bool valid = true;
	size_t len;

	if (!header)
		return SYN_PACKET_CUT;
	if ((header[13] & (TH_FIN | TH_SYN | TH_RST | TH_ACK)) != TH_SYN)
		return SYN_PACKET_NOT_SYN;
	syn->tcp = (size_t)(segment.pos - packet);
	syn->tcp_len = (header[12] >> 4) * 4U;
	if (syn->tcp_len < TCP_OPTIONS)
		return SYN_PACKET_BAD_HEADER;
	if (!take(&rest, syn->tcp_len - TCP_OPTIONS))
		return SYN_PACKET_CUT;
	if (!checksum_is_right(&syn->flow, &segment))
		return SYN_PACKET_BAD_CHECKSUM;
	syn->flow.source_port = be16(header);
	syn->flow.destination_port = be16(header + 2);
	syn->isn = be32(header + 4);
	syn->window = be16(header + TCP_WINDOW);
	syn->urgent = be16(header + TCP_URGENT);
	syn->payload = rest.pos;
	syn->payload_len = rest.len;
	list = option_list(packet, syn);
	while ((option = next_option(&list, &len, &valid)))
		read_option(syn, option[0], option + 2, len - 2);
	return valid ? SYN_PACKET_OK : SYN_PACKET_BAD_HEADER;
}

enum syn_packet_status syn_packet_parse(const uint8_t *packet, size_t len, struct syn_packet *syn)
{
	struct cursor rest = { packet, len };
	enum syn_packet_status status = SYN_PACKET_BAD_HEADER;

	memset(syn, 0, sizeof(*syn));
	if (!len)
		return SYN_PACKET_CUT;
	if (packet[0] >> 4 == 4)
		status = parse_v4(&rest, syn);
	else if (packet[0] >> 4 == 6)
		status = parse_v6(&rest, syn);
	return status == SYN_PACKET_OK ? parse_tcp(packet, rest, syn) : status;
}

/* Changes a byte of the TCP header, and updates the checksum (RFC 1624, equation 3). */
static void put_byte(uint8_t *tcp, size_t offset, uint8_t value)
{
	size_t word = offset & ~(size_t)1;
	uint16_t before = be16(tcp + word), sum;

	tcp[offset] = value;
	sum = sum_fold((uint16_t)~be16(tcp + TCP_CHECKSUM) + (uint32_t)(uint16_t)~before +
		       be16(tcp + word));
	tcp[TCP_CHECKSUM] = (uint8_t)(~sum >> 8);
	tcp[TCP_CHECKSUM + 1] = (uint8_t)~sum;
}

static void put_word(uint8_t *tcp, size_t offset, uint16_t value)
{
	put_byte(tcp, offset, (uint8_t)(value >> 8));
	put_byte(tcp, offset + 1, (uint8_t)value);
}

void syn_packet_shift_window(uint8_t *packet, struct syn_packet *syn)
{
	uint16_t window = (uint16_t)(syn->window >> syn->scale);

	/* A window of 0 stays 0: the sender means it. */
	if (!window && syn->window)
		window = 1;
	put_word(packet + syn->tcp, TCP_WINDOW, window);
	syn->window = window;
}

void syn_packet_mark(uint8_t *packet, const struct syn_packet *syn)
{
	put_word(packet + syn->tcp, TCP_URGENT, SYN_PACKET_MARK);
}

void syn_packet_refuse(uint8_t *packet, const struct syn_packet *syn, uint8_t native)
{
	put_word(packet + syn->tcp, TCP_URGENT, SYN_PACKET_REFUSED | native);
}

void syn_packet_remove_mp_capable(uint8_t *packet, struct syn_packet *syn)
{
	struct cursor list = option_list(packet, syn);
	const uint8_t *option;
	bool valid = true;
	size_t len;

	while ((option = next_option(&list, &len, &valid))) {
		size_t offset = (size_t)(option - packet) - syn->tcp;

		if (option[0] != TCP_KIND_MPTCP || len < 3 ||
		    option[2] >> 4 != MPTCP_SUBTYPE_CAPABLE)
			continue;
		for (size_t i = 0; i < len; i++)
			put_byte(packet + syn->tcp, offset + i, TCP_KIND_NOP);
	}
	syn->mp_capable = false;
}

/* ----- how the network refuses a SYN ----- */

uint8_t native_prohibited(bool client_v4)
{
	return client_v4 ? ICMP_PKT_FILTERED : ICMP6_DST_UNREACH_ADMIN;
}

uint8_t native_no_host(bool client_v4)
{
	return client_v4 ? ICMP_HOST_UNREACH : ICMP6_DST_UNREACH_ADDR;
}

/* Returns the ICMPv6 code for a code of ICMP. */
static uint8_t v6_code(uint8_t v4)
{
	switch (v4) {
	case ICMP_NET_UNREACH:
	case ICMP_NET_UNKNOWN:
	case ICMP_NET_UNR_TOS:
		return ICMP6_DST_UNREACH_NOROUTE;
	case ICMP_PORT_UNREACH:
		return ICMP6_DST_UNREACH_NOPORT;
	case ICMP_NET_ANO:
	case ICMP_HOST_ANO:
	case ICMP_PKT_FILTERED:
		return ICMP6_DST_UNREACH_ADMIN;
	default:
		return ICMP6_DST_UNREACH_ADDR;
	}
}

/* Returns the ICMP code for a code of ICMPv6. */
static uint8_t v4_code(uint8_t v6)
{
	switch (v6) {
	case ICMP6_DST_UNREACH_NOROUTE:
		return ICMP_NET_UNREACH;
	case ICMP6_DST_UNREACH_NOPORT:
		return ICMP_PORT_UNREACH;
	case ICMP6_DST_UNREACH_BEYONDSCOPE:
	case ICMP6_DST_UNREACH_ADDR:
		return ICMP_HOST_UNREACH;
	default: /* prohibited, or by a policy (RFC 4443 3.1) */
		return ICMP_PKT_FILTERED;
	}
}

uint8_t native_unreachable(uint8_t code, bool server_v4, bool client_v4)
{
	if (server_v4 != client_v4)
		code = client_v4 ? v4_code(code) : v6_code(code);
	/* A message that the packet was too large would make the client send a smaller one. */
	if (code >= NATIVE_CODES || (client_v4 && code == ICMP_FRAG_NEEDED))
		return native_no_host(client_v4);
	return code;
}
