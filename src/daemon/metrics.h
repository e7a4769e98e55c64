/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics.h - counts events, and writes the counters for Prometheus, and a session's line in the log (no I/O)
 *
 * Each thread that runs sessions has a struct metrics of its own, to which it adds by relaxed atomic operations; no
 * other thread writes it. A reader adds up those of all threads. Values that go up and down wrap modulo 2^64, so that
 * the sum is right even if one thread adds and another one subtracts.
 */
#ifndef DAEMON_METRICS_H
#define DAEMON_METRICS_H

#include "common/sockaddr.h"
#include "daemon/outcome.h"
#include "relay/relay.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* ----- writes the line of the log about a session that has ended ----- */

/* The transport of the connection between client and converter. */
enum record_transport {
	RECORD_TCP,      /* the client didn't ask for Multipath TCP */
	RECORD_MPTCP,
	RECORD_FALLBACK, /* Multipath TCP that became TCP on the way */
	RECORD_TRANSPORT_COUNT
};

#define RECORD_NEVER UINT64_MAX /* the value of a time for an event that hasn't happened */
#define RECORD_NO_ERROR (-1)

struct record {
	uint64_t id;
	union sockaddr_ip client, server; /* the server's family is 0 if the client named none */
	const char *name;                 /* the client's, as the operator calls it; NULL: it has none */
	union sockaddr_ip source;         /* our address towards the server; its family is 0 if none was connected */
	uint64_t bytes_up, bytes_down;    /* relayed bytes, without the messages of the Convert protocol */
	uint64_t duration_us;             /* from accept, or the arrival of a withheld SYN, to the end, in microseconds */
	uint64_t connect_us;              /* from the request to the server's answer, or RECORD_NEVER */
	enum record_transport transport;
	unsigned subflows, subflows_max; /* subflows at the end, and the most that were seen; MPTCP only */
	bool syn_data;                   /* the SYN brought the request, or its first bytes */
	bool silent;                     /* the client got no response, as it asked */
	enum outcome outcome;
	const char *reason; /* a constant, for people: the outcome's text or more precise */
	int error;          /* the code of the Error TLV that was sent, or RECORD_NO_ERROR */
};

#define RECORD_TEXT_MAX 512

/* Writes the record to @buf for people. Returns @buf. */
const char *record_text(const struct record *record, char buf[static RECORD_TEXT_MAX]);

/* Writes the record's JSON members, which doc/metrics.md lists: a callback for log_fields(), with @record as its argument. */
void record_json(FILE *out, const void *record);

/* ----- counters ----- */

/* The number of codes of Error TLVs (Section 6.2.8). */
#define METRICS_ERRORS 10

/* The number of buckets of each histogram: those with an upper bound, and one for all larger values. */
#define METRICS_TIME_BUCKETS 15
#define METRICS_SUBFLOW_BUCKETS 6

/* The fate of a SYN from the queue (hold.h); the first values are of withheld SYNs. */
enum metrics_syn {
	METRICS_SYN_ANSWERED,    /* released: the server has answered */
	METRICS_SYN_FAILED,      /* released: the server can't be reached */
	METRICS_SYN_LATE,        /* released: the server was silent for --hold-time, or for the time that the client allows */
	METRICS_SYN_STOPPED,     /* no longer withheld: withholding has stopped, or the limits want the room */
	METRICS_SYN_PASSED,      /* passed: not a first SYN with a request to connect */
	METRICS_SYN_NOT_GRANTED, /* passed: its session will refuse it */
	METRICS_SYN_UNCONFIRMED, /* passed: by a limit, or it can't be withheld, or was withheld before */
	METRICS_SYN_UNREADABLE,  /* passed */
	METRICS_SYN_REPEATED,    /* dropped: another SYN of its flow or request is withheld, or was dropped */
	METRICS_SYN_FOREIGN,     /* dropped: --drop-foreign-syns */
	METRICS_SYN_REFUSED,     /* refused by a reset or an ICMP message, as its client takes no response */
	METRICS_SYN_UNANSWERED,  /* dropped: its client takes no response, and nobody answered for the server */
	METRICS_SYN_MISSED,      /* passed: the daemon was too slow to see it */
	METRICS_SYN_COUNT
};

/*
 * Indices of struct metrics' values. A comment "by enum X" marks the first of a group with one counter for each
 * value of X (METRIC_STATE + SESSION_REQUEST, say); the value of the name behind such a group leaves room for it.
 */
enum metric {
	METRIC_ACCEPTED,
	METRIC_STATE, /* sessions in each state, by enum session_state; the final state isn't shown */
	METRIC_PENDING = METRIC_STATE + SESSION_STATE_COUNT,
	METRIC_ENDED, /* by enum outcome */
	METRIC_ERRORS = METRIC_ENDED + OUTCOME_COUNT,
	METRIC_BYTES = METRIC_ERRORS + METRICS_ERRORS, /* by enum relay_end: the end that they come from */
	METRIC_REQUESTS = METRIC_BYTES + RELAY_ENDS,   /* two: without data in the SYN, and with data */
	METRIC_SILENT = METRIC_REQUESTS + 2,           /* by enum judgement_reply: of silent requests */
	METRIC_TRANSPORT = METRIC_SILENT + JUDGEMENT_REPLIES, /* of ended ones, by enum record_transport */
	METRIC_ACCEPT_PAUSES = METRIC_TRANSPORT + RECORD_TRANSPORT_COUNT,
	METRIC_LOG_LEFT_OUT,
	METRIC_PIPES, /* in use */
	METRIC_MEMORY, /* bytes of the kernel's that sessions are known to hold */
	METRIC_SYNS_WITHHELD,
	METRIC_SYNS, /* by enum metrics_syn */
	METRIC_REQUEST_SECONDS = METRIC_SYNS + METRICS_SYN_COUNT, /* buckets, then the sum in microseconds */
	METRIC_CONNECT_SECONDS = METRIC_REQUEST_SECONDS + METRICS_TIME_BUCKETS + 1,
	METRIC_ROUND_TRIP_SECONDS = METRIC_CONNECT_SECONDS + METRICS_TIME_BUCKETS + 1,
	METRIC_SUBFLOWS = METRIC_ROUND_TRIP_SECONDS + METRICS_TIME_BUCKETS + 1,
	METRIC_COUNT = METRIC_SUBFLOWS + METRICS_SUBFLOW_BUCKETS + 1
};

/* Zero at first. */
struct metrics {
	_Alignas(64) _Atomic uint64_t values[METRIC_COUNT];
};

/* The sum of all threads' counters. */
struct metrics_sum {
	uint64_t values[METRIC_COUNT];
};

static inline void metrics_add(struct metrics *metrics, unsigned metric, uint64_t value)
{
	atomic_fetch_add_explicit(&metrics->values[metric], value, memory_order_relaxed);
}

/* Counts one observation in the histogram at @metric; @us: microseconds. */
void metrics_observe_us(struct metrics *metrics, enum metric metric, uint64_t us);
void metrics_observe_subflows(struct metrics *metrics, unsigned subflows);

/* Returns the metric that counts Error TLVs with this code; 0: none does. */
unsigned metrics_error_metric(uint8_t code);

/* Counts a session that has ended. */
void metrics_count_record(struct metrics *metrics, const struct record *record);

void metrics_add_up(struct metrics_sum *sum, const struct metrics *metrics);

/* Returns the number of sessions in all states. */
uint64_t metrics_sessions(const struct metrics_sum *sum);

/*
 * Estimates, as Prometheus does, the time in microseconds below which a part @quantile of all observations lies (0.5:
 * the median); -1 without any observation. A time beyond the last bound counts as that bound.
 */
double metrics_quantile_us(const struct metrics_sum *sum, enum metric metric, double quantile);

/* Returns the Error Code that METRIC_ERRORS + @i counts. */
uint8_t metrics_error_code(unsigned i);

/* Writes the first lines of a family of metrics: "# HELP", "# TYPE". */
void metrics_write_head(FILE *out, const char *name, const char *type, const char *help);

/* Writes all families, with names that begin with @program, in the text format 0.0.4 of Prometheus. */
void metrics_write(FILE *out, const char *program, const struct metrics_sum *sum);
const char *metrics_syn_text(unsigned syn);

#endif
