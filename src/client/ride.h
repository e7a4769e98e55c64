/* SPDX-License-Identifier: BSD-3-Clause */
/* ride.h - how a request gets to a converter, and by which way it is sent again where that one fails */
#ifndef CLIENT_RIDE_H
#define CLIENT_RIDE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How a converter is asked. Each ride is safer than the one before: where one shows that it would leave a
 * Multipath TCP socket that has fallen back to TCP, the connection is begun anew by the next one.
 */
enum ride {
	RIDE_MPTCP_SYN, /* Multipath TCP, the request in the SYN where that may be */
	RIDE_MPTCP,     /* Multipath TCP, the request behind the handshake */
	RIDE_TCP,
	RIDE_COUNT
};

/* What the SYN+ACK of a Multipath TCP connection has shown. */
struct ride_synack {
	bool syn_data;     /* the SYN carried data */
	bool acknowledged; /* and the SYN+ACK acknowledges it (TCPI_OPT_SYN_DATA) */
	bool sent_again;   /* the SYN was sent more than once */
	bool fallen_back;  /* looked at without data in the SYN: the connection isn't Multipath TCP any more */
};

/*
 * ride_goes_on() - does the connection stay Multipath TCP, as far as the SYN+ACK tells?
 * Data of the SYN that wasn't taken is sent again without a mapping, so that the connection would fall back in a moment;
 * so it does if the SYN was sent again, which then has no data, whatever the SYN+ACK acknowledges (Linux 6.18). A request
 * that was taken is answered in any case, and an error without MP_CAPABLE: doc/private-tlvs.md.
 * Returns false, with the ride to begin anew with in *@next, if it doesn't.
 */
bool ride_goes_on(const struct ride_synack *seen, enum ride *next);

enum ride_syn_data {
	RIDE_SYN_DATA_NEVER,       /* the request follows the handshake */
	RIDE_SYN_DATA_ON_ONE_PATH, /* the SYN carries it if the connection can't get a second path */
	RIDE_SYN_DATA_ALWAYS,
};

/*
 * ride_syn_data() - may the request go into the SYN?
 * @mptcp: it is one of Multipath TCP
 * @taken: paths_take_syn_data(). Data that isn't taken costs a connection its Multipath TCP.
 * @corrected: converters_corrects_windows(). Where nobody does, data in an MPTCP SYN makes downloads over several paths
 *             slower than over one.
 */
enum ride_syn_data ride_syn_data(enum ride ride, bool mptcp, bool taken, bool corrected);

/*
 * ride_confirms() - does the SYN+ACK of a converter that withholds SYNs say that the server was reached?
 * It does (doc/private-tlvs.md) if the converter has taken the request out of the SYN, left timestamps in it, and answered
 * within the time for which it withholds SYNs.
 * @options: tcpi_options of TCP_INFO
 * @withheld_ms: for so long at most, in milliseconds
 * @started_ns, @now_ns: CLOCK_MONOTONIC in nanoseconds, when the application called connect(), and now
 */
bool ride_confirms(uint8_t options, unsigned int withheld_ms, int64_t started_ns, int64_t now_ns);

/*
 * ride_is_silent() - now that the SYN+ACK of a silent request has come: does no response follow?
 * Both ends decide by what the kernel tells them of the connection, which is the same at both: the request came with the SYN,
 * and there are timestamps. Then the stream is the server's from its first byte. Otherwise the response comes as to any other request.
 * @options: tcpi_options of TCP_INFO
 * @whole: all of the request was put into the SYN. Early data behind it may have stayed out.
 */
bool ride_is_silent(uint8_t options, bool whole);

#endif
