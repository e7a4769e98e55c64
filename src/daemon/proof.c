/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proof.c - limits the bytes sent to a client before it has proved its address
 *
 * The problem. convertd acts on a request in a SYN before anything shows that its source address is real. On plain
 * TCP, Linux sends the bytes written to a socket in SYN_RECV, as many as the first window takes. So a forged SYN of
 * 100 bytes could make convertd send a server's 12 KB to a stranger.
 *
 * The rule. Before the third ACK, or a cookie that was computed for this address, no more than PROOF_FACTOR times the
 * bytes of the SYN go back, counted on the wire with all headers: SYN+ACKs, the answer, the server's first bytes, and
 * an RST if there is one. Bytes of the server beyond that wait in its socket.
 *
 * The packets that go back (Linux 6.18):
 *
 *     SYN+ACKs    are sent at once, then after 1, 3, 7, 15 … s. On TCP sockets TCP_SYNCNT limits their number: with 1
 *                 the kernel gives up after 3 s, without an RST. MPTCP sockets don't have that option, so
 *                 convertd resets them just before the SYN+ACK that would be too many.
 *     data        is sent once: only the SYN+ACK is repeated in this state
 *                 (tcp_fastopen_synack_timer()). On MPTCP sockets nothing leaves before the third ACK.
 *     FIN, RST    are caused by convertd only, which withholds or counts them
 *
 * The kernel doesn't tell the size of the SYN (MPTCP sockets refuse TCP_SAVE_SYN), but most of it: its data, and the
 * options that were agreed upon. That is a lower bound, and exact for Linux clients. Each packet counts with an
 * Ethernet header. As more packets go back than come, a limit that holds with that header also holds for the bytes of
 * IP alone.
 */
#include "config.h"

#include "daemon/proof.h"

#include "common/tcp.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* The headers of a packet without options in bytes: Ethernet, IP (RFC 791, RFC 8200) and TCP (RFC 9293 3.1). */
#define HEADERS_V4 (14 + 20 + 20)
#define HEADERS_V6 (14 + 40 + 20)

/* The least bytes that each option takes in a SYN (RFC 9293 3.2, 7323, 2018, 8684 3.1, 7413 4.1.1). */
#define SYN_MSS 4
#define SYN_SACK 2
#define SYN_TIMESTAMPS 10
#define SYN_SCALE 3
#define SYN_MP_CAPABLE 4
#define SYN_FASTOPEN 2

/* The bytes that each option takes in segments from Linux, with padding; with timestamps, SACK-permitted takes their padding. */
#define SENT_MSS 4
#define SENT_SACK 4
#define SENT_TIMESTAMPS 12
#define SENT_SCALE 4
#define SENT_MP_CAPABLE 12
#define SENT_MP_RESET 16 /* MP_FASTCLOSE and MP_TCPRST */

/* The MSS towards a host that sends no MSS option (RFC 9293 3.7.1). */
#define MSS_DEFAULT 536

/* The most SYN+ACKs of one connection: those of the first 15 s. */
#define SYNACKS_MAX 5

/* The kernel's first time-out is TCP_TIMEOUT_INIT, and each following one is twice as long. Our timers may be late by LATE_MS. */
#define FIRST_TIMEOUT_MS 1000
#define LATE_MS 400

void proof_read(struct proof *proof, const struct tcp_info *info, bool v6, bool mptcp)
{
	unsigned headers = v6 ? HEADERS_V6 : HEADERS_V4, had = 0, sent = SENT_MSS;
	bool timestamps = info->tcpi_options & TCPI_OPT_TIMESTAMPS;
	bool sack = info->tcpi_options & TCPI_OPT_SACK;
	bool scale = info->tcpi_options & TCPI_OPT_WSCALE;

	had += info->tcpi_snd_mss + (timestamps ? SENT_TIMESTAMPS : 0) > MSS_DEFAULT ? SYN_MSS : 0;
	had += timestamps ? SYN_TIMESTAMPS : 0;
	had += sack ? SYN_SACK : 0;
	had += scale ? SYN_SCALE : 0;
	had += mptcp ? SYN_MP_CAPABLE : 0;
	/* A SYN without data is accepted at once only if it has a Fast Open option, so that one counts. */
	had += info->tcpi_bytes_received ? 0 : SYN_FASTOPEN;
	proof->syn = headers + (had + 3) / 4 * 4 + (uint32_t)info->tcpi_bytes_received;
	sent += timestamps ? SENT_TIMESTAMPS : sack ? SENT_SACK : 0;
	sent += scale ? SENT_SCALE : 0;
	sent += mptcp ? SENT_MP_CAPABLE : 0;
	proof->synack = (uint16_t)(headers + sent);
	proof->header = (uint16_t)(headers + (timestamps ? SENT_TIMESTAMPS : 0));
	proof->reset = (uint16_t)(proof->header + (mptcp ? SENT_MP_RESET : 0));
	proof->segment = info->tcpi_snd_mss < UINT16_MAX ? (uint16_t)info->tcpi_snd_mss : UINT16_MAX;
}

static uint32_t budget(const struct proof *proof)
{
	return PROOF_FACTOR * proof->syn;
}

unsigned proof_synacks(const struct proof *proof)
{
	unsigned synacks = (budget(proof) - proof->reset) / proof->synack;

	return synacks < 1 ? 1 : synacks > SYNACKS_MAX ? SYNACKS_MAX : synacks;
}

int proof_retries(const struct proof *proof)
{
	unsigned synacks = budget(proof) / 2 / proof->synack;

	return synacks < 2 ? 1 : synacks > SYNACKS_MAX ? SYNACKS_MAX - 1 : (int)synacks - 1;
}

uint32_t proof_room(const struct proof *proof, unsigned synacks)
{
	uint32_t taken = synacks * proof->synack;

	return budget(proof) > taken ? budget(proof) - taken : 0;
}

unsigned proof_deadline_ms(unsigned synacks)
{
	return ((1U << synacks) - 1) * FIRST_TIMEOUT_MS - LATE_MS;
}

bool proof_look(int fd, struct tcp_info *info, unsigned *age_ms)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	*age_ms = 0;
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) < 0 || info->tcpi_state != TCPINFO_SYN_RECV)
		return false;
	/* The kernel sets this time when it makes the socket, and no data that would renew it has come since. */
	*age_ms = info->tcpi_last_data_recv;
	return true;
}

void proof_set_retries(int fd, int retries)
{
	setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &retries, sizeof(retries));
}
