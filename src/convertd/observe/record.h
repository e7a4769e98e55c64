/* SPDX-License-Identifier: BSD-3-Clause */
/* record.h - what is told of a session at its end: the line in the log (no I/O) */
#ifndef CONVERTD_RECORD_H
#define CONVERTD_RECORD_H

#include "common/sockaddr.h"
#include "convertd/policy/outcome.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* How the client's side was carried. */
enum record_transport {
	RECORD_TCP,      /* the client didn't ask for more */
	RECORD_MPTCP,
	RECORD_FALLBACK, /* Multipath TCP that became TCP on the way */
	RECORD_TRANSPORT_COUNT
};

#define RECORD_NEVER UINT64_MAX /* of a time: it didn't come to that */
#define RECORD_NO_ERROR (-1)

struct record {
	uint64_t id;
	union sockaddr_ip client, server; /* the server's family is 0 if none was named */
	union sockaddr_ip source;         /* ours towards it; the family is 0 if it wasn't asked */
	uint64_t bytes_up, bytes_down;    /* relayed, without what is the converter's own */
	uint64_t duration_us;             /* from accept to the end */
	uint64_t connect_us;              /* until the server had answered, or RECORD_NEVER */
	enum record_transport transport;
	unsigned subflows, subflows_max; /* at the end, and the most that were seen; MPTCP only */
	bool syn_data;                   /* the SYN brought the request, or the first of it */
	enum outcome outcome;
	const char *reason; /* a constant, for people: the outcome's text or more precise */
	int error;          /* the code of the Error TLV that was sent, or RECORD_NO_ERROR */
};

#define RECORD_TEXT_MAX 512

/* "tcp", "mptcp", "fallback" */
const char *record_transport_name(enum record_transport transport);

/* For people. Returns @buf. */
const char *record_text(const struct record *record, char buf[static RECORD_TEXT_MAX]);

/* For log_fields(), with the record as its argument: what convertd(8) lists under LOG. */
void record_json(FILE *out, const void *record);

#endif
