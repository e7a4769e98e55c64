/* SPDX-License-Identifier: BSD-3-Clause */
/* request.h - from a client's bytes to what the converter does, and its answers (no I/O) */
#ifndef CONVERTD_REQUEST_H
#define CONVERTD_REQUEST_H

#include "convert/convert.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which TCP options this host puts into the SYNs that it sends (Section 6.2.4): its sysctls
 * tcp_sack, tcp_timestamps and mptcp.enabled, read when settings come into force. And what
 * else is told to those who ask by an Info TLV.
 */
struct request_features {
	bool sack;
	bool timestamps;
	bool mptcp;
	struct convert_withholding withholding; /* told with it, if SYNs are withheld or corrected */
};

/* KiB of what follows an Echo TLV that come back at most. */
#define REQUEST_ECHO_KIB 256

enum request_action {
	REQUEST_WAIT,    /* all right so far; more bytes are needed */
	REQUEST_CONNECT, /* connect to address and port */
	REQUEST_ANSWER,  /* send the answer, then close gracefully */
	REQUEST_IGNORE,  /* not Convert: close without a word (Section 6) */
	REQUEST_RESET,   /* reset the connection (Section 6.1) */
	REQUEST_PROVE,   /* decide again when the client has proved its address, not before */
	REQUEST_ACTION_COUNT
};

struct request_decision {
	enum request_action action;
	const char *reason; /* for the log; NULL for WAIT and CONNECT */
	size_t length;      /* bytes of the stream that the request takes, if it is valid */

	bool silent; /* the client wants no response where its SYN+ACK says all (doc/private-tlvs.md); also with WAIT */
	struct convert_silence silence; /* what it is like, if the request is valid */

	bool has_hold_time; /* the client says for how long its SYN may be withheld (doc/private-tlvs.md), if the request is valid: */
	uint16_t hold_ms;   /* for so many milliseconds at most */

	bool valid; /* the bytes are a request, which may be granted or not */
	bool has_cookie;
	struct convert_span cookie; /* in the request, with its padding */

	bool connect; /* there is a Connect TLV; with CONNECT, and for the log with ANSWER: */
	struct in6_addr address; /* IPv4 as v4-mapped */
	uint16_t port;           /* host byte order */
	bool mptcp;              /* the client wants MPTCP towards the server */
	bool info;               /* the answer starts with what we support */
	bool echo;               /* ANSWER: what follows the request is to come back */

	bool refused;  /* ANSWER: the message is an Error TLV */
	bool proven;   /* the request's cookie proves the client's address */
	bool demanded; /* ANSWER: the request has no cookie, and for now one is demanded (cookies.h) */
	bool lacking;  /* ANSWER: refused for something that this converter lacks and the client may have */
	uint8_t answer[CONVERT_MESSAGE_MAX];
	size_t answer_len;
};

/*
 * request_decide() - what to do about the first bytes of a stream
 * @buf, @len: all bytes that have arrived; those behind the message are not looked at
 */
void request_decide(const struct request_features *features, const uint8_t *buf, size_t len,
		    struct request_decision *decision);

/*
 * request_refuse() - a valid request isn't granted: make @decision an Error TLV
 * @info: what the converter supports comes before it; not for those who may not use it
 * @reason: a constant for the log
 */
void request_refuse(const struct request_features *features, bool info,
		    enum convert_error_code code, uint8_t value, const char *reason,
		    struct request_decision *decision);

/* As request_refuse(), for want of a cookie, which is given. */
void request_refuse_cookie(const uint8_t *cookie, size_t len, const char *reason,
			   struct request_decision *decision);

/* As request_refuse(), for what only this host knows to be malformed; @message is the request. */
void request_refuse_malformed(const uint8_t *message, const char *reason,
			      struct request_decision *decision);

/*
 * request_write_connected() - the answer to a Connect TLV whose server was reached
 * @info: the request had an Info TLV as well
 * @options: options of the server's SYN+ACK in wire format (Section 6.2.6)
 * Returns the bytes written to @out.
 */
size_t request_write_connected(const struct request_features *features, bool info,
			       const uint8_t *options, size_t options_len,
			       uint8_t out[static CONVERT_MESSAGE_MAX]);

/* An Error TLV; behind a Supported TCP Extensions TLV if the request had an Info TLV. */
size_t request_write_error(const struct request_features *features, bool info,
			   enum convert_error_code code, uint8_t value,
			   uint8_t out[static CONVERT_MESSAGE_MAX]);

/* As request_write_error(), for Unsupported TCP Option with the @kinds that are not. */
size_t request_write_unsupported(const struct request_features *features, bool info,
				 const uint8_t *kinds, size_t count,
				 uint8_t out[static CONVERT_MESSAGE_MAX]);

#endif
