/* SPDX-License-Identifier: BSD-3-Clause */
/* judgement.h - the one place where it is decided what becomes of a request (no I/O) */
#ifndef CONVERTD_JUDGEMENT_H
#define CONVERTD_JUDGEMENT_H

#include "convertd/policy/outcome.h"
#include "convertd/policy/admission.h"
#include "convertd/policy/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a request was found. */
enum judgement_place {
	JUDGEMENT_STREAM,   /* in what a connection has brought so far: more may follow, and it can be answered */
	JUDGEMENT_SYN,      /* in a SYN that may be withheld: there is no connection yet that could be answered */
	JUDGEMENT_WITHHELD, /* in a SYN that is withheld already, and granted by terms that have changed since */
};

/* A server that was granted to a SYN, by the terms of that number. */
struct judgement_grant {
	unsigned terms;
	union sockaddr_ip server;
	bool mptcp; /* towards the server */
};

/* How a client hears what has become of its request (doc/private-tlvs.md). */
enum judgement_voice {
	JUDGEMENT_RESPONSE, /* by the protocol's messages */
	JUDGEMENT_SILENT,   /* by nothing but the server's bytes, or a reset */
	JUDGEMENT_RESET,    /* it can't be told at all: its connection is reset, its SYN refused */
	JUDGEMENT_VOICES
};

/* What is judged. */
struct judgement_case {
	enum judgement_place place;
	const uint8_t *bytes; /* all that has arrived, the request first */
	size_t len;
	struct admission_client client;
	const struct judgement_grant *grant; /* STREAM: what its SYN was granted, if that was withheld; or NULL */
	/*
	 * STREAM: counted already. SYN: limits_enter() has not been called for it, and is called if the SYN is
	 * to be withheld; only its owner and kind are set. WITHHELD: NULL, as it has its room.
	 */
	struct limits_member *member;
	uint64_t now_ms; /* clock_now_ms() */
	bool mptcp;      /* the client's connection is one of Multipath TCP, or its SYN asks for that */
	/*
	 * STREAM: the SYN+ACK has acknowledged the SYN's data and has timestamps, which says that the server was reached. The
	 * client sees the same, so that both know whether a silent request has a response. SYN: not used, as that is still open.
	 */
	bool confirmed;
};

/*
 * The verdict: request.action, and what its caller has to know to carry it out.
 *
 *     action           STREAM                                   SYN
 *     REQUEST_WAIT     reads on                                 passes the SYN on: it asks for nothing yet
 *     REQUEST_PROVE    judges again after the third ACK         passes it on: its connection is judged
 *     REQUEST_CONNECT  asks the server, or takes what was       asks the server and withholds the SYN if
 *                      done for the SYN (by_grant)              withhold says so, else passes it on
 *     REQUEST_ANSWER   answers                                  passes it on: its connection is answered
 *     REQUEST_IGNORE   closes without a word                    passes or drops it, as the operator says
 *     REQUEST_RESET    resets the connection                    passes it on: its connection is reset
 *
 * What can't be told to a client that wants silence ends in a reset, whatever the action is: voice says so.
 */
struct judgement {
	struct request_decision request;
	enum judgement_voice voice;
	enum outcome exceeded; /* ANSWER: the limit that is exceeded, or OUTCOME_NONE */
	bool by_grant;         /* CONNECT: by what was granted to the SYN, whose server was asked then */
	bool error_taken;      /* ANSWER: limits_take_error() has counted this error already */
	bool withhold;         /* CONNECT, SYN: the member has room among those that are withheld. Whoever doesn't */
			       /* withhold the SYN after all gives it back by limits_leave(). */
};

/*
 * judgement_make() - what becomes of a request
 *
 * The order is what a client sees: first whether these bytes are a request, then who asks, then for what (admission.h),
 * last whether there is room. Nothing is taken from the limits for what is refused, but an error's place in the
 * rates where a cookie is demanded in a stream.
 */
void judgement_make(const struct admission *admission, const struct judgement_case *c, struct judgement *judgement);

#endif
