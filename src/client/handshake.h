/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake.h - the client's side of one conversion, as a machine without I/O
 *
 * A front end (the preload hooks) moves the bytes: it sends the request as the
 * first bytes of the stream to the converter, shows each prefix of the answer
 * that it has to handshake_on_bytes(), and does what the step says. The machine
 * keeps no state between calls: the bytes seen so far are the state, so a front
 * end may peek at them as often as it likes.
 */
#ifndef CLIENT_HANDSHAKE_H
#define CLIENT_HANDSHAKE_H

#include "common/sockaddr.h"
#include "convert/convert.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum handshake_verdict {
	HANDSHAKE_NEED_MORE, /* wait until step.length bytes are there, then ask again */
	HANDSHAKE_DONE,      /* the server was reached; take step.length bytes off the stream */
	HANDSHAKE_FAIL,      /* reset the connection; step.error is the application's errno */
};

/* Whose failure it is. The server's is final; after others the next converter can be asked. */
enum handshake_fault {
	HANDSHAKE_FAULT_NONE,
	HANDSHAKE_FAULT_SERVER,    /* it refused or could not be reached (Error TLV) */
	HANDSHAKE_FAULT_REFUSED,   /* the converter won't serve this request; it may serve others */
	HANDSHAKE_FAULT_CONVERTER, /* the converter can't serve any for now (Error TLV) */
	HANDSHAKE_FAULT_PROTOCOL,  /* what came is not a valid response (Sections 6, 8) */
};

/* The converter has said how the same request would succeed. */
enum handshake_remedy {
	HANDSHAKE_REMEDY_NONE,
	HANDSHAKE_REMEDY_COOKIE,    /* with step.cookie in it (Section 6.2.7) */
	HANDSHAKE_REMEDY_NO_OPTION, /* without a TCP option (Unsupported TCP Option, 6.2.8) */
	HANDSHAKE_REMEDY_NO_HOLD_TIME, /* without a Hold Time TLV (Unsupported Message) */
};

/* What an answer tells of Multipath TCP between the converter and the server (Section 6.2.6). */
enum handshake_server_mptcp {
	HANDSHAKE_SERVER_UNKNOWN, /* it was not asked for */
	HANDSHAKE_SERVER_PLAIN,
	HANDSHAKE_SERVER_MPTCP,
};

#define HANDSHAKE_REST_SECONDS 30 /* Section 6.2.8: the delay where the converter names none */

/* What a request says beside the server's address. */
struct handshake_ask {
	struct convert_span cookie; /* length 0: none */
	bool mptcp; /* Multipath TCP towards the server, too: an Extended Connect TLV (Section 7.5) */
	bool info;  /* which TCP extensions does the converter support (Section 6.2.3)? */
	unsigned int hold_ms; /* its SYN may be withheld for so many ms at most (a Hold Time TLV, doc/private-tlvs.md); 0: it doesn't say */
	/* A Silence TLV (the same), which goes with neither of these two: */
	bool silent;     /* no response where the SYN+ACK tells all that it would say: ride_is_silent() */
	bool blind;      /* if silent: nor any other response; what isn't success is told as the network tells it */
	bool over_mptcp; /* if silent: the request goes over Multipath TCP, and is served as such or not at all */
	uint64_t attempt; /* if blind: a random number, by which the converter knows the request when it is made again; 0: none */
};

struct handshake_step {
	enum handshake_verdict verdict;
	enum handshake_fault fault;
	size_t length;      /* bytes, counted from the start of the stream */
	int error;          /* errno of connect(2), positive */
	const char *reason; /* a static text for the log */
	unsigned int rest;  /* FAIL: for so many seconds the converter isn't asked: for this server if the
	                       fault is REFUSED or SERVER, else for any */
	enum handshake_remedy remedy;
	struct convert_span cookie; /* for the remedy; points into the bytes that were shown */
	enum handshake_server_mptcp server_mptcp;
	bool has_supported;            /* DONE: the answer to an Info TLV is there, */
	struct convert_span supported; /* TCP option kinds, padded with 0, in the bytes shown */
	unsigned int withheld_ms;      /* with has_supported: SYNs are withheld for so many ms at most; 0: they aren't */
	bool corrects_windows;         /* with has_supported: windows of MPTCP SYNs with data (doc/private-tlvs.md) */
	bool takes_silent, takes_blind; /* with has_supported: requests that are silent, or blind as well */
	bool takes_repeats; /* the same: it knows blind ones that are made again by their attempt */
	bool takes_hold_times; /* the same: it understands Hold Time TLVs */
};

/*
 * handshake_request() - write the message that asks for @server
 * Returns its length in bytes, or -errno (-EINVAL: Section 6.2.5 forbids the
 * address; -ENOBUFS: @capacity is too small). Where a cookie leaves no room for a Hold Time TLV, there is none.
 */
ssize_t handshake_request(uint8_t *buf, size_t capacity, const union sockaddr_ip *server,
			  const struct handshake_ask *ask);

/* handshake_count_repeat() - note in a request, which has an attempt, how often it was made before */
void handshake_count_repeat(uint8_t *request, unsigned int repeats);

/*
 * handshake_on_bytes() - the first @len bytes of the converter's stream are known
 * @server: the destination; its family decides how ICMP codes read
 * @ask: as in the request
 * Never returns DONE or FAIL for a prefix of a valid response, or NEED_MORE for any other.
 */
struct handshake_step handshake_on_bytes(const uint8_t *buf, size_t len,
					 const union sockaddr_ip *server,
					 const struct handshake_ask *ask);

/* handshake_on_close() - the stream ended after a valid prefix. */
struct handshake_step handshake_on_close(void);

/*
 * handshake_on_silence() - nothing has come for as long as a converter may take
 * @alive: its host acknowledges what it is sent, so that the silence may be the server's.
 */
struct handshake_step handshake_on_silence(bool alive);

/*
 * handshake_on_error() - connect(2) to the converter, or the connection, failed with @error (positive)
 * @proven: the converter has answered others. Then a reset is about this request only: a converter that has sent as many
 * errors as it does in a second refuses by resets.
 */
struct handshake_step handshake_on_error(int error, bool proven);

#endif
