/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_packet.h - reads and changes an IP packet with a TCP SYN, and computes how the network refuses it (no I/O) */
#ifndef HOLD_SYN_PACKET_H
#define HOLD_SYN_PACKET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ----- reads an IP packet with a TCP SYN, and changes it (no I/O) ----- */

enum syn_packet_status {
	SYN_PACKET_OK,
	SYN_PACKET_CUT,          /* shorter than its headers say */
	SYN_PACKET_BAD_HEADER,   /* impossible lengths, too many extension headers, or a routing header with segments left */
	SYN_PACKET_FRAGMENT,     /* part of a packet */
	SYN_PACKET_NOT_SYN,      /* not TCP, or not the first segment of a connection */
	SYN_PACKET_BAD_CHECKSUM, /* of the IPv4 header, or TCP's */
	SYN_PACKET_STATUS_COUNT
};

/* The addresses of a connection: also the key in tables, so without padding. */
struct syn_packet_flow {
	struct in6_addr source, destination; /* IPv4 as v4-mapped */
	uint16_t source_port, destination_port; /* host byte order */
};

/* A SYN; its pointers go into the packet that was parsed. */
struct syn_packet {
	struct syn_packet_flow flow;
	uint32_t isn;    /* initial sequence number, host byte order */
	uint16_t window; /* bytes, not scaled (RFC 7323 2.2) */
	uint16_t urgent; /* the urgent pointer, which means nothing without the URG flag: see syn_packet_mark() */
	uint8_t scale;   /* the exponent of later segments' windows, at most 14; 0 without the option */
	bool mp_capable, mp_join; /* RFC 8684 3.1 and 3.2 */
	const uint8_t *payload;
	size_t payload_len; /* bytes */
	size_t tcp;         /* bytes of the packet in front of the TCP header */
	size_t tcp_len;     /* bytes of the TCP header, options included */
};

/*
 * syn_packet_parse() - read a packet
 * @packet, @len: from the IP header on; bytes beyond the length in the IP header are ignored
 * @syn: filled on SYN_PACKET_OK
 *
 * A packet is OK only if TCP itself would accept it. The functions below keep a right checksum right, and a wrong one wrong.
 */
enum syn_packet_status syn_packet_parse(const uint8_t *packet, size_t len, struct syn_packet *syn);

/* Returns the name of a status for logs. */
const char *syn_packet_status_name(enum syn_packet_status status);

/*
 * syn_packet_shift_window() - write the window as segments after the SYN would
 * The window in a SYN is in bytes; scaling begins with the segments after it (RFC 7323 2.2). If a SYN with MP_CAPABLE
 * carries data, Linux (6.18) takes its window for a scaled one: with a scale of 10, 64240 bytes become 65 MB. The
 * server's side then overruns the client's buffer on the faster path, and a download over two paths is slower than
 * over one. The third ACK brings the right window. The result is at least 1, unless the window is 0.
 * @packet: the bytes from which @syn was read; the checksum stays right
 */
void syn_packet_shift_window(uint8_t *packet, struct syn_packet *syn);

/*
 * syn_packet_mark() - keep the SYN's timestamps
 * The rules of hold_rules.c remove them from requests without this mark: then a client sees in the SYN+ACK that the
 * server has not been reached (doc/private-tlvs.md). The mark is in the urgent pointer, which means nothing without
 * the URG flag (RFC 9293 3.8.5). It isn't a secret: a client that sets it deceives only itself.
 * @packet: the bytes from which @syn was read; the checksum stays right
 */
#define SYN_PACKET_MARK 0x6c63
void syn_packet_mark(uint8_t *packet, const struct syn_packet *syn);

/*
 * syn_packet_refuse() - make the rules of hold_rules.c refuse the SYN
 * This writes another mark in the same place. A client that sets it by itself is refused.
 * @native: the code of an ICMP message, or NATIVE_RESET (below)
 */
#define SYN_PACKET_REFUSED 0x6d00 /* and @native */
void syn_packet_refuse(uint8_t *packet, const struct syn_packet *syn, uint8_t native);

/*
 * syn_packet_remove_mp_capable() - make the connection plain TCP
 * MP_CAPABLE becomes NOPs, if there is one.
 * @packet: the bytes from which @syn was read; the checksum stays right
 */
void syn_packet_remove_mp_capable(uint8_t *packet, struct syn_packet *syn);

/* ----- how the network refuses a SYN: by a reset, or an ICMP message (no I/O) ----- */

/*
 * How we refuse a SYN whose client can't take a response off its stream (doc/private-tlvs.md): the code of an
 * ICMP message Destination Unreachable, of the client's family, or one of these.
 */
#define NATIVE_CODES 16    /* the codes of both families are smaller */
#define NATIVE_RESET 0x80  /* by a reset */
#define NATIVE_NONE 0xff   /* it isn't refused */

/*
 * native_unreachable() - return the refusal for a code of Destination Unreachable that concerns the server
 * @server_v4, @client_v4: the families. The code is translated from one to the other, so that applications get the same errno.
 */
uint8_t native_unreachable(uint8_t code, bool server_v4, bool client_v4);

/* Returns the refusal for a server that doesn't answer: host unreachable. */
uint8_t native_no_host(bool client_v4);

/* Returns the refusal by this host itself: administratively prohibited. */
uint8_t native_prohibited(bool client_v4);

#endif
