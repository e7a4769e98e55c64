/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judgement.h - decides what the converter does with a request; no other place does (no I/O)
 *
 * request.c reads the request and writes the answer; judgement.c decides about rights and room. serve/plugs.h defines
 * the case and the verdict, since a gateway's judge has them, too.
 */
#ifndef CONVERTD_JUDGEMENT_H
#define CONVERTD_JUDGEMENT_H

#include "common/sockaddr.h"
#include "convert/convert.h"
#include "convertd/policy/access.h"
#include "daemon/limits.h"
#include "serve/plugs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ----- requests in clients' bytes, and the answers: request.c ----- */

/*
 * The TCP options that this host puts into its SYNs (Section 6.2.4): its sysctls tcp_sack, tcp_timestamps and
 * mptcp.enabled, read when settings come into force. It also has the rest of the answer to an Info TLV, except no_way.
 */
struct request_features {
	bool sack;
	bool timestamps;
	bool mptcp;
	struct convert_withholding withholding; /* told as well, if SYNs are withheld or corrected */
};

/* The most KiB behind an Echo TLV that come back. */
#define REQUEST_ECHO_KIB 256

/* A request, and the verdict on it. */
struct request_decision {
	struct serve_verdict verdict; /* all but client; plugs.h explains it. With @responds the answer lists our TLVs */
	bool valid;                   /* the bytes are a request, granted or not */
	bool has_cookie;
	struct convert_span cookie;   /* in the request, with its padding */
	uint8_t answer[CONVERT_MESSAGE_MAX]; /* ANSWER */
	size_t answer_len;
};

/*
 * request_decide() - decide about the first bytes of a stream
 * @buf, @len: all bytes that have arrived; those behind the message are ignored
 */
void request_decide(const struct request_features *features, const uint8_t *buf, size_t len,
		    struct request_decision *decision);

/*
 * request_refuse() - turn the decision on a valid request into an Error TLV
 * @info: precede it with what the converter supports; false for clients that may not use the converter
 * @reason: a constant for the log
 */
void request_refuse(const struct request_features *features, bool info,
		    enum convert_error_code code, uint8_t value, const char *reason,
		    struct request_decision *decision);

/* Likewise, for want of a cookie; the answer gives the client that cookie. */
void request_refuse_cookie(const uint8_t *cookie, size_t len, const char *reason,
			   struct request_decision *decision);

/* Likewise, for a request that only this host knows to be malformed; @message is the request. */
void request_refuse_malformed(const uint8_t *message, const char *reason,
			      struct request_decision *decision);

/*
 * request_write_connected() - write the answer to a Connect TLV whose server was reached
 * @info: the request had an Info TLV as well
 * @options: options of the server's SYN+ACK in wire format (Section 6.2.6)
 * Returns the number of bytes written to @out.
 */
size_t request_write_connected(const struct request_features *features, bool info,
			       const uint8_t *options, size_t options_len,
			       uint8_t out[static CONVERT_MESSAGE_MAX]);

/* Likewise writes an Error TLV, in which @value may be an unsupported kind; if @info, behind a Supported TCP Extensions TLV. */
size_t request_write_error(const struct request_features *features, bool info,
			   enum convert_error_code code, uint8_t value,
			   uint8_t out[static CONVERT_MESSAGE_MAX]);

/*
 * request_native_refusal() - translate an Error TLV with this code and value into a refusal by the network (syn_packet.h)
 * @server_v4, @client_v4: the families of the server's and the client's addresses
 */
uint8_t request_native_refusal(enum convert_error_code code, uint8_t value, bool server_v4, bool client_v4);

/* ----- the decision about a valid request ----- */

struct cookies;
struct demand;
struct limits;

/* The operator's rules about which clients may reach which servers. They never change; a reload makes new ones. */
struct admission_rules {
	unsigned number; /* differs from that of all other rules of this process: serve_settings.number */
	const struct request_features *features;
	const struct access *access;
	const struct cookies *cookies; /* NULL: none are required */
	unsigned cookie_lifetime;      /* seconds of an epoch */
	uint8_t retry_delay;           /* seconds, told to clients that exceed a limit */
};

/* The facts from which a thread judges requests. */
struct admission {
	const struct admission_rules *rules; /* those in force */
	struct demand *demand;               /* tells whether cookies are demanded where none are required */
	struct limits *limits;
	access_route_fn *find_route; /* finds where this host sends packets to an address */
	void *route;                 /* its argument */
};

/*
 * Tells whether clients may still be connected to @server, for which one has asked before: rules and routes may have
 * changed since.
 */
bool admission_still_allows(const struct admission *admission, const union sockaddr_ip *server);

/*
 * judgement_make() - judge a request
 *
 * We check, as clients see it, whether the bytes are a request, whether this client may ask, whether it may reach the
 * server, and whether there is room. A refused request uses up no limit, except the rates of errors if it gets the
 * error that demands a cookie.
 */
void judgement_make(const struct admission *admission, const struct judgement_case *c, struct request_decision *decision);

#endif
