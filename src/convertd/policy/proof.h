/* SPDX-License-Identifier: BSD-3-Clause */
/* proof.h - what may go to a client before it has proved that it is where it says (no I/O but one look) */
#ifndef CONVERTD_PROOF_H
#define CONVERTD_PROOF_H

#include <stdbool.h>
#include <stdint.h>

struct tcp_info;

/* So many times the bytes that have come may go back, as RFC 9000 8.1 has it for QUIC. */
#define PROOF_FACTOR 3

/* Bytes on the wire, from the link's header on, of what a SYN with data in it brings about. */
struct proof {
	uint32_t syn;     /* the SYN itself has at least so many */
	uint16_t synack;  /* each SYN+ACK */
	uint16_t header;  /* the headers of each segment behind it */
	uint16_t reset;   /* an RST of ours, at most */
	uint16_t segment; /* bytes that one segment carries */
};

/*
 * proof_read() - from what the kernel tells of an accepted socket in SYN_RECV
 * @info: TCP_INFO as linux/tcp.h has it
 * @v6: is it a connection over IPv6?
 * @mptcp: did its SYN have MP_CAPABLE?
 * What the SYN had and the kernel doesn't tell of isn't counted.
 */
void proof_read(struct proof *proof, const struct tcp_info *info, bool v6, bool mptcp);

/* SYN+ACKs that leave room for a reset: 1 at least, as one has been sent, and 5 at most. */
unsigned proof_synacks(const struct proof *proof);

/*
 * proof_retries() - what TCP_SYNCNT is to be, so that SYN+ACKs take half of what may go back
 * At least 1, as the kernel knows nothing less: two SYN+ACKs, for which there is always room.
 */
int proof_retries(const struct proof *proof);

/* Bytes that may go back besides @synacks SYN+ACKs. */
uint32_t proof_room(const struct proof *proof, unsigned synacks);

/* Milliseconds behind the first SYN+ACK at which the kernel is about to send the one behind @synacks. */
unsigned proof_deadline_ms(unsigned synacks);

/*
 * proof_look() - ask the kernel about an accepted socket
 * @info: set, as far as this kernel has it
 * @age_ms: set to how long ago its SYN+ACK was sent
 * Returns whether the client has still to complete its handshake.
 */
bool proof_look(int fd, struct tcp_info *info, unsigned *age_ms);

/* The kernel gives the handshake up, without a word, after so many SYN+ACKs more; TCP sockets only. */
void proof_set_retries(int fd, int retries);

#endif
