/* SPDX-License-Identifier: BSD-3-Clause */
/* downstream.h - the connection to the server: open it, say why it failed, what was negotiated */
#ifndef CONVERTD_DOWNSTREAM_H
#define CONVERTD_DOWNSTREAM_H

#include "common/sockaddr.h"
#include "convert/convert.h"
#include "convertd/net/fastopen.h"
#include "convertd/net/sources.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct route;
struct tcp_info;

/* Room for what downstream_options() writes. */
#define DOWNSTREAM_OPTIONS_MAX 64

/* What an Error TLV says (Section 6.2.8). */
struct downstream_error {
	enum convert_error_code code;
	uint8_t value;
	bool said_here; /* no router on the way has said so, but this host's own kernel */
	bool ours;      /* it is this converter that can't do it: the client may do it itself */
};

/* What the SYN to the server is to be like. */
struct downstream_plan {
	const union sockaddr_ip *server; /* AF_INET or AF_INET6 */
	union sockaddr_ip source;        /* where it comes from, as sources_choose() has it */
	enum sources_choice choice;
	struct route *route;             /* asked whether an IPv6 prefix is still ours, unless NULL */
	bool mptcp;                      /* ask for Multipath TCP */
	bool confirmed;      /* the client's address is real; else see downstream_confirm() */
	bool fastopen;       /* with a Fast Open option: the kernel's cookie, or asking for one */
	const uint8_t *data; /* with Fast Open, and if there is a cookie, the SYN takes this along */
	size_t len;
	bool data_follows;   /* there are bytes to send as soon as the server has answered: the */
			     /* third ACK waits for them */
	const char *congestion; /* "": as the system has it */
};

/*
 * downstream_connect() - begin to connect
 * @taken: set to the bytes of the plan's data that are on their way
 *
 * Returns a non-blocking socket that the caller owns, or -errno: for a refusal that is
 * known at once, downstream_refusal() knows what it means.
 */
int downstream_connect(const struct downstream_plan *plan, size_t *taken);

/*
 * downstream_confirm() - the client has turned out to be real
 * Until then, the SYN is sent again as seldom as the kernel can be told to, which is twice in 6.18:
 * whoever forges a client's address must not multiply SYNs (Section 9.3).
 * @retries: net.ipv4.tcp_syn_retries
 * MPTCP sockets don't have this setting (Linux 6.18): there, nothing changes.
 */
void downstream_confirm(int fd, int retries);

/* Was it made to ask for Multipath TCP? */
bool downstream_asks_mptcp(int fd);

/*
 * downstream_fell_back() - does it ask for Multipath TCP, and has it become plain TCP?
 * Linux may lose bytes on such a socket (doc/kernel-mptcp-fallback-overlap.md); see fallback.h.
 */
bool downstream_fell_back(int fd);

/* When it is closed now, an RST tells the peer, on MPTCP MP_FASTCLOSE. Any TCP socket will do. */
void downstream_reset(int fd);

/*
 * downstream_result() - has it connected?
 * @info: set where 0 is returned
 * Returns 0, -EINPROGRESS, or the -errno with which it failed, once.
 */
int downstream_result(int fd, struct tcp_info *info);

/*
 * downstream_refusal() - the Error TLV for a connection that failed
 * @fd: the socket, whose error queue may hold the ICMP message; -1 if there is none
 * @error: -errno from one of the above, -ETIMEDOUT for the converter's own time-out
 */
struct downstream_error downstream_refusal(int fd, const union sockaddr_ip *server, int error);

/* To be called once connected: from now on, only hard errors end the connection. */
void downstream_established(int fd, const union sockaddr_ip *server);

/*
 * downstream_options() - the options of the server's SYN+ACK, in wire format
 * As far as the kernel tells (see downstream.c).
 * @info: what downstream_result() has said
 * @cookie: the server's Fast Open cookie, which goes with them unless it is empty
 * Returns bytes written to @out.
 */
size_t downstream_options(int fd, const struct tcp_info *info, bool mptcp,
			  const struct fastopen_cookie *cookie,
			  uint8_t out[static DOWNSTREAM_OPTIONS_MAX]);

#endif
