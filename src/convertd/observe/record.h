/* SPDX-License-Identifier: BSD-3-Clause */
/* record.h - writes the line of the log about a session that has ended (no I/O) */
#ifndef CONVERTD_RECORD_H
#define CONVERTD_RECORD_H

#include "common/sockaddr.h"
#include "convertd/policy/outcome.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The transport of the connection between client and converter. */
enum record_transport {
	RECORD_TCP,      /* the client didn't ask for Multipath TCP */
	RECORD_MPTCP,
	RECORD_FALLBACK, /* Multipath TCP that became TCP on the way */
	RECORD_TRANSPORT_COUNT
};

#define RECORD_NEVER UINT64_MAX /* the value of a time for what hasn't happened */
#define RECORD_NO_ERROR (-1)

struct record {
	uint64_t id;
	union sockaddr_ip client, server; /* the server's family is 0 if the client named none */
	union sockaddr_ip source;         /* our address towards the server; its family is 0 if none was connected */
	uint64_t bytes_up, bytes_down;    /* relayed bytes, without the messages of the Convert protocol */
	uint64_t duration_us;             /* from accept to the end, in microseconds */
	uint64_t connect_us;              /* until the server had answered, or RECORD_NEVER */
	enum record_transport transport;
	unsigned subflows, subflows_max; /* subflows at the end, and the most that were seen; MPTCP only */
	bool syn_data;                   /* the SYN brought the request, or its first bytes */
	bool silent;                     /* the client was sent no response, as it wished */
	enum outcome outcome;
	const char *reason; /* a constant, for people: the outcome's text or more precise */
	int error;          /* the code of the Error TLV that was sent, or RECORD_NO_ERROR */
};

#define RECORD_TEXT_MAX 512

/* Returns "tcp", "mptcp" or "fallback". */
const char *record_transport_name(enum record_transport transport);

/* Writes the record to @buf for people. Returns @buf. */
const char *record_text(const struct record *record, char buf[static RECORD_TEXT_MAX]);

/* Writes the record's JSON members, which doc/metrics.md lists: a callback for log_fields(), with @record as its argument. */
void record_json(FILE *out, const void *record);

#endif
