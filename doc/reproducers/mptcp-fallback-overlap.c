/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mptcp-fallback-overlap.c - does an MPTCP socket that fell back to TCP lose bytes of a retransmission?
 *
 *   cc -Wall -o mptcp-fallback-overlap mptcp-fallback-overlap.c
 *   sudo unshare --net ./mptcp-fallback-overlap
 *
 * The program is both sides of a connection. One is the kernel's: a socket that connects, or accepts, by way of a
 * TUN device. The other is made here, segment by segment, so that every byte on the wire is known and nothing
 * depends on time: a peer without Multipath TCP, or one whose options are lost behind the handshake. It sends two
 * segments, of which the second begins in what the first has delivered already (RFC 9293 3.10.7.4 has the receiver
 * take the new part of it). A peer that misses an acknowledgement, and whose second segment was lost, sends
 * just that.
 *
 * A line for each case, "ok" or "WRONG", with what the application has read. Exits with 0 if all are ok, with 1
 * if one isn't, with 2 if it can't be tried here (no root, no TUN, no MPTCP).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

#define KERNEL_ADDRESS 0xc6336401u /* 198.51.100.1, of the TUN device */
#define PEER_ADDRESS 0xc6336402u   /* 198.51.100.2, of nobody: it is us */
#define PORT 4321
#define PEER_ISN 1000u
#define STREAM_MAX 4096
#define FIN 0x01
#define SYN 0x02
#define PSH 0x08
#define ACK 0x10
#define IP_LEN 20
#define TCP_LEN 20
#define OPTIONS_MAX 40

/* RFC 8684 3.1: MP_CAPABLE, version 1, HMAC-SHA256. */
#define MPTCP_KIND 30
#define MPTCP_VERSION 1
#define MPTCP_FLAG_H 1
#define KEY_LEN 8

/* Fails with the errno, as what can't be tried. */
static void need(bool works, const char *what)
{
	if (works)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(2);
}

/* ----- the peer: raw IPv4 packets ----- */

struct peer {
	int tun;
	uint16_t kernel_port, own_port;
	uint32_t next; /* what the kernel's side has sent, plus one: our acknowledgements */
	uint8_t key[KEY_LEN]; /* the kernel's, from its SYN+ACK */
};

/* Options of a segment; none in most. */
struct options {
	uint8_t bytes[OPTIONS_MAX];
	size_t len; /* a multiple of 4 */
};

static uint32_t sum16(const uint8_t *bytes, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	return sum;
}

static uint16_t checksum(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value >> 16);
	put16(at + 2, value);
}

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* @seq counts from the first byte of the stream; @options may be NULL. */
static void send_segment(const struct peer *peer, uint8_t flags, int seq, const struct options *options,
			 const uint8_t *data, size_t len)
{
	uint8_t packet[IP_LEN + TCP_LEN + OPTIONS_MAX + STREAM_MAX] = { 0x45 };
	uint8_t *tcp = packet + IP_LEN;
	size_t header_len = TCP_LEN + (options ? options->len : 0), tcp_len = header_len + len;

	put16(packet + 2, (uint32_t)(IP_LEN + tcp_len));
	packet[8] = 64;
	packet[9] = IPPROTO_TCP;
	put32(packet + 12, PEER_ADDRESS);
	put32(packet + 16, KERNEL_ADDRESS);
	put16(packet + 10, checksum(sum16(packet, IP_LEN)));
	put16(tcp, peer->own_port);
	put16(tcp + 2, peer->kernel_port);
	put32(tcp + 4, PEER_ISN + 1 + (uint32_t)seq);
	put32(tcp + 8, flags & ACK ? peer->next : 0);
	tcp[12] = (uint8_t)(header_len / 4 << 4);
	tcp[13] = flags;
	put16(tcp + 14, 65535);
	if (options)
		memcpy(tcp + TCP_LEN, options->bytes, options->len);
	if (len)
		memcpy(tcp + header_len, data, len);
	put16(tcp + 16, checksum(sum16(packet + 12, 8) + IPPROTO_TCP + (uint32_t)tcp_len + sum16(tcp, tcp_len)));
	need(write(peer->tun, packet, IP_LEN + tcp_len) > 0, "write to the TUN device");
}

/* MP_CAPABLE as a SYN has it (no key), a SYN+ACK (one), or a third ACK (both). */
static struct options mp_capable(const uint8_t *own_key, const uint8_t *other_key)
{
	struct options options = { .bytes = { MPTCP_KIND, 4, MPTCP_VERSION, MPTCP_FLAG_H } };

	if (own_key)
		memcpy(options.bytes + 4, own_key, KEY_LEN);
	if (other_key)
		memcpy(options.bytes + 4 + KEY_LEN, other_key, KEY_LEN);
	options.len = options.bytes[1] = (uint8_t)(4 + KEY_LEN * (!!own_key + !!other_key));
	return options;
}

/* Takes the kernel's key out of the options of its SYN+ACK. */
static void read_key(struct peer *peer, const uint8_t *option, const uint8_t *end)
{
	while (option + 1 < end && option[0]) {
		if (option[0] == MPTCP_KIND && option[1] == 4 + KEY_LEN && option + option[1] <= end)
			memcpy(peer->key, option + 4, KEY_LEN);
		option += option[0] == 1 || option[1] < 2 ? 1 : option[1];
	}
}

/* Waits for a segment of the kernel's with these flags, and notes ports and sequence number. Returns what it acknowledges. */
static uint32_t await_segment(struct peer *peer, uint8_t flags, uint32_t at_least)
{
	uint8_t packet[2048];
	struct pollfd wait = { .fd = peer->tun, .events = POLLIN };

	while (poll(&wait, 1, 5000) > 0) {
		ssize_t len = read(peer->tun, packet, sizeof(packet));
		const uint8_t *tcp = packet + IP_LEN;
		uint32_t acknowledged;

		if (len < IP_LEN + TCP_LEN || packet[0] != 0x45 || packet[9] != IPPROTO_TCP)
			continue;
		acknowledged = get32(tcp + 8) - PEER_ISN - 1;
		if ((tcp[13] & flags) != flags || (!(tcp[13] & SYN) && (int32_t)(acknowledged - at_least) < 0))
			continue;
		peer->kernel_port = (uint16_t)(tcp[0] << 8 | tcp[1]);
		if (tcp[13] & SYN) {
			peer->next = get32(tcp + 4) + 1;
			read_key(peer, tcp + TCP_LEN, packet + len);
		}
		return acknowledged;
	}
	fprintf(stderr, "the kernel says nothing\n");
	exit(2);
}

/* ----- the cases ----- */

struct segment {
	int from, to; /* bytes of the stream, the second not included; FIN behind it if to is negative: -to */
};

struct scenario {
	const char *name;
	struct segment segments[4]; /* until one that is empty */
	bool reads_between; /* the application reads what there is after each segment */
};

static const struct scenario scenarios[] = {
	{ "in order", { { 0, 60 }, { 60, 1060 } }, true },
	{ "all of it again", { { 0, 60 }, { 0, 60 }, { 60, 1060 } }, true },
	{ "60 of 1060 again", { { 0, 60 }, { 0, 1060 } }, true },
	{ "60 of 1060 again, read at the end", { { 0, 60 }, { 0, 1060 } }, false },
	{ "60 of 1060 again, then 1000 more", { { 0, 60 }, { 0, 1060 }, { 1060, 2060 } }, true },
	{ "500 of 600 again", { { 0, 500 }, { 0, 600 } }, true },
	{ "60 of 1060 again, with the end of the stream", { { 0, 60 }, { 0, -1060 } }, true },
	{ "a hole that is filled by more than it is", { { 0, 60 }, { 160, 260 }, { 0, 200 } }, true },
};

/* Who makes the connection that falls back, and by which protocol. */
struct side {
	const char *name;
	int protocol;
	bool accepts;
	bool capable; /* the peer has MP_CAPABLE in its handshake, and not one MPTCP option behind it */
};

static const struct side sides[] = {
	{ "TCP, connected", IPPROTO_TCP, false, false },
	{ "TCP, accepted", IPPROTO_TCP, true, false },
	{ "MPTCP, connected to a peer without", IPPROTO_MPTCP, false, false },
	{ "MPTCP, accepted from a peer without", IPPROTO_MPTCP, true, false },
	{ "MPTCP, connected, options lost later", IPPROTO_MPTCP, false, true },
	{ "MPTCP, accepted, options lost later", IPPROTO_MPTCP, true, true },
};

static const uint8_t peer_key[KEY_LEN] = { 1, 2, 3, 4, 5, 6, 7, 8 };

static uint8_t stream[STREAM_MAX];

static struct sockaddr_in address_of(uint32_t address, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	in.sin_addr.s_addr = htonl(address);
	return in;
}

static int connect_to(struct peer *peer, const struct side *side)
{
	struct sockaddr_in to = address_of(PEER_ADDRESS, peer->own_port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, side->protocol);
	struct pollfd wait = { .fd = fd, .events = POLLOUT };
	struct options options = mp_capable(peer_key, NULL);

	need(fd >= 0, "socket");
	need(connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno == EINPROGRESS, "connect");
	await_segment(peer, SYN, 0);
	send_segment(peer, SYN | ACK, -1, side->capable ? &options : NULL, NULL, 0);
	need(poll(&wait, 1, 5000) == 1, "the handshake");
	return fd;
}

static int accept_from(struct peer *peer, const struct side *side)
{
	struct sockaddr_in own = address_of(KERNEL_ADDRESS, PORT);
	int listener = socket(AF_INET, SOCK_STREAM, side->protocol), fd, one = 1;
	struct pollfd wait = { .fd = listener, .events = POLLIN };
	struct options options = mp_capable(NULL, NULL);

	need(listener >= 0, "socket");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	need(bind(listener, (struct sockaddr *)&own, sizeof(own)) == 0 && listen(listener, 1) == 0, "listen");
	peer->kernel_port = PORT;
	send_segment(peer, SYN, -1, side->capable ? &options : NULL, NULL, 0);
	await_segment(peer, SYN | ACK, 0);
	options = mp_capable(peer_key, peer->key);
	send_segment(peer, ACK, 0, side->capable ? &options : NULL, NULL, 0);
	need(poll(&wait, 1, 5000) == 1, "the handshake");
	fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	need(fd >= 0, "accept");
	close(listener);
	return fd;
}

static size_t read_all(int fd, uint8_t *got, size_t have)
{
	ssize_t n;

	while (have < STREAM_MAX && (n = recv(fd, got + have, STREAM_MAX - have, 0)) > 0)
		have += (size_t)n;
	return have;
}

/* Says which bytes are missing, taking the first difference for a gap. */
static void explain(const uint8_t *got, size_t have, size_t all)
{
	size_t same = 0, gap;

	while (same < have && got[same] == stream[same])
		same++;
	for (gap = 1; same + gap < all && have > same; gap++)
		if (memcmp(got + same, stream + same + gap, have - same) == 0)
			break;
	if (have > same)
		printf(": right up to byte %zu, then %zu bytes are missing", same, gap);
}

static bool run(int tun, const struct scenario *scenario, const struct side *side)
{
	static uint16_t port = 20000; /* another one each time: no connection is in another's way */
	struct peer peer = { .tun = tun, .own_port = port++ };
	int fd = side->accepts ? accept_from(&peer, side) : connect_to(&peer, side);
	uint8_t got[STREAM_MAX];
	size_t have = 0, all = 0;
	bool right;

	for (const struct segment *segment = scenario->segments; segment->to; segment++) {
		size_t to = (size_t)abs(segment->to);
		bool fin = segment->to < 0;

		send_segment(&peer, (uint8_t)(ACK | PSH | (fin ? FIN : 0)), segment->from, NULL,
			     stream + segment->from, to - (size_t)segment->from);
		/* Nothing beyond a hole is acknowledged; here each hole is filled by the next segment. */
		all = to > all ? to : all;
		if (segment->from <= (int)all && scenario->reads_between)
			have = read_all(fd, got, have);
	}
	await_segment(&peer, ACK, (uint32_t)all);
	have = read_all(fd, got, have);
	right = have == all && memcmp(got, stream, all) == 0;
	printf("%-5s %s; %s: %zu of %zu bytes read", right ? "ok" : "WRONG", side->name, scenario->name, have, all);
	if (!right)
		explain(got, have, all);
	printf("\n");
	close(fd);
	return right;
}

static int open_tun(void)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int tun = open("/dev/net/tun", O_RDWR), control = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in own = address_of(KERNEL_ADDRESS, 0);
	struct sockaddr_in mask = address_of(0xffffff00u, 0);

	need(tun >= 0, "/dev/net/tun");
	need(ioctl(tun, TUNSETIFF, &request) == 0, "TUNSETIFF, which needs CAP_NET_ADMIN");
	memcpy(&request.ifr_addr, &own, sizeof(own));
	need(ioctl(control, SIOCSIFADDR, &request) == 0, "SIOCSIFADDR");
	memcpy(&request.ifr_netmask, &mask, sizeof(mask));
	need(ioctl(control, SIOCSIFNETMASK, &request) == 0, "SIOCSIFNETMASK");
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	need(ioctl(control, SIOCSIFFLAGS, &request) == 0, "SIOCSIFFLAGS");
	close(control);
	return tun;
}

int main(void)
{
	int tun = open_tun(), wrong = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	/* No two bytes at the same distance are the same for long, so that gaps are seen. */
	for (size_t i = 0; i < STREAM_MAX; i++)
		stream[i] = (uint8_t)(i * 7 + i / 251);
	for (size_t s = 0; s < sizeof(sides) / sizeof(sides[0]); s++)
		for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
			wrong += !run(tun, &scenarios[i], &sides[s]);
	return wrong ? 1 : 0;
}
