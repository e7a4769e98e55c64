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

/* Whose failure it is: the server's is final, the converter's may be worked around. */
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
};

struct handshake_step {
	enum handshake_verdict verdict;
	enum handshake_fault fault;
	size_t length;      /* bytes, counted from the start of the stream */
	int error;          /* errno of connect(2), positive */
	const char *reason; /* a static text for the log */
	unsigned int rest;  /* FAIL: seconds to leave the converter alone: for this server, if the
	                       fault is REFUSED or SERVER, else altogether */
	enum handshake_remedy remedy;
	struct convert_span cookie; /* for the remedy; points into the bytes that were shown */
	enum handshake_server_mptcp server_mptcp;
	bool has_supported;            /* DONE: the answer to an Info TLV is there, */
	struct convert_span supported; /* TCP option kinds, padded with 0, in the bytes shown */
	unsigned int withheld_ms;      /* with it: SYNs are withheld, for so long at most; 0: they aren't */
	bool corrects_windows;         /* with it: of MPTCP SYNs that carry data (doc/private-tlvs.md) */
};

/*
 * handshake_request() - write the message that asks for @server
 * Returns its length in bytes, or -errno (-EINVAL: Section 6.2.5 forbids the
 * address; -ENOBUFS: @capacity is too small).
 */
ssize_t handshake_request(uint8_t *buf, size_t capacity, const union sockaddr_ip *server,
			  const struct handshake_ask *ask);

/*
 * handshake_on_bytes() - the first @len bytes of the converter's stream are known
 * @server: the destination; its family decides how ICMP codes read
 * @ask: as in the request
 * Never says DONE or FAIL of a valid prefix, NEED_MORE of an invalid one.
 */
struct handshake_step handshake_on_bytes(const uint8_t *buf, size_t len,
					 const union sockaddr_ip *server,
					 const struct handshake_ask *ask);

/* handshake_on_close() - the stream ended after a valid prefix. */
struct handshake_step handshake_on_close(void);

/*
 * handshake_on_silence() - nothing has come for as long as a converter may take
 * @alive: its host acknowledges what it is sent. Then it may be that server's silence.
 */
struct handshake_step handshake_on_silence(bool alive);

/*
 * handshake_on_error() - connect(2) to the converter, or the connection, failed with @error (positive)
 * @proven: it has answered others. A reset then is about this request: so does a converter refuse that sends no more
 * errors for now.
 */
struct handshake_step handshake_on_error(int error, bool proven);

#endif
