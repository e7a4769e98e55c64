/* SPDX-License-Identifier: BSD-3-Clause */
/* proof.h - limits the bytes sent to a client before it has proved its address (no I/O except on the socket's options) */
#ifndef DAEMON_PROOF_H
#define DAEMON_PROOF_H

#include <stdbool.h>
#include <stdint.h>

struct tcp_info;

/* The bytes sent back may be this many times the bytes received, as RFC 9000 8.1 has it for QUIC. */
#define PROOF_FACTOR 3

/* The sizes of a SYN with data and of the packets that answer it, in bytes on the wire, link header included. */
struct proof {
	uint32_t syn;     /* the SYN has at least this size */
	uint16_t synack;  /* each SYN+ACK */
	uint16_t header;  /* the headers of each segment after it */
	uint16_t reset;   /* an RST of ours, at most */
	uint16_t segment; /* the data that one segment carries */
};

/*
 * proof_read() - compute @proof from the kernel's facts about an accepted socket in SYN_RECV
 * @info: TCP_INFO as linux/tcp.h has it
 * @v6: the connection is over IPv6
 * @mptcp: the SYN had MP_CAPABLE
 * Parts of the SYN that the kernel doesn't report aren't counted.
 */
void proof_read(struct proof *proof, const struct tcp_info *info, bool v6, bool mptcp);

/* Returns the number of SYN+ACKs that leave room for a reset: at least 1, as one has been sent, and at most 5. */
unsigned proof_synacks(const struct proof *proof);

/*
 * proof_retries() - return the value of TCP_SYNCNT with which SYN+ACKs take half of the bytes that may go back
 * It is at least 1, the kernel's minimum, which means two SYN+ACKs: there is always room for these.
 */
int proof_retries(const struct proof *proof);

/* Returns the bytes on the wire that may go back besides @synacks SYN+ACKs. */
uint32_t proof_room(const struct proof *proof, unsigned synacks);

/* Returns how many milliseconds after the first SYN+ACK the kernel is about to send one more than @synacks. */
unsigned proof_deadline_ms(unsigned synacks);

/*
 * proof_look() - ask the kernel about an accepted socket
 * @info: set, as far as this kernel has it
 * @age_ms: set to how long ago its SYN+ACK was sent
 * Returns whether the client has still to complete its handshake.
 */
bool proof_look(int fd, struct tcp_info *info, unsigned *age_ms);

/* Makes the kernel give up the handshake, without an RST, after @retries further SYN+ACKs. It has no effect on MPTCP sockets. */
void proof_set_retries(int fd, int retries);

#endif
