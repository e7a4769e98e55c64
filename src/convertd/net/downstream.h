/* SPDX-License-Identifier: BSD-3-Clause */
/* downstream.h - opens the connection to the server, and reads why it failed or which options were negotiated */
#ifndef CONVERTD_DOWNSTREAM_H
#define CONVERTD_DOWNSTREAM_H

#include "common/sockaddr.h"
#include "convert/convert.h"
#include "convertd/net/sources.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct route;
struct tcp_info;

/* The most bytes that downstream_options() writes. */
#define DOWNSTREAM_OPTIONS_MAX 64

/* The contents of an Error TLV (RFC 8803 6.2.8), and the origin of the error. */
struct downstream_error {
	enum convert_error_code code;
	uint8_t value;
	bool said_here; /* this host's own kernel has found the error, not a router on the way */
	bool ours;      /* only this converter can't connect: the client may succeed by itself */
};

/* The properties of the SYN to the server. */
struct downstream_plan {
	const union sockaddr_ip *server; /* AF_INET or AF_INET6 */
	union sockaddr_ip source;        /* the address and port that it comes from, set by sources_choose() */
	enum sources_choice choice;      /* as returned by sources_choose() */
	struct route *route;             /* tells whether an IPv6 prefix is still ours; may be NULL */
	bool mptcp;                      /* ask for Multipath TCP */
	bool confirmed;      /* the client has proved its address; if not, see downstream_confirm() */
	bool data_follows;   /* there are bytes to send as soon as the server answers: the */
			     /* third ACK waits for them */
	const char *congestion; /* the congestion control; "": the system's default */
	int last_fd;         /* the highest descriptor that there can be, if it is to stay free for the client's */
			     /* connection: then the error is EMFILE, and no SYN is sent; 0: it may be used */
};

/*
 * downstream_connect() - begin to connect
 * Returns a non-blocking socket that the caller owns, or -errno if connecting has failed at once;
 * downstream_refusal() translates that into an Error TLV.
 */
int downstream_connect(const struct downstream_plan *plan);

/*
 * downstream_confirm() - let the kernel repeat the SYN as usual, since the client has proved its address
 * Until then, the kernel repeats the SYN as seldom as possible, which is twice in 6.18: nobody must be able to
 * multiply SYNs by forging a client's address (RFC 8803 9.3).
 * @retries: repetitions of the SYN, as net.ipv4.tcp_syn_retries has them
 * MPTCP sockets lack the option (Linux 6.18): there, nothing changes.
 */
void downstream_confirm(int fd, int retries);

/* Tells whether the socket was made to ask for Multipath TCP. */
bool downstream_asks_mptcp(int fd);

/*
 * downstream_fell_back() - tell whether the socket has asked for Multipath TCP and become plain TCP
 * Linux may lose bytes on such a socket (doc/kernel-mptcp-fallback-overlap.md); see fallback.h.
 */
bool downstream_fell_back(int fd);

/*
 * downstream_result() - tell whether the socket has connected
 * @info: set if 0 is returned
 * Returns 0 if it has connected, even if it was reset since; -EINPROGRESS; or the -errno with which it failed, which
 * the kernel reports only once.
 */
int downstream_result(int fd, struct tcp_info *info);

/*
 * downstream_refusal() - make the Error TLV for a connection that failed
 * @fd: the socket, whose error queue may hold the ICMP message; -1 if there is none
 * @error: -errno from one of the above, -ETIMEDOUT for the converter's own time-out
 */
struct downstream_error downstream_refusal(int fd, const union sockaddr_ip *server, int error);

/* Call it once connected: from then on ICMP messages don't end the connection (IP_RECVERR is switched off). */
void downstream_established(int fd, const union sockaddr_ip *server);

/*
 * downstream_options() - write the TCP options of the server's SYN+ACK in wire format
 * They are complete as far as the kernel tells (see downstream.c).
 * @info: as downstream_result() has set it
 * @mptcp: write MP_CAPABLE if the server took Multipath TCP
 * Returns the number of bytes written to @out.
 */
size_t downstream_options(int fd, const struct tcp_info *info, bool mptcp,
			  uint8_t out[static DOWNSTREAM_OPTIONS_MAX]);

/* ----- remembers servers that didn't take Multipath TCP, so that they aren't asked each time ----- */

/*
 * plain_servers_note() remembers that @server (address and port) didn't take Multipath TCP, and plain_servers_has() tells
 * whether it is remembered. Any thread may call both. A server may be forgotten at any time, and is after ten minutes.
 */
bool plain_servers_has(const union sockaddr_ip *server);
void plain_servers_note(const union sockaddr_ip *server);

#endif
