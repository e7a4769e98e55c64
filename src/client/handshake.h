/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake.h - the client's side of one conversion, as a machine without I/O
 *
 * A front end moves the bytes: it sends the request as the first bytes of the stream to the converter, passes each prefix of the answer to
 * handshake_on_bytes(), and does as the returned step says. The machine keeps no state between calls: the bytes seen so far are the state,
 * so a front end may peek at them as often as it likes.
 */
#ifndef CLIENT_HANDSHAKE_H
#define CLIENT_HANDSHAKE_H

#include "common/sockaddr.h"
#include "convert/convert.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum handshake_verdict {
	HANDSHAKE_NEED_MORE, /* wait until step.length bytes are there, then ask again */
	HANDSHAKE_DONE,      /* the server was reached; take step.length bytes off the stream */
	HANDSHAKE_FAIL,      /* reset the connection; step.error is the application's errno */
};

/* Who failed. The server's failure is final; after another the front end can ask the next converter. */
enum handshake_fault {
	HANDSHAKE_FAULT_NONE,
	HANDSHAKE_FAULT_SERVER,    /* it refused or could not be reached (Error TLV) */
	HANDSHAKE_FAULT_REFUSED,   /* the converter won't serve this request; it may serve others */
	HANDSHAKE_FAULT_CONVERTER, /* the converter can't serve any for now (Error TLV), or can't be reached */
	HANDSHAKE_FAULT_PROTOCOL,  /* the bytes aren't a valid response (Sections 6, 8) */
};

/* How the same request would succeed, according to the converter. */
enum handshake_remedy {
	HANDSHAKE_REMEDY_NONE,
	HANDSHAKE_REMEDY_COOKIE,    /* with step.cookie in it (Section 6.2.7) */
	HANDSHAKE_REMEDY_NO_OPTION, /* without a TCP option (Unsupported TCP Option, 6.2.8) */
	HANDSHAKE_REMEDY_NO_HOLD_TIME, /* without a Hold Time TLV (Unsupported Message) */
};

/* Does the connection between converter and server use Multipath TCP, according to an answer (Section 6.2.6)? */
enum handshake_server_mptcp {
	HANDSHAKE_SERVER_UNKNOWN, /* the request didn't ask */
	HANDSHAKE_SERVER_PLAIN,
	HANDSHAKE_SERVER_MPTCP,
};

#define HANDSHAKE_REST_SECONDS 30 /* Section 6.2.8: the delay if the converter names none */

/* The content of a request beside the server's address. */
struct handshake_ask {
	struct convert_span cookie; /* length 0: none */
	bool mptcp;                 /* Multipath TCP towards the server, too: an Extended Connect TLV (Section 7.5) */
	bool info;                  /* which TCP extensions does the converter support (Section 6.2.3)? */
	unsigned int hold_ms;       /* the converter may withhold the SYN for so many ms (Hold Time TLV, doc/private-tlvs.md); 0: no TLV */
	/* A Silence TLV (doc/private-tlvs.md), which excludes info: */
	bool silent;                /* no response if the SYN+ACK says it all: synack_is_silent() */
	bool blind;                 /* if silent and not mptcp: no response at all; the network's own means report errors */
	bool over_mptcp;            /* if silent: the request goes over Multipath TCP; the converter serves it that way or not at all */
	uint64_t attempt;           /* if blind: a random number, by which the converter recognizes a repeated request; 0: none */
};

struct handshake_step {
	enum handshake_verdict verdict;
	enum handshake_fault fault;
	size_t length;                  /* bytes, counted from the start of the stream */
	int error;                      /* errno of connect(2), positive */
	const char *reason;             /* a static text for the log */
	unsigned int rest;              /* FAIL: for this many seconds nobody asks the converter; REFUSED, SERVER: for this server */
	enum handshake_remedy remedy;
	struct convert_span cookie;     /* for the remedy; points into the bytes that were shown */
	enum handshake_server_mptcp server_mptcp;
	bool has_supported;             /* DONE: the answer to an Info TLV is there, */
	struct convert_span supported;  /* TCP option kinds, padded with 0, in the bytes shown */
	struct convert_withholding withholding; /* with has_supported: what the converter does with SYNs */
};

/*
 * handshake_request() - write the message that asks for @server
 * Returns its length in bytes, or -errno (-EINVAL: Section 6.2.5 forbids the address; -ENOBUFS: @capacity is too small). Leaves out a Hold
 * Time TLV if a cookie takes its room.
 */
ssize_t handshake_request(uint8_t *buf, size_t capacity, const union sockaddr_ip *server,
			  const struct handshake_ask *ask);

/* handshake_count_repeat() - write into a request with an attempt number how often it was sent before */
void handshake_count_repeat(uint8_t *request, unsigned int repeats);

/*
 * handshake_on_bytes() - evaluate the first @len bytes of the converter's stream
 * @server: the destination; its family decides how to read ICMP codes
 * @ask: as in the request
 * Never returns DONE or FAIL for an incomplete prefix of a valid response. TLVs are judged only once the whole message is there.
 */
struct handshake_step handshake_on_bytes(const uint8_t *buf, size_t len,
					 const union sockaddr_ip *server,
					 const struct handshake_ask *ask);

/* handshake_on_close() - evaluate the end of the stream after a valid prefix */
struct handshake_step handshake_on_close(void);

/*
 * handshake_on_silence() - evaluate a silence that has lasted longer than a converter may take
 * @alive: the converter's host acknowledges our bytes, so the server may be the cause.
 */
struct handshake_step handshake_on_silence(bool alive);

/*
 * handshake_on_error() - evaluate the failure with @error (positive) of connect(2) to the converter, or of the connection
 * @proven: the converter has answered others. Then a reset concerns this request only: a converter that has sent its limit of errors for
 * this second refuses by resets.
 */
struct handshake_step handshake_on_error(int error, bool proven);

/* --- the ways of asking a converter, and which one follows when one fails --- */

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
 * If it doesn't stay Multipath TCP, returns false, and *@next is the way of asking for a new beginning.
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
 * @withheld_ms: the converter withholds a SYN for at most this long, in milliseconds
 * @started_ns, @now_ns: CLOCK_MONOTONIC in nanoseconds, when the application called connect(), and now
 */
bool synack_confirms(uint8_t options, unsigned int withheld_ms, int64_t started_ns, int64_t now_ns);

/*
 * synack_is_silent() - does no response follow the SYN+ACK of a silent request?
 * Both ends decide by the same facts of their kernels: the SYN carried the request, and the connection has timestamps. Then the stream is
 * the server's from its first byte. Otherwise the response comes as to any other request.
 * @options: tcpi_options of TCP_INFO. Call it only if the SYN was given the whole request; early data behind it may have stayed out.
 */
bool synack_is_silent(uint8_t options);

/* --- the errno of a direct connection for an Error TLV --- */

/*
 * errno_map_error() - return the errno of connect(2) for an Error TLV (Section 6.2.8)
 * @code: the Error Code; the class of an unknown code decides
 * @value: the first byte of the Value field: the ICMP code of Destination Unreachable
 * @ipv4: the destination is IPv4, so the code is ICMP's (RFC 792); else ICMPv6's (RFC 4443)
 * The same table is in libconvert.so(7).
 */
int errno_map_error(uint8_t code, uint8_t value, bool ipv4);

#endif
