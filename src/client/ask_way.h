/* SPDX-License-Identifier: BSD-3-Clause */
/* ask_way.h - the ways of asking a converter, and which one follows when one fails */
#ifndef CLIENT_ASK_WAY_H
#define CLIENT_ASK_WAY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The ways of asking. Each is safer than the one before: if one would leave a Multipath TCP socket that has fallen back to TCP, the
 * connection begins anew with the next.
 */
enum ask_way {
	ASK_MPTCP_SYN, /* Multipath TCP, the request in the SYN if allowed */
	ASK_MPTCP,     /* Multipath TCP, the request behind the handshake */
	ASK_TCP,
	ASK_WAY_COUNT
};

/* The observations at the SYN+ACK of a Multipath TCP connection. */
struct synack_seen {
	bool syn_data;     /* the SYN carried data */
	bool acknowledged; /* and the SYN+ACK acknowledges it (TCPI_OPT_SYN_DATA) */
	bool sent_again;   /* the SYN was sent more than once */
	bool fallen_back;  /* valid without data in the SYN: the connection isn't Multipath TCP any more */
};

/*
 * synack_keeps_way() - does the connection stay Multipath TCP, as far as the SYN+ACK tells?
 * If the SYN's data wasn't taken, the kernel sends it again without a mapping, and the connection would fall back at once. It also falls
 * back if the SYN was sent again, which then has no data, whatever the SYN+ACK acknowledges (Linux 6.18). The converter always answers a
 * request that it took, with an error if MP_CAPABLE is missing: doc/private-tlvs.md.
 * If it doesn't stay Multipath TCP, returns false, with the way of asking to begin anew with in *@next.
 */
bool synack_keeps_way(const struct synack_seen *seen, enum ask_way *next);

enum syn_data_use {
	SYN_DATA_NEVER,       /* the request follows the handshake */
	SYN_DATA_ON_ONE_PATH, /* the SYN carries it if the connection can't get a second path */
	SYN_DATA_ALWAYS,
};

/*
 * ask_way_syn_data() - may the request go into the SYN?
 * @mptcp: it goes over Multipath TCP
 * @taken: paths_take_syn_data(). Data that isn't taken costs a connection its Multipath TCP.
 * @corrected: converters_corrects_windows(). Without correction, data in an MPTCP SYN makes downloads over several paths slower than over
 * one.
 */
enum syn_data_use ask_way_syn_data(enum ask_way way, bool mptcp, bool taken, bool corrected);

/*
 * synack_confirms() - does the SYN+ACK of a converter that withholds SYNs say that the server was reached?
 * Yes (doc/private-tlvs.md) if the converter has taken the request out of the SYN, left timestamps in it, and answered within the time for
 * which it withholds SYNs.
 * @options: tcpi_options of TCP_INFO
 * @withheld_ms: the converter withholds a SYN for so long at most, in milliseconds
 * @started_ns, @now_ns: CLOCK_MONOTONIC in nanoseconds, when the application called connect(), and now
 */
bool synack_confirms(uint8_t options, unsigned int withheld_ms, int64_t started_ns, int64_t now_ns);

/*
 * synack_is_silent() - does no response follow the SYN+ACK of a silent request?
 * Both ends decide by the same facts of their kernels: the SYN carried the request, and the connection has timestamps. Then the stream is
 * the server's from its first byte. Otherwise the response comes as to any other request.
 * @options: tcpi_options of TCP_INFO
 * @whole: the SYN was given the whole request. Early data behind it may have stayed out.
 */
bool synack_is_silent(uint8_t options, bool whole);

#endif
